"""Balancing step of Kafka's ``GeneralAssignmentBuilder``: partitions move one by one until loads are even.

A partition returns to its owner of an older generation, else goes to the least loaded subscriber, if that one has at
least two partitions fewer; racks are not used. Kafka's check of the whole balance is skipped where a move decides it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from assignors.kafka.consumer_problem import NO_GENERATION, AssignorFailedError
from assignors.kafka.java import signed_32
from assignors.kafka.numbered_group import NumberedGroup
from assignors.kafka.partition_movements import PartitionMovements
from assignors.kafka.sticky_claims import StickyClaims


class PartitionBlock(NamedTuple):
    """Partitions of one topic that are looked at one after the other."""

    topic: int
    subscribers: Sequence[int]
    partitions: Sequence[int]


class StickyBalance:
    """Who has which partition, while it is being evened out."""

    def __init__(
        self,
        group: NumberedGroup,
        claims: StickyClaims,
        everything: Sequence[PartitionBlock],
        owner: list[int],
        loads: list[int],
    ) -> None:
        """``everything``: every topic with all its partitions, each of which has an owner."""
        self.owner = owner
        self._group, self._loads, self._everything = group, loads, everything
        self._before = list(owner), list(loads)
        self._limits = _limits(group, everything)
        self._taking_part = _taking_part(everything, owner, loads, self._limits)
        self._previous = _older_owners(group, claims)
        self._left_by_owner = _left_by_owner(everything, self._previous)
        self._moves = PartitionMovements(group)
        self._witness = 0
        """Where in ``everything`` the group was last seen to be unbalanced."""

    def even_out(self, blocks: Sequence[PartitionBlock]) -> bool:
        """Move partitions of the blocks until nothing moves any more; whether anything moved.

        Raises ``AssignorFailedError`` where that would never be: sparing a swap can undo the move before it.
        """
        shared = [block for block in blocks if len(block.subscribers) > 1]
        passes = 0
        earlier = None
        while True:
            modified = False
            for block in shared:
                evened = self._even(block)
                modified |= evened.moved
                if evened.balanced:
                    return modified or passes > 0
            if not modified:
                return passes > 0
            passes += 1
            if earlier == (state := (self.owner, self._moves.state())):
                raise AssignorFailedError(
                    "Kafka's assignor would move the same partitions back and forth without end here"
                )
            if passes & passes - 1 == 0:  # kept at each power of two, so that a circle of any length is found
                earlier = list(state[0]), state[1]

    def keep_if_better(self) -> None:
        """Undo everything unless the sum of the differences between any two loads became smaller."""
        owner, loads = self._before
        if self._score(self._loads) >= self._score(loads):
            self.owner, self._loads = owner, loads

    def _even(self, block: PartitionBlock) -> _Evened:
        """Move what can be moved of one block."""
        loads, owner, previous = self._loads, self.owner, self._previous
        lowest = min(map(loads.__getitem__, block.subscribers))
        if max(loads) <= lowest + 1 and block.topic not in self._left_by_owner:
            return _Evened(moved=False, balanced=False)
        line = _Line(block.subscribers, self._group.rank, loads)
        moved = False
        for partition in block.partitions:
            load = loads[owner[partition]]
            back = previous.get(partition)
            if back is not None and back not in self._taking_part:
                if self._is_balanced():
                    return _Evened(moved, balanced=True)
                raise AssignorFailedError(self._sentence(partition, back))
            if back is not None and load > loads[back] + 1:
                to = back
            elif load > line.lowest + 1:
                to = line.first
            else:
                continue
            proof = to in line and loads[to] != self._limits[to]
            if not proof and self._is_balanced():
                return _Evened(moved, balanced=True)
            line.update(self._move(block.topic, partition, to), to)
            moved = True
        return _Evened(moved, balanced=False)

    def _move(self, topic: int, partition: int, to: int) -> int:
        """Move the partition, or one that spares a swap; return the member that lost one."""
        moving = self._moves.instead_of(topic, partition, self.owner[partition], to)
        loser = self.owner[moving]
        self._moves.record(topic, moving, loser, to)
        self.owner[moving] = to
        self._loads[loser] -= 1
        self._loads[to] += 1
        return loser

    def _is_balanced(self) -> bool:
        """Kafka's test: no member could take a partition from one that has at least two more."""
        loads = self._loads
        counts = [loads[member] for member in self._taking_part]
        if max(counts) - min(counts) <= 1:
            return True
        topics = len(self._everything)
        for step in range(topics):
            place = (self._witness + step) % topics
            if self._could_take(self._everything[place]):
                self._witness = place
                return False
        return True

    def _could_take(self, block: PartitionBlock) -> bool:
        loads, limits, owner = self._loads, self._limits, self.owner
        most = max(loads[owner[partition]] for partition in block.partitions)
        # A member at its limit is left out, even when what it has is not what it could get.
        return any(loads[member] + 1 < most and loads[member] != limits[member] for member in block.subscribers)

    def _score(self, loads: Sequence[int]) -> int:
        counts = sorted(loads[member] for member in self._taking_part)
        total = sum(count * (2 * place - len(counts) + 1) for place, count in enumerate(counts))
        return signed_32(total)  # as Java's int overflows

    def _sentence(self, partition: int, member: int) -> str:
        return (
            f"{self._group.ids[member]} claims {self._group.name(partition)} with an old generation but no "
            "longer subscribes to the topic; Kafka throws a NullPointerException in that case"
        )


