"""Time as a value that is handed in: nothing in the straight line reads a clock by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class ClockReading(NamedTuple):
    """One instant on two clocks."""

    wall_ms: int
    """Milliseconds since the epoch; for display and topics only, it may jump."""
    monotonic_ms: int
    """Never runs backwards, and also counts while the machine sleeps; every duration is taken from it."""


Clock = Callable[[], ClockReading]
_AWAKE_OR_NOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def system_clock() -> ClockReading:
    """Now."""
    return ClockReading(time.time_ns() // 1_000_000, elapsed_ns() // 1_000_000)


def elapsed_ns() -> int:
    """Nanoseconds on a clock that never runs backwards and also counts while the machine sleeps, where there is one.

    Python's own monotonic clock stands still then: what was decided before a sleep would look fresh after it.
    """
    return time.clock_gettime_ns(_AWAKE_OR_NOT)


def elapsed_s() -> float:
    """The same in seconds."""
    return elapsed_ns() / 1e9
