"""What Kafka's ``CooperativeStickyAssignor`` gives (KIP-429).

Like sticky, but a partition that changes hands is given to nobody until its owner has let go: it is held back now and
comes in the follow-up rebalance.
"""

from __future__ import annotations

from assignors.kafka.consumer_problem import ClassicProblem, GroupAssignment
from assignors.kafka.sticky import Placed, place


def cooperative_sticky_assign(problem: ClassicProblem) -> GroupAssignment:
    """Return what ``CooperativeStickyAssignor`` gives in this rebalance; errors as ``sticky_assign``."""
    placed = place(
        problem,
        [
            member.generation if member.subscription_generation is None else member.subscription_generation
            for member in problem.members
        ],
    )
    changing = _changing_hands(placed) if placed.transferring is None else placed.transferring
    for member in set(changing.values()):
        placed.given[member][:] = [each for each in placed.given[member] if changing.get(each) != member]
    return placed.result()


def _changing_hands(placed: Placed) -> dict[int, int]:
    """Partitions that one member claims and another one gets, who does not claim them -> who gets them."""
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
