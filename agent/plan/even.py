"""How preferred leaders of some partitions become even over the racks, by as few changes as a chain of racks needs.

Even means: a rack leads as large a part of the partitions as it holds of their replicas. Racks are the nodes; a
partition led in rack A with a candidate in rack B is an arc from A to B. A shortest chain from the rack with the
greatest surplus to one with a lesser hands one leader on at each arc, as long as that makes the two more even.
Deterministic: racks by name, partitions by id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from assignors.problem import TopicPartition


class Option(NamedTuple):
    """Where a partition's preferred leader is, where it could be, and where its replicas are."""

    rack: str | None
    could: tuple[str, ...]
    replicas: tuple[str, ...]
    """Rack of each replica, racks that are not known left out."""


Options = Mapping[TopicPartition, Option]


def even_racks(options: Options) -> dict[TopicPartition, str]:
    """The partitions whose preferred leader goes to another rack, and to which one."""
    board = _Board(options)
    while (chain := board.shortest_chain()) is not None:
        board.hand_on(chain)
    return board.changed()


def fewest_changes(options: Options) -> int:
    """A lower bound of the changes: what racks lead above their rounded-up share, or others below the rounded-down."""
    shares = _Shares(options)
    too_many = too_few = 0
    for rack in {*shares.leads, *shares.replicas}:
        fair = shares.replicas[rack] * shares.led
        too_many += max(0, shares.leads[rack] + -fair // shares.held)
        too_few += max(0, fair // shares.held - shares.leads[rack])
    return max(too_many, too_few)


class _Shares:
    """Leaders and replicas by rack."""

    def __init__(self, options: Options) -> None:
        self.leads = Counter(option.rack for option in options.values() if option.rack is not None)
        self.replicas = Counter(rack for option in options.values() for rack in option.replicas)
        self.led = sum(self.leads.values())
        self.held = sum(self.replicas.values()) or 1

    def surplus(self, rack: str) -> int:
        """Leaders above the share, in units of 1 / ``held``: one leader more or less is ``held`` units."""
        return self.leads[rack] * self.held - self.replicas[rack] * self.led


class _Board:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._shares = _Shares(options)
        self._racks = sorted({*self._shares.replicas, *self._shares.leads})
        self._rack = {partition: option.rack for partition, option in options.items()}
        self._arcs: dict[tuple[str, str], list[TopicPartition]] = {}
        for partition in sorted(options):
            self._offer(partition)

    def shortest_chain(self) -> list[str] | None:
        """Racks from the greatest surplus that can be lowered to one that gets no more than the first then has."""
        surplus = {rack: self._shares.surplus(rack) for rack in self._racks}
        for start in sorted(self._racks, key=lambda rack: (-surplus[rack], rack)):
            before: dict[str, str] = {}
            ring = [start]
            while ring:
                reached: list[str] = []
                for rack in ring:
                    fresh = [to for to in self._racks if to != start and to not in before and self._arc(rack, to)]
                    before.update((to, rack) for to in fresh)
                    reached += fresh
                ends = [to for to in reached if surplus[start] - surplus[to] > self._shares.held]
                if ends:
                    return _walk_back(before, min(ends, key=lambda rack: (surplus[rack], rack)), start)
                ring = reached
        return None

    def hand_on(self, chain: list[str]) -> None:
        """Move one leader along every arc of the chain."""
        moved = [(self._arcs[giver, taker][0], taker) for giver, taker in pairwise(chain)]
        for partition, taker in moved:
            self._rack[partition] = taker
            self._offer(partition)
        self._shares.leads[chain[0]] -= 1
        self._shares.leads[chain[-1]] += 1

    def changed(self) -> dict[TopicPartition, str]:
        """Partitions that end in another rack than they began, by id."""
        changed: dict[TopicPartition, str] = {}
        for partition in sorted(self._rack):
            rack = self._rack[partition]
            if rack is not None and rack != self._options[partition].rack:
                changed[partition] = rack
        return changed

    def _offer(self, partition: TopicPartition) -> None:
        rack = self._rack[partition]
        if rack is not None:
            for other in self._options[partition].could:
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
