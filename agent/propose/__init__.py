"""Propose: each part of the plan as a value that says everything a reader needs to decide."""

from agent.propose.make import propose

__all__ = ["propose"]
