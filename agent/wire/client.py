"""Wire clients that read a cluster: one connection pool and every reading call, each with its own deadline.

A call takes milliseconds and returns by then, connection set-up and name lookup included. Parts that did not answer are
gaps; only calls with a single answer raise `CallFailed` (and `describe_brokers` also `NoBrokersYet`).

Offsets: what groups have committed (OffsetFetch, DescribeShareGroupOffsets) and ends (ListOffsets). confluent-kafka
takes one group a call and makes one future a partition, at five times the CPU. A leader that does not answer is one
gap; the other partitions have their offsets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

from agent.values.kafka import CLASSIC_GROUP, TOPIC_AUTHORIZATION_FAILED
from agent.values.observation import Gap, GapCause, ObservationPart, RawReassignment
from agent.wire import cluster_calls, group_calls
from agent.wire.connection import BrokerConnection
from agent.wire.failure import CallFailed, Deadline, gather
from agent.wire.pool import ConnectionPool, GroupRow, ask_groups
from agent.wire.protocol import DESCRIBE_SHARE_GROUP_OFFSETS, LIST_OFFSETS, OFFSET_FETCH, error_name, wire_settings
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


DEFAULT_BREAKER_MS = 5_000


class WireReadClient:
    """Reads a cluster over Kafka's own protocol. Safe to use from many threads; leaves none behind when closed.

    ``arguments`` are kafka-python's keyword arguments (`KafkaClientConfig.kafka_python`). Nothing is connected before
    the first call, which must be `describe_brokers`: it learns the brokers that the other calls ask.
    """

    def __init__(self, arguments: Mapping[str, Any], *, breaker_ms: int = DEFAULT_BREAKER_MS) -> None:
        self._settings = wire_settings(arguments)
        self._pool = ConnectionPool(self._settings, breaker_ms=breaker_ms)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Live brokers of the last `describe_brokers`."""
        return self._pool.broker_ids

    def describe_brokers(self, deadline_ms: int) -> cluster_calls.ClusterAnswer:
        """Cluster id, controller, brokers with racks, and rights on the cluster. Raises CallFailed, NoBrokersYet."""
        return cluster_calls.describe_brokers(self._pool, Deadline.after_ms(deadline_ms))

    def describe_topics(
        self, deadline_ms: int, *, names: Iterable[str] | None = None, avoid: int | None = None
    ) -> cluster_calls.TopicsAnswer:
        """All topics that may be described, or those named, from a broker other than ``avoid``. Raises CallFailed."""
        return cluster_calls.describe_topics(self._pool, Deadline.after_ms(deadline_ms), names=names, avoid=avoid)

    def list_reassignments(self, deadline_ms: int) -> tuple[RawReassignment, ...]:
        """Every reassignment in flight. Raises CallFailed."""
        return cluster_calls.list_reassignments(self._pool, Deadline.after_ms(deadline_ms))

    def describe_log_dirs(self, deadline_ms: int) -> cluster_calls.LogDirs:
        """Bytes of each replica, and which brokers are cordoned."""
        return cluster_calls.describe_log_dirs(self._pool, Deadline.after_ms(deadline_ms))

    def describe_topic_configs(
        self, topics: Sequence[str], keys: Sequence[str], deadline_ms: int
    ) -> cluster_calls.DescribedConfigs:
        """Those configs of each topic; a topic that failed is a gap."""
        return cluster_calls.describe_topic_configs(self._pool, topics, keys, Deadline.after_ms(deadline_ms))

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class WireClient(WireReadClient):
    """Reads a cluster, its groups and their offsets."""

    def list_groups(self, deadline_ms: int) -> group_calls.ListedGroups:
        """Groups of all brokers, with types and states where brokers report them."""
        return group_calls.list_groups(self._pool, Deadline.after_ms(deadline_ms))

    def describe_groups(
        self,
        groups: Iterable[str],
        deadline_ms: int,
        *,
        group_type: str = CLASSIC_GROUP,
        coordinators: Mapping[str, int] | None = None,
    ) -> group_calls.DescribedGroups:
        """Groups of one type of `DESCRIBE_CALLS`; member bytes of classic groups are untouched."""
        deadline = Deadline.after_ms(deadline_ms)
        return group_calls.describe_groups(self._pool, group_type, groups, coordinators or {}, deadline)

    def fetch_committed(
        self,
        groups: Iterable[str],
        deadline_ms: int,
        *,
        coordinators: Mapping[str, int] | None = None,
        are_shared: bool = False,
    ) -> CommittedOffsets:
        """Committed offsets of groups of any kind; of share groups (``are_shared``) the start offsets."""
        deadline = Deadline.after_ms(deadline_ms)
        places = coordinators or {}
        return fetch_committed(self._pool, groups, places, deadline, are_shared=are_shared)

    def list_end_offsets(self, leaders: Mapping[TopicPartition, int], deadline_ms: int) -> EndOffsets:
        """End offset of each partition, from its leader."""
        return list_end_offsets(self._pool, leaders, Deadline.after_ms(deadline_ms))

    def describe_group_configs(self, groups: Sequence[str], deadline_ms: int) -> cluster_calls.DescribedConfigs:
        """All configs of each KIP-848 or KIP-1071 group."""
        return cluster_calls.describe_group_configs(self._pool, groups, Deadline.after_ms(deadline_ms))

    def describe_broker_configs(self, keys: Sequence[str], deadline_ms: int) -> cluster_calls.DescribedConfigs:
        """Those configs of each broker that serves, by broker id as text."""
        return cluster_calls.describe_broker_configs(self._pool, keys, Deadline.after_ms(deadline_ms))
