"""State shared while members are decoded: interned names, repeated arrays, and bounds of time and memory.

Sharing never changes a value: names, partitions and tasks are looked up by their content, and an array is taken from an
earlier member only where the bytes begin with that array's own bytes. An item costs a hundred bytes and more where the
wire needs four, so two things are bounded: the time of one group, charged before anything is built and as if nothing
were known yet, and the memory of all groups, counted as it is built (`DecodeBudget`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from struct import Struct
from types import MappingProxyType
from typing import NamedTuple

from agent.decode.values import (
    INT32,
    HostPartitions,
    StickyUserData,
    Undecodable,
    UndecodableFieldError,
    UndecodableReason,
    from_modified_utf8,
    int16,
    name_bytes,
    slow_characters,
    truncated,
    utf8,
)
from agent.values.number_format import counted
from assignors.problem import TaskId, TopicPartition

Hosts = tuple[tuple[HostPartitions, ...], tuple[HostPartitions, ...]]
"""The hosts with their partitions of active tasks, and of standby tasks."""

_EMPTY_ARRAY = bytes(4)
_NO_PARTITIONS: tuple[TopicPartition, ...] = ()
_TASK = Struct(">ii").unpack
_SMALL_ARRAYS = tuple(Struct(f">{items}i").unpack_from for items in range(65))


class DecodeLimits(NamedTuple):
    """How much time and memory members' bytes may cost; what is beyond is `Undecodable` as too large."""

    member_bytes: int = 1 << 20
    """Subscription and assignment of one member together."""
    group_bytes: int = 16 << 20
    group_work: int = 40_000_000
    """Nanoseconds, about, that one group may cost, ..."""
    work_per_member: int = 300_000
    """... and as much more for each of its members: honest groups are large because they have many of them."""
    pool_bytes: int = 256 << 20
    """Memory of all groups together: 20,000 members of Streams applications, half a million of others."""


BOUNDS = DecodeLimits()


class ArrayItemCost(NamedTuple):
    """The cost of one item of an array: measured, and rounded up."""

    work: int
    """Nanoseconds, where nothing of it is known yet."""
    kept_bytes: int
    """Memory beside the names, partitions and tasks that are new with it, which are counted where they are made."""


NUMBER = ArrayItemCost(300, 8)
NAME = ArrayItemCost(1_000, 8)
BLOCK = ArrayItemCost(2_500, 0)
"""A topic with an array of its partitions; a subtopology with one of its tasks."""
OFFSET_SUM = ArrayItemCost(500, 120)
TASK_WITH_PARTITIONS = ArrayItemCost(2_000, 250)
HOST = ArrayItemCost(3_000, 400)
PAIR_OF_TEXTS = ArrayItemCost(2_000, 100)

MOST_WORK_PER_BYTE = 600
"""Nanoseconds; that of empty names, which take two bytes each, and a little more."""
_NAMED_WORK = 2_500
"""A task of a named topology, beside what any task costs."""
_NEW_NUMBER_BYTES = 220
"""A partition or a task, with its entry among the interned ones."""
_NEW_TEXT_BYTES = 300
_BYTES_PER_BYTE = 6
"""A text has up to four bytes for each of its own, which are kept beside it."""
_WORK_PER_BYTE = 20
_WORK_PER_SLOW_CHARACTER = 500


class DecodeBudgetError(Exception):
    """The memory that all groups may keep is used up; it never leaves this package."""


class DecodeBudget:
    """Memory that all groups together may still keep."""

    __slots__ = ("left_bytes",)

    def __init__(self, left_bytes: int) -> None:
        self.left_bytes = left_bytes

    def take(self, kept_bytes: int) -> None:
        """Count these bytes as kept. Raises DecodeBudgetError."""
        self.left_bytes -= kept_bytes
        if self.left_bytes < 0:
            raise DecodeBudgetError


class _PartitionsOfTopic(dict[int, TopicPartition]):
    __slots__ = ("pool", "topic")

    def __init__(self, topic: str, pool: DecodeBudget) -> None:
        super().__init__()
        self.topic = topic
        self.pool = pool

    def __missing__(self, partition: int) -> TopicPartition:
        self.pool.take(_NEW_NUMBER_BYTES)
        made = self[partition] = tuple.__new__(TopicPartition, (self.topic, partition))
        return made


