"""What is shared while members are read: names, arrays that repeat, and how much a group may still build.

Invariant: sharing never changes a value. Names, partitions and tasks are looked up by their content. An array is taken
from an earlier member only where the bytes in front of the reader begin with that array's own bytes: every layout says
its own length, so equal bytes are an equal array.

A group may build a limited number of array items: an item costs a hundred bytes and more where the wire needs four, so
the limit on bytes alone would not keep memory flat. Arrays taken from an earlier member cost nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from struct import Struct
from types import MappingProxyType
from typing import NamedTuple

from agent.decode.cursor import INT32, Broken, int16, name_bytes, truncated, utf8
from agent.decode.java_text import from_modified_utf8
from agent.decode.values import HostPartitions, StickyUserData, Undecodable, UndecodableReason
from assignors.problem import TaskId, TopicPartition

Hosts = tuple[tuple[HostPartitions, ...], tuple[HostPartitions, ...]]
"""Who hosts which partitions as active, and who as standby."""

_EMPTY_ARRAY = bytes(4)
_NO_PARTITIONS: tuple[TopicPartition, ...] = ()
_TASK = Struct(">ii").unpack
_SMALL_ARRAYS = tuple(Struct(f">{items}i").unpack_from for items in range(65))


class Bounds(NamedTuple):
    """How much foreign bytes may make this process hold; what is beyond reads as too large."""

    member_bytes: int = 1 << 20
    """Subscription and assignment of one member together."""
    group_bytes: int = 16 << 20
    group_items: int = 1 << 20
    """Names, partitions, tasks and pairs that one group may build; more only where its free items are more."""
    free_items: int = 1 << 14
    """What every group may build whatever the others do, ..."""
    free_items_per_member: int = 1 << 10
    """... and this for each of its members: honest groups are large because they have many of them."""
    spare_items: int = 1 << 21
    """What all groups together may build beyond that, so that many hostile groups cost no more than a few."""


BOUNDS = Bounds()


class _PartitionsOfTopic(dict[int, TopicPartition]):
    __slots__ = ("topic",)

    def __init__(self, topic: str) -> None:
        super().__init__()
        self.topic = topic

    def __missing__(self, partition: int) -> TopicPartition:
        made = self[partition] = tuple.__new__(TopicPartition, (self.topic, partition))
        return made


class _Partitions(dict[str, _PartitionsOfTopic]):
    __slots__ = ()

    def __missing__(self, topic: str) -> _PartitionsOfTopic:
        made = self[topic] = _PartitionsOfTopic(topic)
        return made


class _Tasks(dict[bytes, TaskId]):
    __slots__ = ()

    def __missing__(self, raw: bytes) -> TaskId:
        made = self[raw] = TaskId(*_TASK(raw))
        return made


class Names:
    """One object for each name, partition and task, however many members say it.

    Subclasses of ``dict`` with ``__missing__`` let whole arrays be looked up by ``map`` without running any Python code
    for what is known already.
    """

    __slots__ = ("partitions", "process_ids", "tasks", "texts")

    def __init__(self, known: Mapping[bytes, str] = MappingProxyType({})) -> None:
        """Known names by their bytes; what members add to them is not handed back."""
        self.texts = dict(known)
        self.partitions = _Partitions()
        self.tasks = _Tasks()
        self.process_ids: dict[bytes, str] = {}


class Reading:
    """What the members of one group share while they are read."""

    __slots__ = (
        "_array",
        "_array_head",
        "_array_raw",
        "front",
        "generation",
        "heads",
        "hosts",
        "items_left",
        "names",
        "tails",
    )

    def __init__(self, names: Names | None = None, items: int = BOUNDS.group_items) -> None:
        self.names = names if names is not None else Names()
        self.items_left = items
        self.front: tuple[bytes, int, tuple[str, ...], bytes | None] | None = None
        """Of an earlier subscription: bytes, version, topics and user data of its beginning."""
        self.heads: list[tuple[bytes, int, tuple[str, ...]]] = []
        """Of earlier subscriptions: bytes, version and topics of their beginning, the latest first."""
        self.tails: dict[bytes, tuple[int | None, str | None]] = {}
        """Of earlier subscriptions: the bytes of their end, and the generation and rack in them."""
        self.hosts: tuple[int, bytes, Hosts] | None = None
        """Of the member before: AssignmentInfo version, bytes and value of the part that says who hosts what."""
        self.generation: tuple[bytes, StickyUserData | Undecodable] | None = None
        """Of the member before: what cooperative-sticky put in, as bytes and as read."""
        self._array_raw, self._array = _EMPTY_ARRAY, _NO_PARTITIONS
        self._array_head: tuple[bytes, _PartitionsOfTopic] | None = None

    def count(self, data: bytes, at: int, smallest_bytes: int, what: str) -> int:
        """How many items an array claims, once it is sure that they can be there and may be built."""
        try:
            items: int = INT32(data, at)[0]
        except struct.error:
            truncated(data, at, 4, what)
        left = len(data) - at - 4
        if 0 <= items <= self.items_left and items * smallest_bytes <= left:
            self.items_left -= items
            return items
        if items < 0:
            raise Broken(
                UndecodableReason.NEGATIVE, f"{what}: the number of items is {items}; null is not allowed here", at
            )
        if items * smallest_bytes > left:
            sentence = (
                f"{what}: the number of items is {items}, each of {smallest_bytes} bytes or more, but {left} are left"
            )
            raise Broken(UndecodableReason.COUNT_TOO_LARGE, sentence, at)
        sentence = f"{what}: the number of items is {items}, but the group may build {self.items_left} more at most"
        raise Broken(UndecodableReason.TOO_LARGE, sentence, at)

    def nullable_name(self, data: bytes, at: int, what: str) -> tuple[str | None, int]:
        """A name in UTF-8, or None for null."""
        raw, end = name_bytes(data, at, what)
        if raw is None:
            return None, end
        return self.text(raw, end - len(raw), what), end

    def name(self, data: bytes, at: int, what: str) -> tuple[str, int]:
        """A name in UTF-8 where null is not allowed."""
        value, end = self.nullable_name(data, at, what)
        if value is None:
            raise Broken(UndecodableReason.NEGATIVE, f"{what}: the length is negative; null is not allowed here", at)
        return value, end

    def text(self, raw: bytes, at: int, what: str) -> str:
        """Text in UTF-8, one object for equal bytes."""
        texts = self.names.texts
        known = texts.get(raw)
        if known is None:
            known = texts[raw] = utf8(raw, at, what)
        return known

    def java_name(self, data: bytes, at: int, what: str) -> tuple[str, int]:
        """A name as ``writeUTF`` writes it, behind an unsigned 16-bit length."""
        length = int16(data, at, what) & 0xFFFF
        at += 2
        end = at + length
        raw = data[at:end]
        known = self.names.texts.get(raw)
        if known is not None and len(raw) == length and raw.isascii():  # there both kinds of UTF-8 agree
            return known, end
        if end > len(data):
            truncated(data, at, length, what)
        if raw.isascii():
            return self.text(raw, at, what), end
        return from_modified_utf8(raw, at, what), end

    def partitions(self, data: bytes, at: int) -> tuple[tuple[TopicPartition, ...], int]:
        """The array of topics with their partitions, in the order of the bytes.

        What a member owned, remembers and is given is mostly the same array; and the members of a group mostly have
        one topic, so that their arrays begin alike.
        """
        if data.startswith(self._array_raw, at):
            return self._array, at + len(self._array_raw)
        head = self._array_head
        # Where not even the count fits behind the topic, the long way says what is wrong, as if nothing had been read.
        if head is not None and data.startswith(head[0], at) and at + len(head[0]) + 4 <= len(data):
            found, end = self._partitions_of(head[1], data, at + len(head[0]))
        else:
            found, end = self._partitions_by_topic(data, at)
        if found:
            self._array_raw, self._array = data[at:end], found
        return found, end

    def _partitions_by_topic(self, data: bytes, at: int) -> tuple[tuple[TopicPartition, ...], int]:
        start = at
        topics = self.count(data, at, 6, "the partitions")
        at += 4
        found: list[TopicPartition] = []
        for _ in range(topics):
            topic, at = self.name(data, at, "a partition's topic")
            known = self.names.partitions[topic]
            if topics == 1:
                self._array_head = data[start:at], known
            of_topic, at = self._partitions_of(known, data, at)
            found += of_topic
        return tuple(found), at

    def _partitions_of(self, known: _PartitionsOfTopic, data: bytes, at: int) -> tuple[tuple[TopicPartition, ...], int]:
        items = self.count(data, at, 4, "the partitions of a topic")
        at += 4
        if items == 1:
            return (known[INT32(data, at)[0]],), at + 4
        return tuple(map(known.__getitem__, int32s(data, at, items))), at + 4 * items


def int32s(data: bytes, at: int, items: int) -> tuple[int, ...]:
    """Numbers that are known to fit, read in one call."""
    if items < len(_SMALL_ARRAYS):
        return _SMALL_ARRAYS[items](data, at)
    return struct.unpack_from(f">{items}i", data, at)
