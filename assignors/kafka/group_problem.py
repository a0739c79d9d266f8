"""Input and output of the broker's assignors of consumer groups (KIP-848).

Topics are known by id (Kafka's base64 form). Members have no rack: server-side assignors do not use racks up to 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from assignors.kafka.java import hash_order, string_hash
from assignors.problem import BadProblem

TargetAssignment = Mapping[str, Mapping[str, tuple[int, ...]]]
"""Member id -> topic id -> partitions, ascending. Kafka names no member at all when none subscribes to anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One member and its part of the target assignment so far."""

    id: str
    instance_id: str | None = None
    topics: tuple[str, ...]
    assigned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Topic id -> partitions, both in the order in which the broker's maps and sets give them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProblem:
    """A consumer group as the broker's assignor gets it."""

    members: tuple[GroupMember, ...]
    """In the broker's order, see ``broker_order``."""
    partitions: Mapping[str, int]
    """Topic id -> number of partitions."""
    homogeneous: bool
    """Whether the broker takes all subscriptions for equal; then the first member's counts for all."""


def broker_order(member_ids: Iterable[str]) -> list[str]:
    """The order in which a broker numbers the members of a group: that of a hash map of their ids.

    Ids that share a bucket stay in the order given; the broker's own order there depends on when they joined.
    """
    return hash_order(member_ids, string_hash)


def check_group(problem: GroupProblem) -> None:
    """Raise ``BadProblem`` for what no broker can pass to its assignor."""
    for topic, count in problem.partitions.items():
        if count < 1:
            raise BadProblem(f"topic {topic} has {count} partitions; a topic has at least one")
    seen: set[str] = set()
    holder: dict[tuple[str, int], str] = {}
    for member in problem.members:
        if member.id in seen:
            raise BadProblem(f"member {member.id} occurs twice; ids are unique")
        seen.add(member.id)
        if len(set(member.topics)) != len(member.topics):
            raise BadProblem(f"topics of member {member.id} name a topic twice; a subscription is a set")
        _claim(problem, member, holder)


def _claim(problem: GroupProblem, member: GroupMember, holder: dict[tuple[str, int], str]) -> None:
    for topic, partitions in member.assigned.items():
        known = problem.partitions.get(topic)
        for partition in partitions:
            if partition < 0 or (known is not None and partition >= known):
                raise BadProblem(f"member {member.id} is assigned {topic}-{partition}, which does not exist")
            if (topic, partition) in holder:
                other = holder[topic, partition]
                raise BadProblem(
                    f"member {member.id} is assigned {topic}-{partition}, which member {other} has already"
                )
            holder[topic, partition] = member.id