class _Evened(NamedTuple):
    moved: bool
    balanced: bool
    """Kafka found the group balanced and stops."""


class _Line:
    """The subscribers of a topic, with the least-loaded one, the first by id among equals, in front."""

    def __init__(self, subscribers: Sequence[int], rank: Sequence[int], loads: Sequence[int]) -> None:
        self._rank, self._loads = rank, loads
        self._subscribers = frozenset(subscribers)
        self._heap = [(loads[member], rank[member], member) for member in self._subscribers]
        heapify(self._heap)
        self.lowest, _, self.first = self._heap[0]

    def __contains__(self, member: int) -> bool:
        return member in self._subscribers

    def update(self, *members: int) -> None:
        """The loads of these members changed."""
        heap, loads = self._heap, self._loads
        for member in members:
            if member in self._subscribers:
                heappush(heap, (loads[member], self._rank[member], member))
        while heap[0][0] != loads[heap[0][2]]:
            heappop(heap)
        self.lowest, _, self.first = heap[0]


def _limits(group: NumberedGroup, everything: Sequence[PartitionBlock]) -> list[int]:
    """Member -> the most that it could get; a topic that it names twice counts twice, as with Kafka."""
    limits, topics = [0] * len(group.ids), [0] * len(group.ids)
    for block in everything:
        for member in block.subscribers:
            limits[member] += len(block.partitions)
            topics[member] += 1
    return [group.total if count == len(everything) else limit for limit, count in zip(limits, topics, strict=True)]


def _taking_part(
    everything: Sequence[PartitionBlock], owner: Sequence[int], loads: Sequence[int], limits: Sequence[int]
) -> frozenset[int]:
    """Members that could get more, or that have a partition which another could have."""
    members = {member for member, load in enumerate(loads) if load < limits[member]}
    for block in everything:
        if len(block.subscribers) > 1:
            members.update(map(owner.__getitem__, block.partitions))
    return frozenset(members)


def _older_owners(group: NumberedGroup, claims: StickyClaims) -> dict[int, int]:
    """Partition -> the member that claims it with the newest generation below the group's highest; the first one."""
    owners: dict[int, tuple[int, int]] = {}
    for member, generation in enumerate(group.generations):
        number = NO_GENERATION if generation is None else generation
        if number < claims.max_generation:
            for partition in group.claims[member]:
                if partition not in owners or number > owners[partition][0]:
                    owners[partition] = number, member
    return {partition: member for partition, (_, member) in owners.items()}


def _left_by_owner(everything: Sequence[PartitionBlock], previous: Mapping[int, int]) -> set[int]:
    """Topics with a partition whose older owner does not subscribe to them."""
    if not previous:
        return set()
    return {
        block.topic
        for block in everything
        if not {previous[each] for each in block.partitions if each in previous}.issubset(block.subscribers)
    }
