"""Kafka's ``CooperativeStickyAssignor`` (KIP-429): sticky, in two rebalances.

A partition that changes its owner is given to no member until the former owner has revoked it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from assignors.kafka.consumer_problem import ClassicProblem, GroupAssignment
from assignors.kafka.sticky import StickyPlacement, place, place_again

MOST_FOLLOW_UPS = 8


class SettledAssignment(NamedTuple):
    """From the next rebalance to the one in which no member gives anything up."""

    first: GroupAssignment
    last: GroupAssignment
    rebalances: int
    still_moving: bool
    """True when a member still gives something up after ``MOST_FOLLOW_UPS`` follow-ups."""


def cooperative_sticky_assign(problem: ClassicProblem) -> GroupAssignment:
    """Return what ``CooperativeStickyAssignor`` gives in this rebalance; errors as ``sticky_assign``."""
    return _first(problem).result()


def cooperative_sticky_settled(problem: ClassicProblem) -> SettledAssignment:
    """Return this rebalance and the last of those that follow while members join anew with what they were given.

    A member that loses something joins again, so another rebalance follows. Errors as ``sticky_assign``.
    """
    placed = _first(problem)
    names = placed.group.all_names()
    first = last = placed.result(names)
    rebalances = 1
    moving = _loses(placed.group.claims, placed.given) or _has_unsubscribed(problem, placed)
    while moving and rebalances <= MOST_FOLLOW_UPS:
        placed = _held_back(place_again(placed, [sorted(mine) for mine in placed.given]))
        rebalances += 1
        moving = _loses(placed.group.claims, placed.given)
    if rebalances > 1:
        last = placed.result(names)
    return SettledAssignment(first, last, rebalances, moving)


def _first(problem: ClassicProblem) -> StickyPlacement:
    generations = [
        member.generation if member.subscription_generation is None else member.subscription_generation
        for member in problem.members
    ]
    return _held_back(place(problem, generations))


def _held_back(placed: StickyPlacement) -> StickyPlacement:
    """The same without partitions that their owner has to revoke first."""
    changing = _changing_members(placed) if placed.transferring is None else placed.transferring
    for member in set(changing.values()):
        placed.given[member][:] = [each for each in placed.given[member] if changing.get(each) != member]
    return placed


def _changing_members(placed: StickyPlacement) -> dict[int, int]:
    """Partitions that one member claims and another one, without a claim, gets -> the member that gets them."""
    claims = placed.group.claims
    owner = [0] * placed.group.total
    for member, given in enumerate(placed.given):
        for partition in given:
            owner[partition] = member
    changing = {
        partition: owner[partition]
        for member, mine in enumerate(claims)
        for partition in mine
        if owner[partition] != member
    }
    takers = {member: frozenset(claims[member]) for member in set(changing.values())}
    return {partition: member for partition, member in changing.items() if partition not in takers[member]}


def _loses(claims: Sequence[Sequence[int]], given: Sequence[Sequence[int]]) -> bool:
    """Whether some member does not keep all that it claims."""
    return any(had != has and not set(had) <= set(has) for had, has in zip(claims, given, strict=True))


def _has_unsubscribed(problem: ClassicProblem, placed: StickyPlacement) -> bool:
    """Whether some member has a partition of a topic that exists and that no member subscribes to any more."""
    unasked = problem.racks.keys() - set(placed.group.names)
    return bool(unasked) and any(
        topic in unasked and number < len(problem.racks[topic])
        for member in problem.members
        for topic, number in member.owned
    )
