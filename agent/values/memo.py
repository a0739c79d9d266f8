"""Results of the last cycle, reused where their inputs are the same: by key (`Memo.of`), or row by row (`each`).

Between two cycles almost every group stays as it is. A pure function of one group is asked through `Memo.of` and runs
again only when its inputs have changed. With ten thousand subjects the keys, inputs and closures alone would be a fifth
of a quiet cycle: `each` compares all rows with last time's at once, place by place and in C; only rows that differ are
asked for their keys, and all of them only where one came or went.

Invariant: a memo can never change a result. It answers with what the same function gave for equal inputs under the
same key and an equal context, and with nothing else. That holds for *values*: inputs that are never changed in place
and whose equality means that they cannot be told apart (the observation's named tuples, text, bytes, numbers of one
type). It does not hold for a dict that is written to, or where ``1`` and ``True`` mean different things.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import compress, count, repeat
from operator import is_not, ne
from typing import Any, TypeVar

Result = TypeVar("Result")


class Memo:
    """Results of this turn and of the one before; what is not asked for during a whole turn is forgotten."""

    __slots__ = ("_before", "_now", "computed", "reused")

    def __init__(self) -> None:
        self._now: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}
        self._before: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}
        self.computed = 0
        """Results worked out in this turn."""
        self.reused = 0
        """Results taken from before in this turn."""

    def of(self, key: Hashable, inputs: tuple[Any, ...], compute: Callable[[], Result]) -> Result:
        """What ``compute`` answers for these inputs, from memory where they are the same as last time.

        The key says who asks and about what, such as ``("decode", group id)``; one key belongs to one function. Tuples
        are compared item by item in C, and an item that is the same object is not looked into, so handing over the
        objects of last cycle makes the comparison free. Nothing is kept when ``compute`` raises.
        """
        kept = self._now.get(key) or self._before.get(key)
        if kept is not None and kept[0] == inputs:
            self._now[key] = kept
            self.reused += 1
            result: Result = kept[1]
            return result
        self._now.pop(key, None)
        result = compute()
        self._now[key] = inputs, result
        self.computed += 1
        return result

    def turn(self) -> None:
        """End a cycle: keep what was asked for since the last turn, forget the rest."""
        self._before, self._now = self._now, {}
        self.computed = self.reused = 0


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
