"""Plan: what would mend what was found, as the smallest change that is worth it."""

from agent.plan.make import make_plan
from agent.plan.plan import Plan

__all__ = ["Plan", "make_plan"]
