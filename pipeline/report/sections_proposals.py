"""Sections about proposals: what is worth doing, and how well was predicted what had been done."""

from __future__ import annotations

from collections.abc import Sequence

from agent.values.words import counted
from pipeline.report import words
from pipeline.report.document import Cell, Head, Scatter, Section, Unit
from pipeline.report.facts import Errors, Facts
from pipeline.report.first import Pace, by_worth, todo
from pipeline.report.period import minute_of
from pipeline.report.sections_cost import CLUSTER, grid


def standing_section(facts: Facts) -> Section:
    """Proposals that stand, what is worth most first."""
    heads = (
        CLUSTER,
        Head("what to do"),
        Head("proposal"),
        Head("predicted change of the bill", Unit.USD_PER_DAY, sign=True),
        Head("across racks afterwards, predicted", Unit.BYTES_PER_S),
        Head("subject's bill now", Unit.USD_PER_DAY),
        Head("its bytes across racks now", Unit.BYTES_PER_S),
        Head("its bytes of unknown racks", Unit.BYTES_PER_S),
        Head("moves", Unit.COUNT),
        Head("bytes to copy", Unit.BYTES),
        Head("predicted time", Unit.SECONDS),
        Head("first proposed (UTC)"),
    )
    pace = Pace(facts)
    rows: list[tuple[Cell, ...]] = [
        (
            row.cluster,
            todo(row),
            row.proposal,
            None if row.gain_usd_per_day is None else -row.gain_usd_per_day,
            row.after_bytes_per_s,
            pace.over(row.usd, row.cluster, words.SECONDS_PER_DAY),
            pace.over(row.cross_bytes, row.cluster, 1.0),
            pace.over(row.unknown_bytes, row.cluster, 1.0),
            row.moves,
            row.move_bytes,
            row.seconds,
            None if row.created_ms is None else minute_of(row.created_ms),
        )
        for row in by_worth(facts)
    ]
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
    return Section(name="standing", title="Proposals worth doing", lead=lead, grid=grid(facts, heads, rows))


def outcome_section(facts: Facts) -> Section:
    """What was predicted of proposals that were acted on, and what came of them."""
    heads = (
        CLUSTER,
        Head("proposal"),
        Head("kind"),
        Head("subject"),
        Head("state"),
        Head("moves, predicted", Unit.COUNT),
        Head("moves, measured", Unit.COUNT),
        Head("bytes copied, predicted", Unit.BYTES),
        Head("bytes copied, measured", Unit.BYTES),
        Head("time, predicted", Unit.SECONDS),
        Head("time, measured", Unit.SECONDS),
        Head("across racks afterwards, predicted", Unit.BYTES_PER_S),
        Head("across racks afterwards, measured", Unit.BYTES_PER_S),
        Head("error of that prediction", Unit.SHARE, sign=True),
        Head("gain, predicted", Unit.USD_PER_DAY),
        Head("gain, measured", Unit.USD_PER_DAY),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            row.cluster,
            row.proposal,
            row.kind,
            row.subject,
            row.state,
            row.predicted_moves,
            row.measured_moves,
            row.predicted_move_bytes,
            row.measured_move_bytes,
            row.predicted_seconds,
            row.measured_seconds,
            row.predicted_bytes_per_s,
            row.measured_bytes_per_s,
            row.error_share,
            row.predicted_usd_per_day,
            row.measured_usd_per_day,
        )
        for row in facts.outcomes
    ]
    return Section(
        name="outcomes",
        title="Predicted and measured",
        lead=_outcome_lead(facts),
        grid=grid(facts, heads, rows),
        plot=_outcome_scatter(facts),
        says="Measured against predicted cross-rack bytes per second, and how the errors are distributed.",
    )


def error_section(facts: Facts) -> Section:
    """The error distribution of every quantity."""
    heads = (
        Head("quantity"),
        Head("proposals that tell both", Unit.COUNT),
        Head("tenth percentile", Unit.SHARE, sign=True),
        Head("median", Unit.SHARE, sign=True),
        Head("ninetieth percentile", Unit.SHARE, sign=True),
        Head("worst", Unit.SHARE, sign=True),
    )
    rows: list[tuple[Cell, ...]] = [
        (row.quantity, row.number, row.low, row.median, row.high, row.worst) for row in facts.errors
    ]
    return Section(
        name="errors",
        title="Prediction errors",
        lead=_error_lead(facts.errors),
        grid=grid(facts, heads, rows),
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
