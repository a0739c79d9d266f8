"""Kafka's ``ConstrainedPrioritySet``: a queue by keys that only grow, such as the load of a process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class LoadQueue(Generic[T]):
    """Items by a key of their own, the smallest first.

    Keys are all different (let them end in a rank) and never return to a former value. Code that changes what a key
    depends on calls ``changed``; an outdated entry is dropped when it surfaces.
    """

    def __init__(self, items: Iterable[T], key: Callable[[T], Any]) -> None:
        self._key = key
        self._heap = [(key(item), item) for item in items]
        heapify(self._heap)

    def changed(self, item: T) -> None:
        """The key of this item has grown."""
        heappush(self._heap, (self._key(item), item))

    def least(self) -> T:
        """The item with the smallest key; raises ``IndexError`` when there is none."""
        while True:
            key, item = self._heap[0]
            if key == self._key(item):
                return item
            heappop(self._heap)

    def first(self, fits: Callable[[T], bool], is_wanted: Callable[[T], bool]) -> T | None:
        """The first item, by key, that fits and ``is_wanted``; without one, the first that fits."""
        passed = []
        found = fallback = None
        while self._heap and found is None:
            key, item = heappop(self._heap)
            if key != self._key(item):
                continue
            passed.append((key, item))
            if fits(item):
                if is_wanted(item):
                    found = item
                elif fallback is None:
                    fallback = item
        for entry in passed:
            heappush(self._heap, entry)
        return fallback if found is None else found
