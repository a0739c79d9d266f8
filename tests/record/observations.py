"""Observations of every shape, drawn from the types themselves, so that a new field is never forgotten."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import date
from enum import Enum
from functools import cache
from typing import Any

from hypothesis import strategies as st

from agent.values.clock import TimeWindow
from agent.values.limits import Limits, RackLocator
from agent.values.memory import Memory
from agent.values.observation import Observation
from agent.values.typed_json import LATEST_MS, MOST_INT
from tests.limits import with_limits

TIMES = st.integers(0, LATEST_MS)
TEXT = st.text(max_size=4) | st.sampled_from(["orders", "a.b", "\u2028", "\ud800", "{}", ""])
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(-(2.0**63), 2.0**63).filter(lambda one: not 0 < abs(one) < 1e-100),
    bool: st.booleans(),
    bytes: st.binary(max_size=4),
    type(None): st.none(),
}


@cache
def drawn(kind: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation; collections stay small, as it is their shapes that matter."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin = typing.get_origin(kind)
    if origin is not None:
        return _collection(origin, typing.get_args(kind))
    if kind is date:
        return st.dates()
    return st.sampled_from(list(kind)) if issubclass(kind, Enum) else _record(kind)


def _collection(origin: Any, arguments: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(drawn, arguments))
    if origin is tuple and arguments[-1] is ...:
        return st.lists(drawn(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(drawn, arguments))
    if origin is frozenset:
        return st.frozensets(drawn(arguments[0]), max_size=2)
    assert issubclass(origin, Mapping), origin
    return st.dictionaries(drawn(arguments[0]), drawn(arguments[1]), max_size=2)


def _record(kind: Any) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(kind)
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else kind._fields
    return st.builds(kind, **{name: TIMES if name == "taken_ms" else drawn(hints[name]) for name in names})


def _within(value: Any) -> Any:
    """The same with numbers that are not negative, zones that exist and rack locators without rules."""
    if isinstance(value, float) or type(value) is int:
        return abs(value) if isinstance(value, float) else min(abs(value), MOST_INT)
    if isinstance(value, Mapping):
        return {key: _within(one) for key, one in value.items()}
    if isinstance(value, TimeWindow):
        minutes = value.start_minute % 1_440, value.end_minute % 1_440
        return value._replace(zone="UTC", start_minute=minutes[0], end_minute=minutes[1], days=_within(value.days))
    if isinstance(value, RackLocator):
        return replace(value, patterns=(), networks=())
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _within(getattr(value, field.name)) for field in fields(value)})
    return type(value)(map(_within, value)) if type(value) in (tuple, frozenset) else value


OBSERVATIONS: st.SearchStrategy[Observation] = drawn(Observation)
ANY_LIMITS: st.SearchStrategy[Limits] = drawn(Limits)
"""As any producer may write them."""
LIMITS: st.SearchStrategy[Limits] = ANY_LIMITS.map(
    lambda limits: with_limits(_within(limits), proposals__move_bytes_per_s=1.0)
)
"""As settings allow them, roughly."""
MEMORIES: st.SearchStrategy[Memory] = st.builds(
    Memory,
    cycle=st.integers(0, 9),
    taken_ms=st.integers(0, 2**45),
    first_seen=st.dictionaries(TEXT, st.integers(0, 9), max_size=2),
    groups=st.tuples(TEXT),
)
