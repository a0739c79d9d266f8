"""Arcs from a node to all nodes of a list, or all but some, in linear number.

A hub has one node for all members and, once a member is barred from a few, a balanced tree of ranges, in which "all but
k members" is at most 2 * (k + 1) * log n nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class NodeHub:
    """Nodes that are equally good; fill ``members`` first, then get entries, then the arcs inside."""

    members: list[int] = field(default_factory=list)
    root: int | None = None
    ranges: dict[tuple[int, int], int] = field(default_factory=dict)

    def entries(self, new_node: Callable[[], int], barred: Collection[int] = ()) -> Iterator[int]:
        """Nodes through which exactly the members that are not barred are reached."""
        holes = [position for position, member in enumerate(self.members) if member in barred] if barred else []
        if not holes and self.members:
            if self.root is None:
                self.root = self.members[0] if len(self.members) == 1 else new_node()
            yield self.root
            return
        if not self.ranges:
            self._plant(new_node)
        for start, end in zip([0, *(hole + 1 for hole in holes)], [*holes, len(self.members)], strict=True):
            yield from self._cover((0, len(self.members)), start, end)

    def branches(self) -> Iterator[tuple[int, int]]:
        """Arcs inside the hub, parents before children."""
        if self.root is not None and len(self.members) > 1:
            for member in self.members:
                yield self.root, member
        for (low, high), node in self.ranges.items():
            if high - low > 1:
                middle = (low + high) // 2
                yield node, self.ranges[low, middle]
                yield node, self.ranges[middle, high]

    def _plant(self, new_node: Callable[[], int]) -> None:
        waiting = [(0, len(self.members))] if self.members else []
        while waiting:
            low, high = waiting.pop()
            if high - low == 1:
                self.ranges[low, high] = self.members[low]
                continue
            self.ranges[low, high] = new_node()
            middle = (low + high) // 2
            waiting += [(middle, high), (low, middle)]

    def _cover(self, inside: tuple[int, int], start: int, end: int) -> Iterator[int]:
        low, high = max(inside[0], start), min(inside[1], end)
        if low >= high:
            return
        if (low, high) == inside:
            yield self.ranges[inside]
            return
        middle = (inside[0] + inside[1]) // 2
        yield from self._cover((inside[0], middle), start, end)
        yield from self._cover((middle, inside[1]), start, end)
