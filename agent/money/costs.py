"""What crosses racks, by group, by topic and by path: who reads what from where, and which copies leave a rack.

Reads are those that members hold now: partitions of consumers, source partitions of active tasks, and changelogs of
standbys and warm-ups. A group reads what its partitions take in, unless weights of the pipeline say otherwise.

Invariant: every read and every copy is counted once, known or not; so is every answer that is missing and may hide
some of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agent.detect.assess import bits_of
from agent.detect.traffic import states_of
from agent.money.traffic import Sum, Traffic, copy_routes, read_route, together
from agent.values.memo import Memo
from agent.values.observation import Part
from agent.values.snapshot import ConsumerGroup, Group, OtherGroup, Rack, RackState, Snapshot, Statefulness, TopicState
from agent.values.unseen import gaps_of
from assignors.problem import TopicPartition


class Reading(NamedTuple):
    """What one group reads of one topic in one rack."""

    group: str
    rack: str | None
    """None for readers whose rack is not known."""
    partitions: int
    traffic: Traffic


class TopicCost(NamedTuple):
    """One topic: what is written into it, where its leaders are, its copies and its readers."""

    in_bytes_per_s: float | None
    """What it takes in, at least; None where no partition's rate is known."""
    in_unknown: int
    """Partitions whose rate is not known."""
    leaders: Mapping[str | None, int]
    """Rack -> partitions that are led there; None: no leader, or one of unknown rack."""
    replicate: Traffic
    consume: Traffic
    readings: tuple[Reading, ...]
    """By group and rack."""

    @property
    def crossing(self) -> Traffic:
        """Copies and reads together."""
        return together((self.replicate, self.consume))


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Everything that crosses racks, as far as it is visible."""

    groups: Mapping[str, Traffic | None]
    """What each group reads; None for a group of which that is not visible, such as a share group."""
    topics: Mapping[str, TopicCost]
    replicate: Traffic
    consume: Traffic
    unserved: Traffic
    """Reads that cross although an in-sync replica is in the reader's rack, as brokers have no rack-aware selector."""
    untold: tuple[str, ...]
    """Groups with a member whose reads are not visible: what they read is missing at the topics."""

    @property
    def crossing(self) -> Traffic:
        """Copies and reads together."""
        return together((self.replicate, self.consume))


class Read(NamedTuple):
    """A partition read by one reader; None: it is not visible what this reader reads."""

    rack: Rack
    partition: TopicPartition | None


def costs_of(snapshot: Snapshot) -> Costs:
    """What crosses racks now."""
    return _Ledger(snapshot).costs()


def costs_of_members(snapshot: Snapshot, members: Mapping[str, Collection[str]]) -> Traffic:
    """What some members read across racks now; ``members``: group -> ids of members."""
    ledger = _Ledger(snapshot)
    return together(filter(None, [ledger.group(snapshot.groups[group], ids) for group, ids in members.items()]))


class _Ledger:
    """Goes through every read and every copy once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name}
        self._states = states_of(snapshot.topics.values())
        self._bits = bits_of(snapshot, Memo())
        self._serves: dict[Rack, bool | None] = {}
        self._readings: dict[tuple[str, str, str | None], Sum] = {}
        self._held: Counter[tuple[str, str, str | None]] = Counter()
        self._unserved = Sum()
        self._untold: list[str] = []

    def costs(self) -> Costs:
        """The whole ledger."""
        groups = {name: self.group(group) for name, group in self._snapshot.groups.items()}
        readings: dict[str, list[Reading]] = {}
        for (topic, group, rack), sum_ in self._readings.items():
            read = Reading(group, rack, self._held[topic, group, rack], sum_.traffic())
            readings.setdefault(topic, []).append(read)
        topics = {name: self._topic(topic, readings.get(name, [])) for name, topic in self._snapshot.topics.items()}
        return Costs(
            groups=groups,
            topics=topics,
            replicate=together((*(topic.replicate for topic in topics.values()), self._unseen(Part.TOPICS))),
            consume=together((*filter(None, groups.values()), self._unseen(Part.GROUPS))),
            unserved=self._unserved.traffic(),
            untold=tuple(self._untold),
        )

    def group(self, group: Group, members: Collection[str] | None = None) -> Traffic | None:
        """What a group reads, or these members of it; None for a group of which that is not visible."""
        if isinstance(group, OtherGroup):
            return None
        total, untold = Sum(), False
        weighed = self._snapshot.weighed.groups.get(group.id, {})
        for rack, partition in reads_of(group, members):
            if partition is None:
                total.add(None, None)
                untold = True
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
                self._readings.setdefault(key, Sum()).add(route, rate)
        if untold:
            self._untold.append(group.id)
        return total.traffic()

    def _served(self, rack: Rack) -> bool | None:
        """Whether the nearest replica serves a reader in that rack."""
        if rack not in self._serves:
            by_locators = bool(self._snapshot.rack_locators)
            self._serves[rack] = self._bits.serves((rack,)) if by_locators else self._bits.selector_is_rack_aware
        return self._serves[rack]

    def _unseen(self, part: Part) -> Traffic:
        """One unknown read or copy for each answer of that part that is missing."""
        hidden = Sum()
        for _gap in gaps_of(self._snapshot, (part,)):
            hidden.add(None, None)
        return hidden.traffic()

    def _topic(self, topic: TopicState, readings: list[Reading]) -> TopicCost:
        copies = Sum()
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
            consume=together((*(reading.traffic for reading in readings), self._unseen(Part.GROUPS))),
            readings=tuple(sorted(readings, key=lambda row: (row.group, row.rack is None, row.rack or ""))),
        )


def _known(rates: list[float | None]) -> float | None:
    """The sum of what is known; None where nothing of something is."""
    known = [rate for rate in rates if rate is not None]
    return round(sum(known), 3) if known or not rates else None


def reads_of(group: Group, members: Collection[str] | None = None) -> Iterator[Read]:
    """Who reads what now, or these members of it alone; nothing of a group whose members are not visible."""
    if isinstance(group, OtherGroup):
        return
    if isinstance(group, ConsumerGroup):
        for member in group.members:
            if members is None or member.id in members:
                yield from (Read(member.rack, partition) for partition in _or_unknown(member.assigned))
        return
    topology = group.topology
    sources = {} if topology is None else {task.id: task.sources for task in topology.tasks}
    told = (Statefulness.CHANGELOG, Statefulness.SOURCE_CHANGELOG)
    changelogs = {
        task.id: task.changelogs
        for task in (topology.tasks if topology is not None else ())
        if task.changelogs and task.statefulness in told and (task.statefulness is told[0] or not task.note)
    }
    if not group.processes:  # nothing is shown of what the members run
        yield from (Read(member.rack, None) for member in group.members if members is None or member.id in members)
    for process in group.processes:
        if members is not None and not {*process.member_ids} & {*members}:
            continue
        for task in process.active:
            yield from (Read(process.rack, partition) for partition in _or_unknown(sources.get(task)))
        for task in (*process.standby, *process.warmup):
            yield from (Read(process.rack, partition) for partition in _or_unknown(changelogs.get(task)))


def _or_unknown(partitions: tuple[TopicPartition, ...] | None) -> tuple[TopicPartition | None, ...]:
    return (None,) if partitions is None else partitions
