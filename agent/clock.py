"""Time as a value that is handed in: nothing in the straight line reads a clock by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Instant(NamedTuple):
    """One instant on two clocks."""

    wall_ms: int
    """Milliseconds since the epoch; for display and topics only, it may jump."""
    monotonic_ms: int
    """Never runs backwards; every duration is taken from it."""


Clock = Callable[[], Instant]


def system_clock() -> Instant:
    """Now."""
    return Instant(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)
