"""Optimal replicas of new partitions, of a new or an existing topic; existing replicas do not move.

Priorities: as few replicas of a partition in one rack as the accepting brokers allow (KIP-36); the topic's replicas
even over brokers; all replicas; the topic's preferred leaders; all preferred leaders. Giving replicas one by one to the
broker with fewest is exact under bounds per broker and rack; dealt in turn, rack after rack, no broker gets a partition
twice and every rack gets its share of each (McNaughton's wrap-around rule).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import chain, zip_longest
from typing import NamedTuple

from assignors.optimal.semi_matching import even_leaders, fewest_leads
from assignors.problem import BadProblem, ReplicaBroker

Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingReplicas:
    """What brokers hold already: broker -> how many. A broker that is missing holds nothing."""

    replicas: Mapping[int, int] = field(default_factory=dict)
    """Of all topics, this one included."""
    leaders: Mapping[int, int] = field(default_factory=dict)
    """Partitions of all topics that prefer it as leader."""
    topic_replicas: Mapping[int, int] = field(default_factory=dict)
    topic_leaders: Mapping[int, int] = field(default_factory=dict)


class NewPartitions(NamedTuple):
    """The replicas of each new partition, preferred leader first, and what is known of their quality."""

    replicas: tuple[Replicas, ...]
    most_in_a_rack: int
    """Replicas of one partition in one rack; no placement on these brokers has fewer."""
    leaders_optimal: bool
    """True when no choice of replicas with the same counts would make preferred leaders more even."""


def optimal_new_partitions(
    brokers: Iterable[ReplicaBroker], partitions: int, replication_factor: int, existing: ExistingReplicas | None = None
) -> NewPartitions:
    """Return where ``partitions`` new partitions go; equal input gives an equal answer in any order of the brokers.

    Only brokers that accept replicas get any, and where some of those have a rack, only those that have one. Raises
    ``BadProblem`` for numbers below 1, a broker that occurs twice, and more replicas than brokers.
    """
    existing = existing or ExistingReplicas()
    racks = _racks(brokers)
    usable = sum(map(len, racks.values()))
    if partitions < 1 or replication_factor < 1:
        raise BadProblem(f"partitions is {partitions} and replication_factor {replication_factor}; both begin at 1")
    if replication_factor > usable:
        raise BadProblem(f"replication_factor is {replication_factor}, but only {usable} brokers can take replicas")
    most = next(n for n in range(1, usable + 1) if sum(min(n, len(of)) for of in racks.values()) >= replication_factor)
    counts = _counts(racks, partitions, replication_factor, most, existing)
    replicas = _dealt(racks, counts, partitions)
    ordered = even_leaders(replicas, existing.topic_leaders, existing.leaders)
    least = fewest_leads(counts, partitions, existing.topic_leaders, existing.leaders)
    return NewPartitions(tuple(ordered), most, least == _leads(ordered, existing))


def _racks(brokers: Iterable[ReplicaBroker]) -> dict[str | None, list[int]]:
    """Rack -> its accepting brokers; those without a rack count only where none has one."""
    every = sorted(brokers, key=lambda broker: broker.id)
    if len({broker.id for broker in every}) != len(every):
        raise BadProblem("brokers has an id twice; name every broker once")
    taking = [broker for broker in every if broker.accepts]
    known = [broker for broker in taking if broker.rack is not None]
    racks: dict[str | None, list[int]] = {}
    for broker in sorted(known or taking, key=lambda broker: (broker.rack or "", broker.id)):
        racks.setdefault(broker.rack, []).append(broker.id)
    return racks


def _counts(
    racks: Mapping[str | None, list[int]],
    partitions: int,
    replication_factor: int,
    most: int,
    existing: ExistingReplicas,
) -> Counter[int]:
    """Broker -> new replicas: every rack first what it must have, then the one with the fewest, within the bounds."""
    counts: Counter[int] = Counter()
    left = partitions * replication_factor
    room = dict.fromkeys(racks, 0)
    shares = _BrokerShares(partitions, existing, counts)
    for rack, ids in racks.items():
        must, may = min(len(ids), most - 1) * partitions, min(len(ids), most) * partitions
        shares.give(must, {rack: ids}, {rack: must})
        left -= must
        room[rack] = may - must
    shares.give(left, racks, room)
    return counts


class _BrokerShares(NamedTuple):
    partitions: int
    existing: ExistingReplicas
    counts: Counter[int]

    def give(self, units: int, racks: Mapping[str | None, list[int]], room: dict[str | None, int]) -> None:
        """Give ``units`` replicas, each to the broker with the fewest whose rack has room."""
        waiting = [
            self._entry(broker, rack)
            for rack, ids in racks.items()
            for broker in ids
            if self.counts[broker] < self.partitions
        ]
        heapify(waiting)
        while units:
            _, _, broker, rack = heappop(waiting)
            if not room[rack]:
                continue
            units -= 1
            room[rack] -= 1
            self.counts[broker] += 1
            if self.counts[broker] < self.partitions:
                heappush(waiting, self._entry(broker, rack))

    def _entry(self, broker: int, rack: str | None) -> tuple[int, int, int, str | None]:
        of_topic, of_all, new = self.existing.topic_replicas, self.existing.replicas, self.counts[broker]
        return of_topic.get(broker, 0) + new, of_all.get(broker, 0) + new, broker, rack


def _dealt(racks: Mapping[str | None, list[int]], counts: Counter[int], partitions: int) -> list[Replicas]:
    """The replicas dealt to the partitions in turn."""
    deck: list[int] = []
    for ids in racks.values():
        piles = [[broker] * counts[broker] for broker in ids]
        # A rack that goes round at most once may mix its brokers: then they share partitions with more others.
        mixed = sum(map(len, piles)) <= partitions
        dealt = chain.from_iterable(zip_longest(*piles)) if mixed else chain.from_iterable(piles)
        deck += [broker for broker in dealt if broker is not None]
    return [tuple(deck[number::partitions]) for number in range(partitions)]


def _leads(replicas: Sequence[Replicas], existing: ExistingReplicas) -> tuple[int, int]:
    """The sums of squares that `fewest_leads` bounds."""
    leads = Counter(of[0] for of in replicas)
    brokers = {*leads, *(broker for of in replicas for broker in of)}
    of_topic, of_all = existing.topic_leaders, existing.leaders
    return (
        sum((of_topic.get(broker, 0) + leads[broker]) ** 2 for broker in brokers),
        sum((of_all.get(broker, 0) + leads[broker]) ** 2 for broker in brokers),
    )
