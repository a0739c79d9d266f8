"""Reuse row by row: what a pure function made of each row last time, where the row is still the same.

`Memo.of` asks for a key, inputs and a closure per subject; with ten thousand subjects that alone would be a fifth of a
quiet cycle. Here all rows are compared with last time's at once, place by place and in C; only rows that differ are
asked for their keys, and all of them only where one came or went.

Invariant: as `Memo`'s: a value is reused only for an equal row under an equal context, so reuse can never change a
result.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import compress, count
from operator import is_not, ne
from typing import Any, TypeVar

from agent.memo import Memo

Row = TypeVar("Row")
Value = TypeVar("Value")
_Kept = tuple[Sequence[Any], Sequence[Any]]
"""Rows of last time, and what was made of them."""
_NO_ROW = object()


def each(
    memo: Memo,
    name: str,
    rows: Iterable[Row],
    key: Callable[[Row], Hashable],
    compute: Callable[[Row], Value],
    *,
    context: tuple[Any, ...] = (),
) -> list[Value]:
    """``compute(row)`` for every row, in order. Keys are unique; ``context`` is what else ``compute`` looks at."""
    kept: list[_Kept] = memo.of(("each", name), context, lambda: [((), ())])
    before, known = kept[0]
    now = list(rows)
    changed = _differing(before, now) if len(before) == len(now) else None
    if changed is None or any(key(before[place]) != key(now[place]) for place in changed):
        before, known = _aligned(kept[0], now, key)  # something came or went, so that others stand elsewhere
        changed = _differing(before, now)
    values: list[Any] = list(known)
    for place in changed:
        values[place] = compute(now[place])
    kept[0] = now, tuple(values)
    return values


def _aligned(kept: _Kept, now: Sequence[Row], key: Callable[[Row], Hashable]) -> _Kept:
    """What is kept of each row's key, in the order of the rows; nothing equals the row of a new key."""
    rows, values = kept
    place_of = dict(zip(map(key, rows), count()))
    places = list(map(place_of.get, map(key, now)))
    return (
        [_NO_ROW if place is None else rows[place] for place in places],
        [None if place is None else values[place] for place in places],
    )


def _differing(before: Sequence[Any], now: Sequence[Any]) -> list[int]:
    """Places that hold different rows. An object that is the same is not looked into."""
    others = list(map(is_not, before, now))
    differ = map(ne, compress(before, others), compress(now, others))
    return list(compress(compress(count(), others), differ))
