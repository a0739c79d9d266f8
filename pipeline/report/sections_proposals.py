"""Sections about proposals: what is worth doing, and how well was predicted what had been done."""

from __future__ import annotations

from collections.abc import Sequence

from agent.values.words import counted
from pipeline.report import words
from pipeline.report.document import Columns, Head, Scatter, Section, Unit
from pipeline.report.facts import Errors, Facts, Outcome, Standing
from pipeline.report.first import Pace, by_worth, todo
from pipeline.report.period import minute_of
from pipeline.report.sections_cost import CLUSTER, grid


def standing_section(facts: Facts) -> Section:
    """Proposals that stand, what is worth most first."""
    pace = Pace(facts)
    columns: Columns[Standing] = (
        (CLUSTER, lambda row: row.cluster),
        (Head("what to do"), todo),
        (Head("proposal"), lambda row: row.proposal),
        (
            Head("predicted change of the bill", Unit.USD_PER_DAY, sign=True),
            lambda row: None if row.gain_usd_per_day is None else -row.gain_usd_per_day,
        ),
        (Head("across racks afterwards, predicted", Unit.BYTES_PER_S), lambda row: row.after_bytes_per_s),
        (
            Head("subject's bill now", Unit.USD_PER_DAY),
            lambda row: pace.over(row.usd, row.cluster, words.SECONDS_PER_DAY),
        ),
        (
            Head("its bytes across racks now", Unit.BYTES_PER_S),
            lambda row: pace.over(row.cross_bytes, row.cluster, 1.0),
        ),
        (
            Head("its bytes of unknown racks", Unit.BYTES_PER_S),
            lambda row: pace.over(row.unknown_bytes, row.cluster, 1.0),
        ),
        (Head("moves", Unit.COUNT), lambda row: row.moves),
        (Head("bytes to copy", Unit.BYTES), lambda row: row.move_bytes),
        (Head("predicted time", Unit.SECONDS), lambda row: row.seconds),
        (Head("first proposed (UTC)"), lambda row: None if row.created_ms is None else minute_of(row.created_ms)),
    )
    rows = by_worth(facts)
    gains = [row.gain_usd_per_day for row in facts.standing if row.gain_usd_per_day is not None]
    lead = (
        f"{counted(len(rows), 'open proposal')}, the most valuable first." if rows else "There are no open proposals."
    )
    if gains:
        lead += (
            f" A saving is predicted for {len(gains):,} of them, at most {words.money(max(gains))} a day at the "
            "agent's price; "
            "savings of proposals that overlap do not add up."
        )
    return Section(name="standing", title="Proposals worth doing", lead=lead, grid=grid(facts, columns, rows))


def outcome_section(facts: Facts) -> Section:
    """What was predicted of proposals that were acted on, and what came of them."""
    columns: Columns[Outcome] = (
        (CLUSTER, lambda row: row.cluster),
        (Head("proposal"), lambda row: row.proposal),
        (Head("kind"), lambda row: row.kind),
        (Head("subject"), lambda row: row.subject),
        (Head("state"), lambda row: row.state),
        (Head("moves, predicted", Unit.COUNT), lambda row: row.predicted_moves),
        (Head("moves, measured", Unit.COUNT), lambda row: row.measured_moves),
        (Head("bytes copied, predicted", Unit.BYTES), lambda row: row.predicted_move_bytes),
        (Head("bytes copied, measured", Unit.BYTES), lambda row: row.measured_move_bytes),
        (Head("time, predicted", Unit.SECONDS), lambda row: row.predicted_seconds),
        (Head("time, measured", Unit.SECONDS), lambda row: row.measured_seconds),
        (Head("across racks afterwards, predicted", Unit.BYTES_PER_S), lambda row: row.predicted_bytes_per_s),
        (Head("across racks afterwards, measured", Unit.BYTES_PER_S), lambda row: row.measured_bytes_per_s),
        (Head("error of that prediction", Unit.SHARE, sign=True), lambda row: row.error_share),
        (Head("gain, predicted", Unit.USD_PER_DAY), lambda row: row.predicted_usd_per_day),
        (Head("gain, measured", Unit.USD_PER_DAY), lambda row: row.measured_usd_per_day),
    )
    return Section(
        name="outcomes",
        title="Predicted and measured",
        lead=_outcome_lead(facts),
        grid=grid(facts, columns, facts.outcomes),
        plot=_outcome_scatter(facts),
        says="Measured against predicted cross-rack bytes per second, and how the errors are distributed.",
    )


def error_section(facts: Facts) -> Section:
    """The error distribution of every quantity."""
    columns: Columns[Errors] = (
        (Head("quantity"), lambda row: row.quantity),
        (Head("proposals that tell both", Unit.COUNT), lambda row: row.number),
        (Head("tenth percentile", Unit.SHARE, sign=True), lambda row: row.low),
        (Head("median", Unit.SHARE, sign=True), lambda row: row.median),
        (Head("ninetieth percentile", Unit.SHARE, sign=True), lambda row: row.high),
        (Head("worst", Unit.SHARE, sign=True), lambda row: row.worst),
    )
    return Section(
        name="errors",
        title="Prediction errors",
        lead=_error_lead(facts.errors),
        grid=grid(facts, columns, facts.errors),
    )


def _outcome_lead(facts: Facts) -> str:
    if not facts.outcomes:
        return "No proposal of this period was executed."
    both = [row.error_share for row in facts.outcomes if row.error_share is not None]
    return (
        f"executed: {counted(len(facts.outcomes), 'proposal')}; for {len(both):,} both the predicted and the "
        "measured value are known."
    )


def _outcome_scatter(facts: Facts) -> Scatter | None:
    points = tuple(
        (row.predicted_bytes_per_s, row.measured_bytes_per_s)
        for row in facts.outcomes
        if row.predicted_bytes_per_s is not None and row.measured_bytes_per_s is not None
    )
    errors = tuple(row.error_share for row in facts.outcomes if row.error_share is not None)
    return Scatter(points, Unit.BYTES_PER_S, errors) if points else None


def _error_lead(rows: Sequence[Errors]) -> str:
    if not rows:
        return "No prediction can be compared yet."
    told = ", ".join(f"{row.quantity} {words.share(row.median, sign=True)}" for row in rows)
    return f"(measured {chr(0x2212)} predicted) / predicted, in the median: {told}."
