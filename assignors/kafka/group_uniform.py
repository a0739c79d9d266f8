"""The broker's ``UniformAssignor``, the default of consumer groups: balance, then stickiness, no racks (KIP-848).

With equal subscriptions (``UniformHomogeneousAssignmentBuilder``) each member keeps partitions up to its quota, then
takes free ones up to it; ``group_uniform_unequal`` is for unequal subscriptions.
"""

from __future__ import annotations

from assignors.kafka.exceptions import PartitionAssignorException
from assignors.kafka.group_problem import GroupMember, GroupProblem, TargetAssignment, check_group
from assignors.kafka.group_uniform_unequal import assign_unequal
from assignors.kafka.java import copied_set_table, halves_hash, hash_order, topic_id_halves
from assignors.problem import BadProblem


def assign_group_uniform(problem: GroupProblem) -> TargetAssignment:
    """Return the uniform assignment of a consumer group.

    Raises ``PartitionAssignorException`` as Kafka does for a topic that does not exist, ``BadProblem`` for what no
    broker asks.
    """
    check_group(problem)
    if not problem.members:
        return {}
    return _assign_equal(problem) if problem.homogeneous else assign_unequal(problem)


def _assign_equal(problem: GroupProblem) -> TargetAssignment:
    topics = _visited(problem.members[0].topics)
    if not topics:
        return {}
    held = {
        (topic, partition)
        for member in problem.members
        for topic, partitions in member.assigned.items()
        for partition in partitions
    }
    free: list[tuple[str, int]] = []
    total = 0
    for topic in topics:
        if topic not in problem.partitions:
            raise PartitionAssignorException(
                f"Members are subscribed to topic {topic} which doesn't exist in the topic metadata."
            )
        total += problem.partitions[topic]
        free += [(topic, p) for p in range(problem.partitions[topic]) if (topic, p) not in held]

    assignment: dict[str, dict[str, list[int]]] = {}
    unfilled: list[tuple[str, int]] = []
    quota, extra = divmod(total, len(problem.members))
    for number, member in enumerate(problem.members):
        with_extra = extra > 0
        kept, room, given_up = _keep(member, set(topics), quota + with_extra)
        assignment[member.id] = kept
        free += given_up
        if room and with_extra and len(problem.members) - number > extra:
            # Not full, and enough others are left to take the larger share: leave it to one that may be.
            room, with_extra = room - 1, False
        if room:
            unfilled.append((member.id, room))
        extra -= with_extra
    _fill(free, unfilled, assignment)
    return {
        member: {topic: tuple(sorted(partitions)) for topic, partitions in mine.items()}
        for member, mine in assignment.items()
    }


def _visited(topics: tuple[str, ...]) -> list[str]:
    """The topics as a copied hash set of their ids visits them."""
    try:
        return hash_order(topics, lambda topic: halves_hash(topic_id_halves(topic)), copied_set_table(len(topics)))
    except ValueError as error:
        raise BadProblem(f"topics has an invalid topic id: {error}") from None


def _keep(member: GroupMember, topics: set[str], quota: int) -> tuple[dict[str, list[int]], int, list[tuple[str, int]]]:
    """What a member keeps within its quota, the room that is left, and what it gives up."""
    kept: dict[str, list[int]] = {}
    given_up: list[tuple[str, int]] = []
    for topic, partitions in member.assigned.items():
        if topic not in topics:
            continue
        stay = min(quota, len(partitions))
        quota -= stay
        if stay:
            kept[topic] = list(partitions[:stay])
        given_up += [(topic, partition) for partition in partitions[stay:]]
    return kept, quota, given_up


def _fill(
    free: list[tuple[str, int]], unfilled: list[tuple[str, int]], assignment: dict[str, dict[str, list[int]]]
) -> None:
    at = 0
    for member, room in unfilled:
        for topic, partition in free[at : at + room]:
            assignment[member].setdefault(topic, []).append(partition)
        at += room
    if at < len(free):
        raise PartitionAssignorException("Partitions were left unassigned")
