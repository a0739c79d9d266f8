"""Windows and blackouts: open minutes are exactly those of an independent specification, over every change of clocks.

The specification knows no wall clocks of its own: it walks a zone's stretches of constant offset, read off the zone's
transitions, and marks in each the UTC minutes whose shifted time of day lies in the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import pytest

from agent.values.clock import (
    DAY_MINUTES,
    ClosedWindow,
    TimeWindow,
    TimeWindowSet,
    closed_window,
    is_open,
    next_opening,
    within,
)

FIRST, LAST = datetime(2025, 1, 1, tzinfo=UTC), datetime(2035, 12, 31, tzinfo=UTC)
ZONES = (
    "Africa/Cairo", "Africa/Casablanca", "America/Asuncion", "America/Havana", "America/New_York", "America/Nuuk",
    "America/Santiago", "America/Sao_Paulo", "America/St_Johns", "Antarctica/Troll", "Asia/Beirut", "Asia/Gaza",
    "Asia/Kolkata", "Asia/Tokyo", "Australia/Lord_Howe", "Australia/Sydney", "Europe/Berlin", "Europe/Dublin",
    "Europe/London", "Pacific/Apia", "Pacific/Chatham", "UTC",
)  # fmt: skip
SHAPES: dict[str, tuple[int, int, frozenset[int]]] = {
    "nights of working days": (22 * 60, 6 * 60, frozenset(range(5))),
    "Sunday from one to three": (60, 180, frozenset({6})),
    "five minutes at half past two": (150, 155, frozenset(range(7))),
    "whole weekends": (0, 0, frozenset({5, 6})),
    "two minutes around midnight": (23 * 60 + 59, 1, frozenset(range(7))),
    "from three to two of the next day": (3 * 60, 2 * 60, frozenset({6, 0})),
}
"""Start and end in minutes after midnight, and the days on which it begins."""
MINUTE = timedelta(minutes=1)


@cache
def transitions(zone: ZoneInfo) -> list[datetime]:
    """UTC instants at which the zone's offset changes, found hour by hour and then to the minute."""
    found: list[datetime] = []
    at = FIRST
    offset = at.astimezone(zone).utcoffset()
    while at < LAST:
        later = at + timedelta(hours=6)
        if later.astimezone(zone).utcoffset() != offset:
            minute = at
            while minute.astimezone(zone).utcoffset() == offset:
                minute += MINUTE
            found.append(minute)
            offset = later.astimezone(zone).utcoffset()
        at = later
    return found


def specified(window: TimeWindow, stretch: tuple[datetime, datetime], offset: timedelta) -> set[datetime]:
    """UTC minutes of a stretch of constant offset in which the window is open, by plain arithmetic."""
    begin, end = (instant.replace(tzinfo=None) + offset for instant in stretch)
    length = (window.end_minute - window.start_minute) % DAY_MINUTES or DAY_MINUTES
    minutes: set[datetime] = set()
    for day in range((end - begin).days + 4):
        date_of = (begin - timedelta(days=2)).date() + timedelta(days=day)
        if date_of.weekday() not in window.days:
            continue
        midnight = datetime(date_of.year, date_of.month, date_of.day)  # noqa: DTZ001 wall time, by construction
        # What lies beyond midnight is the next calendar day's minutes, whatever its clocks did in between.
        for minute in range(length):
            wall = midnight + timedelta(minutes=window.start_minute + minute)
            if begin <= wall < end:
                minutes.add((wall - offset).replace(tzinfo=UTC))
    return minutes


def around(zone: ZoneInfo, change: datetime) -> Iterator[tuple[tuple[datetime, datetime], timedelta]]:
    """The stretches of constant offset two days before and after a change."""
    for stretch in ((change - timedelta(days=2), change), (change, change + timedelta(days=2))):
        offset = stretch[0].astimezone(zone).utcoffset()
        assert offset is not None
        yield stretch, offset


def wrong_minutes(zone_name: str, start: int, end: int, days: frozenset[int]) -> list[str]:
    zone = ZoneInfo(zone_name)
    window = TimeWindow("w", zone_name, start, end, days)
    wrong: list[str] = []
    changes = transitions(zone) or [datetime(2030, 3, 31, tzinfo=UTC)]
    for change in changes:
        for stretch, offset in around(zone, change):
            want = specified(window, stretch, offset)
            at = stretch[0]
            while at < stretch[1]:
                if within(window, at) is not (at in want):
                    wrong.append(f"{zone_name} {at:%F %T} is {'open' if within(window, at) else 'closed'}")
                at += MINUTE
    return wrong


@pytest.mark.parametrize("zone", ZONES)
def test_open_minutes_are_those_of_the_specification(zone: str) -> None:
    shape = list(SHAPES)[ZONES.index(zone) % len(SHAPES)]
    assert wrong_minutes(zone, *SHAPES[shape]) == [], shape


