"""Calls about the cluster: brokers, topics, reassignments in flight, log dirs, replica sizes, and configs."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from agent.errors import NoBrokersYet
from agent.values.observation import Gap, GapCause, ObservationPart, RawBroker, RawPartition, RawReassignment, RawTopic
from agent.wire.connection import BrokerConnection
from agent.wire.failure import CallFailed, Deadline, from_error_name, gather, passed_on
from agent.wire.pool import Ask, ConnectionPool
from agent.wire.protocol import (
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_LOG_DIRS,
    LIST_PARTITION_REASSIGNMENTS,
    METADATA,
    BrokerAddress,
    error_name,
    operations,
    raise_on_error,
)
from assignors.problem import TopicPartition


class ClusterAnswer(NamedTuple):
    """The answer to DescribeCluster."""

    cluster_id: str
    controller: int | None
    brokers: tuple[RawBroker, ...]
    """Sorted by id; fenced ones only from v2 on (Kafka 4.0)."""
    operations: frozenset[int] | None
    """Kafka's operation codes granted on the cluster; None where the broker does not report them."""


class TopicsAnswer(NamedTuple):
    """Topic metadata of one broker."""

    topics: tuple[RawTopic, ...]
    """Sorted by name. A topic that was requested by name is present with its error."""
    operations: Mapping[str, frozenset[int]]
    answered_by: int | None


class LogDirs(NamedTuple):
    """Replicas on the brokers' disks."""

    replica_bytes: Mapping[tuple[int, TopicPartition], int]
    cordoned: frozenset[int]
    """Brokers all of whose log dirs are cordoned (KIP-1066)."""
    gaps: tuple[Gap, ...]


def describe_brokers(pool: ConnectionPool, deadline: Deadline) -> ClusterAnswer:
    """Cluster, brokers and rights; the pool learns the addresses. Raises CallFailed or NoBrokersYet."""

    def ask(connection: BrokerConnection, until: Deadline) -> Any:
        message = DESCRIBE_CLUSTER.request(include_cluster_authorized_operations=True, include_fenced_brokers=True)
        version = connection.version(DESCRIBE_CLUSTER)
        answer = connection.call(DESCRIBE_CLUSTER, message, until, version=version)
        raise_on_error(answer.error_code, answer.error_message)
        return answer, version

    _, (answer, version) = pool.ask_any(ask, deadline)
    brokers = tuple(
        RawBroker(row.broker_id, row.host, row.port, row.rack or None, bool(row.is_fenced) if version >= 2 else None)
        for row in sorted(answer.brokers, key=lambda row: int(row.broker_id))
    )
    serving = {broker.id: BrokerAddress(broker.host, broker.port) for broker in brokers if not broker.fenced}
    if not serving:
        raise NoBrokersYet(
            "The cluster lists no live broker", why="it may still be starting", todo="Try again in a few seconds."
        )
    pool.learn(serving)
    controller = answer.controller_id if answer.controller_id >= 0 else None
    return ClusterAnswer(answer.cluster_id, controller, brokers, operations(answer.authorized_operations))


def describe_topics(
    pool: ConnectionPool, deadline: Deadline, *, names: Iterable[str] | None = None, avoid: int | None = None
) -> TopicsAnswer:
    """All visible topics, or those named, by one broker other than ``avoid``; creates none. Raises CallFailed."""

    def ask(connection: BrokerConnection, until: Deadline) -> Any:
        wanted = None if names is None else [METADATA.request.MetadataRequestTopic(name=name) for name in names]
        message = METADATA.request(
            topics=wanted, allow_auto_topic_creation=False, include_topic_authorized_operations=True
        )
        # v8 carries offline replicas and rights; every broker since Kafka 2.3 has it.
        return connection.call(METADATA, message, until, version=connection.version(METADATA, oldest=8))

    broker, answer = pool.ask_any(ask, deadline, avoid=avoid)
    topics = sorted(answer.topics, key=lambda row: str(row.name))
    granted = {row.name: operations(row.authorized_operations) for row in topics}
    return TopicsAnswer(
        tuple(raw_topic(row) for row in topics),
        {name: rights for name, rights in granted.items() if rights is not None},
        broker,
    )


