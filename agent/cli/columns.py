"""Rows of every group in three columns: now, its own assignor, the optimum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from agent.money.words import bytes_words, usd_words
from agent.plan.columns import Column, Columns, columns_of
from agent.predict.predict import predict_groups
from agent.values.assessment import Detection
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.plan import Plan
from agent.values.prediction import Prediction
from agent.values.snapshot import ReaderGroup, Snapshot
from agent.values.words import counted

if TYPE_CHECKING:
    from agent.cli.documents.planning import AssignmentCost, PlanGroup, PredictedAnswer, WarmupCost

SHOWN = ("group", "assignor", "now", "own", "optimum", "worth")
COLUMNS = ("now", "own", "optimum")
COSTS = ("reads", "crossing", "unknown", "crossing_bytes_per_s", "usd_per_day", "moved")
BY = (
    "reads cross by Kafka's rule (no replica in the reader's rack); bytes and money are as read (from the leader, or "
    "by a follower fetch)"
)
"""Below each table of `told_in_words`."""
IN_CSV = ("group", "kind", "assignor", *(f"{column}_{cost}" for column in COLUMNS for cost in COSTS), "worth")
UNKNOWN = "unknown"
"""In a cell: there is an answer, and it is not known."""
MOST_AT_THEIR_OPTIMUM = 1_000
"""Of more groups that are at their optimum already it is not asked what their own assignors would give."""


def group_rows(snapshot: Snapshot, detection: Detection, plan: Plan | None, limits: Limits) -> list[PlanGroup]:
    """A row for every group that assigns partitions, in the order of their ids."""
    memo = Memo()
    groups = [g for g in snapshot.groups.values() if isinstance(g, ReaderGroup)]
    groups = [group for group in groups if not limits.excludes_group(group.id)]
    predictions: dict[str, Prediction] = dict(plan.predictions) if plan is not None else {}
    open_ = [group for group in groups if group.id not in predictions]
    with_a_gap = {name for name, one in detection.assessments.items() if one.improvable}
    wanted = [group for group in open_ if group.id in with_a_gap]
    wanted += [group for group in open_ if group.id not in with_a_gap][:MOST_AT_THEIR_OPTIMUM]
    predictions |= predict_groups(wanted, snapshot, limits, memo)
    return [
        columns_row(
            columns_of(group, detection.assessments.get(group.id), predictions.get(group.id), snapshot, limits, memo)
        )
        for group in groups
    ]


def columns_row(columns: Columns) -> PlanGroup:
    """One group as JSON; what is unknown is null."""
    prediction = columns.prediction
    return {
        "group": columns.group_id,
        "kind": columns.kind.value,
        "assignor": None if prediction is None else prediction.assignor,
        "now": _column(columns.now),
        "own": _column(columns.own),
        "optimum": _column(columns.optimum),
        "prediction": None if prediction is None else _prediction(prediction),
        "worth": columns.worth,
    }


def table_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same for a table: each column in one cell."""
    return {**row, "assignor": row["assignor"] or UNKNOWN, **{name: told_in_words(row[name]) for name in COLUMNS}}


def flat(row: Mapping[str, Any], columns: tuple[str, ...], costs: tuple[str, ...] = COSTS) -> dict[str, Any]:
    """The same for CSV: every number in a field of its own, such as ``now_crossing``."""
    cells = {f"{column}_{cost}": (row[column] or {}).get(cost) for column in columns for cost in costs}
    return {**row, **cells}


def _column(column: Column | None) -> AssignmentCost | None:
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


def told_in_words(column: Mapping[str, Any] | None) -> str:
    """One assignment in a few words; a read of which it is not known whether it crosses is never one that does not."""
    if column is None:
        return UNKNOWN
    told = [*_reads_words(column["reads"], column["crossing"], column["unknown"])]
    if column["crossing_bytes_per_s"] is not None and (column["crossing"] or column["crossing_bytes_per_s"]):
        told.append(str(bytes_words(column["crossing_bytes_per_s"])))
    if column["usd_per_day"]:
        told.append(f"{usd_words(column['usd_per_day'])}/day")
    if column["moved"]:
        told.append(f"{column['moved']:,} moved")
    return ", ".join(told)


def _reads_words(reads: int, crossing: int, unknown: int) -> Iterator[str]:
    if unknown and unknown == reads and not crossing:
        yield f"{counted(unknown, 'read')} {UNKNOWN}"
        return
    if crossing or unknown < reads or not reads:
        yield f"{crossing:,} of {reads - unknown:,} cross"
    if unknown:
        yield f"{unknown:,} {UNKNOWN}"