class _Partitions(dict[str, _PartitionsOfTopic]):
    __slots__ = ("pool",)

    def __init__(self, pool: DecodeBudget) -> None:
        super().__init__()
        self.pool = pool

    def __missing__(self, topic: str) -> _PartitionsOfTopic:
        self.pool.take(_NEW_TEXT_BYTES)
        made = self[topic] = _PartitionsOfTopic(topic, self.pool)
        return made


class _Tasks(dict[bytes, TaskId]):
    __slots__ = ("pool",)

    def __init__(self, pool: DecodeBudget) -> None:
        super().__init__()
        self.pool = pool

    def __missing__(self, raw: bytes) -> TaskId:
        self.pool.take(_NEW_NUMBER_BYTES)
        made = self[raw] = TaskId(*_TASK(raw))
        return made


class InternedNames:
    """One object for each name, partition and task, however many members send it.

    Subclasses of ``dict`` with ``__missing__`` let whole arrays be looked up by ``map`` without running any Python code
    for what is known already.
    """

    __slots__ = ("partitions", "pool", "process_ids", "tasks", "texts")

    def __init__(self, known: Mapping[bytes, str] = MappingProxyType({}), pool: DecodeBudget | None = None) -> None:
        """Known names by their bytes; what members add to them is not handed back."""
        self.pool = pool if pool is not None else DecodeBudget(BOUNDS.pool_bytes)
        self.texts = dict(known)
        self.partitions = _Partitions(self.pool)
        self.tasks = _Tasks(self.pool)
        self.process_ids: dict[bytes, str] = {}


