"""Maintenance windows and blackouts by name, as times of day in an IANA zone.

A window that never opens, and blackouts that leave no minute, are mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from functools import cache
from typing import Annotated, Literal, Self
from zoneinfo import available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from config.setting_mistake import SettingMistake, nearest
from config.value_kinds import NoneWord, Text

_STRICT = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_DAY_MINUTES = 1_440
_WEEK_MINUTES = 7 * _DAY_MINUTES

WindowKind = Literal["trigger", "leaders", "reassign"]


def _split(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


WindowKinds = Annotated[tuple[WindowKind, ...], BeforeValidator(_split)]
"""Kinds of proposals: a list, or one text with commas."""


def _zone(name: str) -> str:
    if name in _zones():
        return name
    near = nearest(name, _zones())
    hint = f"; did you mean {near}?" if near else ", such as Europe/Berlin or UTC"
    raise ValueError(f"{name!r} is not an IANA time zone{hint}")


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def _time(value: object) -> object:
    """``22:00``. YAML reads an unquoted 22:00 as a number to the base of sixty."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _DAY_MINUTES:
        value = f"{value // 60:02}:{value % 60:02}"
    if value == "24:00":
        return "00:00"
    if not isinstance(value, str) or not _TIME.fullmatch(value.strip()):
        raise ValueError("a time of day is expected, such as 22:00")
    return value.strip()


def _days(value: object) -> object:
    """``mon-fri``, ``sat,sun``: three letters each, ranges may go over the end of the week."""
    days: list[str] = []
    for part in value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [""]:
        first, dash, last = str(part).strip().lower().partition("-")
        if first not in _DAYS or (dash and last not in _DAYS):
            raise ValueError(
                f"{str(part)!r} is not a day: use mon, tue, wed, thu, fri, sat, sun, or a range such as mon-fri"
            )
        begin = _DAYS.index(first)
        count = (_DAYS.index(last) - begin) % 7 + 1 if dash else 1
        days += [_DAYS[(begin + step) % 7] for step in range(count)]
    return tuple(sorted(dict.fromkeys(days), key=_DAYS.index))


class WindowSettings(BaseModel):
    """A period of wall-clock time."""

    model_config = _STRICT

    days: Annotated[tuple[str, ...], BeforeValidator(_days, json_schema_input_type=tuple[str, ...] | str)] = _DAYS
    """Days on which it begins, such as ``mon-fri``."""
    start: Annotated[str, BeforeValidator(_time)] = "00:00"
    """Time of day at which it begins."""
    end: Annotated[str, BeforeValidator(_time)] = "00:00"
    """Time of day at which it ends; if not after start, on the next day; equal to start: 24 hours."""
    zone: Annotated[Text, AfterValidator(_zone)] = "UTC"
    """IANA time zone of start and end."""
    first: Annotated[date | None, NoneWord] = None
    """First day on which it begins, such as 2026-12-20; none: no first day."""
    last: Annotated[date | None, NoneWord] = None
    """Last day on which it begins; none: no last day."""
    kinds: WindowKinds = ()
    """Kinds of proposals that it applies to; empty: all."""

    @model_validator(mode="after")
    def _opens(self) -> Self:
        if self.first is None or self.last is None:
            return self
        if self.last < self.first:
            raise SettingMistake("last", f"it is before first, {self.first}, so the window never opens")
        span = min((self.last - self.first).days, 6)
        if not {(self.first.weekday() + step) % 7 for step in range(span + 1)} & set(self.day_numbers):
            raise SettingMistake("days", "none of these days is between first and last, so the window never opens")
        return self

    @property
    def day_numbers(self) -> tuple[int, ...]:
        """Monday is 0."""
        return tuple(_DAYS.index(day) for day in self.days)

    @property
    def start_minute(self) -> int:
        """Minutes after midnight."""
        return int(self.start[:2]) * 60 + int(self.start[3:])

    @property
    def end_minute(self) -> int:
        """Minutes after midnight."""
        return int(self.end[:2]) * 60 + int(self.end[3:])

    @property
    def minutes_of_week(self) -> frozenset[int]:
        """The minutes of a week without a change of clocks that are within it; Monday 00:00 is 0."""
        length = (self.end_minute - self.start_minute) % _DAY_MINUTES or _DAY_MINUTES
        begins = (day * _DAY_MINUTES + self.start_minute for day in self.day_numbers)
        return frozenset((begin + minute) % _WEEK_MINUTES for begin in begins for minute in range(length))


class WindowsSettings(BaseModel):
    """When changes may begin: in an allowed window (any time if there are none), and outside every blackout."""

    model_config = _STRICT

    allow: dict[Text, WindowSettings] = Field(default_factory=dict)
    """Windows by name in which changes may begin."""
    blackout: dict[Text, WindowSettings] = Field(default_factory=dict)
    """Windows by name in which no change may begin."""

    @model_validator(mode="after")
    def _open_at_some_time(self) -> Self:
        for kind in ("trigger", "leaders", "reassign"):
            if never_opens(_about(self.allow.values(), kind), _about(self.blackout.values(), kind)):
                raise SettingMistake("blackout", f"it leaves no minute of the week for a {kind}")
        return self


def never_opens(allow: Iterable[WindowSettings], blackout: Iterable[WindowSettings]) -> bool:
    """True when lasting blackouts cover every minute that is allowed.

    Told in wall-clock time, so only of windows in one zone; between zones the changes of clocks would decide.
    """
    dark: dict[str, frozenset[int]] = {}
    for window in blackout:
        if window.first is None and window.last is None:
            dark[window.zone] = dark.get(window.zone, frozenset()) | window.minutes_of_week
    if any(len(minutes) == _WEEK_MINUTES for minutes in dark.values()):
        return True
    allowing = tuple(allow)
    return bool(allowing) and all(window.minutes_of_week <= dark.get(window.zone, frozenset()) for window in allowing)


def _about(windows: Iterable[WindowSettings], kind: str) -> tuple[WindowSettings, ...]:
    return tuple(window for window in windows if not window.kinds or kind in window.kinds)
