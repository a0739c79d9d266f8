"""What Kafka's ``StickyAssignor`` gives: an eager assignor that remembers in its user data what each member had.

Priorities: balance, then (with racks) locality, then stickiness. Members that all subscribe to the same topics take the
constrained branch, others the general one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from assignors.kafka.consumer_problem import ClassicProblem, GroupAssignment
from assignors.kafka.sticky_claims import Claims, believed
from assignors.kafka.sticky_constrained import assign_constrained
from assignors.kafka.sticky_general import assign_general
from assignors.kafka.sticky_group import Numbered, group_racks, numbered


def sticky_assign(problem: ClassicProblem) -> GroupAssignment:
    """Return what ``StickyAssignor`` gives.

    Raises ``BadProblem`` for ids that occur twice and claims beyond the partitions of a topic, ``AssignorFails`` where
    Kafka throws.
    """
    return place(problem, [member.generation for member in problem.members]).result()


class Placed(NamedTuple):
    """Who gets what, in numbers, before a cooperative assignor holds anything back."""

    group: Numbered
    claims: Claims
    given: list[list[int]]
    transferring: Mapping[int, int] | None
    """Partitions that another member has to give up first -> who gets them; None in the general branch."""
    warnings: tuple[str, ...]

    def result(self) -> GroupAssignment:
        """Return it by names."""
        group = self.group
        transferring = self.transferring
        return GroupAssignment(
            assignment=group.named(self.given),
            branch="general" if transferring is None else "constrained",
            transferring=None
            if transferring is None
            else {group.name(partition): group.ids[member] for partition, member in transferring.items()},
            max_generation=self.claims.max_generation,
            warnings=self.claims.warnings + self.warnings,
        )


def place(problem: ClassicProblem, generations: Sequence[int | None]) -> Placed:
    """Return what both sticky assignors have in common; ``generations`` are those in the members' data."""
    group = numbered(problem, generations)
    claims = believed(group, problem)
    racks = group_racks(problem, group)
    if not group.ids:
        return Placed(group, claims, [], {}, ())
    if not _alike(group.subscriptions):
        return Placed(group, claims, assign_general(group, claims, racks), None, ())
    given, transferring = assign_constrained(group, claims, racks)
    warnings = tuple(
        f"{member} subscribes to nothing, yet Kafka gives it partitions because the first members do not either"
        for member, topics, mine in zip(group.ids, group.subscriptions, given, strict=True)
        if mine and not topics
    )
    return Placed(group, claims, given, transferring, warnings)


def _alike(subscriptions: Sequence[tuple[str, ...]]) -> bool:
    """Whether all members count as subscribed to the same topics; leading ones without any are not looked at."""
    first: frozenset[str] = frozenset()
    for topics in subscriptions:
        if not first:
            first = frozenset(topics)
        elif len(topics) != len(first) or not first.issuperset(topics):
            return False
    return True
