"""Sections about proposals: the open ones by their value, and the errors of predictions."""

from __future__ import annotations

from collections.abc import Sequence

from agent.values.number_format import counted
from pipeline.report import words
from pipeline.report.advice import todo
from pipeline.report.document import ColumnHead, Columns, ReportSection, ScatterPlot, ValueUnit
from pipeline.report.facts import MeasuredOutcome, OpenProposal, PredictionErrors, ReportFacts
from pipeline.report.first import by_worth
from pipeline.report.pace import DAY, CoveredPace
from pipeline.report.period import minute_of
from pipeline.report.sections_avoidable import PROPOSAL
from pipeline.report.sections_cost import CLUSTER, grid


def open_section(facts: ReportFacts) -> ReportSection:
    """Open proposals, those that save the most first."""
    pace = CoveredPace(facts)
    columns: Columns[OpenProposal] = (
        (CLUSTER, lambda row: row.cluster),
        (ColumnHead("what to do"), todo),
        (ColumnHead("proposal", names=PROPOSAL), lambda row: row.proposal),
        (
            ColumnHead("predicted change of the bill", ValueUnit.USD_PER_DAY, sign=True),
            lambda row: None if row.predicted_usd_per_day is None else -row.predicted_usd_per_day,
        ),
        (
            ColumnHead("across racks afterwards, predicted", ValueUnit.BYTES_PER_S),
            lambda row: row.predicted_bytes_per_s,
        ),
        (ColumnHead("subject's bill now", ValueUnit.USD_PER_DAY), lambda row: pace.over(row.usd, row.cluster, DAY)),
        (
            ColumnHead("its bytes across racks now", ValueUnit.BYTES_PER_S),
            lambda row: pace.over(row.cross_bytes, row.cluster, 1.0),
        ),
        (
            ColumnHead("its bytes of unknown racks", ValueUnit.BYTES_PER_S),
            lambda row: pace.over(row.unknown_bytes, row.cluster, 1.0),
        ),
        (ColumnHead("moves", ValueUnit.COUNT), lambda row: row.predicted_moves),
        (ColumnHead("bytes to copy", ValueUnit.BYTES), lambda row: row.predicted_move_bytes),
        (ColumnHead("predicted time", ValueUnit.SECONDS), lambda row: row.predicted_seconds),
        (ColumnHead("first proposed (UTC)"), lambda row: None if row.created_ms is None else minute_of(row.created_ms)),
    )
    rows = by_worth(facts)
    predicted = [row.predicted_usd_per_day for row in facts.standing if row.predicted_usd_per_day is not None]
    gains, raising = [usd for usd in predicted if usd > 0.0], sum(usd < 0.0 for usd in predicted)
    lead = (
        f"{counted(len(rows), 'open proposal')}, those that save the most first."
        if rows
        else "There are no open proposals."
    )
    if gains:
        lead += (
            f" A saving is predicted for {len(gains):,} of them, at most {words.money(max(gains))} a day at the "
            "agent's price; savings of proposals that overlap do not add up."
        )
    if raising:
        lead += f" A higher bill is predicted for {raising:,} of them, which are proposed for another reason."
    return ReportSection(name="standing", title="Open proposals", lead=lead, grid=grid(facts, columns, rows))


def outcome_section(facts: ReportFacts) -> ReportSection:
    """What was predicted of proposals that were acted on, and what came of them."""
    columns: Columns[MeasuredOutcome] = (
        (CLUSTER, lambda row: row.cluster),
        (ColumnHead("proposal"), lambda row: row.proposal),
        (ColumnHead("kind"), lambda row: row.kind),
        (ColumnHead("subject"), lambda row: row.subject),
        (ColumnHead("state"), lambda row: row.state),
        (ColumnHead("moves, predicted", ValueUnit.COUNT), lambda row: row.predicted_moves),
        (ColumnHead("moves, measured", ValueUnit.COUNT), lambda row: row.measured_moves),
        (ColumnHead("bytes copied, predicted", ValueUnit.BYTES), lambda row: row.predicted_move_bytes),
        (ColumnHead("bytes copied, measured", ValueUnit.BYTES), lambda row: row.measured_move_bytes),
        (ColumnHead("time, predicted", ValueUnit.SECONDS), lambda row: row.predicted_seconds),
        (ColumnHead("time, measured", ValueUnit.SECONDS), lambda row: row.measured_seconds),
        (
            ColumnHead("across racks afterwards, predicted", ValueUnit.BYTES_PER_S),
            lambda row: row.predicted_bytes_per_s,
        ),
        (ColumnHead("across racks afterwards, measured", ValueUnit.BYTES_PER_S), lambda row: row.measured_bytes_per_s),
        (ColumnHead("error of that prediction", ValueUnit.SHARE, sign=True), lambda row: row.error_share),
        (ColumnHead("gain, predicted", ValueUnit.USD_PER_DAY), lambda row: row.predicted_usd_per_day),
        (ColumnHead("gain, measured", ValueUnit.USD_PER_DAY), lambda row: row.measured_usd_per_day),
    )
    return ReportSection(
        name="outcomes",
        title="Predicted and measured",
        lead=_outcome_lead(facts),
        grid=grid(facts, columns, facts.outcomes),
        plot=_outcome_scatter(facts),
        alternative_text="Measured against predicted cross-rack bytes per second, and how the errors are distributed.",
    )


def error_section(facts: ReportFacts) -> ReportSection:
    """The error distribution of every quantity."""
    columns: Columns[PredictionErrors] = (
        (ColumnHead("quantity"), lambda row: row.quantity),
        (ColumnHead("proposals that tell both", ValueUnit.COUNT), lambda row: row.number),
        (ColumnHead("tenth percentile", ValueUnit.SHARE, sign=True), lambda row: row.low),
        (ColumnHead("median", ValueUnit.SHARE, sign=True), lambda row: row.median),
        (ColumnHead("ninetieth percentile", ValueUnit.SHARE, sign=True), lambda row: row.high),
        (ColumnHead("worst", ValueUnit.SHARE, sign=True), lambda row: row.worst),
    )
    return ReportSection(
        name="errors",
        title="Prediction errors",
        lead=_error_lead(facts.errors),
        grid=grid(facts, columns, facts.errors),
    )


def _outcome_lead(facts: ReportFacts) -> str:
    if not facts.outcomes:
        return "No proposal of this period was executed."
    both = [row.error_share for row in facts.outcomes if row.error_share is not None]
    return (
        f"executed: {counted(len(facts.outcomes), 'proposal')}; for {len(both):,} both the predicted and the "
        "measured value are known."
    )


def _outcome_scatter(facts: ReportFacts) -> ScatterPlot | None:
    points = tuple(
        (row.predicted_bytes_per_s, row.measured_bytes_per_s)
        for row in facts.outcomes
        if row.predicted_bytes_per_s is not None and row.measured_bytes_per_s is not None
    )
    errors = tuple(row.error_share for row in facts.outcomes if row.error_share is not None)
    return ScatterPlot(points, ValueUnit.BYTES_PER_S, errors) if points else None


def _error_lead(rows: Sequence[PredictionErrors]) -> str:
    if not rows:
        return "No prediction can be compared yet."
    medians = ", ".join(f"{row.quantity} {words.share(row.median, sign=True)}" for row in rows)
    return f"(measured \N{MINUS SIGN} predicted) / predicted, in the median: {medians}."
