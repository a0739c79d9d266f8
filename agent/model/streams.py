"""Kafka Streams applications of classic and KIP-1071 groups: processes, tasks, reported offsets and rates.

Members with one process id are the threads of one KafkaStreams instance. Active tasks belong to a member's partitions
by position: a member with unequal counts has no tasks. An unreadable member belongs to no process.

A rate (bytes per second of a partition, restored records of a task copy) is a range: over the whole time, and the least
and most of its two halves, wider where readings are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple
from zlib import crc32

from agent.decode.values import (
    RUNNING_ACTIVE,
    Assignment,
    DecodedGroup,
    DecodedMember,
    StreamsAssignment,
    StreamsSubscription,
    StreamsSubscriptionHeader,
    Subscription,
)
from agent.model.members import MemberRacks, agreed_racks, classic_member, streams_member, with_process_rack
from agent.model.topology import ApplicationTopics, TopologyEvidence, declared_topology, inferred_topology
from agent.values.limits import TopologyHint
from agent.values.memory import CopyKey, Memory, RestoreRate
from agent.values.observation import RawStreamsGroup, RawStreamsMember
from agent.values.rates import SHORTEST_BASE_MS
from agent.values.snapshot import (
    GroupKind,
    Member,
    MemberTasks,
    Rack,
    Range,
    StreamsGroup,
    StreamsProcess,
    StreamsTopology,
)
from agent.values.weights import RestoreWeight
from assignors.problem import TaskId, TopicPartition


class OffsetFacts(NamedTuple):
    """Reported offsets of the processes, for lags only."""

    sums: Mapping[CopyKey, int]
    """Classic: offset sum at the last join, or one of Kafka's sentinels."""
    broker: Mapping[CopyKey, tuple[int, int]]
    """KIP-1071: (offset, end offset) as the coordinator passes them on."""
    follow_up: bool
    """Classic: True while a follow-up rebalance is due, because revoked tasks are not assigned yet."""


NO_OFFSETS = OffsetFacts({}, {}, follow_up=False)


def agreed_tags(threads: Iterable[Iterable[tuple[str, str]]]) -> tuple[tuple[str, str], ...]:
    """The client tags on which all threads of a process agree, sorted."""
    common: set[tuple[str, str]] | None = None
    for tags in threads:
        common = set(tags) if common is None else common & set(tags)
    return tuple(sorted(common or ()))


def distinct_tasks(tasks: Iterable[TaskId]) -> tuple[TaskId, ...]:
    """Each task once, sorted; subtopologies with numbers come before those with names."""
    return tuple(sorted(set(tasks), key=lambda task: (isinstance(task.subtopology, str), task)))


SUMS_SINCE_VERSION = 7
_Thread = tuple[DecodedMember, Member]


def classic_streams_group(
    decoded: DecodedGroup, topics: ApplicationTopics, hint: TopologyHint, racks: MemberRacks
) -> tuple[StreamsGroup, OffsetFacts]:
    """A classic group of protocol ``stream`` in state Stable, and its members' reported offsets."""
    raw = decoded.raw
    threads = [(row, classic_member(row, racks, stable=True)) for row in decoded.members]
    by_process: dict[str, list[_Thread]] = {}
    for row, member in threads:
        if isinstance(row.user_data, StreamsSubscription):
            by_process.setdefault(row.user_data.process_id, []).append((row, member))
    processes = tuple([_process(name, by_process[name]) for name in sorted(by_process)])
    members = {member.id: member for _, member in threads}
    for process in processes:
        own = [members[member_id] for member_id in process.member_ids]
        members |= {member.id: member for member in with_process_rack(own, process.rack)}
    deadlines = [
        row.assignment_data.next_rebalance_ms
        for row in decoded.members
        if isinstance(row.assignment_data, StreamsAssignment)
    ]
    group = StreamsGroup(
        raw.group_id,
        GroupKind.CLASSIC_STREAMS,
        raw.state,
        raw.protocol or None,
        tuple([members[member_id] for member_id in sorted(members)]),
        processes,
        inferred_topology(raw.group_id, _evidence(decoded.members), topics, hint),
        hidden=False,
        epoch=None,
        assignment_epoch=None,
        metadata_versions=_versions(decoded.members),
        next_rebalance_ms=min((deadline for deadline in deadlines if deadline), default=None),
        join=_join(members.values()),
    )
    return group, OffsetFacts(_sums(decoded.members), {}, follow_up=0 in deadlines)


