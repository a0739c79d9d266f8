"""Every group now, by its own assignor, with the plug-in (KIP-848), and at the optimum. Pure; unknown stays None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from agent.plan.gain_thresholds import ComparisonColumn, GroupComparison, group_comparison
from agent.plan.plugin_gain import PluginQuestion, plugin_answer, plugin_question, plugin_sentence
from agent.predict.predict import predict, predict_groups
from agent.values.assessment import DetectionResult
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.plan import Plan, Prediction
from agent.values.snapshot import ReaderGroup, Snapshot

if TYPE_CHECKING:
    from agent.documents.plan import AssignmentCost, PlanGroup, PredictedAnswer, WarmupCost
    from agent.simulate.evaluation import StageEvaluation

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
