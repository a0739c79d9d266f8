"""A classic Kafka Streams application, from the bytes of its members.

Members with one process id are the threads of one KafkaStreams instance. Active tasks belong to a member's partitions
by position, so a member whose numbers do not agree tells of no task. A member whose bytes cannot be read belongs to no
process; the group says so by the member's defects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from agent.model.members import Racks, classic_member, with_process_rack
from agent.model.processes import OffsetFacts, agreed_tags, distinct_tasks
from agent.model.racks import agreed_racks
from agent.model.topology import Clues, TopicNames, inferred_topology
from agent.values.limits import TopologyHint
from agent.values.memory import CopyKey
from agent.values.snapshot import GroupKind, Member, StreamsGroup, StreamsProcess
from assignors.problem import TaskId, TopicPartition

SUMS_SINCE_VERSION = 7
_Thread = tuple[DecodedMember, Member]


def classic_streams_group(
    decoded: DecodedGroup, topics: TopicNames, hint: TopologyHint, racks: Racks
) -> tuple[StreamsGroup, OffsetFacts]:
    """A classic group whose protocol is ``stream``, in state Stable, and the offsets that its members told."""
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
        inferred_topology(raw.group_id, _clues(decoded.members), topics, hint),
        hidden=False,
        epoch=None,
        assignment_epoch=None,
        metadata_versions=_versions(decoded.members),
        next_rebalance_ms=min((deadline for deadline in deadlines if deadline), default=None),
        join=_join(members.values()),
    )
    return group, OffsetFacts(_sums(decoded.members), {}, follow_up=0 in deadlines)


def blank_streams_group(group_id: str, state: str, members: tuple[Member, ...], *, hidden: bool) -> StreamsGroup:
    """A classic Streams group of which nothing is shown now, or which has no members."""
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
    given = [row.assignment_data for row, _ in threads if isinstance(row.assignment_data, StreamsAssignment)]
    told = [row.user_data for row, _ in threads if isinstance(row.user_data, StreamsSubscription)]
    return StreamsProcess(
        process_id,
        agreed_racks([member.rack for _, member in threads]),
        agreed_tags(subscription.client_tags or () for subscription in told),
        len(threads),
        tuple(sorted([member.id for _, member in threads])),
        tuple(sorted({member.client_id for _, member in threads})),
        distinct_tasks(task for assignment in given for task in assignment.active),
        distinct_tasks(task for assignment in given for task, _ in assignment.standby),
        (),
    )


def _versions(members: Iterable[DecodedMember]) -> tuple[int, ...]:
    kinds = StreamsSubscription | StreamsSubscriptionHeader
    return tuple(sorted({row.user_data.version for row in members if isinstance(row.user_data, kinds)}))


def _join(members: Iterable[Member]) -> str:
    """Every rebalance raises the generation that the members tell at the next one; new members have new ids."""
    listed = list(members)
    generation = max((member.generation for member in listed if member.generation is not None), default=-1)
    return f"{generation}:{crc32(' '.join(sorted(member.id for member in listed)).encode()):08x}"


def _sums(members: Iterable[DecodedMember]) -> Mapping[CopyKey, int]:
    """What each process told; threads share a state directory, so the most that one of them knows counts."""
    sums: dict[CopyKey, int] = {}
    for row in members:
        if isinstance(row.user_data, StreamsSubscription):
            for task, offset_sum in row.user_data.offset_sums.items():
                key = row.user_data.process_id, task
                before = sums.get(key, offset_sum)
                sums[key] = RUNNING_ACTIVE if RUNNING_ACTIVE in (before, offset_sum) else max(before, offset_sum)
    return sums


def _clues(members: Iterable[DecodedMember]) -> Clues:
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
        told = member.user_data
        if isinstance(told, StreamsSubscription) and isinstance(member.subscription, Subscription):
            if told.version >= SUMS_SINCE_VERSION:
                stateful |= told.offset_sums.keys()
                owned.append((told, member.subscription.owned or ()))
            else:  # older members list all their tasks, and no sums
                stateful.update(told.standby_tasks)
    reader = {partition: task for task, read in sources.items() for partition in read}
    unlogged = {
        reader[partition]
        for told, held in owned
        for partition in held
        if partition in reader and reader[partition] not in told.offset_sums
    }
    return Clues({task: frozenset(read) for task, read in sources.items()}, frozenset(stateful), frozenset(unlogged))


def _positional(member: DecodedMember) -> Iterable[tuple[TaskId, TopicPartition]]:
    """(task, source partition) of a member's active tasks."""
    given, data = member.assignment, member.assignment_data
    if not isinstance(given, Assignment) or not isinstance(data, StreamsAssignment):
        return ()
    return zip(data.active, sorted(given.partitions), strict=True) if len(data.active) == len(given.partitions) else ()