def blank_streams_group(group_id: str, state: str, members: tuple[Member, ...], *, hidden: bool) -> StreamsGroup:
    """A classic Streams group whose members are hidden now, or which has none."""
    return StreamsGroup(
        group_id,
        GroupKind.CLASSIC_STREAMS,
        state,
        assignor=None,
        members=members,
        processes=(),
        topology=None,
        hidden=hidden,
        epoch=None,
        assignment_epoch=None,
        metadata_versions=(),
        next_rebalance_ms=None,
    )


def _process(process_id: str, threads: list[_Thread]) -> StreamsProcess:
    assignments = [row.assignment_data for row, _ in threads if isinstance(row.assignment_data, StreamsAssignment)]
    subscriptions = [row.user_data for row, _ in threads if isinstance(row.user_data, StreamsSubscription)]
    return StreamsProcess(
        process_id,
        agreed_racks([member.rack for _, member in threads]),
        agreed_tags(subscription.client_tags or () for subscription in subscriptions),
        len(threads),
        tuple(sorted([member.id for _, member in threads])),
        tuple(sorted({member.client_id for _, member in threads})),
        distinct_tasks(task for assignment in assignments for task in assignment.active),
        distinct_tasks(task for assignment in assignments for task, _ in assignment.standby),
        (),
    )


def _versions(members: Iterable[DecodedMember]) -> tuple[int, ...]:
    kinds = StreamsSubscription | StreamsSubscriptionHeader
    return tuple(sorted({row.user_data.version for row in members if isinstance(row.user_data, kinds)}))


def _join(members: Iterable[Member]) -> str:
    """Key of a rebalance: each raises the members' generation; new members have new ids."""
    listed = list(members)
    generation = max((member.generation for member in listed if member.generation is not None), default=-1)
    return f"{generation}:{crc32(' '.join(sorted(member.id for member in listed)).encode(errors='surrogatepass')):08x}"


def _sums(members: Iterable[DecodedMember]) -> Mapping[CopyKey, int]:
    """Offset sums by process: the highest of its threads, which share a state directory."""
    sums: dict[CopyKey, int] = {}
    for row in members:
        if isinstance(row.user_data, StreamsSubscription):
            for task, offset_sum in row.user_data.offset_sums.items():
                key = row.user_data.process_id, task
                before = sums.get(key, offset_sum)
                sums[key] = RUNNING_ACTIVE if RUNNING_ACTIVE in (before, offset_sum) else max(before, offset_sum)
    return sums


def _evidence(members: Iterable[DecodedMember]) -> TopologyEvidence:
    sources: dict[TaskId, set[TopicPartition]] = {}
    stateful: set[TaskId] = set()
    owned: list[tuple[StreamsSubscription, tuple[TopicPartition, ...]]] = []
    for member in members:
        if isinstance(member.assignment_data, StreamsAssignment):
            for task, partition in _positional(member):
                sources.setdefault(task, set()).add(partition)
            for task, partitions in member.assignment_data.standby:
                sources.setdefault(task, set()).update(partitions)
                stateful.add(task)
        user_data = member.user_data
        if isinstance(user_data, StreamsSubscription) and isinstance(member.subscription, Subscription):
            if user_data.version >= SUMS_SINCE_VERSION:
                stateful |= user_data.offset_sums.keys()
                owned.append((user_data, member.subscription.owned or ()))
            else:  # older members list all their tasks, and no sums
                stateful.update(user_data.standby_tasks)
    reader = {partition: task for task, read in sources.items() for partition in read}
    unlogged = {
        reader[partition]
        for user_data, held in owned
        for partition in held
        if partition in reader and reader[partition] not in user_data.offset_sums
    }
    return TopologyEvidence(
        {task: frozenset(read) for task, read in sources.items()}, frozenset(stateful), frozenset(unlogged)
    )


def _positional(member: DecodedMember) -> Iterable[tuple[TaskId, TopicPartition]]:
    given, data = member.assignment, member.assignment_data
    if not isinstance(given, Assignment) or not isinstance(data, StreamsAssignment):
        return ()
    return zip(data.active, sorted(given.partitions), strict=True) if len(data.active) == len(given.partitions) else ()