def list_reassignments(pool: ConnectionPool, deadline: Deadline) -> tuple[RawReassignment, ...]:
    """Every reassignment in flight, sorted. Raises CallFailed."""

    def ask(connection: BrokerConnection, until: Deadline) -> Any:
        api = LIST_PARTITION_REASSIGNMENTS
        message = api.request(timeout_ms=max(1, int(until.left_s * 1000)), topics=None)
        with passed_on():
            answer = connection.call(api, message, until, version=connection.version(api))
        raise_on_error(answer.error_code, answer.error_message)
        return answer

    _, answer = pool.ask_any(ask, deadline)
    return tuple(
        sorted(
            RawReassignment(
                TopicPartition(topic.name, row.partition_index),
                tuple(row.replicas),
                tuple(row.adding_replicas),
                tuple(row.removing_replicas),
            )
            for topic in answer.topics
            for row in topic.partitions
        )
    )


def describe_log_dirs(pool: ConnectionPool, deadline: Deadline) -> LogDirs:
    """Bytes per replica of every live broker; a broker that does not answer is a gap."""
    answers = pool.ask_each(dict.fromkeys(pool.broker_ids, _ask_log_dirs), deadline, name="log dirs")
    sizes: dict[tuple[int, TopicPartition], int] = {}
    cordoned: set[int] = set()
    gaps: list[Gap] = []
    for broker, answer in answers.items():
        if isinstance(answer, CallFailed):
            gaps.append(Gap.of_broker(ObservationPart.LOG_DIRS, answer.cause, broker, answer.detail))
            continue
        readable = [row for row in answer if row.error_code == 0]
        for row in answer:
            if row.error_code != 0:
                detail = f"log dir {row.log_dir}: {error_name(row.error_code)}"
                gaps.append(Gap.of_broker(ObservationPart.LOG_DIRS, GapCause.ERROR, broker, detail))
        _add_sizes(sizes, broker, readable)
        if readable and all(row.is_cordoned for row in readable):
            cordoned.add(broker)
    return LogDirs(sizes, frozenset(cordoned), tuple(gaps))


def raw_topic(row: Any) -> RawTopic:
    """A topic of a metadata answer."""
    partitions = sorted(row.partitions, key=lambda one: int(one.partition_index))
    return RawTopic(
        row.name,
        _kafka_uuid(row.topic_id),
        bool(row.is_internal),
        tuple(
            RawPartition(
                one.partition_index,
                one.leader_id if one.leader_id >= 0 else None,
                tuple(one.replica_nodes),
                tuple(one.isr_nodes),
                tuple(one.offline_replicas),
            )
            for one in partitions
        ),
        error_name(row.error_code),
    )


def _kafka_uuid(value: UUID | None) -> str | None:
    """URL-safe base64 without padding, as Kafka's Uuid prints it; None for zero, Kafka's "no id" (KIP-516)."""
    if value is None or value.int == 0:
        return None
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


def _ask_log_dirs(connection: BrokerConnection, until: Deadline) -> Any:
    version = connection.version(DESCRIBE_LOG_DIRS)
    answer = connection.call(DESCRIBE_LOG_DIRS, DESCRIBE_LOG_DIRS.request(topics=None), until, version=version)
    raise_on_error(answer.error_code)
    if version < 3 and not answer.results:
        # Before v3 the answer has no error for a missing right (KIP-784).
        raise CallFailed(GapCause.NOT_ALLOWED, "the broker lists no log dir; DESCRIBE on the cluster may be missing")
    return answer.results


def _add_sizes(sizes: dict[tuple[int, TopicPartition], int], broker: int, log_dirs: Iterable[Any]) -> None:
    for log_dir in log_dirs:
        for topic in log_dir.topics:
            for row in topic.partitions:
                if not row.is_future_key:
                    sizes[broker, TopicPartition(topic.name, row.partition_index)] = row.partition_size


Sizes = dict[tuple[TopicPartition, int], int]
"""(partition, broker) -> bytes."""


def replica_sizes(pool: ConnectionPool, replicas: Mapping[int, Iterable[TopicPartition]], deadline: Deadline) -> Sizes:
    """Bytes of each replica; absent where the broker did not answer or does not have it."""
    asks = {broker: partial(_ask, broker, sorted(partitions)) for broker, partitions in replicas.items()}
    sizes: Sizes = {}
    for answer in pool.ask_each(asks, deadline, name="sizes").values():
        if not isinstance(answer, CallFailed):
            sizes |= answer
    return sizes


def _ask(broker: int, partitions: list[TopicPartition], connection: BrokerConnection, until: Deadline) -> Sizes:
    api = DESCRIBE_LOG_DIRS
    row = api.request.DescribableLogDirTopic
    topics = [
        row(topic=topic, partitions=[one.partition for one in rows])
        for topic, rows in groupby(partitions, key=lambda one: one.topic)
    ]
    answer = connection.call(api, api.request(topics=topics), until, version=connection.version(api))
    return {
        (TopicPartition(topic.name, one.partition_index), broker): one.partition_size
        for log_dir in answer.results
        if log_dir.error_code == 0
        for topic in log_dir.topics
        for one in topic.partitions
        if not one.is_future_key
    }


