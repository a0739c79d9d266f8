"""Decodes the members of every classic group: raw rows in, the same rows with decoded bytes out.

Each member is decoded by itself: its bytes never change how others are read, unless the whole group is beyond its
bounds; then the smallest members come first. The group's protocol name decides the layout of the assignor's own bytes;
those of unknown assignors are passed on as they are.

Both blobs of the embedded consumer protocol are a 16-bit version and a body that is never flexible. A version above 3
is read as 3, because newer versions may only append, and what follows the known fields is ignored.

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

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from operator import itemgetter

from agent.decode.decode_context import (
    BOUNDS,
    MOST_WORK_PER_BYTE,
    NAME,
    DecodeBudget,
    DecodeBudgetError,
    DecodeContext,
    DecodeLimits,
    InternedNames,
)
from agent.decode.streams_user_data import decode_assignment_info, decode_subscription_info
from agent.decode.values import (
    Assignment,
    AssignmentData,
    DecodedGroup,
    DecodedGroups,
    DecodedMember,
    StickyUserData,
    Subscription,
    Undecodable,
    UndecodableFieldError,
    UndecodableReason,
    UserData,
    int16,
    int32,
    nullable_bytes,
)
from agent.values import kafka
from agent.values.kafka import CONSUMER_PROTOCOL_TYPE
from agent.values.memo import Memo, each
from agent.values.observation import Observation, RawClassicGroup, RawMember

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


_ID = itemgetter(0)
_MEMBER_BYTES = 400
"""Memory of a member beside its arrays."""
_NO_STREAMS_DATA = Undecodable(UndecodableReason.EMPTY, "a Streams member has no data of its assignor", 0)


def decode_members(observation: Observation, memo: Memo | None = None, bounds: DecodeLimits = BOUNDS) -> DecodedGroups:
    """Every classic group with its members' bytes read; with a memo, only groups that changed are read again."""
    memo = memo if memo is not None else Memo()
    pool, classic = DecodeBudget(bounds.pool_bytes), observation.described(RawClassicGroup)

    @cache
    def names() -> InternedNames:
        inputs = observation.topics, observation.brokers
        return InternedNames(memo.of(("names",), inputs, lambda: _known_names(observation)), pool)

    try:
        read = each(memo, "decode", classic, _ID, lambda raw: _weighed(raw, names(), bounds), context=(bounds,))
        if sum([kept_bytes for _, kept_bytes in read]) <= bounds.pool_bytes:
            return DecodedGroups(tuple([group for group, _ in read]))
    except DecodeBudgetError:
        pass
    # Not all of it can be kept. The groups read so far are released, and those of earlier looks as well.
    read = []
    memo.turn()
    memo.turn()
    names.cache_clear()
    budget = DecodeBudget(bounds.pool_bytes)
    return _decode_while_room(classic, InternedNames(_known_names(observation), budget), bounds)


def _weighed(raw: RawClassicGroup, names: InternedNames, bounds: DecodeLimits) -> tuple[DecodedGroup, int]:
    """The decoded group, and how many bytes it keeps in memory. Raises DecodeBudgetError."""
    before_bytes = names.pool.left_bytes
    group = _decode_group(raw, names, bounds)
    return group, before_bytes - names.pool.left_bytes


def _decode_while_room(groups: Sequence[RawClassicGroup], names: InternedNames, bounds: DecodeLimits) -> DecodedGroups:
    """Groups whose members hold the fewest bytes come first: ordinary groups are small or have many members."""
    decoded: dict[int, DecodedGroup] = {}
    order = sorted(range(len(groups)), key=lambda i: (_bytes_per_member(groups[i]), groups[i].group_id))
    full = False
    for i in order:
        try:
            decoded[i] = _unread(groups[i], bounds) if full else _decode_group(groups[i], names, bounds)
        except DecodeBudgetError:
            full = True
            decoded[i] = _unread(groups[i], bounds)
    return DecodedGroups(tuple([decoded[i] for i in range(len(groups))]))


def _bytes_per_member(raw: RawClassicGroup) -> float:
    return sum([_bytes(member) for member in raw.members]) / max(1, len(raw.members))


def _unread(raw: RawClassicGroup, bounds: DecodeLimits) -> DecodedGroup:
    """The group with every member `Undecodable` as too large: a group that is not read is never an empty one."""
    sentence = f"the members' bytes of all groups need more than {bounds.pool_bytes >> 20} MiB of memory when read"
    return DecodedGroup(raw, tuple([_too_large(member, sentence) for member in raw.members]))