def streams_group(
    raw: RawStreamsGroup, partitions_of: Mapping[str, int], hint: TopologyHint, racks: MemberRacks
) -> tuple[StreamsGroup, OffsetFacts]:
    """The group in any state, and the offsets that its members reported."""
    topology = None
    if raw.subtopologies is not None:
        topology = declared_topology(raw.subtopologies, partitions_of, hint)
    subs = raw.subtopologies or ()
    reads = tuple(sorted({t for sub in subs for t in (*sub.source_topics, *sub.repartition_source_topics)}))
    sources = {task.id: task.sources for task in topology.tasks} if topology is not None else {}
    threads: dict[str, list[RawStreamsMember]] = {}
    for row in sorted(raw.members, key=lambda row: row.member_id):
        threads.setdefault(row.process_id, []).append(row)
    members: list[Member] = []
    rack_of: dict[str, Rack] = {}
    for name, rows in threads.items():
        own = [
            streams_member(
                row,
                racks.of(row.rack_id, row),
                reads,
                _partitions(row.assignment.active, topology, sources),
                _partitions(row.target.active, topology, sources),
            )
            for row in rows
        ]
        rack_of[name] = agreed_racks([member.rack for member in own])
        members += with_process_rack(own, rack_of[name])
    group = StreamsGroup(
        raw.group_id,
        GroupKind.STREAMS,
        raw.state,
        assignor=None,
        members=tuple(sorted(members, key=lambda member: member.id)),
        processes=tuple([_process_of(name, rack_of[name], threads[name]) for name in sorted(threads)]),
        topology=topology,
        hidden=False,
        epoch=raw.group_epoch,
        assignment_epoch=raw.assignment_epoch,
        metadata_versions=(),
        next_rebalance_ms=None,
        join=f"epoch {raw.assignment_epoch}",
        targets=tuple(
            [
                MemberTasks(row.member_id, distinct_tasks(row.target.active), distinct_tasks(row.target.standby))
                for row in sorted(raw.members, key=lambda row: row.member_id)
            ]
        ),
    )
    return group, OffsetFacts({}, _offsets(raw.members), follow_up=False)


def _process_of(process_id: str, rack: Rack, threads: list[RawStreamsMember]) -> StreamsProcess:
    return StreamsProcess(
        process_id,
        rack,
        agreed_tags(row.client_tags for row in threads),
        len(threads),
        tuple([row.member_id for row in threads]),
        tuple(sorted({row.client_id for row in threads})),
        distinct_tasks(chain.from_iterable(row.assignment.active for row in threads)),
        distinct_tasks(chain.from_iterable(row.assignment.standby for row in threads)),
        distinct_tasks(chain.from_iterable(row.assignment.warmup for row in threads)),
    )


def _partitions(
    tasks: Iterable[TaskId], topology: StreamsTopology | None, sources: Mapping[TaskId, tuple[TopicPartition, ...]]
) -> tuple[TopicPartition, ...] | None:
    if topology is None:
        return None
    return tuple(sorted([partition for task in tasks for partition in sources.get(task, ())]))


def _offsets(members: Iterable[RawStreamsMember]) -> Mapping[CopyKey, tuple[int, int]]:
    """(offset, end offset) of each copy of which both were reported."""
    offsets: dict[CopyKey, tuple[int, int]] = {}
    for row in members:
        ends = dict(row.task_end_offsets)
        for task, offset in row.task_offsets:
            if task in ends and offset >= 0 and ends[task] >= 0:
                offsets[row.process_id, task] = offset, ends[task]
    return offsets


SURE_RATES = 3
"""With fewer restores measured, the range is doubled to both sides."""


