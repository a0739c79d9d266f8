"""Reuse row by row: what a pure function made of each row last time, where the row is still the same.

`Memo.of` asks for a key, inputs and a closure per subject; with ten thousand subjects that alone would be a fifth of a
quiet cycle. Here all rows are compared with last time's at once, place by place and in C; only rows that differ from
what stood in their place are asked for their key.

Invariant: as `Memo`'s: a value is reused only for an equal row under an equal context, so reuse can never change a
result.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import compress, count
from operator import ne
from typing import Any, TypeVar

from agent.memo import Memo

Row = TypeVar("Row")
Value = TypeVar("Value")
_Kept = tuple[Sequence[Any], Sequence[Any]]
"""Rows of last time, and what was made of them."""


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
    rows_before, values_before = kept[0]
    now = list(rows)
    values: list[Any] = [*values_before[: len(now)], *[None] * (len(now) - len(values_before))]
    moved: dict[Hashable, tuple[Any, Any]] | None = None
    for place in (*_differing(rows_before, now), *range(len(rows_before), len(now))):
        row = now[place]
        if place < len(rows_before) and key(rows_before[place]) == key(row):
            values[place] = compute(row)
            continue
        if moved is None:  # something came or went, so that others stand elsewhere
            moved = {key(old): (old, value) for old, value in zip(rows_before, values_before, strict=True)}
        old, value = moved.get(key(row), (None, None))
        values[place] = value if old is not None and (old is row or old == row) else compute(row)
    kept[0] = now, tuple(values)
    return values


def _differing(before: Sequence[Any], now: Sequence[Any]) -> list[int]:
    """Places of both that hold different rows. In tuples of one an object that is the same is not looked into."""
    return list(compress(count(), map(ne, zip(before), zip(now))))
