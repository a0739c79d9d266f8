"""Kafka's ``UniformHeterogeneousAssignmentBuilder``: members with different subscriptions, without racks (KIP-848).

Stickiness first, then free partitions to the least loaded subscribers, then loads are evened out topic by topic in at
most 16 sweeps. Loads of equal subscriptions differ by at most one; over overlapping subscriptions they may differ more.
"""

from __future__ import annotations

from assignors.kafka.exceptions import PartitionAssignorException
from assignors.kafka.group_problem import GroupProblem, TargetAssignment
from assignors.kafka.java import topic_id_halves
from assignors.problem import BadProblem

_SWEEPS = 16


def assign_unequal(problem: GroupProblem) -> TargetAssignment:
    """Return the assignment of a checked group with at least one member. Raises as ``assign_group_uniform``."""
    subscribers = _subscribers(problem)
    if not subscribers:
        return {}
    group = _Group(problem, subscribers)
    group.keep_what_is_subscribed()
    group.give_what_is_free()
    group.even_out()
    return group.assignment()


def _subscribers(problem: GroupProblem) -> dict[str, list[int]]:
    """Topic -> numbers of its subscribers, ascending."""
    subscribers: dict[str, list[int]] = {}
    for number, member in enumerate(problem.members):
        for topic in member.topics:
            if topic not in problem.partitions:
                raise PartitionAssignorException(
                    f"Members are subscribed to topic {topic} which doesn't exist in the topic metadata."
                )
            subscribers.setdefault(topic, []).append(number)
    return subscribers


class _Group:
    """Who owns what while it changes: members are numbers, owners are lists over a topic's partitions, -1 is none."""

    def __init__(self, problem: GroupProblem, subscribers: dict[str, list[int]]) -> None:
        self._problem = problem
        self._subscribers = subscribers
        self._load = [0] * len(problem.members)
        self._owner = {topic: [-1] * problem.partitions[topic] for topic in subscribers}
        self._order = sorted(subscribers, key=self._topic_rank)

    def _topic_rank(self, topic: str) -> tuple[float, int, tuple[int, int]]:
        """Most partitions per subscriber first, then fewest subscribers, then by id."""
        readers = len(self._subscribers[topic])
        try:
            return -(self._problem.partitions[topic] / readers), readers, topic_id_halves(topic)
        except ValueError as error:
            raise BadProblem(f"topics has an invalid topic id: {error}") from None

    def keep_what_is_subscribed(self) -> None:
        for number, member in enumerate(self._problem.members):
            subscribed = set(member.topics)
            for topic, partitions in member.assigned.items():
                if topic in subscribed:
                    self._load[number] += len(partitions)
                    for partition in partitions:
                        self._owner[topic][partition] = number

    def give_what_is_free(self) -> None:
        for topic in self._order:
            owner = self._owner[topic]
            levels = _Levels(self._subscribers[topic], self._load)
            for partition in [at for at, member in enumerate(owner) if member == -1]:
                owner[partition] = receiver = levels.next_least()
                self._load[receiver] += 1

    def even_out(self) -> None:
        """Sweep over the topics until nothing has moved since the last one that did."""
        topics = [topic for topic in self._order if len(self._subscribers[topic]) > 1]
        last = -1
        for _ in range(_SWEEPS):
            for number, topic in enumerate(topics):
                if number == last:
                    return
                if self._even_out_topic(topic) or last == -1:
                    last = number

    def _even_out_topic(self, topic: str) -> bool:
        """Move partitions of one topic from the most to the least loaded subscribers; return whether any moved."""
        levels = _Levels(self._subscribers[topic], self._load)
        if levels.gap <= 1:
            return False
        owner = self._owner[topic]
        # What each member had when the sweep came by: a partition that it gets here is not passed on again.
        held: dict[int, list[int]] = {}
        for partition, member in enumerate(owner):
            held.setdefault(member, []).append(partition)
        moved = False
        while (giver := levels.next_most(held)) is not None:
            partition = held[giver].pop()
            receiver = levels.next_least()
            if levels.touching:
                break
            owner[partition] = receiver
            self._load[giver] -= 1
            self._load[receiver] += 1
            moved = True
        return moved

    def assignment(self) -> dict[str, dict[str, tuple[int, ...]]]:
        mine: list[dict[str, list[int]]] = [{} for _ in self._problem.members]
        for topic, owner in self._owner.items():
            for partition, member in enumerate(owner):
                mine[member].setdefault(topic, []).append(partition)
        return {
            member.id: {topic: tuple(partitions) for topic, partitions in topics.items()}
            for member, topics in zip(self._problem.members, mine, strict=True)
        }


class _Levels:
    """A topic's subscribers by load, with water rising from below and falling from above.

    ``low`` and ``high`` are the loads that the members below and above have reached when the present round began; the
    loads themselves are the caller's and change as it moves partitions.
    """

    def __init__(self, members: list[int], load: list[int]) -> None:
        self._load = load
        self._sorted = sorted(members, key=lambda member: (load[member], member))
        self._low, self._low_end, self._low_at = load[self._sorted[0]] - 1, 0, 0
        size = len(members)
        self._high, self._high_start, self._high_end, self._high_at = load[self._sorted[-1]] + 1, size, size, size - 1

    @property
    def gap(self) -> int:
        """Load of the fullest less that of the emptiest; taken before anything moves."""
        return self._load[self._sorted[-1]] - self._load[self._sorted[0]]

    @property
    def touching(self) -> bool:
        """Whether the levels are within one of each other, so that moving more would even out nothing."""
        return self._high - self._low <= 1

    def next_least(self) -> int:
        """The member to give a partition to."""
        if self._low_at >= self._low_end:
            self._low += 1
            while self._low_end < len(self._sorted) and self._load[self._sorted[self._low_end]] == self._low:
                self._low_end += 1
            self._low_at = 0
        self._low_at += 1
        return self._sorted[self._low_at - 1]

    def next_most(self, held: dict[int, list[int]]) -> int | None:
        """The member to take a partition of the topic from; None when those in question hold none."""
        while not self.touching:
            if self._high_at < self._high_start:
                self._lower()
            if self._high_at < 0:
                return None
            member = self._sorted[self._high_at]
            if held.get(member):
                self._high_at -= 1
                return member
            self._shut_out()
        return None

    def _lower(self) -> None:
        """Begin a round one level lower, together with the members that are there already."""
        if self._high_end <= self._high_start and self._high_start > 0:
            # All members of the round before were shut out: go on from the next one, however much lower.
            self._high = self._load[self._sorted[self._high_start - 1]]
        else:
            self._high -= 1
        while self._high_start > 0 and self._load[self._sorted[self._high_start - 1]] == self._high:
            self._high_start -= 1
        self._high_at = self._high_end - 1

    def _shut_out(self) -> None:
        """Take the present member out of the range by changing places with the last of it."""
        last = self._high_end - 1
        self._sorted[self._high_at], self._sorted[last] = self._sorted[last], self._sorted[self._high_at]
        self._high_end -= 1
        self._high_at -= 1
