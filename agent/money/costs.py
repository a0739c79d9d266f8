"""Reads and replica copies across racks by group, topic and path; and lags of groups in records.

Reads are those of partitions that consumers hold, sources of active tasks, and changelogs of standbys and warm-ups, at
the inbound rate unless weights of the pipeline differ. Every read, copy and missing answer counts once, known or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agent.money.traffic import CrossRackTraffic, RackRoute, TrafficSum, copy_routes, read_route, together
from agent.values.assessment import rack_bits
from agent.values.cycle import gaps_of
from agent.values.observation import ObservationPart
from agent.values.rates import Racks
from agent.values.snapshot import (
    ConsumerGroup,
    Group,
    OtherGroup,
    PartitionState,
    Rack,
    RackState,
    Snapshot,
    StreamsGroup,
    TaskStatefulness,
    TopicState,
    topics_of,
)
from assignors.problem import TopicPartition


class GroupTopicTraffic(NamedTuple):
    """Reads of one group from one topic in one rack."""

    group: str
    rack: str | None
    """None for readers whose rack is not known."""
    partitions: int
    traffic: CrossRackTraffic


class TopicCost(NamedTuple):
    """One topic: inbound bytes, leaders by rack, copies and readers."""

    in_bytes_per_s: float | None
    """Known inbound bytes per second; None where no partition's rate is known."""
    in_unknown: int
    """Partitions whose rate is not known."""
    leaders: Mapping[str | None, int]
    """Rack -> partitions that are led there; None: no leader, or one of unknown rack."""
    replicate: CrossRackTraffic
    consume: CrossRackTraffic
    readings: tuple[GroupTopicTraffic, ...]
    """By group and rack."""

    @property
    def crossing(self) -> CrossRackTraffic:
        """Copies and reads together."""
        return together((self.replicate, self.consume))


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossRackCosts:
    """All cross-rack traffic, as far as it is visible."""

    groups: Mapping[str, CrossRackTraffic | None]
    """Reads of each group; None where they are not visible, as of a share group."""
    topics: Mapping[str, TopicCost]
    replicate: CrossRackTraffic
    consume: CrossRackTraffic
    unserved: CrossRackTraffic
    """Reads that cross although an in-sync replica is in the reader's rack, as brokers have no rack-aware selector."""
    hidden_groups: tuple[str, ...]
    """Groups with a member whose reads are not visible: what they read is missing at the topics."""

    @property
    def crossing(self) -> CrossRackTraffic:
        """Copies and reads together."""
        return together((self.replicate, self.consume))


class PartitionRead(NamedTuple):
    """A partition of one reader; None: its partitions are not visible."""

    rack: Rack
    partition: TopicPartition | None


def costs_of(snapshot: Snapshot) -> CrossRackCosts:
    """Traffic across racks now."""
    return _Ledger(snapshot).costs()


def costs_of_members(snapshot: Snapshot, members: Mapping[str, Collection[str]]) -> CrossRackTraffic:
    """Reads of some members across racks now; ``members``: group -> ids of members."""
    ledger = _Ledger(snapshot)
    return together(filter(None, [ledger.group(snapshot.groups[group], ids) for group, ids in members.items()]))


class _RackReader(NamedTuple):
    """All that a route depends on of a reader."""

    rack: str | None
    """None where it is not known."""
    is_served: bool | None
    """Whether the nearest replica serves it; None where that is not known."""


class _ReplicaRoutes:
    """Routes of the partitions with one leader and the same replicas; many partitions share them."""

    __slots__ = ("_racks", "_state", "copies", "leader_rack", "reads")

    def __init__(self, state: PartitionState | None, racks: Racks) -> None:
        """``state``: any of these partitions; None for one that is not shown."""
        self._state, self._racks = state, racks
        self.reads: dict[_RackReader, tuple[RackRoute | None, bool]] = {}
        """Reader -> what `read` found of it before."""
        self.leader_rack = None if state is None or state.leader is None else racks.get(state.leader)
        self.copies = () if state is None else (*copy_routes(state, racks),)

    def read(self, reader: _RackReader) -> tuple[RackRoute | None, bool]:
        """(the route of its read, whether a rack-aware selector would shorten it)."""
        route = read_route(self._state, reader.rack, self._racks, serves=reader.is_served)
        nearest = read_route(self._state, reader.rack, self._racks, serves=True)
        found = self.reads[reader] = route, route is not None and reader.is_served is False and nearest != route
        return found