def closing_rate(samples: Sequence[tuple[int, int]]) -> Range | None:
    """Records per second by which a lag shrinks, out of (monotonic ms, lag) in order; negative when it grows.

    Restores go in batches, so few readings are uncertain: the range is widened by ``1 + 2 / readings``.
    """
    if len(samples) < 2 or samples[-1][0] <= samples[0][0]:
        return None
    overall = _slope(samples[0], samples[-1])
    middle = samples[len(samples) // 2]
    slopes = (overall, _slope(samples[0], middle), _slope(middle, samples[-1])) if len(samples) > 2 else (overall,)
    wider = 1 + 2 / len(samples)
    low, high = min(slopes), max(slopes)
    return Range(low / wider if low > 0 else low * wider, overall, high * wider if high > 0 else high / wider)


class MeasuredRestoreRate(NamedTuple):
    """Records that a process restores per second."""

    low: float
    likely: float
    high: float | None
    """None when nothing bounds it from above."""


def restore_rate(measured: Sequence[RestoreRate], learned: Sequence[RestoreWeight] = ()) -> MeasuredRestoreRate | None:
    """How fast a process restores, as measured in earlier rounds; None when nothing was.

    Measurements that are bounded on both sides count; those bounded from below only where there are no others. While
    they are few, the rates that the pipeline learned over a longer time replace them, with the range doubled too: they
    are of another time, and one copy may restore a part only of what its process restores.
    """
    bounded = [(rate.low, rate.high) for rate in measured if rate.high is not None]
    if len(bounded) < SURE_RATES and any(one.samples and one.high for one in learned):
        return _with_learned(bounded, [one for one in learned if one.samples and one.high])
    if not measured:
        return None
    if not bounded:
        lows = [rate.low for rate in measured]
        return MeasuredRestoreRate(min(lows) / 2, max(lows), None)
    spread = 1.0 if len(bounded) >= SURE_RATES else 2.0
    middles = sorted((low + high) / 2 for low, high in bounded)
    return MeasuredRestoreRate(
        min(low for low, _ in bounded) / spread,
        middles[len(middles) // 2],
        max(high for _, high in bounded) * spread,
    )


def _with_learned(bounded: Sequence[tuple[float, float]], learned: Sequence[RestoreWeight]) -> MeasuredRestoreRate:
    """The rate by few measurements or none, and by the pipeline's restore weights."""
    lows = [low for low, _ in bounded] + [one.low for one in learned]
    highs = [high for _, high in bounded] + [one.high for one in learned]
    middles = sorted([(low + high) / 2 for low, high in bounded] + [one.median for one in learned])
    return MeasuredRestoreRate(min(lows) / 2, middles[len(middles) // 2], max(highs) * 2)


def still_missing(
    missing: float, backlog: float, rate: MeasuredRestoreRate, shortest_s: float, longest_s: float | None
) -> Range:
    """Records of one copy not yet restored, when its process has restored for that long.

    A thread restores its tasks in turn: at best this copy was the first, at worst it is the last of the backlog, and
    likely all advanced evenly. ``longest_s`` is None where the beginning was not seen.
    """
    least = 0.0 if rate.high is None or longest_s is None else max(0.0, missing - rate.high * longest_s)
    most = min(missing, max(least, backlog - rate.low * shortest_s))
    middle_s = shortest_s if longest_s is None else (shortest_s + longest_s) / 2
    restored_share = min(1.0, rate.likely * middle_s / backlog) if backlog else 1.0
    return Range(least, min(most, max(least, missing * (1 - restored_share))), most)


def shared_rate(rate: MeasuredRestoreRate, share: float, appended_per_s: float) -> Range | None:
    """Records per second by which one copy closes in: from its share of its process's rate to all of it."""
    if rate.high is None:
        return None
    low, likely = rate.low * share - appended_per_s, rate.likely * share - appended_per_s
    return Range(low, likely, max(likely, rate.high - appended_per_s))


def eta_s(lag: Range, acceptable: int, rate: Range | None) -> Range | None:
    """Seconds until the lag is acceptable; None when that is unknown, or never at the least rate."""
    left = Range(*(max(0.0, bound - acceptable) for bound in lag))
    if left.high == 0:
        return Range(0.0, 0.0, 0.0)
    if rate is None or rate.low <= 0:
        return None
    return Range(left.low / rate.high, left.likely / rate.likely, left.high / rate.low)


def byte_rates(
    end_offsets: Mapping[TopicPartition, int], memory: Memory, now_ms: int
) -> Mapping[TopicPartition, float]:
    """Inbound bytes per second of each partition with known records and record size.

    Empty where no base is kept: on the first look, and in large clusters.
    """
    base = next((base for base in memory.rate_bases if now_ms - base.monotonic_ms >= SHORTEST_BASE_MS), None)
    if base is None:
        return {}
    seconds = (now_ms - base.monotonic_ms) / 1000
    rates: dict[TopicPartition, float] = {}
    for partition, end in end_offsets.items():
        records = end - base.end_offsets.get(partition, end + 1)
        if records == 0:
            rates[partition] = 0.0
        elif records > 0 and partition.topic in memory.bytes_per_record:
            rates[partition] = records / seconds * memory.bytes_per_record[partition.topic]
    return rates


def _slope(earlier: tuple[int, int], later: tuple[int, int]) -> float:
    took_ms = later[0] - earlier[0]
    return (earlier[1] - later[1]) * 1000 / took_ms if took_ms > 0 else 0.0
