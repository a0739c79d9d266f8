"""A sticky problem in dense numbers: members in the assignor's order, partitions by (topic, number)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from operator import itemgetter
from typing import NamedTuple

from assignors.kafka.consumer_problem import (
    ClassicProblem,
    RackSets,
    check_problem,
    partitions_of,
    racks_matter,
    subscribed_topics,
)
from assignors.kafka.java import utf16_key
from assignors.problem import BadProblem, TopicPartition


class NumberedGroup(NamedTuple):
    """A problem in dense numbers, and the way back."""

    ids: tuple[str, ...]
    rank: list[int]
    """Member -> its place among the ids as Java sorts them."""
    names: list[str]
    """The topics that count, sorted."""
    starts: list[int]
    """Topic -> its first partition."""
    sets: list[RackSets]
    """Topic -> racks of its partitions."""
    subscriptions: list[tuple[str, ...]]
    """Member -> the topics that it asks for, whether they exist or not."""
    claims: list[list[int]]
    """Member -> the partitions that it claims, of topics that count."""
    generations: list[int | None]
    total: int

    def all_names(self) -> list[TopicPartition]:
        """All partitions by name."""
        return list(chain.from_iterable(map(partitions_of, self.names, map(len, self.sets))))

    def named(
        self, given: Sequence[Sequence[int]], names: Sequence[TopicPartition]
    ) -> dict[str, tuple[TopicPartition, ...]]:
        """Member id -> its partitions by name, sorted; ``names`` are `all_names`."""
        return {
            member: tuple(map(names.__getitem__, sorted(mine))) for member, mine in zip(self.ids, given, strict=True)
        }

    def name(self, partition: int) -> TopicPartition:
        """One partition by name."""
        number, topic = self.by_number(partition)
        return TopicPartition(self.names[topic], number)

    def partitions(self, topic: int) -> range:
        """The partitions of a topic."""
        return range(self.starts[topic], self.starts[topic] + len(self.sets[topic]))

    def by_number(self, partition: int) -> tuple[int, int]:
        """Sort key of a partition by number, then topic."""
        topic = bisect_right(self.starts, partition) - 1
        return partition - self.starts[topic], topic


def numbered(problem: ClassicProblem, generations: Sequence[int | None]) -> NumberedGroup:
    """Return the problem in numbers.

    Raises ``BadProblem`` for ids that occur twice and for a claim of a partition that its topic does not have: Kafka
    would give partitions to several members then.
    """
    check_problem(problem)
    topics = subscribed_topics(problem)
    names, sets = list(topics), list(topics.values())
    *starts, total = accumulate(map(len, sets), initial=0)
    numbers = list(range(total))
    known = {topic: numbers[start : start + len(topics[topic])] for topic, start in zip(names, starts, strict=True)}
    ids = tuple(member.id for member in problem.members)
    return NumberedGroup(
        ids=ids,
        rank=_ranks(ids),
        names=names,
        starts=starts,
        sets=sets,
        subscriptions=[member.topics for member in problem.members],
        claims=_claims(problem, known),
        generations=list(generations),
        total=total,
    )


def _ranks(ids: Sequence[str]) -> list[int]:
    """Member -> its place among the ids as Java sorts them, which is by UTF-16."""
    names = ids if "".join(ids).isascii() else [utf16_key(name) for name in ids]
    rank = [0] * len(ids)
    for place, number in enumerate(sorted(range(len(ids)), key=names.__getitem__)):
        rank[number] = place
    return rank


def _claims(problem: ClassicProblem, known: Mapping[str, Sequence[int]]) -> list[list[int]]:
    """Member -> the partitions that it claims; mostly all of them exist, and one look at all of them will do."""
    owned = [member.owned for member in problem.members]
    if min(map(itemgetter(1), chain.from_iterable(owned)), default=0) >= 0:
        try:
            return [[known[topic][number] for topic, number in mine] for mine in owned]
        except LookupError:
            pass  # left out or named below
    return [_claims_of(member.id, member.owned, known) for member in problem.members]


def _claims_of(member: str, owned: Sequence[TopicPartition], known: Mapping[str, Sequence[int]]) -> list[int]:
    claims = []
    for topic, number in owned:
        if topic in known:
            if not 0 <= number < len(known[topic]):
                raise BadProblem(
                    f"member {member} claims partition {number} of topic {topic}, which has {len(known[topic])} "
                    "partitions; Kafka would give partitions to several members, so leave the claim out"
                )
            claims.append(known[topic][number])
    return claims


class RackInfo(NamedTuple):
    """Where members and partitions are, as far as it counts."""

    of_member: Sequence[str | None]
    """All None when racks are not followed."""
    sets: Sequence[frozenset[str]]
    """The different rack sets of partitions."""
    set_of: Sequence[int]
    """Partition -> its rack set; empty when no member has a rack."""
    nearby: Sequence[int]
    """Rack set -> members in one of its racks, counted also when racks are not followed."""
    followed: bool
    local: Mapping[str | None, Sequence[bool]]
    """Rack of a member, where racks are followed -> for each rack set whether it is in there; without one always."""


def group_racks(problem: ClassicProblem, group: NumberedGroup) -> RackInfo:
    """Return where members and partitions are; racks are followed over the whole group or not at all."""
    racks = [member.rack or None for member in problem.members]
    of_members: dict[str, int] = {}
    for rack in racks:
        if rack is not None:
            of_members[rack] = of_members.get(rack, 0) + 1
    if not of_members:
        return RackInfo([None] * len(racks), (), (), (), followed=False, local={})
    sets: dict[frozenset[str], int] = {}
    set_of = [sets.setdefault(each, len(sets)) for partitions in group.sets for each in partitions]
    nearby = [sum([of_members.get(rack, 0) for rack in each]) for each in sets]
    if not racks_matter(of_members.keys(), sets, prefer=problem.prefer_rack_aware_logic):
        return RackInfo([None] * len(racks), list(sets), set_of, nearby, followed=False, local={})
    local: dict[str | None, list[bool]] = {rack: [rack in each for each in sets] for rack in of_members}
    local[None] = [True] * len(sets)
    return RackInfo(racks, list(sets), set_of, nearby, followed=True, local=local)
