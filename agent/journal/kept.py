"""What was read of a journal's entries before: an entry never changes, so it is read once.

The entries themselves are the key, and are held with what was read of them, so that none can take another's place. What
was not asked for the longest goes first, once everything together is too much. Safe to use from several threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """Values by the identity of what they were made of."""

    def __init__(self, most: int) -> None:
        """``most`` is the greatest sum of sizes that is kept, as the values' own measure has it."""
        self._most = most
        self._size = 0
        self._found: OrderedDict[tuple[int, ...], tuple[tuple[object, ...], T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, sources: tuple[object, ...], make: Callable[[], T], size: Callable[[T], int]) -> T:
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

    def put(self, sources: tuple[object, ...], made: T, size: int) -> None:
        """Keep what was made of these objects."""
        key = tuple(map(id, sources))
        with self._lock:
            former = self._found.pop(key, None)
            self._size += size - (0 if former is None else former[2])
            self._found[key] = (sources, made, size)
            while self._size > self._most and len(self._found) > 1:
                self._size -= self._found.popitem(last=False)[1][2]
