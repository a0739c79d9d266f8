"""A report composed from its facts: first line, sections in their order, and notes on missing data.

A note names what is missing from the figures, and how much of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.values.number_format import counted, few
from config.foreign_text import shortened
from pipeline.report import words
from pipeline.report.avoidable import avoidable_cost
from pipeline.report.balance import balance_notes
from pipeline.report.document import ReportDocument
from pipeline.report.facts import CountedInput, LookCoverage, ReportFacts
from pipeline.report.first import first_line
from pipeline.report.pace import HOUR, price_applied
from pipeline.report.period import minute_of
from pipeline.report.sections_avoidable import avoidable_section, figures, finding_section, owner_section
from pipeline.report.sections_bill import bill_section
from pipeline.report.sections_cost import cost_section, ledger_section, locality_section
from pipeline.report.sections_proposals import error_section, open_section, outcome_section
from pipeline.report.sections_work import drift_section, rebalance_section, restore_section, warmup_section
from pipeline.schemas import silver
from pipeline.schemas.zones import CROSS_ZONE, UNKNOWN_ZONE
from pipeline.transforms.spans import HOUR_MS

_SECTIONS = (
    open_section,
    cost_section,
    ledger_section,
    locality_section,
    warmup_section,
    restore_section,
    rebalance_section,
    drift_section,
    outcome_section,
    error_section,
)


def compose(facts: ReportFacts) -> ReportDocument:
    """Everything in its place; equal facts give an equal report."""
    cost = avoidable_cost(facts)
    findings = finding_section(facts, cost)
    return ReportDocument(
        title="What crosses racks, what it costs, and what to do",
        first=first_line(facts, cost),
        about=about(facts),
        figures=figures(facts, cost),
        sections=(
            avoidable_section(facts, cost),
            *([findings] if findings.grid.rows else []),
            *([owner_section(facts)] if facts.owners else []),
            *([bill_section(facts)] if facts.bill else []),
            *(section(facts) for section in _SECTIONS),
        ),
        notes=notes(facts),
    )


def notes(facts: ReportFacts) -> tuple[str, ...]:
    """Sentences, also about each kind of gap of which there is none."""
    return (
        *_absent(facts),
        *_gaps(facts),
        *_looks(facts),
        *_unknown(facts),
        *_prices(facts),
        *_sizes(facts),
        *balance_notes(facts.balance),
        *_records(facts),
        *(
            (f"Section {title}: {counted(left, 'more row')} left out, and not in its sums; a shorter period shows all.")
            for title, left in facts.left_out
        ),
    )


def about(facts: ReportFacts) -> str:
    """Period, clusters, and how much of it is covered."""
    if not facts.coverage:
        return "No look of this period has traffic."
    first = min(row.first_ms for row in facts.coverage)
    last = max(row.last_ms for row in facts.coverage) + HOUR_MS
    clusters = ", ".join(words.short(row.cluster) for row in facts.coverage)
    number = counted(len(facts.coverage), "cluster")
    over = f", summed over {number}" if len(facts.coverage) > 1 else f"; {number}"
    return (
        f"Hours from {minute_of(first)} to {minute_of(last)} UTC; looks cover {facts.covered_s / HOUR:,.1f} of "
        f"{facts.span_s / HOUR:,.1f} h{over}: {clusters}. "
        "Amounts per hour, day and month are those of the time that is booked, at that pace; a month has 30 days."
    )


def _absent(facts: ReportFacts) -> Iterator[str]:
    if facts.absent:
        yield (
            f"These tables do not exist yet, so the report has nothing from them: {', '.join(facts.absent)}. "
            "They appear with the first refresh that has rows for them."
        )


def _gaps(facts: ReportFacts) -> Iterator[str]:
    if not facts.coverage:
        return
    found = [(row, (row.last_ms - row.first_ms) // HOUR_MS + 1 - row.hours) for row in facts.coverage]
    for row, missing in found:
        if missing or row.thin_hours:
            yield (
                f"Gaps in cluster {words.short(row.cluster)}: {counted(missing, 'hour')} without any look and "
                f"{counted(row.thin_hours, 'hour')} covered by less than nine tenths, out of "
                f"{row.hours + missing:,}; {_filled(row)}."
            )
    if not any(missing or row.thin_hours for row, missing in found):
        yield "No gaps: every hour between the first look and the last is covered by nine tenths or more."
    for row in facts.coverage:
        if row.twice_s:
            yield (
                f"Cluster {words.short(row.cluster)}: looks cover {words.duration(row.twice_s)} more than their hours "
                "have, because a clock was set back; what crossed racks in that time counts, at its pace."
            )


def _filled(row: LookCoverage) -> str:
    if not row.gap_seconds:
        return "no values are filled in for them"
    return f"of the gaps {words.duration(row.gap_seconds)} are booked by the offsets on both sides"


def _looks(facts: ReportFacts) -> Iterator[str]:
    unusable = [row for row in facts.looks if row.why is not None]
    lost, every = (sum(row.number for row in rows) for rows in (unusable, facts.looks))
    if silver.LOOKS.name in facts.absent:
        yield "The number of complete looks is unknown: there is no table of looks."
    elif lost:
        yield f"{counted(lost, 'look')} of {every:,} could not be used ({_reasons(unusable)})."
    elif every:
        yield f"{counted(every, 'look')} of the period, all complete."
    else:
        yield "There is no look of this period."


def _unknown(facts: ReportFacts) -> Iterator[str]:
    sizes: dict[tuple[str, str], float] = {}
    for row in facts.pairs:
        if row.zone == UNKNOWN_ZONE:
            key = row.path, row.why_unknown or "reason not recorded"
            sizes[key] = sizes.get(key, 0.0) + (row.bytes or 0.0)
    for (path, why), size in sorted(sizes.items()):
        yield f"Unknown, path {path}: {_size(size)} may or may not have crossed racks ({shortened(why)})."
    if facts.pairs and not sizes:
        yield "For every byte in the ledger both racks are known."


def _size(size: float) -> str:
    return words.volume(size) if size else "an unknown number of bytes"


def _prices(facts: ReportFacts) -> Iterator[str]:
    pairs = sorted(
        {(row.source_rack, row.target_rack) for row in facts.pairs if row.zone == CROSS_ZONE and row.usd is None}
    )
    if pairs:
        named = few([f"{words.short(source)} to {words.short(target)}" for source, target in pairs], 10)
        without = sum(row.unpriced_bytes or 0.0 for row in facts.costs)
        yield (
            f"No price is known, for some hours at least, for these pairs of racks: {named}; "
            f"{words.volume(without)} are not in the sums of money."
        )
    elif any(row.zone == CROSS_ZONE for row in facts.pairs):
        dates = sorted({row.price_date for row in facts.pairs if row.price_date})
        dated = f", the latest of {dates[-1]}" if dates else ""
        yield f"Every pair of racks has a price{dated}; costs are{price_applied(facts) or ' unknown'} across racks."


def _sizes(facts: ReportFacts) -> Iterator[str]:
    rows = sum(row.sizeless for row in facts.pairs)
    if rows:
        yield (
            f"Bytes are unknown in {counted(rows, 'row')} of the ledger, because the size of records is "
            "unknown; they are in no sum."
        )


def _records(facts: ReportFacts) -> Iterator[str]:
    if facts.unread:
        some = counted(sum(row.number for row in facts.unread), "record")
        yield f"{some} could not be read and are in quarantine, of all clusters ({_reasons(facts.unread)})."


def _reasons(rows: Sequence[CountedInput]) -> str:
    return "; ".join(f"{row.number:,}: {shortened(row.why or '')}" for row in rows[:5])
