"""Encoders of subscriptions and their user data: the inverse of the decoders, for the bytes of a probing join.

``decode(encode(value)) == value`` for every value that its version can carry; what a version cannot carry is left out,
as Kafka leaves it out. Arrays are written in the order of the value; Kafka sorts the topics of a subscription, so sort
them where byte-equal output matters. A value that no layout can hold raises ValueError or struct.error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from struct import pack
from uuid import UUID

from agent.decode.values import StickyUserData, StreamsSubscription, StreamsSubscriptionHeader, Subscription
from assignors.problem import TaskId, TopicPartition


def encode_subscription(value: Subscription) -> bytes:
    """``ConsumerProtocol.serializeSubscription``: the subscription of the embedded consumer protocol."""
    parts = [pack(">h", value.version), array([_name(topic) for topic in value.topics]), nullable(value.user_data)]
    if value.version >= 1:
        parts.append(partition_array(value.owned or ()))
    if value.version >= 2:
        parts.append(pack(">i", _or_none(value.generation)))
    if value.version >= 3:
        parts.append(pack(">h", -1) if value.rack is None else _name(value.rack))
    return b"".join(parts)


def encode_sticky(value: StickyUserData) -> bytes:
    """The user data of ``sticky`` (V1), of librdkafka's ``cooperative-sticky``, and of Java's, which owns None."""
    owned = b"" if value.owned is None else partition_array(value.owned)
    return owned + pack(">i", _or_none(value.generation))


def encode_subscription_info(value: StreamsSubscription | StreamsSubscriptionHeader) -> bytes:
    """``SubscriptionInfo.encode``, version 1 to 11, or the header of a newer one."""
    if isinstance(value, StreamsSubscriptionHeader):
        return pack(">ii", value.version, value.latest_supported)
    version = value.version
    parts = [pack(">i", version)]
    if version >= 3:
        parts.append(pack(">i", _or_none(value.latest_supported)))
    parts.append(UUID(value.process_id).bytes)
    if version <= 6:
        parts.append(array(map(plain_task, value.prev_tasks)))
        parts.append(array(map(plain_task, value.standby_tasks)))
    if version >= 2:
        parts.append(nullable((value.endpoint or "").encode()))
    if 7 <= version <= 9:
        parts.append(_sums_by_subtopology(value))
    if version >= 10:
        parts.append(array([_sum(task, offset_sum) for task, offset_sum in value.offset_sums.items()]))
    if version >= 8:
        parts.append(pack(">b", value.unique_field or 0))
    if version >= 9:
        parts.append(pack(">i", value.error_code or 0))
    if version >= 11:
        parts.append(array([nullable(key.encode()) + nullable(tag.encode()) for key, tag in value.client_tags or ()]))
    return b"".join(parts)


def array(items: Iterable[bytes]) -> bytes:
    """Encoded items behind their int32 count."""
    encoded = list(items)
    return pack(">i", len(encoded)) + b"".join(encoded)


def nullable(raw: bytes | None) -> bytes:
    """Bytes behind their int32 length, which is -1 for null."""
    return pack(">i", -1) if raw is None else pack(">i", len(raw)) + raw


def partition_array(partitions: Sequence[TopicPartition]) -> bytes:
    """Runs of equal topics become one entry each, so that the order of the partitions is kept."""
    topics = []
    for topic, run in groupby(partitions, attrgetter("topic")):
        numbers = [partition.partition for partition in run]
        topics.append(_name(topic) + pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return array(topics)


def named_topology(task: TaskId) -> tuple[str | None, int]:
    """The named topology of a task, None where it has none, and the number of its subtopology."""
    if isinstance(task.subtopology, int):
        return None, task.subtopology
    name, _, subtopology = task.subtopology.rpartition("__")
    return name, int(subtopology)


def plain_task(task: TaskId) -> bytes:
    """A task without its named topology: two int32."""
    return pack(">ii", named_topology(task)[1], task.partition)


def _or_none(number: int | None) -> int:
    return -1 if number is None else number


def _name(text: str) -> bytes:
    raw = text.encode()
    return pack(">h", len(raw)) + raw


def _sum(task: TaskId, offset_sum: int) -> bytes:
    name = named_topology(task)[0]
    return plain_task(task) + pack(">q", offset_sum) + (pack(">h", -1) if name is None else _name(name))


def _sums_by_subtopology(value: StreamsSubscription) -> bytes:
    subtopologies = []
    for subtopology, run in groupby(value.offset_sums.items(), lambda item: named_topology(item[0])[1]):
        sums = [pack(">iq", task.partition, offset_sum) for task, offset_sum in run]
        subtopologies.append(pack(">i", subtopology) + array(sums))
    return array(subtopologies)
