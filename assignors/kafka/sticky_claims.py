"""Previous owners of partitions that several members claim, as in Kafka's ``AbstractStickyAssignor``.

A claim of a newer generation wins; two claims of one generation are both void. As in Kafka, the generation in a
member's user data is compared with the one in the other's *subscription*; where that is absent any known one is newer.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice
from typing import NamedTuple

from assignors.kafka.consumer_problem import NO_GENERATION, ClassicProblem
from assignors.kafka.numbered_group import NumberedGroup

_MOST_WARNINGS = 20


class StickyClaims(NamedTuple):
    """The claims of members that Kafka accepts."""

    owned: list[list[int]]
    """Member -> partitions."""
    contested: frozenset[int]
    """Partitions claimed twice in one generation."""
    max_generation: int
    warnings: tuple[str, ...]


def accepted_claims(group: NumberedGroup, problem: ClassicProblem) -> StickyClaims:
    """Return the claims that Kafka accepts; ``problem`` has the generation of each subscription."""
    newest = max((g for g in group.generations if g is not None), default=NO_GENERATION)
    max_generation = max(newest, problem.max_generation_before)
    if len(set(chain.from_iterable(group.claims))) == sum(map(len, group.claims)):
        return StickyClaims(group.claims, frozenset(), max_generation, ())

    owner: dict[int, int] = {}
    last: dict[int, int] = {}
    contested: set[int] = set()
    conflicts: dict[tuple[int, int], tuple[int, int]] = {}
    for member, claims in enumerate(group.claims):
        mine = _or_lowest(group.generations[member])
        for partition in claims:
            other = last.setdefault(partition, member)
            if partition not in owner and partition not in contested:
                owner[partition] = member
                continue
            theirs = _or_lowest(problem.members[other].subscription_generation)
            first, count = conflicts.get((member, other), (partition, 0))
            conflicts[member, other] = first, count + 1
            if mine == theirs:
                contested.add(partition)
                owner.pop(partition, None)
                last[partition] = member
            elif mine > theirs and member != other:  # a member that contradicts itself changes nothing by it
                owner[partition] = last[partition] = member
    owned: list[list[int]] = [[] for _ in group.ids]
    for partition, member in owner.items():
        owned[member].append(partition)
    return StickyClaims(owned, frozenset(contested), max_generation, _warnings(group, problem, conflicts))


def _warnings(
    group: NumberedGroup, problem: ClassicProblem, conflicts: Mapping[tuple[int, int], tuple[int, int]]
) -> tuple[str, ...]:
    sentences = []
    for (member, other), (partition, count) in islice(conflicts.items(), _MOST_WARNINGS):
        mine, theirs = _or_lowest(group.generations[member]), _or_lowest(problem.members[other].subscription_generation)
        who = f"{group.ids[member]} (generation {mine}) and {group.ids[other]} (generation {theirs})"
        what = str(group.name(partition)) + (f" and {count - 1} more" if count > 1 else "")
        outcome = "neither keeps it" if mine == theirs else "the higher generation keeps it"
        sentences.append(f"{who} both claim {what}: {outcome}")
    if len(conflicts) > _MOST_WARNINGS:
        sentences.append(f"{len(conflicts) - _MOST_WARNINGS} more pairs of members claim the same partitions")
    return tuple(sentences)


def _or_lowest(generation: int | None) -> int:
    return NO_GENERATION if generation is None else generation
