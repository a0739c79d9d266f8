"""Assignment by the leader of a group with Python consumers: from subscriptions and racks.

Kafka's protocol names give Kafka's answer (``assignors.kafka``), members in a Java leader's order. ``optimal`` gives
the optimum (``assignors.optimal``); a partition that a member still holds goes to no other before it is revoked. Bad
data of a member costs it its stickiness; the group is always assigned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from assignors.clients.strategy import COOPERATIVE_STICKY, OPTIMAL, RANGE, STICKY
from assignors.clients.user_data import RackwiseUserData, read_user_data
from assignors.kafka.consumer_problem import (
    NO_GENERATION,
    AssignorFailedError,
    ClassicMember,
    ClassicProblem,
    GroupAssignment,
    RackSets,
    leader_order,
)
from assignors.problem import ConsumerMember, ConsumerProblem, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedMember:
    """One member as the leader's client passes it."""

    id: str
    topics: tuple[str, ...]
    user_data: bytes = b""
    instance_id: str | None = None
    rack: str | None = None
    owned: tuple[TopicPartition, ...] | None = None
    """The subscription's owned partitions: what the member still holds; None where the leader's client drops them."""
    generation: int | None = None
    """The subscription's generation."""


class LeaderAssignment(NamedTuple):
    """What the leader answers."""

    assignment: Mapping[str, tuple[TopicPartition, ...]]
    """Every member id -> its partitions by topic and number."""
    max_generation: int
    """To be passed again in the next rebalance."""
    warnings: tuple[str, ...]


def assign(
    protocol: str, members: Iterable[JoinedMember], racks: Mapping[str, RackSets], max_generation: int = NO_GENERATION
) -> LeaderAssignment:
    """Return the assignment; ``racks`` has the topics of the leader's metadata, others wait for the next rebalance."""
    joined = [(member, read_user_data(protocol, member.user_data)) for member in members]
    if protocol == OPTIMAL:
        return LeaderAssignment(_optimal(joined, racks), max_generation, ())
    try:
        answer = _kafkas(protocol, _classic(protocol, joined, racks, max_generation))
    except AssignorFailedError as failed:
        # Java's leader throws or never ends, and the group waits until a member leaves.
        warning = f"the optimum is used instead of Kafka's answer: {failed}"
        return LeaderAssignment(_optimal(joined, racks), max_generation, (warning,))
    return LeaderAssignment(answer.assignment, max(max_generation, answer.max_generation), answer.warnings)


def rack_sets(
    topics: Iterable[str],
    numbers_of: Callable[[str], Collection[int] | None],
    brokers_of: Callable[[TopicPartition], tuple[int, ...]],
    rack_of: Mapping[int, str],
) -> dict[str, RackSets]:
    """Return the racks of each partition's replicas; a topic without metadata is left out, so is an unknown rack."""
    racks: dict[str, RackSets] = {}
    same: dict[tuple[int, ...], frozenset[str]] = {}
    for topic in topics:
        numbers = numbers_of(topic)
        if not numbers:
            continue
        sets = []
        for number in range(max(numbers) + 1):
            brokers = brokers_of(TopicPartition(topic, number))
            if brokers not in same:
                same[brokers] = frozenset(rack_of[broker] for broker in brokers if broker in rack_of)
            sets.append(same[brokers])
        racks[topic] = tuple(sets)
    return racks


# --- Kafka's own names ----------------------------------------------------------------------------------------------


def _kafkas(protocol: str, problem: ClassicProblem) -> GroupAssignment:
    from assignors.kafka.cooperative_sticky import cooperative_sticky_assign  # noqa: PLC0415 (loaded when needed)
    from assignors.kafka.range import range_assign  # noqa: PLC0415
    from assignors.kafka.sticky import sticky_assign  # noqa: PLC0415

    solve = {RANGE: range_assign, STICKY: sticky_assign, COOPERATIVE_STICKY: cooperative_sticky_assign}[protocol]
    return solve(problem)


