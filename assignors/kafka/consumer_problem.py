"""Input and output of the client-side assignors of classic consumer groups (KIP-429, KIP-881).

Sticky assignors depend on the order of the members: in production that of a ``HashMap``, which ``leader_order`` gives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Literal

from assignors.kafka.java import hash_order, string_hash, utf16_key
from assignors.problem import BadProblem, TopicPartition

NO_GENERATION = -1
"""What Kafka counts with where a member gave no generation."""

RackSets = tuple[frozenset[str], ...]
"""For each partition of a topic the racks of its replicas, offline and out-of-sync ones as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMember:
    """One member as its subscription and the assignor's user data describe it."""

    id: str
    topics: tuple[str, ...]
    rack: str | None = None
    """``client.rack``; Kafka takes an empty one for none."""
    instance_id: str | None = None
    """``group.instance.id`` of a static member."""
    owned: tuple[TopicPartition, ...] = ()
    """Partitions that the member claims: by its subscription (cooperative-sticky) or by its user data (sticky)."""
    generation: int | None = None
    """The generation in the user data; None when there is none."""
    subscription_generation: int | None = None
    """The generation field of the subscription (version 2 and later); None when it is absent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicProblem:
    """Members and metadata of one rebalance."""

    members: tuple[ClassicMember, ...]
    """In the order in which the assignor visits them; see ``leader_order``."""
    racks: Mapping[str, RackSets]
    """Topic -> racks of each partition. A topic that the leader's metadata lacks is left out."""
    prefer_rack_aware_logic: bool = False
    """Kafka's test switch: follow racks even where every partition is in every rack."""
    max_generation_before: int = NO_GENERATION
    """The highest generation that this assignor object has seen; it is never reset between rebalances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAssignment:
    """What Kafka's assignor gives."""

    assignment: Mapping[str, tuple[TopicPartition, ...]]
    """Every member id -> its partitions by topic and number."""
    branch: Literal["constrained", "general"] | None = None
    """Sticky assignors: whether all members count as subscribed to the same topics."""
    transferring: Mapping[TopicPartition, str] | None = None
    """Constrained sticky: partitions that another member has to revoke first -> their new member. A cooperative group
    gets them in the follow-up rebalance, so they are not in its ``assignment``."""
    max_generation: int = NO_GENERATION
    """``max_generation_before`` of the same assignor object's next rebalance."""
    warnings: tuple[str, ...] = ()
    """What Kafka logs, and where Kafka's answer is not what one would expect."""


class AssignorFailedError(BadProblem):
    """Kafka's own assignor throws on this problem; the sentence names the cause."""


def leader_order(members: Iterable[ClassicMember]) -> tuple[ClassicMember, ...]:
    """Members of a JoinGroup answer in the order in which a Java leader's assignor visits them."""
    by_id = {member.id: member for member in members}
    return tuple(by_id[name] for name in hash_order(by_id, string_hash, order=utf16_key))


def check_problem(problem: ClassicProblem) -> None:
    """Raise ``BadProblem`` for what no group can be: ids or instance ids twice, an id that is empty."""
    members = problem.members
    _all_different([member.id for member in members], "the id")
    _all_different([member.instance_id for member in members if member.instance_id is not None], "the instance id")
    generations = {member.generation for member in members} | {member.subscription_generation for member in members}
    wrong = {generation for generation in generations if generation is not None and not -(2**31) <= generation < 2**31}
    for member in members if wrong else ():
        for generation in (member.generation, member.subscription_generation):
            if generation in wrong:
                raise BadProblem(f"member {member.id} has generation {generation}, which is not a 32-bit number")


def member_order(members: Iterable[ClassicMember]) -> list[ClassicMember]:
    """Static members by instance id, then the others by id (``MemberInfo.compareTo``)."""
    return sorted(
        members,
        key=lambda member: (
            member.instance_id is None,
            utf16_key(member.id if member.instance_id is None else member.instance_id),
        ),
    )


def subscribed_topics(problem: ClassicProblem) -> dict[str, RackSets]:
    """The topics that count, by name: some member subscribes to them, and they have partitions."""
    subscribed = {topic for member in problem.members for topic in member.topics}
    known = (topic for topic in subscribed if problem.racks.get(topic))
    return {topic: problem.racks[topic] for topic in sorted(known, key=utf16_key)}


def racks_matter(members: Collection[str], partitions: Iterable[frozenset[str]], *, prefer: bool) -> bool:
    """Whether following racks can make a difference, given the racks of the members and of each partition.

    It can when some member shares a rack with some partition and, unless ``prefer``, the partitions differ in theirs.
    """
    different = set(partitions)
    everywhere = frozenset[str]().union(*different)
    return not everywhere.isdisjoint(members) and (prefer or different != {everywhere})


def partitions_of(topic: str, count: int) -> Iterator[TopicPartition]:
    """All partitions of a topic; a million of them are made in no time."""
    return map(partial(tuple.__new__, TopicPartition), zip(repeat(topic), range(count)))


def _all_different(names: Sequence[str], what: str) -> None:
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadProblem(f"two members have {what} {name!r}; each member of a group has its own")
        seen.add(name)
