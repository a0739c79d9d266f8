"""Reassignment plan from an approved proposal and the limits. Pure.

Invariant: a plan names the topic ids and replica lists of its proposal, so an outdated one is found before any move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.values.observation import ObservationPart
from agent.values.proposal import PlacementChange, Proposal
from agent.values.reassignment import ReassignmentPlan, ReassignmentTarget
from agent.values.snapshot import Snapshot


class InvalidProposalError(ValueError):
    """The proposal cannot be made a plan, for the reason in the sentence."""


def plan_of(
    proposal: Proposal,
    snapshot: Snapshot,
    *,
    approved_by: str,
    reason: str = "",
    throttle_bytes_per_s: int | None = None,
    max_moves: int | None = None,
    begin_by_ms: int | None = None,
) -> ReassignmentPlan:
    """The plan of a reassignment or a change of leaders; void where no batch of it is sent until ``begin_by_ms``.

    Raises InvalidProposalError for a proposal that moves no replicas, and for topics that the snapshot does not know.
    """
    changes = sorted(proposal.placements)
    if not changes:
        raise InvalidProposalError(f"{proposal.id} changes no replica list")
    gains = _gains(changes, snapshot, proposal)
    return ReassignmentPlan(
        proposal.id,
        tuple(_target(change, snapshot, proposal, gain) for change, gain in zip(changes, gains, strict=True)),
        approved_by=approved_by,
        reason=reason or proposal.sentence,
        throttle_bytes_per_s=throttle_bytes_per_s,
        max_moves=max_moves,
        begin_by_ms=begin_by_ms,
        racks=_racks(changes, snapshot),
    )


def _racks(changes: Sequence[PlacementChange], snapshot: Snapshot) -> tuple[tuple[int, str], ...]:
    named = {broker for change in changes for broker in (*change.before, *change.after)}
    known = ((broker.id, broker.rack.name) for broker in snapshot.brokers if broker.id in named)
    return tuple(sorted((broker, rack) for broker, rack in known if rack is not None))


def traffic_of(snapshot: Snapshot) -> Mapping[int, float]:
    """Broker -> bytes per second that its replicas take in; one with a replica of unknown rate is left out.

    Empty where topics were not seen: what is unknown is never zero.
    """
    if any(gap.part is ObservationPart.TOPICS for gap in snapshot.gaps):
        return {}
    taken = {broker.id: 0.0 for broker in snapshot.brokers if broker.alive}
    unknown: set[int] = set()
    for topic in snapshot.topics.values():
        for state in topic.partitions:
            rate = snapshot.bytes_per_s.get(state.id)
            if rate is None:
                unknown.update(state.replicas)
                continue
            for broker in state.replicas:
                taken[broker] = taken.get(broker, 0.0) + rate
    return {broker: rate for broker, rate in taken.items() if broker not in unknown}


def _target(change: PlacementChange, snapshot: Snapshot, proposal: Proposal, gain: float) -> ReassignmentTarget:
    topic = snapshot.topics.get(change.id.topic)
    if topic is None or topic.topic_id is None:
        raise InvalidProposalError(f"{proposal.id} is about {change.id}, whose topic id is not known")
    return ReassignmentTarget(
        change.id,
        topic.topic_id,
        change.before,
        change.after,
        bytes=snapshot.size_bytes.get(change.id),
        bytes_per_s=snapshot.bytes_per_s.get(change.id),
        gain=gain,
    )


def _gains(changes: Sequence[PlacementChange], snapshot: Snapshot, proposal: Proposal) -> list[float]:
    """Each one's part of what the proposal saves, by what is written to it; only compared within a plan."""
    before, after = proposal.predicted.cross_rack_bytes_per_s_before, proposal.predicted.cross_rack_bytes_per_s_after
    if before is None or after is None:
        return [0.0] * len(changes)
    saved = max(0.0, before - after)
    written = [snapshot.bytes_per_s.get(change.id, 0.0) for change in changes]
    total = sum(written)
    return [saved * (one / total if total else 1 / len(written)) for one in written]