class _Ledger:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name}
        self._bits = rack_bits(snapshot.brokers, selector_is_rack_aware=snapshot.selector_is_rack_aware)
        self._readers: dict[Rack, _RackReader] = {}
        self._routes: dict[tuple[object, ...], _ReplicaRoutes] = {}
        """Leader, replicas, replicas in sync and offline ones -> their routes."""
        self._placed: dict[str, dict[int, tuple[_ReplicaRoutes, float | None]]] = {}
        """Topic -> number of a partition -> (its routes, its inbound bytes per second)."""
        self._not_shown = _ReplicaRoutes(None, self._racks)
        self._readings: dict[str, list[tuple[str, str | None, TrafficSum]]] = {}
        """Topic -> (group, rack of the readers, their reads)."""
        self._unserved = TrafficSum()
        self._hidden: list[str] = []

    def costs(self) -> CrossRackCosts:
        """The whole ledger."""
        groups = {name: self.group(group) for name, group in self._snapshot.groups.items()}
        no_groups, no_topics = self._unseen(ObservationPart.GROUPS), self._unseen(ObservationPart.TOPICS)
        topics = {name: self._topic(topic, no_groups) for name, topic in self._snapshot.topics.items()}
        return CrossRackCosts(
            groups=groups,
            topics=topics,
            replicate=together((*(topic.replicate for topic in topics.values()), no_topics)),
            consume=together((*filter(None, groups.values()), no_groups)),
            unserved=self._unserved.traffic(),
            hidden_groups=tuple(self._hidden),
        )

    def group(self, group: Group, members: Collection[str] | None = None) -> CrossRackTraffic | None:
        """Reads of a group, or of these members; None where they are not visible."""
        if isinstance(group, OtherGroup):
            return None
        total, sums = TrafficSum(), defaultdict[tuple[str, str | None], TrafficSum](TrafficSum)
        weighed, hidden = self._snapshot.weighed.groups.get(group.id, {}), False
        for rack, partitions in _by_reader(group, members):
            reader = self._readers.get(rack) or self._reader(rack)
            for partition in partitions:
                if partition is None:
                    total.add(None, None)
                    hidden = True
                    continue
                topic, number = partition
                of_topic = self._placed.get(topic)
                if of_topic is None:
                    of_topic = self._topic_routes(topic)
                routes, rate = of_topic.get(number) or self._without_state(partition)
                if weighed:
                    rate = weighed.get(partition, rate)
                route, is_unserved = routes.reads.get(reader) or routes.read(reader)
                total.add(route, rate)
                if is_unserved:
                    self._unserved.add(route, rate)
                sums[topic, reader.rack].add(route, rate)
        for (topic, name), sum_ in sums.items():
            self._readings.setdefault(topic, []).append((group.id, name, sum_))
        if hidden:
            self._hidden.append(group.id)
        return total.traffic()

    def _reader(self, rack: Rack) -> _RackReader:
        by_locators = bool(self._snapshot.rack_locators)
        serves = self._bits.serves((rack,)) if by_locators else self._bits.selector_is_rack_aware
        found = self._readers[rack] = _RackReader(rack.name if rack.state is RackState.KNOWN else None, serves)
        return found

    def _topic_routes(self, topic: str) -> dict[int, tuple[_ReplicaRoutes, float | None]]:
        state, rates = self._snapshot.topics.get(topic), self._snapshot.bytes_per_s
        found = self._placed[topic] = dict[int, tuple[_ReplicaRoutes, float | None]]()
        for partition in () if state is None else state.partitions:
            same = partition[1:]
            routes = self._routes.get(same)
            if routes is None:
                routes = self._routes[same] = _ReplicaRoutes(partition, self._racks)
            found[partition[0][1]] = routes, rates.get(partition[0])
        return found

    def _without_state(self, partition: TopicPartition) -> tuple[_ReplicaRoutes, float | None]:
        return self._not_shown, self._snapshot.bytes_per_s.get(partition)

    def _unseen(self, part: ObservationPart) -> CrossRackTraffic:
        """One unknown read or copy for each answer of that part that is missing."""
        hidden = TrafficSum()
        for _gap in gaps_of(self._snapshot, (part,)):
            hidden.add(None, None)
        return hidden.traffic()

    def _topic(self, topic: TopicState, no_groups: CrossRackTraffic) -> TopicCost:
        copies, leaders, rates = TrafficSum(), dict[str | None, int](), list[float | None]()
        for routes, rate in (self._placed.get(topic.name) or self._topic_routes(topic.name)).values():
            rates.append(rate)
            leaders[routes.leader_rack] = leaders.get(routes.leader_rack, 0) + 1
            for route in routes.copies:
                copies.add(route, rate)
        sums = self._readings.get(topic.name, ())
        readings = [GroupTopicTraffic(group, rack, reads.parts, reads.traffic()) for group, rack, reads in sums]
        return TopicCost(
            in_bytes_per_s=_known(rates),
            in_unknown=rates.count(None),
            leaders=dict(sorted(leaders.items(), key=lambda row: (row[0] is None, row[0] or ""))),
            replicate=copies.traffic(),
            consume=together((*(reading.traffic for reading in readings), no_groups)),
            readings=tuple(sorted(readings, key=lambda row: (row.group, row.rack is None, row.rack or ""))),
        )


