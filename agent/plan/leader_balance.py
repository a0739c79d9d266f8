"""Even preferred leaders over racks by the fewest changes, and counts of leaders by broker and rack.

Even: a rack leads its share of the replicas. Racks are nodes; a partition led in rack A with a candidate in rack B is
an arc. Shortest chains from the greatest surplus to a lesser one move a leader per arc while both become more even.
Deterministic: racks by name, partitions by id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.proposal import PlacementChange
from agent.values.snapshot import (
    ConsumerGroup,
    OtherGroup,
    PartitionState,
    Rack,
    RackState,
    ReaderGroup,
    Snapshot,
    TopicState,
    topics_of,
)
from assignors.problem import LeaderCapacity, TopicPartition


class PartitionReaders(NamedTuple):
    """Readers of a partition by rack, and readers of unknown rack."""

    by_rack: tuple[tuple[str, int], ...]
    unknown: int

    def near(self, rack: str | None) -> int:
        """Readers in a rack."""
        return sum(count for name, count in self.by_rack if name == rack)

    @property
    def total(self) -> int:
        """Readers of known rack."""
        return sum(count for _, count in self.by_rack)


def readers_of(topic: TopicState, groups: Iterable[ReaderGroup]) -> dict[TopicPartition, PartitionReaders]:
    """Partition -> its readers in all groups whose assignment is shown."""
    by_rack: dict[TopicPartition, Counter[str | None]] = {}
    for group in groups:
        for rack, partitions in _reads(group):
            name = rack.name if rack.state is RackState.KNOWN else None
            for partition in partitions:
                if partition.topic == topic.name:
                    by_rack.setdefault(partition, Counter())[name] += 1
    return {
        partition: PartitionReaders(
            tuple(sorted((name, count) for name, count in racks.items() if name is not None)), racks[None]
        )
        for partition, racks in sorted(by_rack.items())
    }


def known_readers(topics: Iterable[str], snapshot: Snapshot, memo: Memo) -> dict[TopicPartition, PartitionReaders]:
    """The readers of these topics' partitions, as far as they are known."""
    groups = groups_by_topic(snapshot, memo)
    readers: dict[TopicPartition, PartitionReaders] = {}
    for name in topics:
        if name in groups:
            topic, of = snapshot.topics[name], groups[name]
            readers.update(memo.of(("readers", name), (topic, *of), partial(readers_of, topic, of)))
    return readers


def groups_by_topic(snapshot: Snapshot, memo: Memo) -> dict[str, list[ReaderGroup]]:
    """Topic -> the groups that read it and show their assignment; both sorted."""
    groups: dict[str, list[ReaderGroup]] = {}
    for group in snapshot.groups.values():
        if isinstance(group, OtherGroup) or group.hidden:
            continue
        for name in memo.of(("group topics", group.id), (group,), partial(topics_of, group)):
            groups.setdefault(name, []).append(group)
    return dict(sorted(groups.items()))


def _reads(group: ReaderGroup) -> Iterable[tuple[Rack, Iterable[TopicPartition]]]:
    if isinstance(group, ConsumerGroup):
        return [(member.rack, member.assigned or ()) for member in group.members]
    sources = {task.id: task.sources for task in group.topology.tasks} if group.topology else {}
    return [
        (process.rack, [source for task in process.active for source in sources.get(task, ())])
        for process in group.processes
    ]


class LeaderOption(NamedTuple):
    """Where a partition's preferred leader is, where it could be, and where its replicas are."""

    rack: str | None
    could: tuple[str, ...]
    replicas: tuple[str, ...]
    """Rack of each replica, racks that are not known left out."""


Options = Mapping[TopicPartition, LeaderOption]


def balance_leaders(options: Options) -> dict[TopicPartition, str]:
    """Partition -> the new rack of its preferred leader."""
    board = _Board(options)
    while (chain := board.shortest_chain()) is not None:
        board.move_leaders(chain)
    return board.changed()


