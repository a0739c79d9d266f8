"""A KIP-1071 streams group, as its coordinator describes it: with topology and roles, and offsets from Kafka 4.4 on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.model.members import Racks, streams_member, with_process_rack
from agent.model.processes import OffsetFacts, agreed_tags, distinct_tasks
from agent.model.racks import agreed_racks
from agent.model.topology import declared_topology
from agent.values.limits import TopologyHint
from agent.values.memory import CopyKey
from agent.values.observation import RawStreamsGroup, RawStreamsMember
from agent.values.snapshot import GroupKind, Member, MemberTasks, Rack, StreamsGroup, StreamsProcess, Topology
from assignors.problem import TaskId, TopicPartition


def streams_group(
    raw: RawStreamsGroup, partitions_of: Mapping[str, int], hint: TopologyHint, racks: Racks
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
        processes=tuple([_process(name, rack_of[name], threads[name]) for name in sorted(threads)]),
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


def _process(process_id: str, rack: Rack, threads: list[RawStreamsMember]) -> StreamsProcess:
    return StreamsProcess(
        process_id,
        rack,
        agreed_tags(row.client_tags for row in threads),
        len(threads),
        tuple([row.member_id for row in threads]),
        tuple(sorted({row.client_id for row in threads})),
        distinct_tasks(task for row in threads for task in row.assignment.active),
        distinct_tasks(task for row in threads for task in row.assignment.standby),
        distinct_tasks(task for row in threads for task in row.assignment.warmup),
    )


def _partitions(
    tasks: Iterable[TaskId], topology: Topology | None, sources: Mapping[TaskId, tuple[TopicPartition, ...]]
) -> tuple[TopicPartition, ...] | None:
    """The source partitions of some tasks; None while the topology is not declared."""
    if topology is None:
        return None
    return tuple(sorted([partition for task in tasks for partition in sources.get(task, ())]))


def _offsets(members: Iterable[RawStreamsMember]) -> Mapping[CopyKey, tuple[int, int]]:
    """(offset, end offset) of each copy of which both were reported."""
    told: dict[CopyKey, tuple[int, int]] = {}
    for row in members:
        ends = dict(row.task_end_offsets)
        for task, offset in row.task_offsets:
            if task in ends and offset >= 0 and ends[task] >= 0:
                told[row.process_id, task] = offset, ends[task]
    return told