def _known_names(observation: Observation) -> Mapping[bytes, str]:
    """Topics and racks that the brokers report, by their bytes: members' names become the same objects."""
    racks = [broker.rack for broker in observation.brokers if broker.rack]
    return {name.encode(): name for name in (*[topic.name for topic in observation.topics], *racks) if name.isascii()}


def _decode_group(raw: RawClassicGroup, names: InternedNames, bounds: DecodeLimits) -> DecodedGroup:
    """The decoded group. Raises DecodeBudgetError."""
    if raw.protocol_type != CONSUMER_PROTOCOL_TYPE:
        unread = tuple([DecodedMember(member, None, None, None, None) for member in raw.members])
        return DecodedGroup(raw, unread)
    names.pool.take(_MEMBER_BYTES * len(raw.members))
    work = bounds.group_work + bounds.work_per_member * len(raw.members)
    context = DecodeContext(names, work)
    read = partial(_decode_member, raw, context)
    total_bytes = sum([len(member.metadata) + len(member.assignment) for member in raw.members])
    if total_bytes <= min(bounds.member_bytes, work // MOST_WORK_PER_BYTE):  # no bound can be reached
        members = [read(member) for member in raw.members]
    else:
        members = _smallest_first(raw.members, read, bounds)
    return DecodedGroup(raw, tuple(members))


def _smallest_first(
    members: tuple[RawMember, ...], read: Callable[[RawMember], DecodedMember], bounds: DecodeLimits
) -> list[DecodedMember]:
    """Members in their own order, read in the order of their size, so that outsized ones find the bounds used up."""
    decoded: dict[int, DecodedMember] = {}
    bytes_left = bounds.group_bytes
    for i in sorted(range(len(members)), key=lambda i: (_bytes(members[i]), i)):
        size_bytes = _bytes(members[i])
        if size_bytes > bounds.member_bytes:
            decoded[i] = _too_large(members[i], f"the member holds {size_bytes} bytes, over {bounds.member_bytes}")
        elif size_bytes > bytes_left:
            decoded[i] = _too_large(members[i], f"the group's members hold more than {bounds.group_bytes} bytes")
        else:
            bytes_left -= size_bytes
            decoded[i] = read(members[i])
    return [decoded[i] for i in range(len(members))]


def _bytes(member: RawMember) -> int:
    return len(member.metadata) + len(member.assignment)


def _too_large(member: RawMember, sentence: str) -> DecodedMember:
    too_large = Undecodable(UndecodableReason.TOO_LARGE, sentence, 0)
    return DecodedMember(member, too_large, None, too_large, None)


def _decode_member(group: RawClassicGroup, context: DecodeContext, raw: RawMember) -> DecodedMember:
    subscription: Subscription | Undecodable | None
    assignment: Assignment | Undecodable | None
    user_data: UserData = None
    assignment_data: AssignmentData = None
    try:
        if raw.metadata:
            subscription, data = read_subscription(raw.metadata, context)
            user_data = _user_data(group.protocol, data, context)
        else:
            subscription = _not_shown(group, "subscription")
    except UndecodableFieldError as broken:
        subscription = broken.value
    try:
        if raw.assignment:
            assignment, data = read_assignment(raw.assignment, context)
            assignment_data = data
            if group.protocol == kafka.STREAMS_PROTOCOL:
                assignment_data = decode_assignment_info(data, context) if data else _NO_STREAMS_DATA
        else:
            assignment = _not_shown(group, "assignment")
    except UndecodableFieldError as broken:
        assignment = broken.value
    # As in consumer_protocol: the same as DecodedMember(...), in less than half the time.
    return tuple.__new__(DecodedMember, (raw, subscription, user_data, assignment, assignment_data))


def _not_shown(group: RawClassicGroup, field: str) -> Undecodable | None:
    """None in every state but Stable, in which alone the broker shows members' bytes."""
    if group.state != kafka.STABLE:
        return None
    return Undecodable(UndecodableReason.EMPTY, f"the group is stable, but the member's {field} has no bytes", 0)


def _user_data(protocol: str, data: bytes | None, context: DecodeContext) -> UserData:
    """The assignor's part of the subscription, read as that assignor writes it."""
    match protocol:
        case kafka.COOPERATIVE_STICKY:
            return _shared_generation(data, context) if data else None
        case kafka.STICKY:
            return decode_sticky(data, context) if data else None
        case kafka.STREAMS_PROTOCOL:
            return decode_subscription_info(data, context) if data else _NO_STREAMS_DATA
    return data


def _shared_generation(data: bytes, context: DecodeContext) -> StickyUserData | Undecodable:
    """Java's members all send the same four bytes."""
    if context.generation is None or context.generation[0] != data:
        context.generation = data, decode_cooperative_sticky(data, context)
    return context.generation[1]