class DecodeContext:
    """State that the members of one group share while they are read."""

    __slots__ = (
        "_array",
        "_array_head",
        "_array_raw",
        "front",
        "generation",
        "heads",
        "hosts",
        "names",
        "pool",
        "tails",
        "work_left",
    )

    def __init__(self, names: InternedNames | None = None, work: int = BOUNDS.group_work) -> None:
        self.names = names if names is not None else InternedNames()
        self.pool = self.names.pool
        self.work_left = work
        self.front: tuple[bytes, int, tuple[str, ...], bytes | None] | None = None
        """Of an earlier subscription: bytes, version, topics and user data of its beginning."""
        self.heads: list[tuple[bytes, int, tuple[str, ...]]] = []
        """Of earlier subscriptions: bytes, version and topics of their beginning, the latest first."""
        self.tails: dict[bytes, tuple[int | None, str | None]] = {}
        """Of earlier subscriptions: the bytes of their end, and the generation and rack in them."""
        self.hosts: tuple[int, bytes, Hosts] | None = None
        """Of the member before: AssignmentInfo version, bytes and value of the partitions by host."""
        self.generation: tuple[bytes, StickyUserData | Undecodable] | None = None
        """Of the member before: user data of cooperative-sticky, as bytes and as read."""
        self._array_raw, self._array = _EMPTY_ARRAY, _NO_PARTITIONS
        self._array_head: tuple[bytes, _PartitionsOfTopic] | None = None

    def count(self, data: bytes, at: int, smallest_bytes: int, field: str, cost: ArrayItemCost) -> int:
        """The number of items of an array, which fit into the bytes that are left and into the group's bounds.

        Raises UndecodableFieldError.
        """
        try:
            items = INT32(data, at)[0]
        except struct.error:
            truncated(data, at, 4, field)
        left = len(data) - at - 4
        item_work, item_kept_bytes = cost
        work_left = self.work_left - items * item_work
        if items >= 0 and work_left >= 0 and items * smallest_bytes <= left:
            self.work_left = work_left
            if item_kept_bytes:
                self.pool.take(items * item_kept_bytes)
            return items
        if items < 0:
            raise UndecodableFieldError(
                UndecodableReason.NEGATIVE, f"{field}: the number of items is {items}; null is not allowed here", at
            )
        if items * smallest_bytes > left:
            sentence = (
                f"{field}: the number of items is {items}, each of {smallest_bytes} bytes or more, but {left} are left"
            )
            raise UndecodableFieldError(UndecodableReason.COUNT_TOO_LARGE, sentence, at)
        most = self.work_left // item_work
        sentence = f"{field}: the number of items is {items}, but the group may have {most} more at most"
        raise UndecodableFieldError(UndecodableReason.TOO_LARGE, sentence, at)

    def named_tasks(self, items: int, at: int, field: str) -> None:
        """Charge for tasks with named topologies. Raises UndecodableFieldError beyond the group's bound."""
        self.work_left -= items * _NAMED_WORK
        if self.work_left < 0:
            self.work_left = 0
            sentence = f"{field}: {counted(items, 'task')} with named topologies, more than the group may still have"
            raise UndecodableFieldError(UndecodableReason.TOO_LARGE, sentence, at)
        self.pool.take(items * _NEW_TEXT_BYTES)

    def new_text(self, raw: bytes, at: int, field: str, slow: int = 0) -> None:
        """Charge for new text with ``slow`` slow characters. Raises UndecodableFieldError beyond the group's bound."""
        work = _WORK_PER_BYTE * len(raw) + _WORK_PER_SLOW_CHARACTER * slow
        if work > self.work_left:
            sentence = f"{field}: {len(raw)} bytes of text, which are more than the group may still have"
            raise UndecodableFieldError(UndecodableReason.TOO_LARGE, sentence, at)
        self.work_left -= work
        self.pool.take(_NEW_TEXT_BYTES + _BYTES_PER_BYTE * len(raw))

    def nullable_name(self, data: bytes, at: int, field: str) -> tuple[str | None, int]:
        """A name in UTF-8, or None for null."""
        raw, end = name_bytes(data, at, field)
        if raw is None:
            return None, end
        return self.text(raw, end - len(raw), field), end

    def name(self, data: bytes, at: int, field: str) -> tuple[str, int]:
        """A name in UTF-8. Raises UndecodableFieldError for null, cut or other bytes."""
        value, end = self.nullable_name(data, at, field)
        if value is None:
            raise UndecodableFieldError(
                UndecodableReason.NEGATIVE, f"{field}: the length is negative; null is not allowed here", at
            )
        return value, end

    def text(self, raw: bytes, at: int, field: str) -> str:
        """Text in UTF-8, one object for equal bytes."""
        texts = self.names.texts
        known = texts.get(raw)
        if known is None:
            self.new_text(raw, at, field)
            known = texts[raw] = utf8(raw, at, field)
        return known

    def java_name(self, data: bytes, at: int, field: str) -> tuple[str, int]:
        """A name as ``writeUTF`` writes it, behind an unsigned 16-bit length."""
        length = int16(data, at, field) & 0xFFFF
        at += 2
        end = at + length
        raw = data[at:end]
        known = self.names.texts.get(raw)
        if known is not None and len(raw) == length and raw.isascii():  # there both kinds of UTF-8 agree
            return known, end
        if end > len(data):
            truncated(data, at, length, field)
        if raw.isascii():
            return self.text(raw, at, field), end
        self.new_text(raw, at, field, slow_characters(raw))
        return from_modified_utf8(raw, at, field), end

    def partitions(self, data: bytes, at: int) -> tuple[tuple[TopicPartition, ...], int]:
        """The array of topics with their partitions, in the order of the bytes.

        The partitions that a member owned and is given are mostly the same array, and the members of a group mostly
        have one topic, so that their arrays begin alike.
        """
        if data.startswith(self._array_raw, at):
            return self._array, at + len(self._array_raw)
        head = self._array_head
        # Where not even the count fits behind the topic, the long way raises the same error as for a first member.
        if head is not None and data.startswith(head[0], at) and at + len(head[0]) + 4 <= len(data):
            partitions, end = self._partitions_of(head[1], data, at + len(head[0]))
        else:
            partitions, end = self._partitions_by_topic(data, at)
        if partitions:
            self._array_raw, self._array = data[at:end], partitions
        return partitions, end

    def _partitions_by_topic(self, data: bytes, at: int) -> tuple[tuple[TopicPartition, ...], int]:
        start = at
        topics = self.count(data, at, 6, "the partitions", BLOCK)
        at += 4
        partitions: list[TopicPartition] = []
        for _ in range(topics):
            topic, at = self.name(data, at, "a partition's topic")
            known = self.names.partitions[topic]
            if topics == 1:
                self._array_head = data[start:at], known
            of_topic, at = self._partitions_of(known, data, at)
            partitions += of_topic
        return tuple(partitions), at

    def _partitions_of(self, known: _PartitionsOfTopic, data: bytes, at: int) -> tuple[tuple[TopicPartition, ...], int]:
        items = self.count(data, at, 4, "the partitions of a topic", NUMBER)
        at += 4
        if items == 1:
            return (known[INT32(data, at)[0]],), at + 4
        return tuple(map(known.__getitem__, int32s(data, at, items))), at + 4 * items


def int32s(data: bytes, at: int, items: int) -> tuple[int, ...]:
    """Numbers that are known to fit, read in one call."""
    if items < len(_SMALL_ARRAYS):
        return _SMALL_ARRAYS[items](data, at)
    return struct.unpack_from(f">{items}i", data, at)
