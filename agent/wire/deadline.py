"""By when an answer must be there; handed down through every step of a call.

The clock also counts while the machine sleeps: what was to be sent before it is not sent after it.
"""

from __future__ import annotations

from typing import NamedTuple

from agent.values.clock import elapsed_s


class Deadline(NamedTuple):
    """The instant itself, in seconds of `agent.values.clock.elapsed_s`."""

    at: float

    @classmethod
    def after_ms(cls, duration_ms: float) -> Deadline:
        """The deadline that lies this far ahead."""
        return cls(elapsed_s() + duration_ms / 1000)

    @property
    def left_s(self) -> float:
        """Seconds that are left, never negative."""
        return max(0.0, self.at - elapsed_s())

    @property
    def over(self) -> bool:
        """True once nothing is left."""
        return elapsed_s() >= self.at

    def part(self, share: float) -> Deadline:
        """An earlier deadline that leaves only this share of what is left."""
        return Deadline(elapsed_s() + self.left_s * share)
