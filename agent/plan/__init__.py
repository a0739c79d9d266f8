"""Plan: what would mend what was found, as the smallest change that is worth it."""

from agent.plan.make import make_plan

__all__ = ["make_plan"]
