"""Kafka's ``PartitionMovements``: two members of a sticky group do not swap partitions of a topic.

For a move from A to B, a partition of the same topic that moved from B to A moves back instead: of several, the first
of a ``HashSet``.
"""

from __future__ import annotations

from assignors.kafka.java import DEFAULT_TABLE, grown_table, hash_order, topic_partition_hash
from assignors.kafka.numbered_group import NumberedGroup


class PartitionMovements:
    """For every partition that is not where it was: from whom and to whom it went."""

    def __init__(self, group: NumberedGroup) -> None:
        self._group = group
        self._of: dict[int, tuple[int, int]] = {}
        self._by_pair: dict[tuple[int, int, int], _HashSet] = {}
        """(Topic, from, to) -> partitions."""

    def instead_of(self, topic: int, partition: int, holder: int, to: int) -> int:
        """Return the partition that moves when this one shall go from its holder to another member."""
        origin = self._of[partition][0] if partition in self._of else holder
        opposite = self._by_pair.get((topic, to, origin))
        return partition if opposite is None else opposite.first()

    def record(self, topic: int, partition: int, holder: int, to: int) -> None:
        """Write down a move; a partition that returns to where it was has not moved."""
        origin = holder
        if partition in self._of:
            origin, last = self._of.pop(partition)
            partitions = self._by_pair[topic, origin, last]
            partitions.remove(partition)
            if not partitions:
                del self._by_pair[topic, origin, last]
        if origin != to:
            self._of[partition] = origin, to
            self._by_pair.setdefault((topic, origin, to), _HashSet(self._group)).add(partition)

    def state(self) -> dict[tuple[int, int, int], tuple[tuple[int, ...], int]]:
        """Everything that later answers depend on, as a value to compare."""
        return {pair: partitions.state() for pair, partitions in self._by_pair.items()}


class _HashSet:
    """Partitions of one topic in a ``HashSet``, of which only the first one is ever read."""

    def __init__(self, group: NumberedGroup) -> None:
        self._group = group
        self._members: dict[int, None] = {}
        self._most = 0
        self._order: list[int] = []
        """Hash order backwards, perhaps with some that have left; empty after a member joined."""

    def __len__(self) -> int:
        return len(self._members)

    def add(self, partition: int) -> None:
        self._members[partition] = None
        self._most = max(self._most, len(self._members))
        self._order.clear()

    def remove(self, partition: int) -> None:
        del self._members[partition]

    def first(self) -> int:
        while self._order and self._order[-1] not in self._members:
            self._order.pop()
        if not self._order:
            # Java's table grows with the most members it had and never shrinks.
            table = grown_table(self._most, DEFAULT_TABLE)
            self._order = hash_order(self._members, lambda each: topic_partition_hash(self._group.name(each)), table)
            self._order.reverse()
        return self._order[-1]

    def state(self) -> tuple[tuple[int, ...], int]:
        return tuple(self._members), self._most