@pytest.mark.drill
@pytest.mark.parametrize("zone", sorted(available_timezones()))
def test_open_minutes_are_those_of_the_specification_in_every_zone_and_shape(zone: str) -> None:
    assert {shape: wrong for shape in SHAPES if (wrong := wrong_minutes(zone, *SHAPES[shape]))} == {}


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


BERLIN_NIGHTS = TimeWindow("nights", "Europe/Berlin", 22 * 60, 6 * 60, frozenset(range(5)))


@pytest.mark.parametrize(
    ("instant", "open_"),
    [
        pytest.param("2026-11-20T20:59:59", False, id="a second before ten on Friday evening"),
        pytest.param("2026-11-20T21:00:00", True, id="ten on Friday evening"),
        pytest.param("2026-11-21T04:59:59", True, id="a second before six on Saturday morning"),
        pytest.param("2026-11-21T05:00:00", False, id="six on Saturday morning"),
        pytest.param("2026-11-21T21:30:00", False, id="Saturday evening begins no window"),
        pytest.param("2026-07-10T20:00:00", True, id="ten on a summer evening is an hour earlier in UTC"),
    ],
)
def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins(instant: str, open_: bool) -> None:
    assert within(BERLIN_NIGHTS, utc(instant)) is open_


def test_an_hour_that_comes_twice_is_within_the_window_twice() -> None:
    window = TimeWindow("w", "Europe/Berlin", 2 * 60, 3 * 60)
    day = [utc("2026-10-25T00:00") + timedelta(minutes=minute) for minute in range(180)]
    assert sum(within(window, at) for at in day) == 120


def test_an_hour_that_is_left_out_never_opens() -> None:
    window = TimeWindow("w", "Europe/Berlin", 2 * 60, 3 * 60)
    day = [utc("2026-03-29T00:00") + timedelta(minutes=minute) for minute in range(180)]
    assert sum(within(window, at) for at in day) == 0


def test_first_and_last_day_count_in_the_windows_zone() -> None:
    window = TimeWindow("w", "Pacific/Apia", first=date(2026, 12, 20), last=date(2026, 12, 20))
    assert within(window, utc("2026-12-19T11:00"))
    assert not within(window, utc("2026-12-19T10:59"))
    assert not within(window, utc("2026-12-20T11:00"))


@pytest.mark.parametrize(
    ("windows", "now", "opens"),
    [
        pytest.param(
            TimeWindowSet(allow=(BERLIN_NIGHTS,)), "2026-11-21T12:00", "2026-11-23T21:00", id="over the weekend"
        ),
        pytest.param(
            TimeWindowSet(allow=(BERLIN_NIGHTS,), blackout=(TimeWindow("dark", "UTC", 20 * 60, 22 * 60),)),
            "2026-11-23T12:00",
            "2026-11-23T22:00",
            id="when the blackout in it ends",
        ),
        pytest.param(
            TimeWindowSet(blackout=(TimeWindow("end", "UTC", first=date(2026, 12, 20), last=date(2027, 1, 5)),)),
            "2026-12-24T00:00",
            "2027-01-06T00:00",
            id="after the days of a blackout",
        ),
        pytest.param(
            TimeWindowSet(allow=(TimeWindow("w", "Europe/Berlin", 150, 160, frozenset({6})),)),
            "2026-03-28T12:00",
            "2026-04-05T00:30",
            id="not on the Sunday that has no half past two",
        ),
        pytest.param(
            TimeWindowSet(allow=(TimeWindow("w", "UTC", last=date(2026, 1, 1)),)),
            "2026-11-21T00:00",
            None,
            id="never again",
        ),
        pytest.param(
            TimeWindowSet(blackout=(TimeWindow("b", "America/New_York", 0, 150, frozenset({6})),)),
            "2026-03-08T06:00",
            "2026-03-08T07:00",
            id="as soon as clocks jump over the end of a blackout",
        ),
    ],
)
def test_the_next_opening(windows: TimeWindowSet, now: str, opens: str | None) -> None:
    found = next_opening(windows, "reassign", utc(now))
    assert found == (None if opens is None else utc(opens))
    assert found is None or not is_open(windows, "reassign", found - timedelta(seconds=1))


def test_a_window_of_other_kinds_says_nothing() -> None:
    windows = TimeWindowSet(allow=(BERLIN_NIGHTS._replace(kinds=frozenset({"reassign"})),))
    noon = round(utc("2026-11-21T12:00").timestamp() * 1_000)
    assert closed_window(windows, "trigger", noon) is None
    assert closed_window(windows, "reassign", noon) == ClosedWindow(
        "outside the windows that allow it (nights), until 2026-11-23 21:00 UTC",
        round(utc("2026-11-23T21:00").timestamp() * 1_000),
    )


def test_without_windows_it_is_always_open() -> None:
    assert closed_window(TimeWindowSet(), "reassign", 0) is None
