"""Kafka's ``StickyAssignor``: eager, with the owned partitions of each member in its user data.

Priorities: balance, then (with racks) locality, then stickiness. Members that all subscribe to the same topics take the
constrained branch, others the general one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from assignors.kafka.consumer_problem import ClassicProblem, GroupAssignment
from assignors.kafka.numbered_group import NumberedGroup, RackInfo, group_racks, numbered
from assignors.kafka.sticky_claims import StickyClaims, accepted_claims
from assignors.kafka.sticky_constrained import assign_constrained
from assignors.kafka.sticky_general import assign_general
from assignors.problem import TopicPartition


def sticky_assign(problem: ClassicProblem) -> GroupAssignment:
    """Return what ``StickyAssignor`` gives.

    Raises ``BadProblem`` for ids that occur twice and claims beyond the partitions of a topic, ``AssignorFailedError``
    where Kafka throws.
    """
    return place(problem, [member.generation for member in problem.members]).result()


class StickyPlacement(NamedTuple):
    """Who gets what, in numbers, before a cooperative assignor holds anything back."""

    group: NumberedGroup
    claims: StickyClaims
    racks: RackInfo
    given: list[list[int]]
    transferring: Mapping[int, int] | None
    """Partitions that another member has to revoke first -> their new member; None in the general branch."""
    warnings: tuple[str, ...]

    def result(self, names: Sequence[TopicPartition] | None = None) -> GroupAssignment:
        """Return it by names, which a caller may keep for several calls."""
        group = self.group
        transferring = self.transferring
        return GroupAssignment(
            assignment=group.named(self.given, group.all_names() if names is None else names),
            branch="general" if transferring is None else "constrained",
            transferring=None
            if transferring is None
            else {group.name(partition): group.ids[member] for partition, member in transferring.items()},
            max_generation=self.claims.max_generation,
            warnings=self.claims.warnings + self.warnings,
        )


def place(problem: ClassicProblem, generations: Sequence[int | None]) -> StickyPlacement:
    """Return what both sticky assignors have in common; ``generations`` are those in the members' data."""
    group = numbered(problem, generations)
    return _placed(group, accepted_claims(group, problem), group_racks(problem, group))


def place_again(placed: StickyPlacement, claims: list[list[int]]) -> StickyPlacement:
    """Return the same for the same members once they have joined anew; no partition is claimed twice."""
    all_claims = StickyClaims(claims, frozenset(), placed.claims.max_generation, ())
    return _placed(placed.group._replace(claims=claims), all_claims, placed.racks)


def _placed(group: NumberedGroup, claims: StickyClaims, racks: RackInfo) -> StickyPlacement:
    if not group.ids:
        return StickyPlacement(group, claims, racks, [], {}, ())
    if not _alike(group.subscriptions):
        return StickyPlacement(group, claims, racks, assign_general(group, claims, racks), None, ())
    given, transferring = assign_constrained(group, claims, racks)
    warnings = () if all(group.subscriptions) else _given_unasked(group, given)
    return StickyPlacement(group, claims, racks, given, transferring, warnings)


def _given_unasked(group: NumberedGroup, given: Sequence[Sequence[int]]) -> tuple[str, ...]:
    return tuple(
        (
            f"{member} subscribes to no topic, yet Kafka gives it partitions because the first members "
            "subscribe to none either"
        )
        for member, topics, mine in zip(group.ids, group.subscriptions, given, strict=True)
        if mine and not topics
    )


def _alike(subscriptions: Sequence[tuple[str, ...]]) -> bool:
    """Whether all members count as subscribed to the same topics; leading ones without any are not looked at."""
    if subscriptions.count(subscriptions[0]) == len(subscriptions):
        return True
    first: frozenset[str] = frozenset()
    for topics in subscriptions:
        if not first:
            first = frozenset(topics)
        elif len(topics) != len(first) or not first.issuperset(topics):
            return False
    return True
