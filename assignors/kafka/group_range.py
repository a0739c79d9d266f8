"""The broker's ``RangeAssignor`` of consumer groups (KIP-848): balance per topic, without stickiness and racks.

Each topic is cut into contiguous ranges over its subscribers: static members by instance id, then the others by member
id. Topics of equal subscribers and equal size are co-partitioned.
"""

from __future__ import annotations

from collections import Counter

from assignors.kafka.exceptions import PartitionAssignorException
from assignors.kafka.group_problem import GroupMember, GroupProblem, TargetAssignment, check_group
from assignors.kafka.java import utf16_key


def assign_group_range(problem: GroupProblem) -> TargetAssignment:
    """Return the range assignment of a consumer group.

    Raises ``PartitionAssignorException`` as Kafka does for a topic that does not exist, ``BadProblem`` for what no
    broker asks.
    """
    check_group(problem)
    members = sorted(problem.members, key=_rank)
    if problem.homogeneous and members:
        subscriptions = [members[0].topics] * len(members)
    else:
        subscriptions = [member.topics for member in members]
    subscribers = Counter(topic for topics in subscriptions for topic in topics)
    if not subscribers.keys() <= problem.partitions.keys():
        raise PartitionAssignorException("Member is subscribed to a non-existent topic")
    taken: Counter[str] = Counter()
    """Topic -> how many of its subscribers have had their turn."""
    assignment: dict[str, dict[str, tuple[int, ...]]] = {}
    for member, topics in zip(members, subscriptions, strict=True):
        mine = assignment[member.id] = {}
        for topic in topics:
            quota, extra = divmod(problem.partitions[topic], subscribers[topic])
            turn = taken[topic]
            taken[topic] += 1
            start, end = quota * turn + min(turn, extra), quota * (turn + 1) + min(turn + 1, extra)
            if start < end:
                mine[topic] = tuple(range(start, end))
    return assignment


def _rank(member: GroupMember) -> tuple[bool, bytes]:
    static = member.instance_id is not None
    return not static, utf16_key(member.id if member.instance_id is None else member.instance_id)
