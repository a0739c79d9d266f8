"""The context of proposing, drafts with ids and dates, forecasts of reads, and the clause on absent brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agent.detect.assess_consumers import Reads
from agent.detect.detect_context import named
from agent.detect.traffic import current_reads, measured
from agent.plan.gain_thresholds import assessed_locality, group_rates
from agent.propose.preconditions import ProposalPreconditions, proposal_id, rests_on_brokers, touched_brokers
from agent.values.assessment import DetectionResult, GroupLocality, Locality
from agent.values.cycle import basis_evidence
from agent.values.finding import Evidence, Finding, FindingReason, SubjectId
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.number_format import lasted
from agent.values.proposal import (
    PlacementChange,
    PredictedEffect,
    Proposal,
    ProposalKind,
    ProposalMove,
    ProposalReason,
    ProposalRow,
)
from agent.values.rates import Flows, RackReads, bytes_per_s, read_flows, usd_per_day
from agent.values.snapshot import RackState, ReaderGroup, Snapshot, TopicState, states_of
from agent.values.weights import FigureBasis
from assignors.problem import TopicPartition


class ProposeContext(NamedTuple):
    """The snapshot, its findings, and caches of the cycle."""

    snapshot: Snapshot
    detection: DetectionResult
    limits: Limits
    memo: Memo
    preconditions: ProposalPreconditions
    racks: Mapping[int, str]
    """Broker -> rack, brokers of known rack only."""


class ProposalDraft(NamedTuple):
    """A proposal before it has an id, a digest and a date: all that depends on its subject alone."""

    kind: ProposalKind
    reason: ProposalReason
    subject: SubjectId
    sentence: str
    before: tuple[ProposalRow, ...]
    after: tuple[ProposalRow, ...]
    moves: tuple[ProposalMove, ...]
    predicted: PredictedEffect
    evidence: Evidence
    findings: tuple[str, ...]
    lower_bound: float | None = None
    optimal: bool | None = None
    line: str | None = None
    placements: tuple[PlacementChange, ...] = ()
    basis: FigureBasis | None = None
    """Basis of its figures; None where nothing is claimed in reads or bytes."""


def propose_context(
    snapshot: Snapshot, detection: DetectionResult, limits: Limits, memo: Memo | None
) -> ProposeContext:
    """The context of one cycle."""
    memo = memo or Memo()
    racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name is not None}
    return ProposeContext(
        snapshot, detection, limits, memo, ProposalPreconditions(snapshot, memo, detection.assessments), racks
    )


class UndatedProposal(NamedTuple):
    """A proposal with id and digest, but without dates; unchanged for as long as its subject is."""

    proposal: Proposal
    basis: FigureBasis | None


def undated(draft: ProposalDraft, rests_on: str) -> UndatedProposal:
    """The draft with its id and the digest of what it rests on."""
    proposal = Proposal(
        id=proposal_id(draft.kind.value, draft.subject, draft.after, rests_on),
        kind=draft.kind,
        reason=draft.reason,
        subject=draft.subject,
        sentence=draft.sentence,
        before=draft.before,
        after=draft.after,
        moves=draft.moves,
        predicted=draft.predicted,
        lower_bound=draft.lower_bound,
        optimal=draft.optimal,
        evidence=draft.evidence,
        findings=draft.findings,
        snapshot_hash=rests_on,
        created_ms=0,
        expires_ms=0,
        line=draft.line,
        placements=draft.placements,
    )
    return UndatedProposal(proposal, draft.basis)


def basis_ages(snapshot: Snapshot) -> Mapping[FigureBasis | None, Evidence]:
    """Basis of figures -> its rows of evidence in this cycle."""
    return {None: (), **{basis: basis_evidence(basis, snapshot) for basis in FigureBasis}}


def proposal_at(made: UndatedProposal, created_ms: int, ttl_ms: int, evidence: Evidence = ()) -> Proposal:
    """The proposal, made at ``created_ms`` (epoch milliseconds) and good for ``ttl_ms`` milliseconds."""
    one = made.proposal
    return one._replace(evidence=(*one.evidence, *evidence), created_ms=created_ms, expires_ms=created_ms + ttl_ms)


def finished(draft: ProposalDraft, rests_on: str, snapshot: Snapshot, limits: Limits) -> Proposal:
    """The draft with its id, digest and dates."""
    made = undated(draft, rests_on)
    evidence = () if made.basis is None else basis_evidence(made.basis, snapshot)
    return proposal_at(made, snapshot.taken_ms, limits.proposals.ttl_ms, evidence)


class ForecastInput(NamedTuple):
    """A group with the racks of its replicas, its present reads and the rates of its partitions."""

    group: ReaderGroup
    ground: GroupLocality
    topics: tuple[TopicState, ...]
    rates: Mapping[TopicPartition, float] | None
    """Read rates of the group's partitions; None when one of them is unknown."""
    now: Reads
    """Present reads."""


