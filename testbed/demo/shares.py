"""The share of reads across racks now, and after all proposals. Pure.

Proposals overlap (a topic's replicas move, and a group that reads it rebalances), so their gains are not added up: the
proposed placements are put into the snapshot and the groups are assessed again. A group that is proposed to rebalance,
or to take another assignor, counts with its optimum there, so the figure is what can be reached at best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from agent.detect.assess import assess_groups
from agent.values.assessment import Assessment, LocalityMeasure
from agent.values.cycle import Cycle
from agent.values.proposal import PlacementChange, Proposal, ProposalKind, ProposalReason
from agent.values.snapshot import PartitionState, Snapshot
from assignors.problem import TopicPartition

_REBALANCES = (ProposalReason.CHANGE_ASSIGNOR, ProposalReason.SET_STRATEGY)


class CrossingShare(NamedTuple):
    """Reads that cross racks by one measure."""

    measure: LocalityMeasure
    unit: str
    """``partitions`` or ``bytes_per_s``."""
    crossing_now: float
    crossing_after: float
    total: float
    """All reads whose racks are known."""
    unknown: float
    """What is read by readers of unknown rack, on top of the total."""


def shares(cycle: Cycle) -> tuple[CrossingShare, ...]:
    """One share per measure and unit, over all groups that can be assessed."""
    now = cycle.detection.assessments
    changes = chain.from_iterable(proposal.placements for proposal in cycle.proposals)
    then = assess_groups(_with_placements(cycle.snapshot, changes), cycle.limits, None)
    rebalanced = {proposal.subject.name for proposal in cycle.proposals if _rebalances(proposal)}
    return tuple(
        share
        for unit in ("partitions", "bytes_per_s")
        for measure in LocalityMeasure
        if (share := _share(measure, unit, now, then, rebalanced)) is not None
    )


def _share(
    measure: LocalityMeasure,
    unit: str,
    now: Mapping[str, Assessment],
    then: Mapping[str, Assessment],
    rebalanced: set[str],
) -> CrossingShare | None:
    before = _crossing(now, measure, unit, set())
    after = _crossing(then, measure, unit, rebalanced)
    return CrossingShare(measure, unit, before[0], after[0], before[1], before[2]) if before[1] else None


def _crossing(
    assessments: Mapping[str, Assessment], measure: LocalityMeasure, unit: str, at_best: set[str]
) -> tuple[float, float, float]:
    """(what crosses, all with known racks, all with unknown racks)."""
    rows = [
        row
        for group, assessment in assessments.items()
        for row in (assessment.optimal if group in at_best else assessment.current)
        if row.measure is measure and row.unit == unit
    ]
    return (
        sum(row.total - row.local - row.unknown for row in rows),
        sum(row.total - row.unknown for row in rows),
        sum(row.unknown for row in rows),
    )


def _rebalances(proposal: Proposal) -> bool:
    return proposal.kind is ProposalKind.TRIGGER or proposal.reason in _REBALANCES


def _with_placements(snapshot: Snapshot, changes: Iterable[PlacementChange]) -> Snapshot:
    """The snapshot once the placements are carried out and every replica is in sync."""
    by_partition = {change.id: change for change in changes}
    topics = dict(snapshot.topics)
    for name in {change.id.topic for change in changes}:
        topic = topics[name]
        topics[name] = topic._replace(partitions=tuple(_placed(state, by_partition) for state in topic.partitions))
    return replace(snapshot, topics=topics)


def _placed(state: PartitionState, changes: Mapping[TopicPartition, PlacementChange]) -> PartitionState:
    change = changes.get(state.id)
    if change is None:
        return state
    only_order = set(change.before) == set(change.after)
    leader = state.leader if state.leader in change.after and not only_order else change.after[0]
    return state._replace(replicas=change.after, isr=change.after, leader=leader)