def _known(rates: list[float | None]) -> float | None:
    """Sum of the known rates; None where none of some is known."""
    known = [rate for rate in rates if rate is not None]
    return round(sum(known), 3) if known or not rates else None


def reads_of(group: Group) -> Iterator[PartitionRead]:
    """Partitions by reader now; none where members are not visible."""
    for rack, partitions in _by_reader(group, None):
        for partition in partitions:
            yield PartitionRead(rack, partition)


_Partitions = tuple[TopicPartition | None, ...]
"""None: not visible."""


def _by_reader(group: Group, members: Collection[str] | None) -> Iterator[tuple[Rack, _Partitions]]:
    if isinstance(group, OtherGroup):
        return
    if isinstance(group, ConsumerGroup):
        for member in group.members:
            if members is None or member.id in members:
                yield member.rack, _or_unknown(member.assigned)
        return
    yield from _by_process(group, members)


def _by_process(group: StreamsGroup, members: Collection[str] | None) -> Iterator[tuple[Rack, _Partitions]]:
    topology = group.topology
    sources = {} if topology is None else {task.id: task.sources for task in topology.tasks}
    restored = (TaskStatefulness.CHANGELOG, TaskStatefulness.SOURCE_CHANGELOG)
    changelogs = {
        task.id: task.changelogs
        for task in (topology.tasks if topology is not None else ())
        if task.changelogs and task.statefulness in restored and (task.statefulness is restored[0] or not task.note)
    }
    if not group.processes:  # nothing is shown of what the members run
        for member in group.members:
            if members is None or member.id in members:
                yield member.rack, (None,)
    for process in group.processes:
        if members is not None and not {*process.member_ids} & {*members}:
            continue
        for task in process.active:
            yield process.rack, _or_unknown(sources.get(task))
        for task in (*process.standby, *process.warmup):
            yield process.rack, _or_unknown(changelogs.get(task))


def _or_unknown(partitions: tuple[TopicPartition, ...] | None) -> _Partitions:
    return (None,) if partitions is None else partitions


# Lag: end offsets minus committed offsets. A held partition without either is unknown, never caught up.


class GroupLag(NamedTuple):
    """How far behind a group is, in records."""

    records: int | None
    """Over all partitions, at least; None where nothing is known."""
    worst: TopicPartition | None
    """The partition with the most records to go; None where none is behind."""
    worst_records: int | None
    partitions: int
    unknown: int
    """Partitions of which it is unknown."""

    @property
    def known(self) -> int | None:
        """Records behind, at least; None also where all that is known is that some partitions have none to go."""
        return None if self.unknown and not self.records else self.records


def lag_of(snapshot: Snapshot, group_id: str) -> GroupLag | None:
    """The lag of a group that commits offsets, over `partition_lags`; None where those are."""
    lags = partition_lags(snapshot, group_id)
    return None if lags is None else sum_of_lags(lags)


def sum_of_lags(lags: Mapping[TopicPartition, int | None]) -> GroupLag:
    """Lags of partitions in records as one; None is unknown."""
    known = {partition: lag for partition, lag in lags.items() if lag is not None}
    worst = max(sorted(known), key=lambda partition: known[partition], default=None)
    behind = worst is not None and known[worst] > 0
    return GroupLag(
        records=sum(known.values()) if known or not lags else None,
        worst=worst if behind else None,
        worst_records=known[worst] if worst is not None else None,
        partitions=len(lags),
        unknown=len(lags) - len(known),
    )


def partition_lags(snapshot: Snapshot, group_id: str) -> dict[TopicPartition, int | None] | None:
    """Records behind by partition, None where it is unknown.

    No mapping for a group that commits no offsets, and where its commits did not answer. Counted are partitions of the
    topics that it reads now (of all topics, where it has no members), and those that its members hold.
    """
    group = snapshot.groups[group_id]
    committed = snapshot.committed_offsets.get(group_id)
    if isinstance(group, OtherGroup) or committed is None:
        return None
    topics = set(topics_of(group)) if group.members else {partition.topic for partition in committed}
    held = {p for member in group.members for p in member.assigned or ()} if isinstance(group, ConsumerGroup) else set()
    wanted = {p for p in committed if p.topic in topics or (group.members and not topics)} | held
    hidden = bool(gaps_of(snapshot, (ObservationPart.TOPICS,)))  # else a topic that is not there was deleted
    there = [partition for partition in wanted if hidden or partition.topic in snapshot.topics]
    return {partition: _lag(snapshot.end_offsets.get(partition), committed.get(partition)) for partition in there}


def _lag(end: int | None, committed: int | None) -> int | None:
    # A commit may be newer than the end offset that was asked before it; it is caught up then.
    return None if end is None or committed is None else max(0, end - committed)


def worst_task_lag(snapshot: Snapshot, group_id: str) -> float | None:
    """The likely lag, in records, of the task copy that is farthest behind; None where no lag is known."""
    return max((copy.lag.likely for copy in snapshot.copies.get(group_id, ()) if copy.lag is not None), default=None)