def fewest_changes(options: Options) -> int:
    """A lower bound of the changes: leaders above the rounded-up shares, or missing below the rounded-down."""
    shares = _Shares(options)
    too_many = too_few = 0
    for rack in {*shares.leads, *shares.replicas}:
        fair = shares.replicas[rack] * shares.leader_count
        too_many += max(0, shares.leads[rack] + -fair // shares.held)
        too_few += max(0, fair // shares.held - shares.leads[rack])
    return max(too_many, too_few)


class _Shares:
    def __init__(self, options: Options) -> None:
        self.leads = Counter(option.rack for option in options.values() if option.rack is not None)
        self.replicas = Counter(rack for option in options.values() for rack in option.replicas)
        self.leader_count = sum(self.leads.values())
        self.held = sum(self.replicas.values()) or 1

    def surplus(self, rack: str) -> int:
        """Leaders above the share, in units of 1 / ``held``: one leader more or less is ``held`` units."""
        return self.leads[rack] * self.held - self.replicas[rack] * self.leader_count


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

    def move_leaders(self, chain: list[str]) -> None:
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
        """True when a partition led in one rack can be led in the other; drops partitions that have left."""
        waiting = self._arcs.get((giver, taker))
        while waiting and self._rack[waiting[0]] != giver:
            heappop(waiting)
        return bool(waiting)


def _walk_back(before: Mapping[str, str], end: str, start: str) -> list[str]:
    chain = [end]
    while chain[-1] != start:
        chain.append(before[chain[-1]])
    return chain[::-1]


# Replicas on gone brokers have no share; instead of a gone leader the first eligible in-sync replica of the list
# counts. A change is allowed within the limit on racks and brokers, or when it makes both more even.


class LeaderCounts:
    """Preferred leaders of the whole cluster while a plan is being made; changed by ``give`` alone."""

    def __init__(
        self, snapshot: Snapshot, held: frozenset[int], limits: Limits, gone: frozenset[int] = frozenset()
    ) -> None:
        self.gone = gone
        self.rack_of = {
            broker.id: broker.rack.name
            for broker in snapshot.brokers
            if broker.rack.state is RackState.KNOWN and broker.rack.name is not None
        }
        """Broker -> rack, for every broker whose rack is known."""
        self.may_lead = frozenset(
            broker.id
            for broker in snapshot.brokers
            if broker.alive and not broker.fenced and broker.id in self.rack_of and broker.id not in held
        )
        states = [state for topic in snapshot.topics.values() for state in topic.partitions if state.replicas]
        self.selector_is_rack_aware = snapshot.selector_is_rack_aware
        preferred = (self.preferred(state) for state in states)
        self.of_broker = Counter(broker for broker in preferred if broker is not None)
        self.of_rack = self._by_rack(self.of_broker)
        self._before, self._before_in = self.of_broker.copy(), self.of_rack.copy()
        held_by_broker = Counter(broker for state in states for broker in state.replicas if broker not in gone)
        leaders, replicas = sum(self.of_rack.values()), sum(held_by_broker.values()) or 1
        self._most_of_broker = {
            broker: -int(-(1 + limits.detect.leader_skew_share) * leaders * count // replicas)
            for broker, count in held_by_broker.items()
        }
        self._most_of_rack = {
            rack: int((count / replicas + limits.detect.leader_skew_share) * leaders)
            for rack, count in self._by_rack(held_by_broker).items()
        }

    def most_even(self) -> tuple[dict[int, int], dict[str, int]]:
        """How many each broker and each rack may lead and be no worse than before the plan, or than an even share."""
        leaders, racks = sum(self.of_broker.values()), Counter(self.rack_of[broker] for broker in self.may_lead)
        brokers = racks.total() or 1
        return (
            {broker: max(self._before[broker], -(-leaders // brokers)) for broker in self.may_lead},
            {rack: max(self._before_in[rack], -(-leaders * count // brokers)) for rack, count in racks.items()},
        )

    def room(self, open_ones: Counter[int], *, hard: bool) -> LeaderCapacity:
        """How many leaders more each may get when those are to be chosen anew; ``open_ones`` are led by whom now."""
        of_broker, of_rack = self.most_even()
        open_racks = self._by_rack(open_ones)
        return LeaderCapacity(
            {broker: most - self.of_broker[broker] + open_ones[broker] for broker, most in of_broker.items()},
            {rack: most - self.of_rack[rack] + open_racks[rack] for rack, most in of_rack.items()},
            self.rack_of,
            hard,
        )

    def fetched_across(self, replicas: tuple[int, ...], leader: int, readers: PartitionReaders | None) -> int:
        """Followers, and readers where they read from the leader, in another known rack than that leader."""
        rack = self.rack_of.get(leader)
        far = sum(self.rack_of.get(broker) != rack for broker in replicas)
        if readers is not None and self.selector_is_rack_aware is False:
            far += readers.total - readers.near(rack)
        return far

    def _by_rack(self, of_broker: Counter[int]) -> Counter[str]:
        of_rack: Counter[str] = Counter()
        for broker, count in of_broker.items():
            if broker in self.rack_of:
                of_rack[self.rack_of[broker]] += count
        return of_rack

    def candidates(self, state: PartitionState) -> list[int]:
        """The in-sync replicas of a partition that may lead it, in assignment order."""
        return [broker for broker in state.replicas if broker in self.may_lead and broker in state.isr]

    def preferred(self, state: PartitionState) -> int | None:
        """The preferred leader, or the replica that leads for a gone one; None where no replica can."""
        if state.replicas[0] not in self.gone:
            return state.replicas[0]
        return next(iter(self.candidates(state)), None)

    def least_busy(self, brokers: Iterable[int]) -> int:
        """The one with the fewest preferred leaders; the lowest id among equals."""
        return min(brokers, key=lambda broker: (self.of_broker[broker], broker))

    def allows(self, giver: int, taker: int) -> bool:
        """True when one partition may change its preferred leader from one broker to another."""
        if self.of_broker[taker] + 1 > max(self._most_of_broker.get(taker, 0), self.of_broker[giver]):
            return False
        giving, taking = self.rack_of.get(giver), self.rack_of[taker]
        if giving == taking:
            return True
        given = self.of_rack[giving] if giving is not None else 0
        return self.of_rack[taking] + 1 <= max(self._most_of_rack.get(taking, 0), given)

    def give(self, giver: int, taker: int) -> None:
        """Count one change."""
        self.of_broker[giver] -= 1
        self.of_broker[taker] += 1
        if giver in self.rack_of:
            self.of_rack[self.rack_of[giver]] -= 1
        self.of_rack[self.rack_of[taker]] += 1


def with_leader(state: PartitionState, leader: int) -> PlacementChange:
    """The same replicas with another preferred leader; the others keep their order."""
    rest = tuple(broker for broker in state.replicas if broker != leader)
    return PlacementChange(state.id, state.replicas, (leader, *rest))
