"""Calls about groups: ListGroups, and the describe call of each group type; classic members keep their bytes.

The describe calls of groups whose coordinator assigns (consumer, KIP-848; streams, KIP-1071) have their rows here too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agent.values.kafka import CLASSIC_GROUP, CONSUMER_GROUP, DEAD, STREAMS_GROUP
from agent.values.observation import (
    Gap,
    GapCause,
    ObservationPart,
    RawClassicGroup,
    RawConsumerGroup,
    RawConsumerMember,
    RawGroup,
    RawListedGroup,
    RawMember,
    RawStreamsGroup,
    RawStreamsMember,
    RawSubtopology,
    RawTasks,
)
from agent.wire.connection import BrokerConnection
from agent.wire.failure import COORDINATOR_MOVING, CallFailed, Deadline, from_error_name
from agent.wire.pool import PAUSE_S, ConnectionPool, GroupRow, ask_groups
from agent.wire.protocol import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    LIST_GROUPS,
    STREAMS_GROUP_DESCRIBE,
    ApiCall,
    error_name,
    raise_on_error,
)
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


_TYPES_SINCE = 5
_STATES_SINCE = 4
_NEWER_KINDS = frozenset((68, 76, 88, *(call.api.key for call in EPOCH_GROUP_CALLS.values())))
"""Calls of KIP-848, KIP-932 and KIP-1071; a broker without any of them (before Kafka 3.7) has classic groups alone."""
_LOADING_SHARE = 0.5
"""Of the time for a list: how long a broker that loads its groups is asked again; then its groups are a gap."""
_GONE = "Dead: the coordinator does not know the group any more"


class ListedGroups(NamedTuple):
    """All visible groups, with the broker that listed each (its coordinator)."""

    groups: tuple[RawListedGroup, ...]
    """Sorted by id."""
    coordinators: Mapping[str, int]
    silent: tuple[int, ...]
    """Brokers that did not answer: their groups are missing."""
    gaps: tuple[Gap, ...]


class DescribedGroups(NamedTuple):
    """Groups of one type as their coordinators describe them."""

    groups: tuple[RawGroup, ...]
    """Sorted by id."""
    gaps: tuple[Gap, ...]


def list_groups(pool: ConnectionPool, deadline: Deadline) -> ListedGroups:
    """Groups of every broker that serves; each lists those it coordinates, so a silent broker is a gap."""
    answers = pool.ask_each(dict.fromkeys(pool.broker_ids, _ask_list), deadline, name="list groups")
    rows: dict[str, RawListedGroup] = {}
    coordinators: dict[str, int] = {}
    gaps: list[Gap] = []
    silent: list[int] = []
    older: set[int] = set()
    for broker, answer in sorted(answers.items()):
        if isinstance(answer, CallFailed):
            gaps.append(Gap.of_broker(ObservationPart.GROUPS, answer.cause, broker, answer.detail))
            silent.append(broker)
            continue
        version, listed = answer
        if any(row.group_type is None for row in listed):
            older.add(version)
        for row in listed:
            rows[row.group_id] = row
            coordinators[row.group_id] = broker
    if older:
        detail = (
            f"ListGroups v{min(older)} reports no group types, so the types of groups that are not classic are unknown"
        )
        gaps.append(Gap.of_several(ObservationPart.GROUPS, GapCause.UNSUPPORTED, "group types", detail))
    return ListedGroups(tuple(rows[name] for name in sorted(rows)), coordinators, tuple(silent), tuple(gaps))


def describe_groups(
    pool: ConnectionPool, group_type: str, groups: Iterable[str], coordinators: Mapping[str, int], deadline: Deadline
) -> DescribedGroups:
    """Groups of a type of `DESCRIBE_CALLS`; one that failed or is gone is a gap, alone.

    Classic groups have their members' bytes untouched; others have racks, epochs, current and target assignments, and
    streams groups also topology and tags.
    """
    call = DESCRIBE_CALLS[group_type]
    answers = ask_groups(pool, groups, coordinators, call.ask, deadline, name=call.title)
    found: list[RawGroup] = []
    gaps = [
        Gap(ObservationPart.GROUPS, failure.cause, group, failure.detail) for group, failure in answers.failures.items()
    ]
    for group, (broker, row) in answers.values.items():
        if isinstance(row, RawClassicGroup) and row.state == DEAD:
            # Before v6 this means "no such group" (KIP-1043).
            gaps.append(Gap(ObservationPart.GROUPS, GapCause.VANISHED, group, _GONE))
        else:
            found.append(row._replace(coordinator=broker))
    return DescribedGroups(tuple(sorted(found, key=lambda row: row.group_id)), tuple(sorted(gaps)))


def describe_group(connection: BrokerConnection, group: str, deadline: Deadline) -> RawClassicGroup:
    """One classic group, asked on this very connection. Raises CallFailed, of cause VANISHED when there is none."""
    rows = _DESCRIBE_CLASSIC.ask(connection, [group], deadline)
    row = next((one for one in rows if one.group_id == group), None)
    if row is None or not isinstance(row.value, RawClassicGroup):
        raise CallFailed(GapCause.ERROR, "the coordinator's answer does not contain this group")
    if row.error is not None:
        raise from_error_name(row.error, row.message)
    if row.value.state == DEAD:
        raise CallFailed(GapCause.VANISHED, _GONE)
    return row.value


def _ask_list(connection: BrokerConnection, until: Deadline) -> tuple[int, list[RawListedGroup]]:
    version = connection.version(LIST_GROUPS)
    classic_alone = _NEWER_KINDS.isdisjoint(connection.versions)
    # A broker that has just become a coordinator loads its groups; Kafka's AdminClient asks again too.
    loaded_by = until.part(_LOADING_SHARE)
    while True:
        answer = connection.call(LIST_GROUPS, LIST_GROUPS.request(), until, version=version)
        if error_name(answer.error_code) not in COORDINATOR_MOVING or loaded_by.left_s <= PAUSE_S:
            break
        time.sleep(PAUSE_S)
    raise_on_error(answer.error_code)
    return version, [
        RawListedGroup(
            row.group_id,
            row.protocol_type,
            row.group_state if version >= _STATES_SINCE else None,
            row.group_type.lower() if version >= _TYPES_SINCE else CLASSIC_GROUP if classic_alone else None,
        )
        for row in answer.groups
    ]


def _classic_group(row: Any, _version: int) -> RawClassicGroup:
    return RawClassicGroup(
        row.group_id,
        row.group_state,
        row.protocol_type,
        row.protocol_data,
        tuple(sorted(_member(member) for member in row.members)),
        None,
    )


def _member(row: Any) -> RawMember:
    return RawMember(
        row.member_id,
        row.group_instance_id,
        row.client_id,
        row.client_host,
        bytes(row.member_metadata or b""),
        bytes(row.member_assignment or b""),
    )


_DESCRIBE_CLASSIC = DescribeCall("classic groups", DESCRIBE_GROUPS, "groups", _classic_group)
DESCRIBE_CALLS: Mapping[str, DescribeCall] = {CLASSIC_GROUP: _DESCRIBE_CLASSIC, **EPOCH_GROUP_CALLS}
"""Group type -> the call that describes its groups; groups of other types are only listed."""
