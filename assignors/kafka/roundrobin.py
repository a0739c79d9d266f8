"""Kafka's ``RoundRobinAssignor``, without racks and ownership.

Partitions by topic and number go in turn to the members that subscribe to their topic; the turn continues over topics.
"""

from __future__ import annotations

from bisect import bisect_left

from assignors.kafka.consumer_problem import (
    ClassicProblem,
    GroupAssignment,
    check_problem,
    member_order,
    partitions_of,
    subscribed_topics,
)
from assignors.problem import TopicPartition


def roundrobin_assign(problem: ClassicProblem) -> GroupAssignment:
    """Return what ``RoundRobinAssignor`` gives; raise ``BadProblem`` when an id occurs twice."""
    check_problem(problem)
    members = member_order(problem.members)
    topics = subscribed_topics(problem)
    subscribers: dict[str, list[int]] = {topic: [] for topic in topics}
    for number, member in enumerate(members):
        for topic in dict.fromkeys(member.topics):
            if topic in subscribers:
                subscribers[topic].append(number)

    assigned: list[list[TopicPartition]] = [[] for _ in members]
    turn = 0
    for topic, sets in topics.items():
        partitions, takers = list(partitions_of(topic, len(sets))), subscribers[topic]
        first = bisect_left(takers, turn)
        for place in range(min(len(partitions), len(takers))):
            assigned[takers[(first + place) % len(takers)]] += partitions[place :: len(takers)]
        turn = takers[(first + len(partitions) - 1) % len(takers)] + 1
    by_member = {member.id: tuple(given) for member, given in zip(members, assigned, strict=True)}
    return GroupAssignment(assignment={member.id: by_member[member.id] for member in problem.members})
