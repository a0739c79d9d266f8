"""Sections about work that was done: warm-ups, restores, rebalances, and racks that changed."""

from __future__ import annotations

from collections import Counter

from agent.values.words import counted
from pipeline.report import words
from pipeline.report.document import Bars, Cell, Head, Ranges, Section, Unit
from pipeline.report.facts import Drift, Facts, Warmups
from pipeline.report.period import minute_of
from pipeline.report.sections_cost import CLUSTER, grid, labelled

_MOST_BARS = 25


def warmup_section(facts: Facts) -> Section:
    """How long warm-ups took, by how they ended."""
    heads = (
        CLUSTER,
        Head("application"),
        Head("outcome"),
        Head("warm-ups", Unit.COUNT),
        Head("shortest", Unit.SECONDS),
        Head("median", Unit.SECONDS),
        Head("longest", Unit.SECONDS),
        Head("median wait for a rebalance", Unit.SECONDS),
        Head("stalled", Unit.SHARE),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            row.cluster,
            row.group,
            row.outcome,
            row.number,
            row.low_s,
            row.median_s,
            row.high_s,
            row.waited_s,
            row.stalled_share,
        )
        for row in facts.warmups
    ]
    timed = [row for row in facts.warmups if row.low_s is not None][:_MOST_BARS]
    return Section(
        name="warmups",
        title="Warm-up times",
        lead=_warmup_lead(facts.warmups),
        grid=grid(facts, heads, rows),
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
    heads = (
        CLUSTER,
        Head("application"),
        Head("subtopology", Unit.COUNT),
        Head("restores", Unit.COUNT),
        Head("tenth percentile", Unit.RECORDS_PER_S),
        Head("median", Unit.RECORDS_PER_S),
        Head("ninetieth percentile", Unit.RECORDS_PER_S),
        Head("stalled", Unit.SHARE),
        Head("stalls go with"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            row.cluster,
            row.group,
            row.subtopology,
            row.samples,
            row.low,
            row.median,
            row.high,
            row.stalled_share,
            row.stalls_when or "",
        )
        for row in facts.restores
    ]
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
        grid=grid(facts, heads, rows),
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
    heads = (
        CLUSTER,
        Head("group"),
        Head("cause"),
        Head("rebalances", Unit.COUNT),
        Head("median time out of Stable, at most", Unit.SECONDS),
        Head("longest, at most", Unit.SECONDS),
        Head("partitions moved", Unit.COUNT),
        Head("rebalances whose moves were hidden", Unit.COUNT),
    )
    rows: list[tuple[Cell, ...]] = [
        (row.cluster, row.group, row.cause, row.number, row.median_s, row.longest_s, row.moved, row.unseen)
        for row in facts.rebalances
    ]
    causes = Counter[str]()
    for row in facts.rebalances:
        causes[row.cause] += row.number
    told = ", ".join(f"{number:,} {cause}" for cause, number in sorted(causes.items(), key=lambda c: (-c[1], c[0])))
    number_of = counted(sum(causes.values()), "rebalance")
    return Section(
        name="rebalances",
        title="Rebalances and their causes",
        lead=f"{number_of}: {told}." if causes else "No look of this period shows a rebalance.",
        grid=grid(facts, heads, rows),
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
    heads = (
        CLUSTER,
        Head("what"),
        Head("partition"),
        Head("began (UTC)"),
        Head("ended (UTC)"),
        Head("lasted so far", Unit.SECONDS),
        Head("racks before"),
        Head("racks after"),
        Head("shares a rack"),
        Head("cause"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            row.cluster,
            row.subject,
            "" if row.partition is None else str(row.partition),
            minute_of(row.began_ms),
            "lasts" if row.ended_ms is None else minute_of(row.ended_ms),
            row.lasted_s,
            _racks(row.before),
            _racks(row.after),
            {None: None, True: "yes", False: "no"}[row.shares_rack],
            row.cause,
        )
        for row in facts.drifts
    ]
    return Section(name="drift", title="Rack drift", lead=_drift_lead(facts.drifts), grid=grid(facts, heads, rows))


def _drift_lead(rows: tuple[Drift, ...]) -> str:
    if not rows:
        return "No look of this period shows a changed rack."
    lasting = [row for row in rows if row.ended_ms is None]
    causes = Counter(row.cause or words.UNKNOWN for row in rows)
    told = ", ".join(f"{number:,} {cause}" for cause, number in sorted(causes.items(), key=lambda c: (-c[1], c[0])))
    return f"{len(rows):,} rack changes ({told}); {len(lasting):,} still in effect."


def _racks(racks: tuple[str, ...] | None) -> str | None:
    return None if racks is None else ", ".join(words.UNKNOWN if rack is None else rack for rack in racks)
