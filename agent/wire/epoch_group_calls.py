"""Describes the groups whose coordinator assigns by itself: consumer groups (KIP-848) and streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from agent.values.observation import (
    Gap,
    Part,
    RawConsumerGroup,
    RawConsumerMember,
    RawStreamsGroup,
    RawStreamsMember,
    RawSubtopology,
    RawTasks,
)
from agent.wire.batches import GroupAnswers, GroupRow, ask_groups
from agent.wire.connection import Connection
from agent.wire.deadline import Deadline
from agent.wire.pool import Pool
from agent.wire.protocol import CONSUMER_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE, error_name
from assignors.problem import TaskId, TopicPartition

_UNKNOWN_MEMBER_TYPE = -1


class ConsumerGroups(NamedTuple):
    """KIP-848 groups, sorted by id."""

    groups: tuple[RawConsumerGroup, ...]
    gaps: tuple[Gap, ...]


class StreamsGroups(NamedTuple):
    """KIP-1071 groups, sorted by id."""

    groups: tuple[RawStreamsGroup, ...]
    gaps: tuple[Gap, ...]


def consumer_group_describe(
    pool: Pool, groups: Iterable[str], coordinators: Mapping[str, int], deadline: Deadline
) -> ConsumerGroups:
    """KIP-848 groups with racks, epochs, current and target assignment; a group that failed or is gone is a gap."""
    answers = ask_groups(pool, groups, coordinators, _ask_consumer, deadline, name="consumer groups")
    return ConsumerGroups(tuple(_described(answers)), _gaps(answers))


def streams_group_describe(
    pool: Pool, groups: Iterable[str], coordinators: Mapping[str, int], deadline: Deadline
) -> StreamsGroups:
    """KIP-1071 groups with topology, racks, tags and tasks; a group that failed or is gone is a gap."""
    answers = ask_groups(pool, groups, coordinators, _ask_streams, deadline, name="streams groups")
    return StreamsGroups(tuple(_described(answers)), _gaps(answers))


_Group = TypeVar("_Group", RawConsumerGroup, RawStreamsGroup)


def _described(answers: GroupAnswers[_Group]) -> list[_Group]:
    return [row._replace(coordinator=broker) for _, (broker, row) in sorted(answers.values.items())]


def _gaps(answers: GroupAnswers[_Group]) -> tuple[Gap, ...]:
    rows = (Gap(Part.GROUPS, failure.cause, group, failure.detail) for group, failure in answers.failures.items())
    return tuple(sorted(rows))


def _ask_consumer(connection: Connection, groups: Sequence[str], until: Deadline) -> list[GroupRow[RawConsumerGroup]]:
    version = connection.version(CONSUMER_GROUP_DESCRIBE)
    message = CONSUMER_GROUP_DESCRIBE.request(group_ids=list(groups), include_authorized_operations=False)
    answer = connection.call(CONSUMER_GROUP_DESCRIBE, message, until, version=version)
    return [
        GroupRow(row.group_id, _consumer_group(row, version), error_name(row.error_code), row.error_message)
        for row in answer.groups
    ]


def _consumer_group(row: Any, version: int) -> RawConsumerGroup:
    return RawConsumerGroup(
        row.group_id,
        row.group_state,
        row.group_epoch,
        row.assignment_epoch,
        row.assignor_name,
        tuple(sorted(_consumer_member(member, version) for member in row.members)),
        None,
    )


def _consumer_member(row: Any, version: int) -> RawConsumerMember:
    return RawConsumerMember(
        row.member_id,
        row.instance_id,
        row.rack_id or None,
        row.member_epoch,
        row.client_id,
        row.client_host,
        tuple(row.subscribed_topic_names or ()),
        row.subscribed_topic_regex or None,
        _partitions(row.assignment),
        _partitions(row.target_assignment),
        row.member_type if version >= 1 else _UNKNOWN_MEMBER_TYPE,
    )


def _partitions(assignment: Any) -> tuple[TopicPartition, ...]:
    held = (
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )
    return tuple(sorted(held))


def _ask_streams(connection: Connection, groups: Sequence[str], until: Deadline) -> list[GroupRow[RawStreamsGroup]]:
    version = connection.version(STREAMS_GROUP_DESCRIBE)
    message = STREAMS_GROUP_DESCRIBE.request(group_ids=list(groups), include_authorized_operations=False)
    answer = connection.call(STREAMS_GROUP_DESCRIBE, message, until, version=version)
    return [
        GroupRow(row.group_id, _streams_group(row), error_name(row.error_code), row.error_message)
        for row in answer.groups
    ]


def _streams_group(row: Any) -> RawStreamsGroup:
    topology = row.topology.subtopologies if row.topology is not None else None
    return RawStreamsGroup(
        row.group_id,
        row.group_state,
        row.group_epoch,
        row.assignment_epoch,
        None if topology is None else tuple(sorted(_subtopology(one) for one in topology)),
        tuple(sorted(_streams_member(member) for member in row.members)),
        None,
    )


def _subtopology(row: Any) -> RawSubtopology:
    return RawSubtopology(
        row.subtopology_id,
        tuple(row.source_topics),
        tuple(topic.name for topic in row.repartition_source_topics),
        tuple(topic.name for topic in row.state_changelog_topics),
        tuple(row.repartition_sink_topics),
    )


def _streams_member(row: Any) -> RawStreamsMember:
    return RawStreamsMember(
        row.member_id,
        row.instance_id,
        row.rack_id or None,
        row.member_epoch,
        row.client_id,
        row.client_host,
        row.process_id,
        tuple(sorted((tag.key, tag.value) for tag in row.client_tags)),
        _all_tasks(row.assignment),
        _all_tasks(row.target_assignment),
        _offsets(row.task_offsets),
        _offsets(row.task_end_offsets),
    )


def _all_tasks(assignment: Any) -> RawTasks:
    return RawTasks(_tasks(assignment.active_tasks), _tasks(assignment.standby_tasks), _tasks(assignment.warmup_tasks))


def _tasks(rows: Iterable[Any]) -> tuple[TaskId, ...]:
    return tuple(sorted(TaskId(row.subtopology_id, partition) for row in rows for partition in row.partitions))


def _offsets(rows: Iterable[Any]) -> tuple[tuple[TaskId, int], ...]:
    return tuple(sorted((TaskId(row.subtopology_id, row.partition), row.offset) for row in rows or ()))
