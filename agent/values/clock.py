"""The clock as a value, and maintenance windows and blackouts on it, which allow or forbid acts. Pure.

Pure stages get a `ClockReading` and never read a clock themselves. A window is a stretch of wall-clock time in an IANA
zone. An instant is within it when a wall clock of the zone shows a time of the window: an hour that comes twice is
within it twice, and minutes that a change of clocks leaves out never are. Acts are allowed within some allowed window
(or without any), and within no blackout.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo


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


DAY_MINUTES = 1_440
HORIZON_DAYS = 400
"""Range of the search for the next opening."""
EVERY_DAY = frozenset(range(7))


class TimeWindow(NamedTuple):
    """One stretch of wall-clock time, on some days of the week."""

    name: str
    zone: str
    """IANA name, such as ``Europe/Berlin``."""
    start_minute: int = 0
    """Minutes after midnight at which it begins."""
    end_minute: int = 0
    """Minutes after midnight at which it ends; not after the start means on the next day, equal is a whole day."""
    days: frozenset[int] = EVERY_DAY
    """Days on which it begins; Monday is 0."""
    first: date | None = None
    """First and last day on which it begins, in its zone."""
    last: date | None = None
    kinds: frozenset[str] = frozenset()
    """Kinds of proposals that it applies to; empty: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindowSet:
    """All windows; without any, acts are allowed at any time."""

    allow: tuple[TimeWindow, ...] = ()
    blackout: tuple[TimeWindow, ...] = ()


class ClosedWindow(NamedTuple):
    """The reason why no act is allowed now."""

    sentence: str
    until_ms: int | None
    """The next opening in epoch milliseconds; None when there is none within `HORIZON_DAYS`."""


def closed_window(windows: TimeWindowSet, kind: str, now_ms: int) -> ClosedWindow | None:
    """Why no act of that kind is allowed at this instant; None when it is allowed."""
    now = datetime.fromtimestamp(now_ms / 1_000, UTC)
    blackout = next((window for window in _of(windows.blackout, kind) if within(window, now)), None)
    if blackout is None and is_open(windows, kind, now):
        return None
    why = f"blackout {blackout.name} is on" if blackout is not None else _outside(windows, kind)
    opens = next_opening(windows, kind, now)
    when = f"until {opens:%Y-%m-%d %H:%M UTC}" if opens is not None else f"and no opening within {HORIZON_DAYS} days"
    return ClosedWindow(f"{why}, {when}", None if opens is None else round(opens.timestamp() * 1_000))


def is_open(windows: TimeWindowSet, kind: str, now: datetime) -> bool:
    """Whether acts of that kind are allowed at this instant (a datetime in UTC)."""
    allowing = _of(windows.allow, kind)
    if allowing and not any(within(window, now) for window in allowing):
        return False
    return not any(within(window, now) for window in _of(windows.blackout, kind))


def within(window: TimeWindow, now: datetime) -> bool:
    """Whether a wall clock in the window's zone shows a time of the window."""
    local = now.astimezone(_zone(window.zone))
    minute, today = local.hour * 60 + local.minute, local.date()
    if window.end_minute > window.start_minute:
        return window.start_minute <= minute < window.end_minute and _begins_on(window, today)
    if minute >= window.start_minute and _begins_on(window, today):
        return True
    return minute < window.end_minute and _begins_on(window, today - timedelta(days=1))


def next_opening(windows: TimeWindowSet, kind: str, now: datetime) -> datetime | None:
    """The first instant after now at which it is open; None when there is none within `HORIZON_DAYS`."""
    every = (*_of(windows.allow, kind), *_of(windows.blackout, kind))
    for day in range(-1, HORIZON_DAYS):
        edges = {edge for window in every for edge in _edges(window, now.date() + timedelta(days=day))}
        for edge in sorted(edges):
            if edge > now and is_open(windows, kind, edge):
                return edge
    return None


def _of(windows: Iterable[TimeWindow], kind: str) -> tuple[TimeWindow, ...]:
    return tuple(window for window in windows if not window.kinds or kind in window.kinds)


def _outside(windows: TimeWindowSet, kind: str) -> str:
    named = ", ".join(window.name for window in _of(windows.allow, kind))
    return f"outside the windows that allow it ({named})"


def _begins_on(window: TimeWindow, day: date) -> bool:
    after = window.first is None or day >= window.first
    return after and (window.last is None or day <= window.last) and day.weekday() in window.days


def _edges(window: TimeWindow, day: date) -> Iterator[datetime]:
    """Instants of that day in the zone at which `is_open` may change: its two times, midnight, a change of clocks."""
    zone = _zone(window.zone)
    for minute in {0, window.start_minute, window.end_minute % DAY_MINUTES}:
        local = datetime.combine(day, time_of_day(minute // 60, minute % 60), zone)
        for fold in (0, 1):
            yield local.replace(fold=fold).astimezone(UTC)
    begin = datetime.combine(day, time_of_day(), zone).astimezone(UTC)
    end = datetime.combine(day + timedelta(days=1), time_of_day(), zone).astimezone(UTC)
    if begin.astimezone(zone).utcoffset() != end.astimezone(zone).utcoffset():
        yield _change(zone, begin, end)


def _change(zone: ZoneInfo, begin: datetime, end: datetime) -> datetime:
    """The first instant after ``begin`` at which the zone's clocks are set as at ``end``."""
    low, high = int(begin.timestamp()), int(end.timestamp())
    offset = begin.astimezone(zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return datetime.fromtimestamp(high, UTC)


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