def _classic(
    protocol: str,
    joined: Iterable[tuple[JoinedMember, RackwiseUserData]],
    racks: Mapping[str, RackSets],
    max_generation: int,
) -> ClassicProblem:
    cooperative = protocol == COOPERATIVE_STICKY
    seen: set[str] = set()
    members = [
        ClassicMember(
            id=member.id,
            topics=member.topics,
            rack=member.rack or known.rack,
            instance_id=_first(member.instance_id or known.instance_id, seen),
            owned=_existing(member.owned or () if cooperative else known.owned, racks),
            generation=known.generation,
            subscription_generation=member.generation,
        )
        for member, known in joined
    ]
    return ClassicProblem(members=leader_order(members), racks=racks, max_generation_before=max_generation)


def _first(instance_id: str | None, seen: set[str]) -> str | None:
    """The instance id, unless another member has it: the broker vouches for one of its own, nothing for a note's."""
    if not instance_id or instance_id in seen:
        return None
    seen.add(instance_id)
    return instance_id


def _existing(partitions: Iterable[TopicPartition], racks: Mapping[str, RackSets]) -> tuple[TopicPartition, ...]:
    """Each once and without those that are gone."""
    return tuple(each for each in dict.fromkeys(partitions) if 0 <= each.partition < len(racks.get(each.topic, ())))


# --- the optimum ----------------------------------------------------------------------------------------------------


def _optimal(
    joined: list[tuple[JoinedMember, RackwiseUserData]], racks: Mapping[str, RackSets]
) -> dict[str, tuple[TopicPartition, ...]]:
    from assignors.optimal import optimal_consumer  # noqa: PLC0415 (numpy and OR-Tools take a quarter of a second)

    claimants = _newest(_claim(member, known, racks) for member, known in joined)
    result = optimal_consumer(_problem(joined, claimants, racks))
    return {
        member: tuple(each for each in given if _is_free(each, claimants.get(each, ()), member))
        for member, given in result.assignment.items()
    }


def _problem(
    joined: list[tuple[JoinedMember, RackwiseUserData]],
    claimants: Mapping[TopicPartition, Sequence[_Claim]],
    racks: Mapping[str, RackSets],
) -> ConsumerProblem:
    """The group as the optimum sees it: a partition belongs to the one member whose claim is the newest."""
    owned: dict[str, list[TopicPartition]] = {member.id: [] for member, _ in joined}
    for partition, newest in claimants.items():
        if len(newest) == 1:
            owned[newest[0].member].append(partition)
    return ConsumerProblem(
        members=tuple(
            ConsumerMember(
                id=member.id, rack=member.rack or known.rack, topics=member.topics, owned=tuple(owned[member.id])
            )
            for member, known in joined
        ),
        racks=racks,
    )


class _Claim(NamedTuple):
    """The partitions that a member claims."""

    member: str
    generation: int
    owned: tuple[TopicPartition, ...]
    held: frozenset[TopicPartition]


def _claim(member: JoinedMember, known: RackwiseUserData, racks: Mapping[str, RackSets]) -> _Claim:
    generation = known.generation if known.generation is not None else member.generation
    return _Claim(
        member=member.id,
        generation=NO_GENERATION if generation is None else generation,
        owned=_existing((*(member.owned or ()), *known.owned), racks),
        held=frozenset(_held(member, known)),
    )


def _held(member: JoinedMember, known: RackwiseUserData) -> tuple[TopicPartition, ...]:
    """What it still reads; a note may go on naming what was lost with the membership, the subscription does not."""
    if member.owned is not None:
        return member.owned
    return known.owned if known.held else ()


def _newest(claims: Iterable[_Claim]) -> dict[TopicPartition, list[_Claim]]:
    """Partition -> the claims of the highest generation; older ones are of members that missed a rebalance."""
    newest: dict[TopicPartition, list[_Claim]] = {}
    for claim in claims:
        for partition in claim.owned:
            others = newest.setdefault(partition, [])
            if others and others[0].generation < claim.generation:
                others.clear()
            if not others or others[0].generation == claim.generation:
                others.append(claim)
    return newest


def _is_free(partition: TopicPartition, newest: Sequence[_Claim], member: str) -> bool:
    """Whether the member may read it at once: it alone owned it, or no member holds it any more."""
    if len(newest) == 1 and newest[0].member == member:
        return True
    return not any(partition in claim.held for claim in newest)