def work_of(group: ReaderGroup, context: ProposeContext) -> ForecastInput:
    """The forecast's input for a group."""
    locality = assessed_locality(group, context.detection.assessments.get(group.id), context.snapshot, context.memo)
    topics = tuple([context.snapshot.topics[name] for name in locality.masks])
    rates = group_rates(context.detection.assessments.get(group.id), topics, context.snapshot)
    return ForecastInput(group, locality, topics, rates, current_reads(group, locality))


def forecast(
    work: ForecastInput, then: Reads, *, moves: int, bytes_to_move: int | None, context: ProposeContext
) -> PredictedEffect:
    """Shares, cross-rack bytes and money of the group's reads, now and then."""
    before, after = _state(work, work.now, context), _state(work, then, context)
    return PredictedEffect(
        before=before[0],
        after=after[0],
        cross_rack_bytes_per_s_before=bytes_per_s(before[1]),
        cross_rack_bytes_per_s_after=bytes_per_s(after[1]),
        usd_per_day_before=usd_per_day(before[1], context.limits),
        usd_per_day_after=usd_per_day(after[1], context.limits),
        moves=moves,
        bytes_to_move=bytes_to_move,
    )


def _state(work: ForecastInput, reads: Reads, context: ProposeContext) -> tuple[tuple[Locality, ...], Flows | None]:
    rates = work.rates or {}
    covered = all(p.topic in work.ground.masks for _, partitions in reads for p in partitions)
    shares = measured(reads, work.ground.masks, rates) if covered else ()
    if work.rates is None:
        return shares, None
    names = {bit: name for name, bit in work.ground.bits.bit_of.items()}
    rows = [
        # A rack without brokers has no name here, but it is known, and known to be none of theirs.
        RackReads(partition, names.get(bit, "elsewhere") if bit else None)
        for bit, partitions in reads
        for partition in partitions
    ]
    states = states_of(work.topics)
    selector = work.ground.bits.selector_is_rack_aware
    return shares, read_flows(rows, states, context.racks, rates, selector=selector)


# Proposals that touch an absent broker: a restart takes it away for a while, so the sentence has the absence's age.


def with_absences(proposals: tuple[Proposal, ...], context: ProposeContext) -> tuple[Proposal, ...]:
    """The same proposals; those that touch an absent broker name it at the end of their sentence."""
    absent = (finding for finding in context.detection.findings if finding.reason is FindingReason.BROKER_ABSENT)
    found = {finding.broker: finding for finding in absent if finding.broker is not None}
    if not found:
        return proposals
    return tuple([_with_absence(proposal, found, context) for proposal in proposals])


def _with_absence(proposal: Proposal, found: Mapping[int, Finding], context: ProposeContext) -> Proposal:
    away = sorted(found.keys() & touched_brokers(proposal, context.preconditions)) if rests_on_brokers(proposal) else []
    if not away:
        return proposal
    evidence = [dict(found[broker].evidence) for broker in away]
    ages = [facts["absent_s"] for facts in evidence]
    known = [age for age in ages if isinstance(age, int)]
    many = len(away) > 1
    if all(facts.get("removed in this simulation") for facts in evidence):
        words = f"{'are' if many else 'is'} removed in this simulation"
    elif len(known) == len(ages):
        words = f"{'have' if many else 'has'} been absent for {lasted(min(known) * 1_000)}{' or more' if many else ''}"
    else:
        until = lasted(context.limits.racks.broker_absent_for_ms)
        words = f"{'are' if many else 'is'} absent now: an agent holds this until that has lasted {until}"
    return proposal._replace(
        sentence=f"{proposal.sentence}; {named('broker', away)} {words}",
        evidence=(*proposal.evidence, ("absent_brokers", tuple(away))),
    )
