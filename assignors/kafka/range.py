"""Kafka's ``RangeAssignor`` with racks (KIP-881).

Each subscriber gets an even share of consecutive partitions of a topic, in member order. Priorities: balance within
each topic, co-partitioning (of topics with equal subscribers and equal size), racks. Ownership is not used.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence

from assignors.kafka.consumer_problem import (
    ClassicMember,
    ClassicProblem,
    GroupAssignment,
    RackSets,
    check_problem,
    member_order,
    partitions_of,
    racks_matter,
    subscribed_topics,
)
from assignors.problem import TopicPartition


def range_assign(problem: ClassicProblem) -> GroupAssignment:
    """Return what ``RangeAssignor`` gives; raise ``BadProblem`` when an id occurs twice."""
    check_problem(problem)
    members = member_order(problem.members)
    racks = [member.rack or None for member in members]
    topics = subscribed_topics(problem)
    groups = _alike(members, topics)
    follow_racks = any(
        _needs_racks(racks, subscribers, topics[topic], problem)
        for (subscribers, _), names in groups.items()
        for topic in names
    )

    assigned: dict[str, list[TopicPartition]] = {member.id: [] for member in problem.members}
    for (subscribers, size), names in groups.items():
        share = _Share(size, [racks[member] for member in subscribers])
        if follow_racks and len(names) > 1:
            share.match_together([topics[topic] for topic in names])
        elif follow_racks and _needs_racks(racks, subscribers, topics[names[0]], problem):
            share.match_alone(topics[names[0]])
        share.assign_free()
        for topic in names:
            partitions = list(partitions_of(topic, size))
            for member, numbers in zip(subscribers, share.given, strict=True):
                assigned[members[member].id].extend(map(partitions.__getitem__, numbers))
    return GroupAssignment(assignment={member: tuple(sorted(given)) for member, given in assigned.items()})


def _alike(members: list[ClassicMember], topics: dict[str, RackSets]) -> dict[tuple[tuple[int, ...], int], list[str]]:
    """(Subscribers in member order, partitions) -> the topics that have both in common, which end up assigned alike."""
    subscribers: dict[str, list[int]] = {topic: [] for topic in topics}
    for number, member in enumerate(members):
        for topic in dict.fromkeys(member.topics):
            if topic in subscribers:
                subscribers[topic].append(number)
    groups: defaultdict[tuple[tuple[int, ...], int], list[str]] = defaultdict(list)
    for topic, numbers in subscribers.items():
        groups[tuple(numbers), len(topics[topic])].append(topic)
    return groups


def _needs_racks(
    racks: list[str | None], subscribers: Sequence[int], partitions: RackSets, problem: ClassicProblem
) -> bool:
    theirs = {rack for member in subscribers if (rack := racks[member]) is not None}
    return racks_matter(theirs, partitions, prefer=problem.prefer_rack_aware_logic)


class _Share:
    """Who gets which partition numbers of topics that are alike."""

    def __init__(self, size: int, racks: Sequence[str | None]) -> None:
        self._racks = racks
        self._least, self._extra = divmod(size, len(racks))
        self._free = bytearray(b"\1") * size
        self.given: list[list[int]] = [[] for _ in racks]

    def match_together(self, topics: Sequence[RackSets]) -> None:
        """Give a number to the first member for which it is local in every topic, if there is one."""
        waiting: defaultdict[str | None, deque[int]] = defaultdict(deque)
        for member, rack in enumerate(self._racks):
            waiting[rack].append(member)
        if waiting.keys() == {None}:
            return  # without any rack there is nothing to match, and Kafka leaves the numbers to assign_free
        for number, sets in enumerate(zip(*topics, strict=True)):
            local = sets[0].intersection(*sets[1:])
            first = min((self._head(waiting[rack]) for rack in (None, *local) if rack in waiting), default=None)
            if first is not None and first < len(self._racks):
                self._give(first, [number])

    def _head(self, line: deque[int]) -> int:
        """The first member with room; room only ever shrinks, so a member without room leaves for good."""
        while line and not self._room(line[0]):
            line.popleft()
        return line[0] if line else len(self._racks)

    def match_alone(self, sets: RackSets) -> None:
        """Give each member in turn the first free numbers that are local to it, as many as it has room for."""
        local: defaultdict[str | None, list[int]] = defaultdict(list)
        for number, racks in enumerate(sets):
            for each in racks:
                local[each].append(number)
        local[None] = list(range(len(sets)))
        lines = {rack: self._unassigned(numbers) for rack, numbers in local.items()}
        for member, rack in enumerate(self._racks):
            if rack in lines:
                self._take(member, lines[rack])

    def assign_free(self) -> None:
        """Give each member in turn the first free numbers, as many as it has room for."""
        line = self._unassigned(range(len(self._free)))
        for member in range(len(self._racks)):
            self._take(member, line)

    def _unassigned(self, numbers: Iterable[int]) -> Iterator[int]:
        """The numbers that are free when they are read; those before them never become free again."""
        return (number for number in numbers if self._free[number])

    def _take(self, member: int, line: Iterator[int]) -> None:
        numbers = [number for _, number in zip(range(self._room(member)), line, strict=False)]
        if numbers:
            self._give(member, numbers)

    def _room(self, member: int) -> int:
        return max(0, self._least + (self._extra > 0) - len(self.given[member]))

    def _give(self, member: int, numbers: list[int]) -> None:
        given = self.given[member]
        given += numbers
        if len(given) > self._least:
            self._extra -= 1
        for number in numbers:
            self._free[number] = 0
