"""Decodes the members of every classic group: raw rows in, the same rows with decoded bytes out.

Each member is decoded by itself: its bytes never change how others are read, unless the whole group is beyond its
bounds; then the smallest members come first. The group's protocol name decides the layout of the assignor's own bytes;
those of unknown assignors are passed on as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from operator import itemgetter

from agent.decode.assignment_info import decode_assignment_info
from agent.decode.consumer_protocol import decode_cooperative_sticky, decode_sticky, read_assignment, read_subscription
from agent.decode.decode_context import (
    BOUNDS,
    MOST_WORK_PER_BYTE,
    DecodeBudget,
    DecodeBudgetError,
    DecodeContext,
    DecodeLimits,
    InternedNames,
)
from agent.decode.subscription_info import decode_subscription_info
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
)
from agent.values import kafka
from agent.values.kafka import CONSUMER_PROTOCOL_TYPE
from agent.values.memo import Memo, each
from agent.values.observation import Observation, RawClassicGroup, RawMember

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
            return _generation(data, context) if data else None
        case kafka.STICKY:
            return decode_sticky(data, context) if data else None
        case kafka.STREAMS_PROTOCOL:
            return decode_subscription_info(data, context) if data else _NO_STREAMS_DATA
    return data


def _generation(data: bytes, context: DecodeContext) -> StickyUserData | Undecodable:
    """Java's members all send the same four bytes."""
    if context.generation is None or context.generation[0] != data:
        context.generation = data, decode_cooperative_sticky(data, context)
    return context.generation[1]
