"""Reads and replica copies across racks by group, topic and path; and lags of groups in records.

Reads are those of partitions that consumers hold, sources of active tasks, and changelogs of standbys and warm-ups, at
the inbound rate unless weights of the pipeline differ. Every read, copy and missing answer counts once, known or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agent.money.traffic import CrossRackTraffic, TrafficSum, copy_routes, read_route, together
from agent.values.assessment import rack_bits
from agent.values.cycle import gaps_of
from agent.values.observation import ObservationPart
from agent.values.snapshot import (
    ConsumerGroup,
    Group,
    OtherGroup,
    Rack,
    RackState,
    Snapshot,
    StreamsGroup,
    TaskStatefulness,
    TopicState,
    states_of,
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


class _Ledger:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name}
        self._states = states_of(snapshot.topics.values())
        self._bits = rack_bits(snapshot.brokers, selector_is_rack_aware=snapshot.selector_is_rack_aware)
        self._serves: dict[Rack, bool | None] = {}
        self._readings: dict[tuple[str, str, str | None], TrafficSum] = {}
        self._held: Counter[tuple[str, str, str | None]] = Counter()
        self._unserved = TrafficSum()
        self._hidden: list[str] = []

    def costs(self) -> CrossRackCosts:
        """The whole ledger."""
        groups = {name: self.group(group) for name, group in self._snapshot.groups.items()}
        readings: dict[str, list[GroupTopicTraffic]] = {}
        for (topic, group, rack), sum_ in self._readings.items():
            read = GroupTopicTraffic(group, rack, self._held[topic, group, rack], sum_.traffic())
            readings.setdefault(topic, []).append(read)
        topics = {name: self._topic(topic, readings.get(name, [])) for name, topic in self._snapshot.topics.items()}
        return CrossRackCosts(
            groups=groups,
            topics=topics,
            replicate=together((*(topic.replicate for topic in topics.values()), self._unseen(ObservationPart.TOPICS))),
            consume=together((*filter(None, groups.values()), self._unseen(ObservationPart.GROUPS))),
            unserved=self._unserved.traffic(),
            hidden_groups=tuple(self._hidden),
        )

    def group(self, group: Group, members: Collection[str] | None = None) -> CrossRackTraffic | None:
        """Reads of a group, or of these members; None where they are not visible."""
        if isinstance(group, OtherGroup):
            return None
        total, hidden = TrafficSum(), False
        weighed = self._snapshot.weighed.groups.get(group.id, {})
        for rack, partition in reads_of(group, members):
            if partition is None:
                total.add(None, None)
                hidden = True
                continue
            rate = weighed.get(partition, self._snapshot.bytes_per_s.get(partition))
            state, serves = self._states.get(partition), self._served(rack)
            name = rack.name if rack.state is RackState.KNOWN else None
            route = read_route(state, name, self._racks, serves=serves)
            total.add(route, rate)
            if route is not None and serves is False and read_route(state, name, self._racks, serves=True) != route:
                self._unserved.add(route, rate)
            if partition.topic in self._snapshot.topics:
                key = partition.topic, group.id, name
                self._held[key] += 1
                self._readings.setdefault(key, TrafficSum()).add(route, rate)
        if hidden:
            self._hidden.append(group.id)
        return total.traffic()

    def _served(self, rack: Rack) -> bool | None:
        if rack not in self._serves:
            by_locators = bool(self._snapshot.rack_locators)
            self._serves[rack] = self._bits.serves((rack,)) if by_locators else self._bits.selector_is_rack_aware
        return self._serves[rack]

    def _unseen(self, part: ObservationPart) -> CrossRackTraffic:
        """One unknown read or copy for each answer of that part that is missing."""
        hidden = TrafficSum()
        for _gap in gaps_of(self._snapshot, (part,)):
            hidden.add(None, None)
        return hidden.traffic()

    def _topic(self, topic: TopicState, readings: list[GroupTopicTraffic]) -> TopicCost:
        copies = TrafficSum()
        rates = [self._snapshot.bytes_per_s.get(state.id) for state in topic.partitions]
        for state, rate in zip(topic.partitions, rates, strict=True):
            for route in copy_routes(state, self._racks):
                copies.add(route, rate)
        leaders = Counter(None if state.leader is None else self._racks.get(state.leader) for state in topic.partitions)
        return TopicCost(
            in_bytes_per_s=_known(rates),
            in_unknown=rates.count(None),
            leaders=dict(sorted(leaders.items(), key=lambda row: (row[0] is None, row[0] or ""))),
            replicate=copies.traffic(),
            consume=together((*(reading.traffic for reading in readings), self._unseen(ObservationPart.GROUPS))),
            readings=tuple(sorted(readings, key=lambda row: (row.group, row.rack is None, row.rack or ""))),
        )


def _known(rates: list[float | None]) -> float | None:
    """Sum of the known rates; None where none of some is known."""
    known = [rate for rate in rates if rate is not None]
    return round(sum(known), 3) if known or not rates else None


def reads_of(group: Group, members: Collection[str] | None = None) -> Iterator[PartitionRead]:
    """Partitions by reader now, of all or these members; none where members are not visible."""
    if isinstance(group, OtherGroup):
        return
    if isinstance(group, ConsumerGroup):
        for member in group.members:
            if members is None or member.id in members:
                yield from (PartitionRead(member.rack, partition) for partition in _or_unknown(member.assigned))
        return
    yield from _streams_reads(group, members)


def _streams_reads(group: StreamsGroup, members: Collection[str] | None) -> Iterator[PartitionRead]:
    topology = group.topology
    sources = {} if topology is None else {task.id: task.sources for task in topology.tasks}
    restored = (TaskStatefulness.CHANGELOG, TaskStatefulness.SOURCE_CHANGELOG)
    changelogs = {
        task.id: task.changelogs
        for task in (topology.tasks if topology is not None else ())
        if task.changelogs and task.statefulness in restored and (task.statefulness is restored[0] or not task.note)
    }
    if not group.processes:  # nothing is shown of what the members run
        yield from (
            PartitionRead(member.rack, None) for member in group.members if members is None or member.id in members
        )
    for process in group.processes:
        if members is not None and not {*process.member_ids} & {*members}:
            continue
        for task in process.active:
            yield from (PartitionRead(process.rack, partition) for partition in _or_unknown(sources.get(task)))
        for task in (*process.standby, *process.warmup):
            yield from (PartitionRead(process.rack, partition) for partition in _or_unknown(changelogs.get(task)))


def _or_unknown(partitions: tuple[TopicPartition, ...] | None) -> tuple[TopicPartition | None, ...]:
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