# Configs in force, by key: confluent-kafka cannot name keys, which at 20,000 topics is a gigabyte of unread entries.

_RESOURCES_PER_CALL = 2_000


class _Kind(IntEnum):
    """Kafka's ConfigResource.Type."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class DescribedConfigs(NamedTuple):
    """Resource name -> key -> value in force; a key without a value is absent."""

    values: Mapping[str, Mapping[str, str]]
    gaps: tuple[Gap, ...]


def describe_topic_configs(
    pool: ConnectionPool, topics: Sequence[str], keys: Sequence[str], deadline: Deadline
) -> DescribedConfigs:
    """Those configs of each topic, from any broker; a topic that failed is a gap."""
    return _anywhere(pool, ObservationPart.TOPIC_CONFIGS, partial(_ask_configs, _Kind.TOPIC, keys), topics, deadline)


def describe_group_configs(pool: ConnectionPool, groups: Sequence[str], deadline: Deadline) -> DescribedConfigs:
    """All configs of each group, from any broker (KIP-848 and KIP-1071 groups have them); a failure is a gap."""
    return _anywhere(pool, ObservationPart.GROUP_CONFIGS, partial(_ask_configs, _Kind.GROUP, None), groups, deadline)


def describe_broker_configs(pool: ConnectionPool, keys: Sequence[str], deadline: Deadline) -> DescribedConfigs:
    """Those configs of every live broker, each from the broker itself; a broker that failed is a gap."""
    asks = {broker: partial(_ask_configs, _Kind.BROKER, keys, (str(broker),)) for broker in pool.broker_ids}
    answers = pool.ask_each(asks, deadline, name="broker configs")
    named = [((str(broker),), answer) for broker, answer in answers.items()]
    return _collected(ObservationPart.BROKER_CONFIGS, named)


_Answers = Iterable[tuple[Sequence[str], list[Any] | CallFailed]]


def _anywhere(
    pool: ConnectionPool, part: ObservationPart, ask: Callable[..., list[Any]], names: Sequence[str], deadline: Deadline
) -> DescribedConfigs:
    slices = [names[at : at + _RESOURCES_PER_CALL] for at in range(0, len(names), _RESOURCES_PER_CALL)]
    asks: Iterable[Ask[list[Any]]] = [partial(ask, some) for some in slices]
    answers = gather(
        {at: partial(pool.ask_any, one, deadline) for at, one in enumerate(asks)}, deadline, name=str(part)
    )
    rows = [answer if isinstance(answer, CallFailed) else answer[1] for answer in answers.values()]
    return _collected(part, zip(slices, rows, strict=True))


def _ask_configs(
    kind: _Kind, keys: Sequence[str] | None, names: Sequence[str], connection: BrokerConnection, until: Deadline
) -> list[Any]:
    resource = DESCRIBE_CONFIGS.request.DescribeConfigsResource
    wanted = None if keys is None else list(keys)
    message = DESCRIBE_CONFIGS.request(
        resources=[resource(resource_type=int(kind), resource_name=name, configuration_keys=wanted) for name in names]
    )
    version = connection.version(DESCRIBE_CONFIGS, oldest=1)
    return list(connection.call(DESCRIBE_CONFIGS, message, until, version=version).results)


def _collected(part: ObservationPart, answers: _Answers) -> DescribedConfigs:
    values: dict[str, Mapping[str, str]] = {}
    gaps: list[Gap] = []
    for names, answer in answers:
        if isinstance(answer, CallFailed):
            gaps.append(_config_gap(part, names, answer))
            continue
        for row in answer:
            refusal = error_name(row.error_code)
            if refusal is None:
                values[row.resource_name] = {one.name: one.value for one in row.configs if one.value is not None}
            else:
                failure = from_error_name(refusal, row.error_message)
                gaps.append(_config_gap(part, [row.resource_name], failure))
    return DescribedConfigs(values, tuple(gaps))


def _config_gap(part: ObservationPart, names: Sequence[str], failure: CallFailed) -> Gap:
    if len(names) > 1:
        return Gap.of_several(part, failure.cause, f"{len(names)} of them", failure.detail)
    if part is ObservationPart.BROKER_CONFIGS:
        return Gap.of_broker(part, failure.cause, names[0], failure.detail)
    return Gap(part, failure.cause, names[0], failure.detail)
