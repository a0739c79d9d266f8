"""How preferred leaders of some partitions become even over the racks, by as few changes as a chain of racks needs.

Racks are the nodes; a partition led in rack A with a candidate in rack B is an arc from A to B. A shortest chain from a
fullest rack to an emptiest one hands one leader on at each arc, until no rack leads two more than another that it can
reach. Deterministic: racks by name, partitions by id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from itertools import pairwise

from assignors.problem import TopicPartition

Racks = Mapping[TopicPartition, tuple[str | None, tuple[str, ...]]]
"""Partition -> (rack that leads it now, racks that could lead it)."""


def even_racks(partitions: Racks, racks: Iterable[str]) -> dict[TopicPartition, str]:
    """The partitions whose preferred leader goes to another rack, and to which one."""
    board = _Board(partitions, racks)
    while (chain := board.shortest_chain()) is not None:
        board.hand_on(chain)
    return board.changed()


def fewest_changes(partitions: Racks, racks: Iterable[str]) -> int:
    """A lower bound of the changes: what the racks above the rounded-up share have too much, or others too little."""
    names = sorted(racks)
    leads = Counter(rack for rack, _ in partitions.values() if rack is not None)
    share, rest = divmod(sum(leads.values()), len(names) or 1)
    too_many = sum(max(0, leads[name] - share - (1 if rest else 0)) for name in names)
    too_few = sum(max(0, share - leads[name]) for name in names)
    return max(too_many, too_few)


class _Board:
    def __init__(self, partitions: Racks, racks: Iterable[str]) -> None:
        self._partitions = partitions
        self._racks = sorted(racks)
        self._rack = {partition: rack for partition, (rack, _) in partitions.items()}
        self._leads = Counter(rack for rack in self._rack.values() if rack is not None)
        self._arcs: dict[tuple[str, str], list[TopicPartition]] = {}
        for partition in sorted(partitions):
            self._offer(partition)

    def shortest_chain(self) -> list[str] | None:
        """Racks from a fullest to one that leads at least two less; the fullest start and the shortest chain win."""
        for start in sorted(self._racks, key=lambda rack: (-self._leads[rack], rack)):
            before: dict[str, str] = {}
            ring = [start]
            while ring:
                reached: list[str] = []
                for rack in ring:
                    reached += [to for to in self._racks if to != start and to not in before and self._arc(rack, to)]
                    before.update({to: rack for to in reached if to not in before})
                ends = [to for to in reached if self._leads[start] - self._leads[to] >= 2]
                if ends:
                    return _walk_back(before, min(ends, key=lambda rack: (self._leads[rack], rack)), start)
                ring = reached
        return None

    def hand_on(self, chain: list[str]) -> None:
        """Move one leader along every arc of the chain."""
        moved = [(self._arcs[giver, taker][0], taker) for giver, taker in pairwise(chain)]
        for partition, taker in moved:
            self._rack[partition] = taker
            self._offer(partition)
        self._leads[chain[0]] -= 1
        self._leads[chain[-1]] += 1

    def changed(self) -> dict[TopicPartition, str]:
        """Partitions that end in another rack than they began, by id."""
        changed: dict[TopicPartition, str] = {}
        for partition in sorted(self._rack):
            rack = self._rack[partition]
            if rack is not None and rack != self._partitions[partition][0]:
                changed[partition] = rack
        return changed

    def _offer(self, partition: TopicPartition) -> None:
        rack = self._rack[partition]
        if rack is not None:
            for other in self._partitions[partition][1]:
                if other != rack:
                    heappush(self._arcs.setdefault((rack, other), []), partition)

    def _arc(self, giver: str, taker: str) -> bool:
        """Whether a partition led in one rack could be led in the other; forgets those that have left meanwhile."""
        waiting = self._arcs.get((giver, taker))
        while waiting and self._rack[waiting[0]] != giver:
            heappop(waiting)
        return bool(waiting)


def _walk_back(before: Mapping[str, str], end: str, start: str) -> list[str]:
    chain = [end]
    while chain[-1] != start:
        chain.append(before[chain[-1]])
    return chain[::-1]
