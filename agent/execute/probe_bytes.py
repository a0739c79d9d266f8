"""Subscription bytes of the probe: a clone of a member's own, harmless if an assignor reads it. Pure.

Same version, topics, rack, process, endpoint and tags; no owned partitions, generation, offset sums or error code (one
of these shuts an application down); a Streams leader dies of user data that it cannot read. Invariant: the decoders
read exactly the clone. What cannot be cloned faithfully is `ProbeRefusal`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from struct import pack
from typing import NamedTuple
from uuid import UUID

from agent.decode.members import decode_cooperative_sticky, decode_sticky, decode_subscription
from agent.decode.streams_user_data import decode_subscription_info
from agent.decode.values import (
    StickyUserData,
    StreamsSubscription,
    StreamsSubscriptionHeader,
    Subscription,
    Undecodable,
)
from agent.values import kafka
from agent.values.kafka import CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL
from agent.values.observation import RawClassicGroup, RawMember
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


_NEWEST = 3
"""The newest subscription layout; a newer one was read as this, so the clone is written as this."""
_NO_USER_DATA = frozenset((kafka.RANGE, kafka.ROUND_ROBIN))


class ProbeRefusal(NamedTuple):
    """Why no member of the group can be cloned."""

    sentence: str


def probe_bytes(group: RawClassicGroup) -> bytes | ProbeRefusal:
    """A subscription as a new member of that group would send it, made of the first member that can be cloned."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return ProbeRefusal(
            f"its members use protocol {group.protocol_type or 'no protocol'}, not {CONSUMER_PROTOCOL_TYPE}"
        )
    why = "it has no members"
    for member in sorted(group.members):
        clone = _clone(member, group.protocol)
        if isinstance(clone, bytes):
            return clone
        why = clone.sentence
    return ProbeRefusal(why)


def _clone(member: RawMember, protocol: str) -> bytes | ProbeRefusal:
    subscription = decode_subscription(member.metadata)
    if isinstance(subscription, Undecodable):
        return ProbeRefusal(f"the subscription of {member.client_id} cannot be read: {subscription.sentence}")
    if not subscription.topics:
        return ProbeRefusal(f"{member.client_id} subscribes to no topic")
    user_data = _user_data(subscription.user_data, protocol)
    if isinstance(user_data, ProbeRefusal):
        return user_data
    clone = Subscription(
        version=min(subscription.version, _NEWEST),
        topics=subscription.topics,
        user_data=user_data,
        owned=None if subscription.owned is None else (),
        generation=None,
        rack=subscription.rack,
    )
    try:
        data = encode_subscription(clone)
    except (ValueError, struct.error) as error:
        return ProbeRefusal(f"the subscription of {member.client_id} cannot be encoded again: {error}")
    return (
        data
        if decode_subscription(data) == clone
        else ProbeRefusal("the copied subscription does not read back as intended")
    )


def _user_data(user_data: bytes | None, protocol: str) -> bytes | ProbeRefusal | None:
    """What the assignor put in, without history."""
    match protocol:
        case kafka.STREAMS_PROTOCOL:
            return _streams_data(user_data)
        case kafka.COOPERATIVE_STICKY:
            return _sticky_data(user_data, decode_cooperative_sticky(user_data) if user_data else None)
        case kafka.STICKY:
            return _sticky_data(user_data, decode_sticky(user_data) if user_data else None)
        case _ if protocol in _NO_USER_DATA:
            return None
    return ProbeRefusal(
        f"its assignor {protocol or 'none'} is not one of Kafka's, so the member data that it needs is unknown"
    )


def _sticky_data(user_data: bytes | None, read: StickyUserData | Undecodable | None) -> bytes | ProbeRefusal | None:
    if read is None:
        return user_data
    if isinstance(read, Undecodable):
        return ProbeRefusal(f"the user data of a member cannot be read: {read.sentence}")
    return encode_sticky(StickyUserData(None if read.owned is None else (), None))


def _streams_data(user_data: bytes | None) -> bytes | ProbeRefusal:
    read = decode_subscription_info(user_data) if user_data else None
    match read:
        case StreamsSubscription():
            pass
        case StreamsSubscriptionHeader():
            return ProbeRefusal(
                f"its members send {STREAMS_PROTOCOL} user data of version {read.version}, which is too new"
            )
        case Undecodable():
            return ProbeRefusal(f"the user data of a member cannot be read: {read.sentence}")
        case None:
            return ProbeRefusal("a Streams member has no data of its assignor")
    clone = read._replace(
        prev_tasks=(),
        standby_tasks=(),
        offset_sums={},
        unique_field=None if read.unique_field is None else 0,
        error_code=None if read.error_code is None else 0,
    )
    try:
        data = encode_subscription_info(clone)
    except (ValueError, struct.error) as error:
        return ProbeRefusal(f"the user data of a member cannot be encoded again: {error}")
    return (
        data
        if decode_subscription_info(data) == clone
        else ProbeRefusal("the copied subscription does not read back as intended")
    )
