"""Makes the proposals of a cycle, one for each part of the plan; those of advice with the exact config line.

Invariants: the same snapshot gives byte-same proposals; an id depends only on the change and its preconditions, so it
survives cycles, restarts and a second agent; unknown is never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from agent.detect.members import likely_rack
from agent.detect.traffic import current_reads, optimal_reads
from agent.propose.groups import rebalances
from agent.propose.propose_context import (
    ProposalDraft,
    ProposeContext,
    finished,
    forecast,
    propose_context,
    with_absences,
    work_of,
)
from agent.propose.replicas import placement
from agent.values.assessment import Assessment, DetectionResult, Locality, LocalityMeasure
from agent.values.cycle import basis_of_group
from agent.values.finding import SubjectId
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.number_format import counted
from agent.values.plan import AdvicePlan, Plan
from agent.values.proposal import PredictedEffect, Proposal, ProposalKind, ProposalMove, ProposalReason, ProposalRow
from agent.values.snapshot import ConsumerGroup, Rack, ReaderGroup, Snapshot, known_rack

SHOWN = 50
"""Clients or brokers that are named one by one; all are counted."""
_NEARER = frozenset((ProposalReason.CHANGE_ASSIGNOR, ProposalReason.SET_STRATEGY))
"""Advice that promises nearer reads."""


def advice(plan: AdvicePlan, context: ProposeContext) -> Proposal:
    """The proposal that carries out an advice plan."""
    if plan.subject_kind != "group":
        draft, rests_on = _draft(plan, context)
        return finished(draft, rests_on, context.snapshot, context.limits)
    snapshot = context.snapshot
    group = snapshot.groups.get(plan.subject)
    assessment = context.detection.assessments.get(plan.subject)
    work = work_of(group, context) if isinstance(group, ReaderGroup) else None
    rests = (snapshot.brokers, snapshot.selector_is_rack_aware, context.limits, *(work.topics if work else ()))
    draft, rests_on = context.memo.of(
        ("advice", plan.subject, plan.reason),
        (plan, group, assessment, work.rates if work else None, *rests),
        partial(_draft, plan, context),
    )
    return finished(draft, rests_on, snapshot, context.limits)


def _draft(plan: AdvicePlan, context: ProposeContext) -> tuple[ProposalDraft, str]:
    subject = SubjectId(plan.subject_kind, plan.subject)
    before = (ProposalRow(plan.setting, () if plan.now is None else (plan.now,)),)
    after = (ProposalRow(plan.setting, (plan.wanted,)),)
    predicted = _predicted(plan, context)
    reads = plan.reason in _NEARER or (plan.reason is ProposalReason.SET_CLIENT_RACK and predicted.before)
    draft = ProposalDraft(
        kind=ProposalKind.ADVISE,
        reason=plan.reason,
        subject=subject,
        sentence=f"{_what(plan)}: {plan.why}",
        before=before,
        after=after,
        moves=tuple(ProposalMove("setting", name, plan.now, plan.wanted, None) for name in plan.who[:SHOWN]),
        predicted=predicted,
        evidence=(("why", plan.why), ("who", plan.who[:SHOWN]), ("count", len(plan.who))),
        findings=plan.findings,
        line=plan.line,
        basis=basis_of_group(context.detection.assessments.get(plan.subject)) if reads else None,
    )
    return draft, context.preconditions.hash(plan.reason, subject, before, after)


def _what(plan: AdvicePlan) -> str:
    who = counted(len(plan.who), plan.who_kind)
    heads = {
        ProposalReason.SET_CLIENT_RACK: f"Set client.rack for {who} of {plan.subject}",
        ProposalReason.UPGRADE_CLIENT: f"Upgrade {who} of {plan.subject}",
        ProposalReason.USE_DROP_IN_ASSIGNOR: f"Give {who} of {plan.subject} an assignor of assignors.clients",
        ProposalReason.SET_BROKER_RACK: f"Set broker.rack on {who}",
        ProposalReason.SET_SELECTOR: f"Set replica.selector.class on {who}",
        ProposalReason.REMOVE_THROTTLE: f"Remove the throttle left behind on {plan.subject_kind} {plan.subject}",
    }
    if plan.reason is ProposalReason.REMOVE_THROTTLE and plan.subject_kind == "cluster":
        return f"Remove the throttles left behind on {who}"
    return heads.get(plan.reason, f"Set {plan.setting}={plan.wanted} for {plan.subject}")


def _predicted(plan: AdvicePlan, context: ProposeContext) -> PredictedEffect:
    match plan.reason:
        case reason if reason in _NEARER:
            return _nearer(plan, context)
        case ProposalReason.SET_SELECTOR:
            return _with_selector(context)
        case ProposalReason.SET_CLIENT_RACK:
            return _with_racks(plan, context)
        case _:
            return PredictedEffect(moves=len(plan.who))


def _nearer(plan: AdvicePlan, context: ProposeContext) -> PredictedEffect:
    """The best that a rack-aware assignor can reach."""
    group = context.snapshot.groups.get(plan.subject)
    assessment = context.detection.assessments.get(plan.subject)
    if not isinstance(group, ReaderGroup) or assessment is None or assessment.result is None:
        return PredictedEffect(moves=len(plan.who))
    work = work_of(group, context)
    copied = 0 if isinstance(group, ConsumerGroup) else None
    then = optimal_reads(group, work.ground, assessment.result)
    return forecast(work, then, moves=assessment.moved, bytes_to_move=copied, context=context)


def _with_racks(plan: AdvicePlan, context: ProposeContext) -> PredictedEffect:
    """The group's present reads with each member in the rack that it means; unknown where that rack is unknown."""
    group = context.snapshot.groups.get(plan.subject)
    if not isinstance(group, ReaderGroup) or group.hidden:
        return PredictedEffect(moves=len(plan.who))
    work = work_of(group, context)
    copied = 0 if isinstance(group, ConsumerGroup) else None
    then = current_reads(_in_meant_racks(group, sorted({*context.racks.values()})), work.ground)
    known = forecast(work, then, moves=len(plan.who), bytes_to_move=copied, context=context)
    if all(bit for bit, _ in then):
        return known
    return replace(known, after=(), cross_rack_bytes_per_s_after=None, usd_per_day_after=None)


