"""A point on the monotonic clock by which an answer must be there; handed down through every step of a call."""

from __future__ import annotations

import time
from typing import NamedTuple


class Deadline(NamedTuple):
    """The instant itself, in seconds of the monotonic clock."""

    at: float

    @classmethod
    def after_ms(cls, duration_ms: float) -> Deadline:
        """The deadline that lies this far ahead."""
        return cls(time.monotonic() + duration_ms / 1000)

    @property
    def left_s(self) -> float:
        """Seconds that are left, never negative."""
        return max(0.0, self.at - time.monotonic())

    @property
    def over(self) -> bool:
        """True once nothing is left."""
        return time.monotonic() >= self.at

    def part(self, share: float) -> Deadline:
        """An earlier deadline that leaves only this share of what is left."""
        return Deadline(time.monotonic() + self.left_s * share)
