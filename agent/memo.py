"""Has this been worked out before? Last cycle's results, reused where the inputs are the same.

Between two cycles almost every group stays as it is. A pure function of one group is asked through `Memo.of` and runs
again only when its inputs have changed.

Invariant: a memo can never change a result. It answers with what the same function gave for equal inputs under the
same key, and with nothing else. That holds for *values*: inputs that are never changed in place and whose equality
means that they cannot be told apart (the observation's named tuples, text, bytes, numbers of one type). It does not
hold for a dict that somebody writes to, or where ``1`` and ``True`` mean different things.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
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
