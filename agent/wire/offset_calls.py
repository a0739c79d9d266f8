"""Calls for offsets: what groups have committed (OffsetFetch, DescribeShareGroupOffsets), ends (ListOffsets).

confluent-kafka takes one group a call and makes one future a partition, at five times the CPU. A leader that does not
answer is one gap; the other partitions have their offsets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from agent.values.kafka import TOPIC_AUTHORIZATION_FAILED
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.wire.batches import GroupRow, ask_groups
from agent.wire.connection import BrokerConnection
from agent.wire.failure import CallFailed, Deadline, gather
from agent.wire.pool import ConnectionPool
from agent.wire.protocol import DESCRIBE_SHARE_GROUP_OFFSETS, LIST_OFFSETS, OFFSET_FETCH, error_name
from assignors.problem import TopicPartition

_PARTITIONS_PER_CALL = 10_000
_LATEST = -1
_CONSUMER = -1
_READ_UNCOMMITTED = 0

Offsets = Mapping[TopicPartition, int]


class CommittedOffsets(NamedTuple):
    """Group -> partition -> committed offset; a partition without a commit is absent."""

    offsets: Mapping[str, Offsets]
    gaps: tuple[Gap, ...]


class EndOffsets(NamedTuple):
    """Partition -> log end offset (high watermark)."""

    offsets: Offsets
    gaps: tuple[Gap, ...]


def fetch_committed(
    pool: ConnectionPool,
    groups: Iterable[str],
    coordinators: Mapping[str, int],
    deadline: Deadline,
    *,
    are_shared: bool = False,
) -> CommittedOffsets:
    """Committed offsets of all partitions of each group, of share groups (``are_shared``) the start offsets.

    A group that did not answer is a gap.
    """
    ask = _ask_start if are_shared else _ask_committed
    answers = ask_groups(pool, groups, coordinators, ask, deadline, name="committed offsets")
    gaps = [
        Gap(ObservationPart.COMMITTED_OFFSETS, failure.cause, group, failure.detail)
        for group, failure in answers.failures.items()
    ]
    return CommittedOffsets({group: value for group, (_, value) in answers.values.items()}, tuple(gaps))


def list_end_offsets(pool: ConnectionPool, leaders: Mapping[TopicPartition, int], deadline: Deadline) -> EndOffsets:
    """End offset of each partition from its leader, leaders side by side; a leader that does not answer is one gap."""
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    for partition, leader in leaders.items():
        by_leader[leader].append(partition)
    jobs = {
        (leader, at): partial(pool.ask, leader, partial(_ask_ends, parts[at : at + _PARTITIONS_PER_CALL]), deadline)
        for leader, parts in by_leader.items()
        for at in range(0, len(parts), _PARTITIONS_PER_CALL)
    }
    offsets: dict[TopicPartition, int] = {}
    silent: dict[int, CallFailed] = {}
    refusals: dict[str, list[TopicPartition]] = defaultdict(list)
    for (leader, _), answer in gather(jobs, deadline, name="end offsets").items():
        if isinstance(answer, CallFailed):
            silent[leader] = answer
            continue
        for partition, offset, error in answer:
            if error is None:
                offsets[partition] = offset
            else:
                refusals[error].append(partition)
    gaps = [
        Gap.of_broker(ObservationPart.END_OFFSETS, failure.cause, leader, failure.detail)
        for leader, failure in silent.items()
    ]
    gaps += [_refusal(error, partitions) for error, partitions in sorted(refusals.items())]
    return EndOffsets(offsets, tuple(gaps))


def _ask_committed(connection: BrokerConnection, groups: Sequence[str], until: Deadline) -> list[GroupRow[Offsets]]:
    # v8 takes many groups at once (KIP-709, Kafka 3.0); v10 would want topic ids.
    version = connection.version(OFFSET_FETCH, oldest=8, newest=9)
    group = OFFSET_FETCH.request.OffsetFetchRequestGroup
    message = OFFSET_FETCH.request(groups=[group(group_id=name, topics=None) for name in groups], require_stable=False)
    answer = connection.call(OFFSET_FETCH, message, until, version=version)
    return [GroupRow(row.group_id, _committed(row), error_name(row.error_code)) for row in answer.groups]


def _committed(row: Any) -> Offsets:
    return {
        TopicPartition(topic.name, one.partition_index): one.committed_offset
        for topic in row.topics
        for one in topic.partitions
        if one.error_code == 0 and one.committed_offset >= 0
    }


def _ask_start(connection: BrokerConnection, groups: Sequence[str], until: Deadline) -> list[GroupRow[Offsets]]:
    """All records before the start offset of a share partition are read and acknowledged (KIP-932).

    Brokers write it with the acknowledgement that comes after it.
    """
    version = connection.version(DESCRIBE_SHARE_GROUP_OFFSETS, oldest=0, newest=0)
    group = DESCRIBE_SHARE_GROUP_OFFSETS.request.ShareGroup
    message = DESCRIBE_SHARE_GROUP_OFFSETS.request(groups=[group(group_id=name, topics=None) for name in groups])
    answer = connection.call(DESCRIBE_SHARE_GROUP_OFFSETS, message, until, version=version)
    return [GroupRow(row.group_id, _start(row), error_name(row.error_code)) for row in answer.groups]


def _start(row: Any) -> Offsets:
    return {
        TopicPartition(topic.topic_name, one.partition_index): one.start_offset
        for topic in row.topics
        for one in topic.partitions
        if one.error_code == 0 and one.start_offset >= 0
    }


def _ask_ends(
    partitions: Sequence[TopicPartition], connection: BrokerConnection, until: Deadline
) -> list[tuple[TopicPartition, int, str | None]]:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for partition in partitions:
        by_topic[partition.topic].append(partition.partition)
    topic_row = LIST_OFFSETS.request.ListOffsetsTopic
    partition_row = topic_row.ListOffsetsPartition
    message = LIST_OFFSETS.request(
        replica_id=_CONSUMER,
        isolation_level=_READ_UNCOMMITTED,
        topics=[
            topic_row(
                name=topic, partitions=[partition_row(partition_index=number, timestamp=_LATEST) for number in numbers]
            )
            for topic, numbers in by_topic.items()
        ],
        timeout_ms=max(1, int(until.left_s * 1000)),
    )
    version = connection.version(LIST_OFFSETS, oldest=1)
    answer = connection.call(LIST_OFFSETS, message, until, version=version)
    return [
        (TopicPartition(topic.name, row.partition_index), row.offset, error_name(row.error_code))
        for topic in answer.topics
        for row in topic.partitions
    ]


def _refusal(error: str, partitions: list[TopicPartition]) -> Gap:
    named = ", ".join(str(partition) for partition in sorted(partitions)[:5])
    cause = GapCause.NOT_ALLOWED if error == TOPIC_AUTHORIZATION_FAILED else GapCause.ERROR
    subject = str(partitions[0]) if len(partitions) == 1 else ""
    return Gap(ObservationPart.END_OFFSETS, cause, subject, f"{error}: {named}")
