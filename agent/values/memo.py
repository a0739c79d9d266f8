"""Memo: results of the last cycle, reused where their inputs are equal, by key (`Memo.of`) or row by row (`each`).

`each` compares all rows with last time's at once, in C: with ten thousand subjects, keys and closures alone would take
a fifth of a quiet cycle. Invariant: a memo never changes a result. That holds for *values*: inputs that are never
changed in place and are interchangeable when equal (the observation's named tuples, text, bytes, numbers of one type),
not for a dict that is written to, or where ``1`` and ``True`` differ.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import compress, count, repeat
from operator import is_not, ne
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class Memo:
    """Results of this turn and of the one before; a result that is unused for a whole turn is dropped."""

    __slots__ = ("_before", "_now", "computed", "reused")

    def __init__(self) -> None:
        self._now: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}
        self._before: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}
        self.computed = 0
        """Number of results computed in this turn."""
        self.reused = 0
        """Number of results reused in this turn."""

    def of(self, key: Hashable, inputs: tuple[Any, ...], compute: Callable[[], Result]) -> Result:
        """The result of ``compute`` for these inputs, reused where they equal those of last time.

        The key names the function and its subject, such as ``("decode", group id)``. Tuples are compared item by item
        in C, identity first. Nothing is kept when ``compute`` raises.
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
        """End a cycle: keep the results used since the last turn, drop the others."""
        self._before, self._now = self._now, {}
        self.computed = self.reused = 0


Row = TypeVar("Row")
Value = TypeVar("Value")
_Kept = tuple[Sequence[Any], Sequence[Any], list[Hashable] | None]
"""Rows of last time, their results, and their keys where they were needed."""
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
    """``compute(row)`` for every row, in order. Keys are unique; ``context`` has all other inputs of ``compute``."""
    kept: list[_Kept] = memo.of(("each", name), context, lambda: [((), (), None)])
    before, known, keys = kept[0]
    now = list(rows)
    changed = _differing(before, now) if len(before) == len(now) else None
    if changed is None or any(key(before[place]) != key(now[place]) for place in changed):
        before, known, keys = _aligned(kept[0], now, key)  # rows came or went, so that others moved
        changed = _differing(before, now)
    values: list[Any] = list(known)
    for place in changed:
        values[place] = compute(now[place])
    kept[0] = now, tuple(values), keys
    return values


def _aligned(kept: _Kept, now: Sequence[Row], key: Callable[[Row], Hashable]) -> _Kept:
    """The kept rows and results in the order of the new rows; `_NO_ROW` for a new key."""
    rows, values, known = kept
    before, keys = list(map(key, rows)) if known is None else known, list(map(key, now))
    row_of = dict(zip(before, rows, strict=True)).get
    value_of = dict(zip(before, values, strict=True)).get
    return list(map(row_of, keys, repeat(_NO_ROW))), list(map(value_of, keys)), keys


def _differing(before: Sequence[Any], now: Sequence[Any]) -> list[int]:
    """Places that hold different rows, compared identity first."""
    others = list(map(is_not, before, now))
    differ = map(ne, compress(before, others), compress(now, others))
    return list(compress(compress(count(), others), differ))


class IdentityMemo(Generic[Result]):
    """Values by the identity of what they were made of, such as journal entries, which never change.

    What a value was made of is held with it; the least recently used go first. Thread-safe.
    """

    def __init__(self, most: int) -> None:
        """``most`` is the greatest sum of sizes that is kept, as the values' own measure has it."""
        self._most = most
        self._size = 0
        self._found: OrderedDict[tuple[int, ...], tuple[tuple[object, ...], Result, int]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, sources: tuple[object, ...], make: Callable[[], Result], size: Callable[[Result], int]) -> Result:
        """What was made of these very objects before, or what ``make`` makes of them now."""
        key = tuple(map(id, sources))
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
                return found[1]
        made = make()
        self.put(sources, made, size(made))
        return made

    def put(self, sources: tuple[object, ...], made: Result, size: int) -> None:
        """Keep what was made of these objects; ``size`` in the values' own measure."""
        key = tuple(map(id, sources))
        with self._lock:
            former = self._found.pop(key, None)
            self._size += size - (0 if former is None else former[2])
            self._found[key] = (sources, made, size)
            while self._size > self._most and len(self._found) > 1:
                self._size -= self._found.popitem(last=False)[1][2]
