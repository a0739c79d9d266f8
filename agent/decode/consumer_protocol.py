"""The embedded consumer protocol of classic groups: subscriptions, assignments, and user data of sticky assignors.

Both blobs are a 16-bit version and a body that is never flexible. A version above 3 is read as 3, because newer
versions may only append, and what follows the known fields is ignored.

====================  =======================================  ============================
Subscription field    type                                     since version
====================  =======================================  ============================
topics                array of string                          0
user data             nullable bytes                           0
owned partitions      array of {topic, array of int32}         1 (KIP-429)
generation            int32                                    2 (KIP-792)
rack                  nullable string, empty means none        3 (KIP-881)
====================  =======================================  ============================

An assignment is an array of {topic, array of int32} and nullable bytes in every version.
"""

from __future__ import annotations

from agent.decode.decode_context import NAME, DecodeContext
from agent.decode.values import (
    Assignment,
    StickyUserData,
    Subscription,
    Undecodable,
    UndecodableFieldError,
    UndecodableReason,
    int16,
    int32,
    nullable_bytes,
)

_new = tuple.__new__
"""What a named tuple's own ``__new__`` calls; without that detour it takes less than half the time."""

_VERSIONS = {version.to_bytes(2, "big"): version for version in range(16)}
_NULL = b"\xff\xff\xff\xff"
_KEPT_FRONT_BYTES = 256
_KEPT_HEADS = 8
"""Members of one group differ in topics or version while it is rolled, seldom otherwise."""
_KEPT_TAILS = 64
_KEPT_TAIL_BYTES = 256


def decode_subscription(data: bytes, context: DecodeContext | None = None) -> Subscription | Undecodable:
    """A member's subscription with its user data unread, or why it is undecodable (``ConsumerProtocol``)."""
    try:
        value, user_data = read_subscription(data, context or DecodeContext())
    except UndecodableFieldError as broken:
        return broken.value
    return value._replace(user_data=user_data)


def read_subscription(data: bytes, context: DecodeContext) -> tuple[Subscription, bytes | None]:
    """``ConsumerProtocol.deserializeSubscription``, the user data apart; raises `UndecodableFieldError`."""
    front = context.front
    if front is not None and data.startswith(front[0]):
        raw, version, topics, user_data = front
        at = len(raw)
    else:
        version, topics, user_data, at = _front(data, context)
    owned = generation = rack = None
    if version > 0:
        owned, at = context.partitions(data, at)
    if version > 2:
        generation, rack = context.tails.get(data[at:]) or _tail(data, at, context)
    elif version == 2:
        generation = _known(int32(data, at, "the generation"))
    return _new(Subscription, (version, topics, None, owned, generation, rack)), user_data


def read_assignment(data: bytes, context: DecodeContext) -> tuple[Assignment, bytes | None]:
    """``ConsumerProtocol.deserializeAssignment``, the user data apart; raises `UndecodableFieldError`."""
    version = _VERSIONS.get(data[:2])
    if version is None:
        version = _version(data, "the assignment")
    partitions, at = context.partitions(data, 2)
    user_data = None
    if data[at:] != _NULL:
        user_data, _ = nullable_bytes(data, at, "the assignment's user data")
    return _new(Assignment, (version, partitions, None)), user_data


def _front(data: bytes, context: DecodeContext) -> tuple[int, tuple[str, ...], bytes | None, int]:
    """Version, topics and user data, which most Java members of a group have in common."""
    version, topics, at = _head(data, context)
    user_data, at = nullable_bytes(data, at, "the subscription's user data")
    if at <= _KEPT_FRONT_BYTES:
        context.front = data[:at], version, topics, user_data
    return version, topics, user_data, at


def _head(data: bytes, context: DecodeContext) -> tuple[int, tuple[str, ...], int]:
    """Version and topics, which most members of a group have in common."""
    for raw, version, topics in context.heads:
        if data.startswith(raw):
            return version, topics, len(raw)
    version = _version(data, "the subscription")
    items = context.count(data, 2, 2, "the topics", NAME)
    at = 6
    names = []
    for _ in range(items):
        topic, at = context.name(data, at, "a topic")
        names.append(topic)
    topics = tuple(names)
    context.heads = [(data[:at], version, topics), *context.heads[: _KEPT_HEADS - 1]]
    return version, topics, at


def _tail(data: bytes, at: int, context: DecodeContext) -> tuple[int | None, str | None]:
    """Generation and rack, which all members in one rack have in common."""
    generation = _known(int32(data, at, "the generation"))
    rack, _ = context.nullable_name(data, at + 4, "the rack")
    tail = generation, rack or None
    if len(data) - at <= _KEPT_TAIL_BYTES and len(context.tails) < _KEPT_TAILS:
        context.tails[data[at:]] = tail
    return tail


def _version(data: bytes, field: str) -> int:
    version = int16(data, 0, f"{field}'s version")
    if version < 0:
        raise UndecodableFieldError(UndecodableReason.VERSION, f"{field} has version {version}; versions begin at 0", 0)
    return version


def _known(generation: int) -> int | None:
    """None for the numbers that Kafka writes when there is no generation yet."""
    return generation if generation >= 0 else None


# User data of the sticky assignors; null and empty both mean that the member has no history.
#
# ===================  ==============================================================================================
# sticky, V1           array of {topic, array of int32}, then the generation (int32)
# sticky, V0           the same without generation; what is too short for V1 is V0
# cooperative-sticky   Java writes the generation alone (4 bytes), librdkafka the V1 layout of sticky
# ===================  ==============================================================================================
#
# Kafka takes what it cannot parse for "no history" as well; here it is `Undecodable`, so that it can be reported.

_NO_GENERATION = -1


def decode_sticky(data: bytes, context: DecodeContext | None = None) -> StickyUserData | Undecodable:
    """``StickyAssignor.memberData``: the partitions that the member owned before it joined."""
    try:
        owned, at = (context or DecodeContext()).partitions(data, 0)
    except UndecodableFieldError as broken:
        return broken.value
    if len(data) - at < 4:
        return StickyUserData(owned, None)
    return StickyUserData(owned, _generation(int32(data, at, "the generation")))


def decode_cooperative_sticky(data: bytes, context: DecodeContext | None = None) -> StickyUserData | Undecodable:
    """``CooperativeStickyAssignor.memberData``: a generation, and what librdkafka adds.

    Five bytes and more are librdkafka's layout when they are that to the last byte; else they are a generation with
    something behind it, as Kafka reads them.
    """
    if len(data) > 4:
        try:
            owned, at = (context or DecodeContext()).partitions(data, 0)
            if at + 4 == len(data):
                return StickyUserData(owned, _generation(int32(data, at, "the generation")))
        except UndecodableFieldError:
            pass  # then the first number is no count but a generation
    try:
        return StickyUserData(None, _generation(int32(data, 0, "the generation")))
    except UndecodableFieldError as broken:
        return broken.value


def _generation(generation: int) -> int | None:
    """None for the number that both clients write before the first rebalance; the assignors treat the two alike."""
    return None if generation == _NO_GENERATION else generation
