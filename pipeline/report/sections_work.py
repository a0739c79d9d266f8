"""Sections about work that was done: warm-ups, restores, rebalances, and racks that changed."""

from __future__ import annotations

from collections import Counter

from agent.values.words import counted
from pipeline.report import words
from pipeline.report.document import Bars, Columns, Head, Ranges, Section, Unit
from pipeline.report.facts import Drift, Facts, Rebalances, Restore, Warmups
from pipeline.report.period import minute_of
from pipeline.report.sections_cost import CLUSTER, grid, labelled

_MOST_BARS = 25


def warmup_section(facts: Facts) -> Section:
    """How long warm-ups took, by how they ended."""
    columns: Columns[Warmups] = (
        (CLUSTER, lambda row: row.cluster),
        (Head("application"), lambda row: row.group),
        (Head("outcome"), lambda row: row.outcome),
        (Head("warm-ups", Unit.COUNT), lambda row: row.number),
        (Head("shortest", Unit.SECONDS), lambda row: row.low_s),
        (Head("median", Unit.SECONDS), lambda row: row.median_s),
        (Head("longest", Unit.SECONDS), lambda row: row.high_s),
        (Head("median wait for a rebalance", Unit.SECONDS), lambda row: row.waited_s),
        (Head("stalled", Unit.SHARE), lambda row: row.stalled_share),
    )
    timed = [row for row in facts.warmups if row.low_s is not None][:_MOST_BARS]
    return Section(
        name="warmups",
        title="Warm-up times",
        lead=_warmup_lead(facts.warmups),
        grid=grid(facts, columns, facts.warmups),
        plot=Ranges(
            rows=tuple(f"{labelled(facts, row.cluster, row.group)}, {row.outcome}" for row in timed),
            values=tuple((row.low_s or 0.0, row.median_s or 0.0, row.high_s or 0.0) for row in timed),
            label="from first sight to caught up, or to last sight: shortest, median, longest",
            unit=Unit.SECONDS,
        )
        if timed
        else None,
        says="Shortest, median and longest warm-up of each application, by outcome.",
    )


def _warmup_lead(rows: tuple[Warmups, ...]) -> str:
    if not rows:
        return "No look of this period shows a warm-up."
    ended = Counter[str]()
    for row in rows:
        ended[row.outcome] += row.number
    told = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(ended.items()))
    waits = [row for row in rows if row.waited_s is not None]
    longest = max(waits, key=lambda row: (row.waited_s or 0.0, row.group), default=None)
    tail = (
        f"; the longest median wait for a rebalance is {words.duration(longest.waited_s)}, "
        f"of {words.short(longest.group)}"
        if longest
        else ""
    )
    return f"{counted(sum(ended.values()), 'warm-up')}: {told}{tail}."


def restore_section(facts: Facts) -> Section:
    """How fast each store restores, and when it stalls."""
    columns: Columns[Restore] = (
        (CLUSTER, lambda row: row.cluster),
        (Head("application"), lambda row: row.group),
        (Head("subtopology", Unit.COUNT), lambda row: row.subtopology),
        (Head("restores", Unit.COUNT), lambda row: row.samples),
        (Head("tenth percentile", Unit.RECORDS_PER_S), lambda row: row.low),
        (Head("median", Unit.RECORDS_PER_S), lambda row: row.median),
        (Head("ninetieth percentile", Unit.RECORDS_PER_S), lambda row: row.high),
        (Head("stalled", Unit.SHARE), lambda row: row.stalled_share),
        (Head("stalls go with"), lambda row: row.stalls_when or ""),
    )
    rated = [row for row in facts.restores if None not in {row.low, row.median, row.high}][:_MOST_BARS]
    lead = "No restore was measured."
    if rated:
        slowest = rated[0]
        lead = (
            f"{len(facts.restores)} stores were restoring; the slowest is subtopology {slowest.subtopology} "
            f"of {words.short(slowest.group)} with {words.number(slowest.median, 'records/s')} in the median."
        )
    return Section(
        name="restores",
        title="Restore rates",
        lead=lead,
        grid=grid(facts, columns, facts.restores),
        plot=Ranges(
            rows=tuple(f"{labelled(facts, row.cluster, row.group)} {row.subtopology}" for row in rated),
            values=tuple((row.low or 0.0, row.median or 0.0, row.high or 0.0) for row in rated),
            label="tenth percentile, median, ninetieth percentile",
            unit=Unit.RECORDS_PER_S,
        )
        if rated
        else None,
        says="Tenth percentile, median and ninetieth percentile of the restore rate of each store.",
    )


