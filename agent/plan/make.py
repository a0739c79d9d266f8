"""What would mend what was found? Placements first, then leaders, then rebalances, then advice.

Invariants
- Deterministic: equal input gives an equal plan, whatever order findings come in.
- No plan without a finding; nothing from a held finding, for an excluded subject, or resting on an unknown rack.
- What was found and could be planned for, but is not, is listed with its reason; nothing is dropped silently.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent.plan.advice import plan_advice
from agent.plan.caps import capped
from agent.plan.found import scene
from agent.plan.leaders import place_leaders
from agent.plan.placements import Skipped, mend_spread
from agent.plan.settled import settled
from agent.plan.triggers import plan_triggers, worth_predicting
from agent.predict.predict import predict_groups
from agent.values.assessment import Detection
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.plan import Plan, Unplanned
from agent.values.snapshot import Snapshot


def make_plan(snapshot: Snapshot, detection: Detection, limits: Limits, memo: Memo | None) -> Plan:
    """All changes worth making, and what is left out and why."""
    memo = memo if memo is not None else Memo()
    found = scene(snapshot, detection, limits, memo)
    predictions = predict_groups(worth_predicting(found), snapshot, limits, memo)
    looked_at = found._replace(predictions=predictions)
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
    return _without_answered(capped(plan, limits))


def _without_answered(plan: Plan) -> Plan:
    """Leave out of ``unplanned`` the findings that another part of the plan answers after all."""
    answered = {
        name for part in (plan.placements, plan.triggers, plan.advice) for planned in part for name in planned.findings
    }
    kept = [entry for entry in plan.unplanned if entry[0] not in answered or entry[1] is Unplanned.CAPPED]
    return replace(plan, unplanned=tuple(kept))


def _sorted(skipped: Iterable[tuple[str, Unplanned]]) -> tuple[tuple[str, Unplanned], ...]:
    unique: Skipped = sorted(skipped, key=lambda entry: (entry[0], entry[1].name))
    return tuple(unique)
