"""Which in-sync replica shall be the preferred leader? Only the order of replicas changes, no data moves.

Two reasons, in this order: leaders were found to be so uneven over the racks that it hurts (LEADERS_EVEN, here); or
most readers of a partition live in another rack than its leader (LEADERS_TO_READERS, in `readers`).

Invariants: only a live, unfenced broker in the ISR becomes preferred leader; no partition is planned for twice; running
reassignments are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.detect.finding import Finding, FindingReason
from agent.model.snapshot import PartitionState, Snapshot, TopicState
from agent.plan.even import even_racks, fewest_changes
from agent.plan.found import Scene
from agent.plan.placements import Skipped, left_out
from agent.plan.plan import PlacementPlan, Unplanned
from agent.plan.readers import follow_readers
from agent.plan.seats import Seats, led_by
from agent.propose.proposal import PlacementChange, ProposalReason
from assignors.problem import TopicPartition


def place_leaders(scene: Scene, busy: Iterable[TopicPartition]) -> tuple[list[PlacementPlan], Skipped]:
    """New orders of replicas, evenness first, readers second; ``busy`` partitions are planned for otherwise."""
    skew = scene.found.of(FindingReason.LEADER_SKEW)
    if not skew and scene.snapshot.selector_is_rack_aware is not False:
        return [], []
    taken = {*busy, *scene.snapshot.reassignments}
    seats = Seats(scene.snapshot, scene.held, scene.limits)
    plans, skipped = _make_even(scene, skew, seats, taken)
    more, left = follow_readers(scene, seats, taken)
    return plans + more, skipped + left


def _make_even(
    scene: Scene, skew: list[Finding], seats: Seats, taken: set[TopicPartition]
) -> tuple[list[PlacementPlan], Skipped]:
    plans: list[PlacementPlan] = []
    skipped: Skipped = [(finding.id, Unplanned.HELD) for finding in skew if finding.held]
    for finding in (f for f in skew if not f.held):
        scope = [
            state
            for topic in _scope(finding, scene.snapshot)
            if not left_out(topic, scene.limits)
            for state in topic.partitions
            if state.id not in taken and state.replicas
        ]
        if not scope:
            skipped.append((finding.id, Unplanned.EXCLUDED))
            continue
        changes, least = _even_changes(scope, seats)
        if not changes:
            skipped.append((finding.id, Unplanned.INFEASIBLE))
        optimal = len(changes) == least
        for topic_name, of_topic in _by_topic(changes).items():
            plan = PlacementPlan(
                topic=topic_name,
                reason=ProposalReason.LEADERS_EVEN,
                changes=tuple(of_topic),
                leaders_only=True,
                lower_bound=max(0, least - (len(changes) - len(of_topic))),
                optimal=optimal,
                findings=(finding.id,),
            )
            plans.append(plan)
        taken.update(change.id for change in changes)
    return plans, skipped


def _scope(finding: Finding, snapshot: Snapshot) -> Iterable[TopicState]:
    if finding.subject.kind == "topic":
        topic = snapshot.topics.get(finding.subject.name)
        return [topic] if topic is not None else []
    return snapshot.topics.values()


def _even_changes(scope: list[PartitionState], seats: Seats) -> tuple[list[PlacementChange], int]:
    states = {state.id: state for state in scope}
    racks = sorted({seats.rack_of[broker] for broker in seats.may_lead})
    options = {
        state.id: (
            seats.rack_of.get(state.replicas[0]),
            tuple(sorted({seats.rack_of[broker] for broker in seats.candidates(state)})),
        )
        for state in scope
    }
    changes: list[PlacementChange] = []
    for partition, rack in even_racks(options, racks).items():
        state = states[partition]
        leader = seats.least_busy(broker for broker in seats.candidates(state) if seats.rack_of[broker] == rack)
        seats.give(state.replicas[0], leader)
        changes.append(led_by(state, leader))
    return changes, fewest_changes(options, racks)


def _by_topic(changes: Iterable[PlacementChange]) -> dict[str, list[PlacementChange]]:
    by_topic: dict[str, list[PlacementChange]] = {}
    for change in sorted(changes):
        by_topic.setdefault(change.id.topic, []).append(change)
    return by_topic
