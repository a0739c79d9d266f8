"""Every group now, by its own assignor, with the plug-in (KIP-848), and at the optimum; simulated changes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, cast

from agent.documents.status import look_document
from agent.plan.gain_thresholds import ComparisonColumn, GroupComparison, group_comparison
from agent.plan.plugin_gain import PluginQuestion, plugin_answer, plugin_question, plugin_sentence
from agent.predict.predict import predict, predict_groups
from agent.simulate.rack_loss import RackLoss, loss_sentence
from agent.values.assessment import DetectionResult
from agent.values.cycle import figures_rest_on
from agent.values.finding import Finding
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.plan import Plan, Prediction, merged_notes
from agent.values.proposal import Proposal
from agent.values.snapshot import ReaderGroup, Snapshot

if TYPE_CHECKING:
    from agent.documents import plan as documents
    from agent.documents.plan import AssignmentCost, PlanGroup, PredictedAnswer, WarmupCost
    from agent.simulate.evaluation import StageEvaluation
    from agent.simulate.simulate import AddedCopies, AssignmentOutcome, GroupSimulation, SimulationResult

MOST_AT_THEIR_OPTIMUM = 1_000
"""Of more groups that are at their optimum already it is not asked what their own assignors would give."""


def group_rows(
    snapshot: Snapshot, detection: DetectionResult, plan: Plan | None, limits: Limits, *, only: str | None = None
) -> list[PlanGroup]:
    """A row for every group that assigns partitions, in the order of their ids; ``only``: for the group of that id."""
    memo = Memo()
    asked = snapshot.groups.values() if only is None else (snapshot.groups[only],)
    groups = [g for g in asked if isinstance(g, ReaderGroup)]
    groups = [group for group in groups if not limits.excludes_group(group.id)]
    predictions: dict[str, Prediction] = dict(plan.predictions) if plan is not None else {}
    predictions |= predict_groups(_unpredicted(groups, predictions, detection), snapshot, limits, memo)
    rows: list[PlanGroup] = []
    for group in groups:
        assessment = detection.assessments.get(group.id)
        columns = group_comparison(group, assessment, predictions.get(group.id), snapshot, limits, memo)
        rows.append(columns_row(columns, plugin_question(group, assessment, snapshot, limits, memo)))
    return rows


def prediction_of(group_id: str, look: StageEvaluation) -> Prediction | None:
    """What the group's own assignor would give, by the plan or asked now; None for a group that assigns nothing."""
    group = look.snapshot.groups.get(group_id)
    if not isinstance(group, ReaderGroup):
        return None
    known = None if look.plan is None else look.plan.predictions.get(group_id)
    return known if known is not None else predict(group, look.snapshot, look.limits)


def _unpredicted(
    groups: list[ReaderGroup], predictions: Mapping[str, Prediction], detection: DetectionResult
) -> list[ReaderGroup]:
    """Groups without a prediction: all that can be improved, then `MOST_AT_THEIR_OPTIMUM` of the others."""
    unpredicted = [group for group in groups if group.id not in predictions]
    with_a_gap = {name for name, one in detection.assessments.items() if one.improvable}
    wanted = [group for group in unpredicted if group.id in with_a_gap]
    return wanted + [group for group in unpredicted if group.id not in with_a_gap][:MOST_AT_THEIR_OPTIMUM]


def columns_row(columns: GroupComparison, question: PluginQuestion | None) -> PlanGroup:
    """One group as JSON; what is unknown is null. ``question``: None where the plug-in does not concern the group."""
    prediction, answer = columns.prediction, None if question is None else plugin_answer(question)
    return {
        "group": columns.group_id,
        "kind": columns.kind.value,
        "assignor": None if prediction is None else prediction.assignor,
        "now": _column(columns.now),
        "own": _column(columns.own),
        "plugin": None if answer is None else _column(answer.cost),
        "plugin_gain": None if question is None else plugin_sentence(question),
        "optimum": _column(columns.optimum),
        "prediction": None if prediction is None else _prediction(prediction),
        "worth": columns.worth,
    }


def _column(column: ComparisonColumn | None) -> AssignmentCost | None:
    if column is None:
        return None
    return {
        "reads": column.reads,
        "crossing": column.crossing,
        "unknown": column.unknown,
        "crossing_bytes_per_s": column.crossing_bytes_per_s,
        "usd_per_day": column.usd_per_day,
        "moved": column.moved,
    }


def _prediction(prediction: Prediction) -> PredictedAnswer:
    warmups = prediction.warmups
    return {
        "settings": prediction.settings,
        "basis": prediction.basis.value,
        "certainty": None if prediction.why_not is not None else prediction.certainty.value,
        "rebalances": prediction.rebalances,
        "warmups": None if warmups is None else cast("WarmupCost", asdict(warmups)),
        "why_not": None if prediction.why_not is None else prediction.why_not.value,
        "notes": list(prediction.notes),
    }


