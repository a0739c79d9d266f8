"""guard: what may be done now. What is not surely safe is held, with the reason and its numbers."""

from agent.guard.judge import ALL_CHECKS, explained, guard, still
from agent.guard.world_checks import CHECKS

__all__ = [
    "ALL_CHECKS",
    "CHECKS",
    "explained",
    "guard",
    "still",
]
