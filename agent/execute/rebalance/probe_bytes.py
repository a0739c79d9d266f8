"""Subscription bytes of the probe: a clone of a member's own, harmless if an assignor reads it. Pure.

Same version, topics, rack, process, endpoint and tags; no owned partitions, generation, offset sums or error code (one
of these shuts an application down); a Streams leader dies of user data that it cannot read. Invariant: the decoders
read exactly the clone. What cannot be cloned faithfully is `ProbeRefusal`.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from agent.decode.consumer_protocol import decode_cooperative_sticky, decode_sticky, decode_subscription
from agent.decode.encode import encode_sticky, encode_subscription, encode_subscription_info
from agent.decode.subscription_info import decode_subscription_info
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