def simulation_answer(simulation: SimulationResult, look: StageEvaluation) -> documents.SimulationAnswer:
    """The outcome of changes of a look, with that look."""
    return {
        "simulation": simulation_to_json(simulation, look.limits),
        "look": look_document(look),
        "figures": figures_rest_on(simulation.proposals),
    }


def simulation_to_json(simulation: SimulationResult, limits: Limits) -> documents.SimulationDocument:
    """Groups under each assignor, findings that come and go, proposals, and racks whose loss costs something else."""
    return {
        "changes": list(simulation.changes),
        "groups": [_group(group) for group in simulation.groups],
        "findings": [
            *(_finding("new", finding) for finding in simulation.found),
            *(_finding("gone", finding) for finding in simulation.gone),
        ],
        "proposals": _proposals(simulation),
        "copies": [_copies(row, limits) for row in simulation.copies],
        "racks": [
            {"rack": rack, "now": _loss(now), "then": _loss(then)}
            for rack, now, then in simulation.losses
            if _loss(now) != _loss(then)
        ],
    }


def _proposals(simulation: SimulationResult) -> list[documents.SimulatedProposal]:
    """Those of then, and after them those of now that are not made any more."""
    now = {_same(proposal) for proposal in simulation.proposals_now}
    then = {_same(proposal) for proposal in simulation.proposals}
    return [
        *(_proposal("unchanged" if _same(one) in now else "new", one) for one in simulation.proposals),
        *(_proposal("gone", one) for one in simulation.proposals_now if _same(one) not in then),
    ]


def _same(proposal: Proposal) -> tuple[str, str, str]:
    """What two proposals share that say the same."""
    return proposal.kind.value, str(proposal.subject), proposal.sentence


def _copies(row: AddedCopies, limits: Limits) -> documents.SimulatedCopies:
    return {
        "topic": row.topic,
        "replicas_added": row.replicas,
        "bytes_to_copy": row.bytes_to_copy,
        "cross_rack_bytes_per_s_now": None if row.traffic_before.unknown else row.traffic_before.bytes_per_s,
        "cross_rack_bytes_per_s_then": None if row.traffic_after.unknown else row.traffic_after.bytes_per_s,
        "usd_per_day_now": None if row.traffic_before.unknown else row.traffic_before.usd_per_day(limits),
        "usd_per_day_then": None if row.traffic_after.unknown else row.traffic_after.usd_per_day(limits),
    }


def _group(group: GroupSimulation) -> documents.SimulatedGroup:
    prediction = group.prediction
    answered = prediction is not None and prediction.settled is not None
    warmups = prediction.warmups if prediction is not None else None
    notes = list(prediction.notes) if prediction is not None else []
    certainty = f"the prediction is {prediction.certainty.value}" if prediction is not None else ""
    return {
        "group": group.group_id,
        "kind": group.kind,
        "now": _outcome(group.now),
        "own_assignor": _outcome(group.own),
        "plugin": _outcome(group.plugin),
        "plugin_gain": group.plugin_gain,
        "optimum": _outcome(group.optimum),
        "waiting": group.waiting,
        "note": group.why_not or "; ".join(merged_notes(notes)) or certainty,
        "prediction": None
        if prediction is None or not answered
        else {
            "assignor": prediction.assignor,
            "settings": prediction.settings,
            "basis": prediction.basis.value,
            "certainty": prediction.certainty.value,
            "rebalances": prediction.rebalances,
            "notes": notes,
        },
        "warmups": None if warmups is None else cast("WarmupCost", asdict(warmups)),
    }


def _outcome(outcome: AssignmentOutcome | None) -> documents.SimulatedOutcome | None:
    if outcome is None:
        return None
    cost, standbys = outcome.cost, outcome.standbys
    return {
        "reads": outcome.reads,
        "crossing": cost.crossing,
        "unknown": cost.unknown,
        "crossing_bytes_per_s": cost.crossing_bytes_per_s,
        "usd_per_day": cost.usd_per_day,
        "moved": cost.moved,
        "standbys": None if standbys is None else standbys.copies,
        "standbys_sharing_a_rack": None if standbys is None else standbys.sharing_a_rack,
    }


def _finding(change: Literal["new", "gone"], finding: Finding) -> documents.SimulatedFinding:
    return {
        "change": change,
        "severity": finding.severity.value,
        "finding": finding.reason.value,
        "subject": str(finding.subject),
        "sentence": finding.sentence,
    }


def _proposal(change: Literal["new", "gone", "unchanged"], proposal: Proposal) -> documents.SimulatedProposal:
    return {
        "change": change,
        "kind": proposal.kind.value,
        "subject": str(proposal.subject),
        "sentence": proposal.sentence,
    }


def _loss(loss: RackLoss | None) -> str | None:
    return None if loss is None else loss_sentence(loss)
