"""Bounds of the limits that telemetry holds; the settings check their own when they are read.

The right to write the telemetry topic, or a file of it, is the right to write any limits: a negative budget, a time
zone that does not exist. They are refused here, so that no stage fails on them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import reduce
from typing import Any
from zoneinfo import ZoneInfo

from pydantic_core import SchemaError

from agent.model.located import Networks, Patterns
from agent.telemetry.limits_names import recorded_names
from agent.values.limits import Limits
from agent.values.typed_json import UnreadableError
from agent.values.windows import DAY_MINUTES

_MOST = 2**63
"""As a float it is the same; the largest number of 64 bits is not."""


def checked(limits: Limits) -> Limits:
    """The same limits. Raises UnreadableError, which names the first that is out of bounds."""
    for name, path in recorded_names().items():
        for at, number in _numbers(name, reduce(getattr, path, limits)):
            if not 0 <= number <= _MOST:
                raise UnreadableError(f"the limit {at} is {number}, and no limit is below 0 or has more than 64 bits")
    if limits.proposals.move_bytes_per_s < 1:
        raise UnreadableError(f"the limit move_bytes_per_s is {limits.proposals.move_bytes_per_s}, and is at least 1")
    windows = limits.windows
    for window in (*windows.allow, *windows.blackout):
        if max(window.start_minute, window.end_minute) > DAY_MINUTES or window.start_minute == DAY_MINUTES:
            raise UnreadableError("a window among the limits begins or ends after midnight of its day")
    _check_names(limits)
    return limits


def _check_names(limits: Limits) -> None:
    """Raises UnreadableError when a zone or a pattern is none."""
    windows = limits.windows
    try:
        for window in (*windows.allow, *windows.blackout):
            ZoneInfo(window.zone)
        for locator in limits.rack_locators:
            Patterns(locator.patterns)
            Networks(locator.networks)
    except (KeyError, ValueError, OSError, SchemaError) as error:
        why = str(error)[:200]
        raise UnreadableError(f"a window or a rack locator among the limits cannot be used: {why}") from error


def _numbers(name: str, value: Any) -> Iterator[tuple[str, int | float]]:
    """Every number in it with its path: ``execute.tick_ms``."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value
    for inner, one in _parts(value):
        yield from _numbers(f"{name}{inner}", one)


def _parts(value: Any) -> Iterable[tuple[str, Any]]:
    """What a value is made of, by name."""
    if is_dataclass(value):
        return [(f".{field.name}", getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        return [(f"[{str(key)[:100]!r}]", one) for key, one in value.items()]
    if hasattr(value, "_fields"):
        return [(f".{name}", getattr(value, name)) for name in value._fields]
    return [("[]", one) for one in value] if isinstance(value, tuple | frozenset) else ()
