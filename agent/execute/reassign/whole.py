"""What is asked again at every event of all partitions of a plan, worked out once for each plan.

Nothing of it changes while a plan is carried out, and a plan may have 100,000 partitions. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from agent.execute.reassign.throttles import resources_of
from agent.journal.kept import Kept
from agent.values.reassignment import Plan, Target
from agent.values.throttles import Resource
from assignors.problem import TopicPartition

_MOST = 1_000_000


class Whole(NamedTuple):
    """Of all targets of a plan."""

    ids: frozenset[TopicPartition]
    topics: tuple[str, ...]
    """Sorted."""
    resources: tuple[Resource, ...]
    """Whose settings matter for them, sorted."""
    brokers: frozenset[int]
    """With a replica before or after."""
    moves_data: bool
    """False where only orders change."""


_WHOLE: Kept[Whole] = Kept(_MOST)
_TURNS: Kept[tuple[Plan, ...]] = Kept(8)


def whole(targets: tuple[Target, ...]) -> Whole:
    """Of these targets; the very same tuple is looked through once."""
    return _WHOLE.of((targets,), lambda: _whole(targets), lambda _: len(targets) + 1)


def in_turn(plans: tuple[Plan, ...]) -> tuple[Plan, ...]:
    """Those that may have their turn: not one that is paused, nor one that changes what an earlier one does."""
    if len(plans) < 2:
        return tuple(plan for plan in plans if not plan.paused)
    return _TURNS.of((plans,), lambda: _in_turn(plans), lambda _: 1)


def _whole(targets: tuple[Target, ...]) -> Whole:
    return Whole(
        frozenset(target.id for target in targets),
        tuple(sorted({target.id.topic for target in targets})),
        resources_of(targets, ()),
        frozenset(broker for pair in {(one.before, one.after) for one in targets} for of in pair for broker in of),
        any(target.moves_data for target in targets),
    )


def _in_turn(plans: tuple[Plan, ...]) -> tuple[Plan, ...]:
    taken: set[TopicPartition] = set()
    found: list[Plan] = []
    for plan in plans:
        ids = whole(plan.targets).ids
        if not plan.paused and taken.isdisjoint(ids):
            found.append(plan)
        taken |= ids
    return tuple(found)
