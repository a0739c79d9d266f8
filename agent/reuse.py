"""Reuse row by row: what a pure function made of each row last time, where the row is still the same.

`Memo.of` asks for a key, inputs and a closure per subject; with ten thousand subjects that alone would be a fifth of a
quiet cycle. Here all rows are compared with last time's at once, place by place and in C; only rows that differ are
asked for their keys, and all of them only where one came or went.

Invariant: as `Memo`'s: a value is reused only for an equal row under an equal context, so reuse can never change a
result.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import compress, count, repeat
from operator import is_not, ne
from typing import Any, TypeVar

from agent.memo import Memo

Row = TypeVar("Row")
Value = TypeVar("Value")
_Kept = tuple[Sequence[Any], Sequence[Any], list[Hashable] | None]
"""Rows of last time, what was made of them, and their keys once they were asked for."""
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
    kept: list[_Kept] = memo.of(("each", name), context, lambda: [((), (), None)])
    before, known, keys = kept[0]
    now = list(rows)
    changed = _differing(before, now) if len(before) == len(now) else None
    if changed is None or any(key(before[place]) != key(now[place]) for place in changed):
        before, known, keys = _aligned(kept[0], now, key)  # something came or went, so that others stand elsewhere
        changed = _differing(before, now)
    values: list[Any] = list(known)
    for place in changed:
        values[place] = compute(now[place])
    kept[0] = now, tuple(values), keys
    return values


def _aligned(kept: _Kept, now: Sequence[Row], key: Callable[[Row], Hashable]) -> _Kept:
    """What is kept of each row's key, in the order of the rows; nothing equals the row of a new key."""
    rows, values, known = kept
    before, keys = list(map(key, rows)) if known is None else known, list(map(key, now))
    row_of = dict(zip(before, rows, strict=True)).get
    value_of = dict(zip(before, values, strict=True)).get
    return list(map(row_of, keys, repeat(_NO_ROW))), list(map(value_of, keys)), keys


def _differing(before: Sequence[Any], now: Sequence[Any]) -> list[int]:
    """Places that hold different rows. An object that is the same is not looked into."""
    others = list(map(is_not, before, now))
    differ = map(ne, compress(before, others), compress(now, others))
    return list(compress(compress(count(), others), differ))
