"""Describe calls, and the rows of groups whose coordinator assigns: consumer (KIP-848), streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agent.values.kafka import CONSUMER_GROUP, STREAMS_GROUP
from agent.values.observation import (
    RawConsumerGroup,
    RawConsumerMember,
    RawGroup,
    RawStreamsGroup,
    RawStreamsMember,
    RawSubtopology,
    RawTasks,
)
from agent.wire.batches import GroupRow
from agent.wire.connection import BrokerConnection
from agent.wire.failure import Deadline
from agent.wire.protocol import CONSUMER_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE, ApiCall, error_name
from assignors.problem import TaskId, TopicPartition

_UNKNOWN_MEMBER_TYPE = -1


class DescribeCall(NamedTuple):
    """The call that describes groups of one type."""

    title: str
    """The type in the plural, as gaps and threads name it."""
    api: ApiCall
    names: str
    """The field of the request that takes the group ids."""
    read: Callable[[Any, int], RawGroup]
    """Reads a row of the answer of a version; the coordinator is filled in later."""

    def ask(self, connection: BrokerConnection, groups: Sequence[str], until: Deadline) -> list[GroupRow[RawGroup]]:
        """The groups as this broker describes them. Raises CallFailed."""
        version = connection.version(self.api)
        message = self.api.request(**{self.names: list(groups)}, include_authorized_operations=False)
        answer = connection.call(self.api, message, until, version=version)
        return [
            GroupRow(row.group_id, self.read(row, version), error_name(row.error_code), row.error_message)
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


def _streams_group(row: Any, _version: int) -> RawStreamsGroup:
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


EPOCH_GROUP_CALLS: Mapping[str, DescribeCall] = {
    CONSUMER_GROUP: DescribeCall("consumer groups", CONSUMER_GROUP_DESCRIBE, "group_ids", _consumer_group),
    STREAMS_GROUP: DescribeCall("streams groups", STREAMS_GROUP_DESCRIBE, "group_ids", _streams_group),
}
"""Group type -> the call that describes its groups."""
