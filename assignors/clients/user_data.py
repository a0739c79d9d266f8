"""User data of members' subscriptions, read and written byte for byte.

===================  ==================================================================================================
range                a note, which other clients' leaders do not look at
sticky               Kafka's own layout: array of {topic, array of int32}, generation (int32); then a note, which
                     Kafka's reader does not reach
cooperative-sticky   Kafka's own layout: the generation (int32)
optimal              a note with the owned partitions
===================  ==================================================================================================

A note repeats what aiokafka's leader drops (all behind the user data): magic number, version (int8), flags (int8; bit
0: the owned partitions are still held), generation (int32), rack and instance id (nullable strings), owned partitions.
Newer versions may only append. Reading never raises, and never allocates more than was sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from struct import Struct
from struct import error as StructError  # noqa: N812 (named with its module)

from assignors.clients import strategy
from assignors.problem import TopicPartition

_MAGIC = b"\xfaRCK"
_VERSION = 1
_HELD = 1
_NO_GENERATION = -1
_INT16, _INT32 = Struct(">h"), Struct(">i")
_HEAD = Struct(">4sbbi")
_SUBSCRIPTION_VERSION = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RackwiseUserData:
    """A member's rack, id, generation and owned partitions, in its user data."""

    rack: str | None = None
    instance_id: str | None = None
    """``group.instance.id`` of a static member."""
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None
    """The generation in which it got ``owned``; None when it does not know."""
    held: bool = False
    """True: it reads ``owned`` until they are revoked; False: it has revoked them."""


NOTHING = RackwiseUserData()
"""The user data of a member that sends none, or none that can be read."""


def user_data(protocol: str, known: RackwiseUserData) -> bytes:
    """Return the user data of a member under that protocol name."""
    match protocol:
        case strategy.COOPERATIVE_STICKY:
            return _INT32.pack(_known(known.generation))
        case strategy.STICKY:
            owned = _partitions(known.owned) + _INT32.pack(_known(known.generation))
            return owned + _note(RackwiseUserData(rack=known.rack, instance_id=known.instance_id))
        case strategy.RANGE:
            return _note(RackwiseUserData(rack=known.rack, instance_id=known.instance_id))
        case _:
            return _note(known)


def read_user_data(protocol: str, data: bytes) -> RackwiseUserData:
    """Return a member's user data; ``NOTHING`` where it cannot be read."""
    try:
        match protocol:
            case strategy.COOPERATIVE_STICKY:
                return _read_cooperative_sticky(data)
            case strategy.STICKY:
                return _read_sticky(data)
            case _:
                return _read_note(data, 0) or NOTHING
    except _Unreadable:
        return NOTHING


def subscription(topics: Iterable[str], known: RackwiseUserData, data: bytes) -> bytes:
    """Return a subscription of version 3 (KIP-881) as Kafka writes it; partitions that are not held do not count."""
    return b"".join(
        (
            _INT16.pack(_SUBSCRIPTION_VERSION),
            _array([_string(topic) for topic in sorted(set(topics))]),
            _INT32.pack(len(data)) + data,
            _partitions(known.owned if known.held else ()),
            _INT32.pack(_known(known.generation)),
            _string(known.rack),
        )
    )


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Return partitions as the wire groups them: topics and numbers in order."""
    return [
        (topic, [each.partition for each in group])
        for topic, group in groupby(sorted(partitions), lambda each: each.topic)
    ]


# --- writing --------------------------------------------------------------------------------------------------------


def _note(known: RackwiseUserData) -> bytes:
    head = _HEAD.pack(_MAGIC, _VERSION, _HELD if known.held else 0, _known(known.generation))
    return head + _string(known.rack) + _string(known.instance_id) + _partitions(known.owned)


def _partitions(partitions: Iterable[TopicPartition]) -> bytes:
    return _array([_string(topic) + _array(list(map(_INT32.pack, numbers))) for topic, numbers in by_topic(partitions)])


def _array(items: list[bytes]) -> bytes:
    return _INT32.pack(len(items)) + b"".join(items)


def _string(text: str | None) -> bytes:
    if text is None:
        return _INT16.pack(-1)
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw


def _known(generation: int | None) -> int:
    return _NO_GENERATION if generation is None else generation


# --- reading --------------------------------------------------------------------------------------------------------


class _Unreadable(Exception):  # noqa: N818 (a state of the bytes that never leaves this module)
    """The bytes end too early, or hold no text where text belongs."""


def _read_sticky(data: bytes) -> RackwiseUserData:
    """Kafka's layout, with or without (its first version) the generation, and a note where one follows."""
    owned, at = _read_partitions(data, 0)
    if len(data) - at < _INT32.size:
        return RackwiseUserData(owned=owned)
    note = _read_note(data, at + _INT32.size) or NOTHING
    return RackwiseUserData(
        rack=note.rack, instance_id=note.instance_id, owned=owned, generation=_or_none(_read(_INT32, data, at))
    )


def _read_cooperative_sticky(data: bytes) -> RackwiseUserData:
    """Java writes the generation alone; librdkafka the layout of sticky, and its generation counts."""
    if len(data) <= _INT32.size:
        return RackwiseUserData(generation=_or_none(_read(_INT32, data, 0)))
    _, at = _read_partitions(data, 0)
    return RackwiseUserData(generation=_or_none(_read(_INT32, data, at)))


def _read_note(data: bytes, at: int) -> RackwiseUserData | None:
    """The note that begins there; None where there is none."""
    if data[at : at + len(_MAGIC)] != _MAGIC:
        return None
    try:
        _, version, flags, generation = _HEAD.unpack_from(data, at)
    except StructError:
        return None
    if version < _VERSION:
        return None
    try:
        rack, at = _read_string(data, at + _HEAD.size)
        instance_id, at = _read_string(data, at)
        owned, at = _read_partitions(data, at)
    except _Unreadable:
        return None
    return RackwiseUserData(
        rack=rack or None,
        instance_id=instance_id,
        owned=owned,
        generation=_or_none(generation),
        held=bool(flags & _HELD),
    )


def _read_partitions(data: bytes, at: int) -> tuple[tuple[TopicPartition, ...], int]:
    partitions: list[TopicPartition] = []
    topics, at = _read_count(data, at, _INT16.size + _INT32.size)
    for _ in range(topics):
        topic, at = _read_string(data, at)
        count, at = _read_count(data, at, _INT32.size)
        if topic is None:
            raise _Unreadable
        numbers = Struct(f">{count}i").unpack_from(data, at)
        at += count * _INT32.size
        partitions.extend(TopicPartition(topic, number) for number in numbers)
    return tuple(partitions), at


def _read_count(data: bytes, at: int, smallest: int) -> tuple[int, int]:
    """A count that the bytes behind it can hold, before anything is allocated for it."""
    count, at = _read(_INT32, data, at), at + _INT32.size
    if not 0 <= count * smallest <= len(data) - at:
        raise _Unreadable
    return count, at


def _read_string(data: bytes, at: int) -> tuple[str | None, int]:
    length, at = _read(_INT16, data, at), at + _INT16.size
    if length < 0:
        return None, at
    if length > len(data) - at:
        raise _Unreadable
    try:
        return data[at : at + length].decode(), at + length
    except UnicodeDecodeError:
        raise _Unreadable from None


def _read(number: Struct, data: bytes, at: int) -> int:
    try:
        value: int = number.unpack_from(data, at)[0]
    except StructError:
        raise _Unreadable from None
    return value


def _or_none(generation: int) -> int | None:
    return None if generation < 0 else generation