def rebalance_section(facts: Facts) -> Section:
    """How often groups rebalanced, and why."""
    columns: Columns[Rebalances] = (
        (CLUSTER, lambda row: row.cluster),
        (Head("group"), lambda row: row.group),
        (Head("cause"), lambda row: row.cause),
        (Head("rebalances", Unit.COUNT), lambda row: row.number),
        (Head("median time out of Stable, at most", Unit.SECONDS), lambda row: row.median_s),
        (Head("longest, at most", Unit.SECONDS), lambda row: row.longest_s),
        (Head("partitions moved", Unit.COUNT), lambda row: row.moved),
        (Head("rebalances whose moves were hidden", Unit.COUNT), lambda row: row.unseen),
    )
    causes = Counter[str]()
    for row in facts.rebalances:
        causes[row.cause] += row.number
    told = ", ".join(f"{number:,} {cause}" for cause, number in sorted(causes.items(), key=lambda c: (-c[1], c[0])))
    number_of = counted(sum(causes.values()), "rebalance")
    return Section(
        name="rebalances",
        title="Rebalances and their causes",
        lead=f"{number_of}: {told}." if causes else "No look of this period shows a rebalance.",
        grid=grid(facts, columns, facts.rebalances),
        plot=_rebalance_bars(facts, tuple(sorted(causes))),
        says="Number of rebalances of each group, by cause.",
    )


def _rebalance_bars(facts: Facts, causes: tuple[str, ...]) -> Bars | None:
    numbers: dict[str, Counter[str]] = {}
    for row in facts.rebalances:
        numbers.setdefault(labelled(facts, row.cluster, row.group), Counter())[row.cause] += row.number
    groups = sorted(numbers, key=lambda group: (-numbers[group].total(), group))[:_MOST_BARS]
    if not groups:
        return None
    return Bars(
        bars=tuple(groups),
        parts=causes,
        sizes=tuple(tuple(float(numbers[group][cause]) for group in groups) for cause in causes),
        label="rebalances",
        unit=Unit.COUNT,
        upright=False,
        hatched=frozenset({"unknown"}),
    )


def drift_section(facts: Facts) -> Section:
    """When racks of brokers and replicas changed, how long that lasted, and who caused it."""
    columns: Columns[Drift] = (
        (CLUSTER, lambda row: row.cluster),
        (Head("what"), lambda row: row.subject),
        (Head("partition"), lambda row: "" if row.partition is None else str(row.partition)),
        (Head("began (UTC)"), lambda row: minute_of(row.began_ms)),
        (Head("ended (UTC)"), lambda row: "lasts" if row.ended_ms is None else minute_of(row.ended_ms)),
        (Head("lasted so far", Unit.SECONDS), lambda row: row.lasted_s),
        (Head("racks before"), lambda row: _racks(row.before)),
        (Head("racks after"), lambda row: _racks(row.after)),
        (Head("shares a rack"), lambda row: {None: None, True: "yes", False: "no"}[row.shares_rack]),
        (Head("cause"), lambda row: row.cause),
    )
    return Section(
        name="drift", title="Rack drift", lead=_drift_lead(facts.drifts), grid=grid(facts, columns, facts.drifts)
    )


def _drift_lead(rows: tuple[Drift, ...]) -> str:
    if not rows:
        return "No look of this period shows a changed rack."
    lasting = [row for row in rows if row.ended_ms is None]
    causes = Counter(row.cause or words.UNKNOWN for row in rows)
    told = ", ".join(f"{number:,} {cause}" for cause, number in sorted(causes.items(), key=lambda c: (-c[1], c[0])))
    return f"{len(rows):,} rack changes ({told}); {len(lasting):,} still in effect."


def _racks(racks: tuple[str, ...] | None) -> str | None:
    return None if racks is None else ", ".join(words.UNKNOWN if rack is None else rack for rack in racks)
