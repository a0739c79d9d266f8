"""The bytes that say a given value: the inverse of the decoders, for probes, tests and benchmarks.

``decode(encode(value)) == value`` for every value that its version can carry. What a version cannot carry is left out,
as Kafka leaves it out. Arrays are written in the order of the value; Kafka sorts the topics of a subscription, so sort
them where byte-equal output matters. Values come from us, so one that no layout can hold is a ``ValueError`` or
``struct.error``, not a silent cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from struct import pack
from uuid import UUID

from agent.decode.values import (
    Assignment,
    HostPartitions,
    StickyUserData,
    StreamsAssignment,
    StreamsSubscription,
    StreamsSubscriptionHeader,
    Subscription,
    to_modified_utf8,
)
from assignors.problem import TaskId, TopicPartition

_NEVER = (1 << 63) - 1


def encode_subscription(value: Subscription) -> bytes:
    """The subscription as the embedded consumer protocol carries it."""
    parts = [pack(">h", value.version), _array([_name(topic) for topic in value.topics]), _nullable(value.user_data)]
    if value.version >= 1:
        parts.append(_partitions(value.owned or ()))
    if value.version >= 2:
        parts.append(pack(">i", _or_none(value.generation)))
    if value.version >= 3:
        parts.append(pack(">h", -1) if value.rack is None else _name(value.rack))
    return b"".join(parts)


def encode_assignment(value: Assignment) -> bytes:
    """The assignment as the embedded consumer protocol carries it."""
    return pack(">h", value.version) + _partitions(value.partitions) + _nullable(value.user_data)


def encode_sticky(value: StickyUserData) -> bytes:
    """The user data of ``sticky`` (V1), of librdkafka's ``cooperative-sticky``, and of Java's, which owns None."""
    owned = b"" if value.owned is None else _partitions(value.owned)
    return owned + pack(">i", _or_none(value.generation))


def encode_subscription_info(value: StreamsSubscription | StreamsSubscriptionHeader) -> bytes:
    """SubscriptionInfo, version 1 to 11, or the header of a newer one."""
    if isinstance(value, StreamsSubscriptionHeader):
        return pack(">ii", value.version, value.latest_supported)
    version = value.version
    parts = [pack(">i", version)]
    if version >= 3:
        parts.append(pack(">i", _or_none(value.latest_supported)))
    parts.append(UUID(value.process_id).bytes)
    if version <= 6:
        parts.append(_array([_task(task, 1) for task in value.prev_tasks]))
        parts.append(_array([_task(task, 1) for task in value.standby_tasks]))
    if version >= 2:
        parts.append(_bytes((value.endpoint or "").encode()))
    if 7 <= version <= 9:
        parts.append(_sums_by_subtopology(value))
    if version >= 10:
        parts.append(_array([_sum(task, offset_sum) for task, offset_sum in value.offset_sums.items()]))
    if version >= 8:
        parts.append(pack(">b", value.unique_field or 0))
    if version >= 9:
        parts.append(pack(">i", value.error_code or 0))
    if version >= 11:
        tags = value.client_tags or ()
        parts.append(_array([_bytes(key.encode()) + _bytes(tag.encode()) for key, tag in tags]))
    return b"".join(parts)


def encode_assignment_info(value: StreamsAssignment) -> bytes:
    """AssignmentInfo, version 1 to 11."""
    version = value.version
    parts = [pack(">i", version)]
    if version >= 3:
        parts.append(pack(">i", _or_none(value.commonly_supported)))
    parts.append(_array([_task(task, version) for task in value.active]))
    standby = [_task(task, version) + _array(map(_java_partition, partitions)) for task, partitions in value.standby]
    parts.append(_array(standby))
    if 2 <= version <= 4:
        parts.append(_array([_host(host, map(_java_partition, host.partitions)) for host in value.partitions_by_host]))
    if version >= 5:
        parts.append(_hosts_by_index(value))
    if version >= 4:
        parts.append(pack(">i", value.error_code or 0))
    if version >= 7:
        parts.append(pack(">q", _NEVER if value.next_rebalance_ms is None else value.next_rebalance_ms))
    return b"".join(parts)


def _or_none(number: int | None) -> int:
    return -1 if number is None else number


def _array(items: Iterable[bytes]) -> bytes:
    encoded = list(items)
    return pack(">i", len(encoded)) + b"".join(encoded)


def _bytes(raw: bytes) -> bytes:
    return pack(">i", len(raw)) + raw


def _nullable(raw: bytes | None) -> bytes:
    return pack(">i", -1) if raw is None else _bytes(raw)


def _name(text: str) -> bytes:
    raw = text.encode()
    return pack(">h", len(raw)) + raw


def _partitions(partitions: Sequence[TopicPartition]) -> bytes:
    """Runs of equal topics become one entry each, so that the order of the partitions is kept."""
    topics = []
    for topic, run in groupby(partitions, attrgetter("topic")):
        numbers = [partition.partition for partition in run]
        topics.append(_name(topic) + pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return _array(topics)


def _named_topology(task: TaskId) -> tuple[str | None, int]:
    if isinstance(task.subtopology, int):
        return None, task.subtopology
    name, _, subtopology = task.subtopology.rpartition("__")
    return name, int(subtopology)


def _task(task: TaskId, version: int) -> bytes:
    name, subtopology = _named_topology(task)
    numbers = pack(">ii", subtopology, task.partition)
    if version < 10:
        return numbers
    units = (name or "").encode("utf-16-be")
    return numbers + pack(">i", len(units) // 2) + units


def _sum(task: TaskId, offset_sum: int) -> bytes:
    name, subtopology = _named_topology(task)
    numbers = pack(">iiq", subtopology, task.partition, offset_sum)
    return numbers + (pack(">h", -1) if name is None else _name(name))


def _sums_by_subtopology(value: StreamsSubscription) -> bytes:
    subtopologies = []
    for subtopology, run in groupby(value.offset_sums.items(), lambda item: _named_topology(item[0])[1]):
        sums = [pack(">iq", task.partition, offset_sum) for task, offset_sum in run]
        subtopologies.append(pack(">i", subtopology) + _array(sums))
    return _array(subtopologies)


def _java_name(text: str) -> bytes:
    raw = to_modified_utf8(text)
    return pack(">H", len(raw)) + raw


def _java_partition(partition: TopicPartition) -> bytes:
    return _java_name(partition.topic) + pack(">i", partition.partition)


def _host(host: HostPartitions, partitions: Iterable[bytes]) -> bytes:
    return _java_name(host.host) + pack(">i", host.port) + _array(partitions)


def _hosts_by_index(value: StreamsAssignment) -> bytes:
    sides = [value.partitions_by_host]
    if value.version >= 6:
        sides.append(value.standby_partitions_by_host)
    topics = dict.fromkeys(p.topic for side in sides for host in side for p in host.partitions)
    index = {topic: i for i, topic in enumerate(topics)}
    parts = [_array([pack(">i", i) + _java_name(topic) for topic, i in index.items()])]
    for side in sides:
        hosts = [_host(host, [pack(">ii", index[p.topic], p.partition) for p in host.partitions]) for host in side]
        parts.append(_array(hosts))
    return b"".join(parts)
