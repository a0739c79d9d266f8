"""The clock as a value: pure stages get a `ClockReading` and never read a clock themselves."""

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
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def system_clock() -> ClockReading:
    """Both clocks now."""
    return ClockReading(time.time_ns() // 1_000_000, elapsed_ns() // 1_000_000)


def elapsed_ns() -> int:
    """Nanoseconds of CLOCK_BOOTTIME, which unlike Python's monotonic clock also counts while the machine sleeps."""
    return time.clock_gettime_ns(_BOOT_CLOCK)


def elapsed_s() -> float:
    """`elapsed_ns` in seconds."""
    return elapsed_ns() / 1e9