def _in_meant_racks(group: ReaderGroup, racks: Sequence[str]) -> ReaderGroup:
    """The group with every reader in the broker rack that its own spelling certainly means, else in none."""

    def meant(rack: Rack) -> Rack:
        return (
            rack
            if rack.name is None or rack.name in racks
            else known_rack(likely_rack(rack.rack_id or rack.name, racks))
        )

    if isinstance(group, ConsumerGroup):
        return group._replace(members=tuple([m._replace(rack=meant(m.rack)) for m in group.members]))
    return group._replace(processes=tuple([p._replace(rack=meant(p.rack)) for p in group.processes]))


def _with_selector(context: ProposeContext) -> PredictedEffect:
    """All groups' reads: with the selector every in-sync replica serves; once all are in sync both measures agree."""
    judged = [a for a in context.detection.assessments.values() if a.why_not is None]
    now, kafka = _sum(judged, LocalityMeasure.READ_LOCAL), _sum(judged, LocalityMeasure.KAFKA)
    if now is None or kafka is None:
        return PredictedEffect(moves=len(context.snapshot.brokers))
    after = Locality(LocalityMeasure.READ_LOCAL, "partitions", kafka.local, kafka.total, kafka.unknown)
    return PredictedEffect(before=(now,), after=(after,), moves=len(context.snapshot.brokers))


def _sum(assessments: Iterable[Assessment], measure: LocalityMeasure) -> Locality | None:
    local = total = unknown = 0.0
    seen = False
    for assessment in assessments:
        for share in assessment.current:
            if share.measure is measure and share.unit == "partitions":
                seen = True
                local += share.local
                total += share.total
                unknown += share.unknown
    return Locality(measure, "partitions", local, total, unknown) if seen else None


def propose(
    snapshot: Snapshot, plan: Plan, detection: DetectionResult, limits: Limits, memo: Memo | None
) -> tuple[Proposal, ...]:
    """All proposals of a cycle, sorted by kind, subject and reason."""
    context = propose_context(snapshot, detection, limits, memo)
    others = [placement(part, context) for part in plan.placements]
    others += [advice(part, context) for part in plan.advice]
    others.sort(key=lambda p: (p.kind, p.subject, p.reason.name, p.id))
    made = (
        *[proposal for proposal in others if proposal.kind < ProposalKind.TRIGGER],
        *rebalances(plan.triggers, context),  # by group already, one each: there can be thousands
        *[proposal for proposal in others if proposal.kind > ProposalKind.TRIGGER],
    )
    return with_absences(made, context)
