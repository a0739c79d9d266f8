"""The plan of one cycle: placements, leaders, rebalances, advice; cut to what one cycle may propose.

Equal input gives an equal plan, in any order of findings. Only findings that are not held give a plan, never for an
excluded subject or from an unknown rack. A finding that could be planned for but is not is listed with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent.plan.advice import plan_advice
from agent.plan.leaders import place_leaders
from agent.plan.placements import Skipped, mend_spread
from agent.plan.plan_context import plan_context
from agent.plan.triggers import plan_triggers, worth_predicting
from agent.predict.predict import predict_groups
from agent.values.assessment import DetectionResult
from agent.values.finding import SubjectId
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.plan import AdvicePlan, PlacementPlan, Plan, TriggerPlan, Unplanned, UnplannedKey, unplanned_text
from agent.values.proposal import ProposalReason
from agent.values.snapshot import Snapshot
from agent.values.throttles import settled


def make_plan(snapshot: Snapshot, detection: DetectionResult, limits: Limits, memo: Memo | None) -> Plan:
    """The plan: all worthwhile changes, and the findings left out with their reasons."""
    memo = memo if memo is not None else Memo()
    context = plan_context(snapshot, detection, limits, memo)
    predictions = predict_groups(worth_predicting(context), snapshot, limits, memo)
    looked_at = context._replace(predictions=predictions)
    placing = looked_at._replace(snapshot=settled(snapshot))
    spread, skipped = mend_spread(placing)
    leaders, without_leader = place_leaders(placing, (change.id for plan in spread for change in plan.changes))
    triggers, without_trigger = plan_triggers(looked_at)
    advice, without_advice = plan_advice(looked_at)
    plan = Plan(
        placements=tuple(sorted((*spread, *leaders), key=lambda p: (p.topic, p.reason.name))),
        triggers=tuple(triggers),
        advice=tuple(sorted(advice, key=lambda a: (a.subject_kind, a.subject, a.reason.name))),
        unplanned=_sorted({*skipped, *without_leader, *without_trigger, *without_advice}),
        predictions=predictions,
    )
    return _without_answered(limit_plan(plan, limits))


def _sorted(skipped: Iterable[tuple[UnplannedKey, Unplanned]]) -> tuple[tuple[UnplannedKey, Unplanned], ...]:
    return tuple(sorted(skipped, key=lambda entry: (unplanned_text(entry[0]), entry[1].name)))


def _without_answered(plan: Plan) -> Plan:
    """Leave out of ``unplanned`` the findings that another part of the plan answers after all."""
    answered = {
        name for part in (plan.placements, plan.triggers, plan.advice) for planned in part for name in planned.findings
    }
    kept = [entry for entry in plan.unplanned if entry[0] not in answered or entry[1] is Unplanned.CAPPED]
    return replace(plan, unplanned=tuple(kept))


# Order of proposals: throttles and spread (safety of data), then foundations of others, then savings, then advice; in a
# kind the greatest first, then by name. No proposal is larger than its record. The rest is listed for a later cycle.

_FIRST = (
    ProposalReason.REMOVE_THROTTLE,
    ProposalReason.MEND_RACK_SPREAD,
    ProposalReason.WARMUP_PROMOTABLE,
    ProposalReason.SET_BROKER_RACK,
    ProposalReason.SET_SELECTOR,
)

RECORD_BYTES = 850_000
"""Bytes of a proposal's changes in its record; with the rest of the proposal below a broker's default limit."""
_ROW_BYTES = 30
_MOVE_BYTES = 100

AnyPlan = PlacementPlan | TriggerPlan | AdvicePlan


def limit_plan(plan: Plan, limits: Limits) -> Plan:
    """The plan within ``proposals.max_moves`` and ``proposals.max_per_cycle``; the rest is listed as CAPPED."""
    cut: Skipped = []
    placements = []
    for placement in plan.placements:
        short = replace(placement, changes=placement.changes[: min(limits.proposals.max_moves, _fitting(placement))])
        if len(short.changes) < len(placement.changes):
            short = replace(short, lower_bound=0, optimal=False)
            cut.append((_subject(placement), Unplanned.CAPPED))
        placements.append(short)
    everything: list[AnyPlan] = [*placements, *plan.triggers, *plan.advice]
    if len(everything) > limits.proposals.max_per_cycle:
        everything.sort(key=_order)
        cut += [(_subject(left), Unplanned.CAPPED) for left in everything[limits.proposals.max_per_cycle :]]
        everything = everything[: limits.proposals.max_per_cycle]
    elif not cut:
        return plan
    kept = {id(of) for of in everything}
    return Plan(
        placements=tuple(p for p in placements if id(p) in kept),
        triggers=tuple(t for t in plan.triggers if id(t) in kept),
        advice=tuple(a for a in plan.advice if id(a) in kept),
        unplanned=_sorted({*plan.unplanned, *cut}),
    )


def _fitting(plan: PlacementPlan) -> int:
    """How many of its changes one record of the proposals topic can hold; the first always."""
    left = RECORD_BYTES - sum(len(finding) + 3 for finding in plan.findings)
    for count, change in enumerate(plan.changes):
        name = len(str(change.id))
        rows = 2 * (name + _ROW_BYTES) + sum(len(str(broker)) + 1 for broker in (*change.before, *change.after))
        leader_moves = change.after[0] != change.before[0]
        moves = (leader_moves + len(set(change.after) - set(change.before))) * (name + _MOVE_BYTES)
        left -= rows + moves
        if left < 0:
            return max(1, count)
    return len(plan.changes)


def _order(plan: AnyPlan) -> tuple[int, int, str, str]:
    match plan:
        case PlacementPlan():
            kind, size = 0, len(plan.changes)
        case TriggerPlan():
            kind, size = 1, len(plan.moves)
        case AdvicePlan():
            kind, size = 2, len(plan.who)
    rank = _FIRST.index(plan.reason) if plan.reason in _FIRST else len(_FIRST) + kind
    return rank, -size, str(_subject(plan)), plan.reason.name


def _subject(plan: AnyPlan) -> SubjectId:
    match plan:
        case PlacementPlan():
            return SubjectId("topic", plan.topic)
        case TriggerPlan():
            return SubjectId("group", plan.group_id)
        case AdvicePlan():
            return SubjectId(plan.subject_kind, plan.subject)
