"""Sections about work that was done: warm-ups, restores, rebalances, and racks that changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent.values.number_format import counted
from pipeline.report import words
from pipeline.report.document import BarPlot, ColumnHead, Columns, RangePlot, ReportSection, ValueUnit
from pipeline.report.facts import RackDrift, RebalanceCounts, ReportFacts, RestoreSpeed, WarmupTimes
from pipeline.report.period import minute_of
from pipeline.report.sections_cost import CLUSTER, grid, labelled

_MOST_BARS = 25


def warmup_section(facts: ReportFacts) -> ReportSection:
    """How long warm-ups took, by how they ended."""
    columns: Columns[WarmupTimes] = (
        (CLUSTER, lambda row: row.cluster),
        (ColumnHead("application"), lambda row: row.group),
        (ColumnHead("outcome"), lambda row: row.outcome),
        (ColumnHead("warm-ups", ValueUnit.COUNT), lambda row: row.number),
        (ColumnHead("shortest", ValueUnit.SECONDS), lambda row: row.low_s),
        (ColumnHead("median", ValueUnit.SECONDS), lambda row: row.median_s),
        (ColumnHead("longest", ValueUnit.SECONDS), lambda row: row.high_s),
        (ColumnHead("median wait for a rebalance", ValueUnit.SECONDS), lambda row: row.waited_s),
        (ColumnHead("stalled", ValueUnit.SHARE), lambda row: row.stalled_share),
    )
    timed = [row for row in facts.warmups if row.low_s is not None][:_MOST_BARS]
    return ReportSection(
        name="warmups",
        title="Warm-up times",
        lead=_warmup_lead(facts.warmups),
        grid=grid(facts, columns, facts.warmups),
        plot=_range_plot(
            [f"{labelled(facts, row.cluster, row.group)}, {row.outcome}" for row in timed],
            [(row.low_s, row.median_s, row.high_s) for row in timed],
            "from first sight to caught up, or to last sight: shortest, median, longest",
            ValueUnit.SECONDS,
        ),
        alternative_text="Shortest, median and longest warm-up of each application, by outcome.",
    )


def _warmup_lead(rows: tuple[WarmupTimes, ...]) -> str:
    if not rows:
        return "No look of this period shows a warm-up."
    ended = Counter[str]()
    for row in rows:
        ended[row.outcome] += row.number
    outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(ended.items()))
    waits = [row for row in rows if row.waited_s is not None]
    longest = max(waits, key=lambda row: (row.waited_s or 0.0, row.group), default=None)
    tail = (
        f"; the longest median wait for a rebalance is {words.duration(longest.waited_s)}, "
        f"of {words.short(longest.group)}"
        if longest
        else ""
    )
    return f"{counted(ended.total(), 'warm-up')}: {outcomes}{tail}."


def restore_section(facts: ReportFacts) -> ReportSection:
    """How fast each store restores, and when it stalls."""
    columns: Columns[RestoreSpeed] = (
        (CLUSTER, lambda row: row.cluster),
        (ColumnHead("application"), lambda row: row.group),
        (ColumnHead("subtopology", ValueUnit.COUNT), lambda row: row.subtopology),
        (ColumnHead("restores", ValueUnit.COUNT), lambda row: row.samples),
        (ColumnHead("tenth percentile", ValueUnit.RECORDS_PER_S), lambda row: row.low),
        (ColumnHead("median", ValueUnit.RECORDS_PER_S), lambda row: row.median),
        (ColumnHead("ninetieth percentile", ValueUnit.RECORDS_PER_S), lambda row: row.high),
        (ColumnHead("stalled", ValueUnit.SHARE), lambda row: row.stalled_share),
        (ColumnHead("stalls go with"), lambda row: row.stalls_when or ""),
    )
    rated = [row for row in facts.restores if None not in {row.low, row.median, row.high}][:_MOST_BARS]
    lead = "No restore was measured."
    if rated:
        slowest = rated[0]
        lead = (
            f"{counted(len(facts.restores), 'restoring store')}; the slowest is subtopology {slowest.subtopology} "
            f"of {words.short(slowest.group)} with {words.number(slowest.median, 'records/s')} in the median."
        )
    return ReportSection(
        name="restores",
        title="Restore rates",
        lead=lead,
        grid=grid(facts, columns, facts.restores),
        plot=_range_plot(
            [f"{labelled(facts, row.cluster, row.group)} {row.subtopology}" for row in rated],
            [(row.low, row.median, row.high) for row in rated],
            "tenth percentile, median, ninetieth percentile",
            ValueUnit.RECORDS_PER_S,
        ),
        alternative_text="Tenth percentile, median and ninetieth percentile of the restore rate of each store.",
    )


def _range_plot(
    rows: Sequence[str], values: Sequence[tuple[float | None, ...]], label: str, unit: ValueUnit
) -> RangePlot | None:
    """None without rows."""
    if not rows:
        return None
    known = tuple((low or 0.0, middle or 0.0, high or 0.0) for low, middle, high in values)
    return RangePlot(tuple(rows), known, label, unit)


def rebalance_section(facts: ReportFacts) -> ReportSection:
    """How often groups rebalanced, and why."""
    columns: Columns[RebalanceCounts] = (
        (CLUSTER, lambda row: row.cluster),
        (ColumnHead("group"), lambda row: row.group),
        (ColumnHead("cause"), lambda row: row.cause),
        (ColumnHead("rebalances", ValueUnit.COUNT), lambda row: row.number),
        (ColumnHead("median time out of Stable, at most", ValueUnit.SECONDS), lambda row: row.median_s),
        (ColumnHead("longest, at most", ValueUnit.SECONDS), lambda row: row.longest_s),
        (ColumnHead("partitions moved", ValueUnit.COUNT), lambda row: row.moved),
        (ColumnHead("rebalances whose moves were hidden", ValueUnit.COUNT), lambda row: row.unseen),
    )
    causes = Counter[str]()
    for row in facts.rebalances:
        causes[row.cause] += row.number
    lead = f"{counted(causes.total(), 'rebalance')}: {_by_number(causes)}."
    return ReportSection(
        name="rebalances",
        title="Rebalances and their causes",
        lead=lead if causes else "No look of this period shows a rebalance.",
        grid=grid(facts, columns, facts.rebalances),
        plot=_rebalance_bars(facts, tuple(sorted(causes))),
        alternative_text="Number of rebalances of each group, by cause.",
    )


def _rebalance_bars(facts: ReportFacts, causes: tuple[str, ...]) -> BarPlot | None:
    numbers: dict[str, Counter[str]] = {}
    for row in facts.rebalances:
        numbers.setdefault(labelled(facts, row.cluster, row.group), Counter())[row.cause] += row.number
    groups = sorted(numbers, key=lambda group: (-numbers[group].total(), group))[:_MOST_BARS]
    if not groups:
        return None
    return BarPlot(
        bars=tuple(groups),
        parts=causes,
        sizes=tuple(tuple(float(numbers[group][cause]) for group in groups) for cause in causes),
        label="rebalances",
        unit=ValueUnit.COUNT,
        upright=False,
        hatched=frozenset({"unknown"}),
    )


def drift_section(facts: ReportFacts) -> ReportSection:
    """When racks of brokers and replicas changed, for how long, and the cause."""
    columns: Columns[RackDrift] = (
        (CLUSTER, lambda row: row.cluster),
        (ColumnHead("what"), lambda row: row.subject),
        (ColumnHead("partition"), lambda row: "" if row.partition is None else str(row.partition)),
        (ColumnHead("began (UTC)"), lambda row: minute_of(row.began_ms)),
        (ColumnHead("ended (UTC)"), lambda row: "lasts" if row.ended_ms is None else minute_of(row.ended_ms)),
        (ColumnHead("lasted so far", ValueUnit.SECONDS), lambda row: row.lasted_s),
        (ColumnHead("racks before"), lambda row: _racks(row.before)),
        (ColumnHead("racks after"), lambda row: _racks(row.after)),
        (ColumnHead("shares a rack"), lambda row: {None: None, True: "yes", False: "no"}[row.shares_rack]),
        (ColumnHead("cause"), lambda row: row.cause),
    )
    return ReportSection(
        name="drift", title="Rack drift", lead=_drift_lead(facts.drifts), grid=grid(facts, columns, facts.drifts)
    )


def _drift_lead(rows: tuple[RackDrift, ...]) -> str:
    if not rows:
        return "No look of this period shows a changed rack."
    lasting = [row for row in rows if row.ended_ms is None]
    causes = _by_number(Counter(row.cause or words.UNKNOWN for row in rows))
    return f"{counted(len(rows), 'rack change')} ({causes}); {len(lasting):,} still in effect."


def _by_number(counts: Counter[str]) -> str:
    """``3 probing, 1 unknown``: the most frequent first, and equal ones by name."""
    return ", ".join(f"{number:,} {name}" for name, number in sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def _racks(racks: tuple[str, ...] | None) -> str | None:
    return None if racks is None else ", ".join(words.UNKNOWN if rack is None else rack for rack in racks)
