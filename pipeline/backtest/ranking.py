"""Ranking of strategies: cost, moves, rule violations and useless triggers, one row each.

Money decides where bytes are known, reads across racks where they are not; then broken rules, then triggers that
brought nothing, then moves. Figures that rest on unknown bytes are marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from agent.values.number_format import counted, lasted
from pipeline.backtest.score import StrategyScores, summed

BASES = ("as-recorded", "no-action")
"""Strategies that show what was without any, the first that there is."""
_DAY_S = 86_400.0
ASSUMED = (
    "Assumed: a rebalance gives the assignment predicted for the group's own assignor (else the optimum), until the "
    "group's next recorded rebalance; moved replicas are in sync as soon as they can have been copied; traffic "
    "does not change; every approval is given at once; each period begins with the recorded state; prices are those "
    "recorded with the looks (price.usd_per_gb, price.between); copies are paid once, but count at the pace of the "
    "period."
)


class RankedStrategy(NamedTuple):
    """One strategy."""

    rank: int
    strategy: str
    scores: StrategyScores
    usd_per_day: float | None
    """Reads, copies and changed replication; None where no byte is known, or none has a price."""
    saved_usd_per_day: float | None
    """Against history; None where history was not replayed, or bytes are unknown."""
    crossing: float
    """Reads across racks at a time, on average."""
    balance_s: float | None
    """Median of the times to balance, those that were not over by the end among them; None where none was needed."""


def ranked(units: Iterable[Mapping[str, Any]]) -> tuple[RankedStrategy, ...]:
    """The strategies by how well they did. ``units`` are rows of backtest.units."""
    by_strategy: dict[str, list[Mapping[str, Any]]] = {}
    for row in units:
        by_strategy.setdefault(row["strategy"], []).append(row)
    scores = {name: _together(rows) for name, rows in sorted(by_strategy.items())}
    costs = {name: _usd_per_day(of) for name, of in scores.items()}
    base = next((costs[name] for name in BASES if name in costs), None)
    rows = [
        RankedStrategy(
            rank=0,
            strategy=name,
            scores=of,
            usd_per_day=costs[name],
            saved_usd_per_day=_difference(base, costs[name]),
            crossing=of.read_partition_s / of.seconds if of.seconds else 0.0,
            balance_s=_balance_s(of),
        )
        for name, of in scores.items()
    ]
    in_usd = all(row.usd_per_day is not None for row in rows)
    rows.sort(key=lambda row: _order(row, in_usd=in_usd))
    return tuple(row._replace(rank=place) for place, row in enumerate(rows, 1))


def _balance_s(scores: StrategyScores) -> float | None:
    times = (*scores.balanced_s, *scores.unbalanced_s)
    return median(times) if times else None


def scores_of(row: Mapping[str, Any]) -> StrategyScores:
    """The scores of a row of backtest.units."""
    given = {name: row["snapshots" if name == "groups" else name] for name in StrategyScores._fields}
    return StrategyScores(**given | {name: tuple(given[name] or ()) for name in ("balanced_s", "unbalanced_s")})


def markdown(rows: Sequence[RankedStrategy], about: Mapping[str, str]) -> str:
    """The ranked table with what the strategies are, and what was assumed."""
    head = (
        "| rank | strategy | USD/day | saved USD/day | GB across racks | reads across racks | moves | triggers "
        "| useless triggers | broken rule minutes | time to balance |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    lines = [
        f"| {row.rank} | {row.strategy} | {_number(row.usd_per_day)} | {_number(row.saved_usd_per_day)} "
        f"| {(row.scores.read_bytes + row.scores.copied_bytes + row.scores.replication_bytes) / 1e9:,.2f} "
        f"| {row.crossing:,.1f} | {row.scores.moves:,} | {row.scores.triggers:,} | {_false(row)} "
        f"| {row.scores.violation_minutes:,.0f} | {_time(row.balance_s)} |"
        for row in rows
    ]
    descriptions = [f"- **{row.strategy}**: {about.get(row.strategy, '')}" for row in rows]
    return "\n".join((head, *lines, "", *descriptions, "", *_assumed(rows))) + "\n"


def _assumed(rows: Sequence[RankedStrategy]) -> list[str]:
    """How much was seen, what was not, and what is assumed."""
    if not rows:
        return []
    one = rows[0].scores
    share = 100 * one.unseen_s / (one.seconds + one.unseen_s) if one.seconds + one.unseen_s else 0.0
    cover = "covers" if one.groups == 1 else "cover"
    seen = (
        f"{counted(one.groups, 'group snapshot')} in {counted(one.looks, 'look')} {cover} {one.seconds / 3600:,.1f} h; "
        f"for {one.unseen_s / 3600:,.1f} h ({share:.0f} %) there is no look, and nothing is scored."
    )
    lines = [seen, ASSUMED]
    if any(row.scores.dark_group_s for row in rows):
        hours = max(row.scores.dark_group_s for row in rows) / 3600
        lines.append(
            f"The bytes of groups are unknown, in part or in full, for {hours:,.1f} group hours; their cost "
            "is not included."
        )
    if any(row.scores.unjudged_triggers for row in rows):
        lines.append("Triggers whose effect no later look shows count neither as useful nor as useless.")
    return lines


def _together(units: Sequence[Mapping[str, Any]]) -> StrategyScores:
    """The sums; parts of one stretch share its time and its looks, which count once."""
    looks: dict[tuple[str, int], int] = {}
    seen: dict[int, float] = {}
    unseen: dict[int, float] = {}
    for row in units:
        at, of = row["stretch_ms"], (row["cluster"], row["stretch_ms"])
        looks[of] = max(looks.get(of, 0), row["looks"])
        seen[at] = max(seen.get(at, 0.0), row["seconds"])
        unseen[at] = max(unseen.get(at, 0.0), row["unseen_s"])
    total = summed(map(scores_of, units))
    return total._replace(looks=sum(looks.values()), seconds=sum(seen.values()), unseen_s=sum(unseen.values()))


def _order(row: RankedStrategy, *, in_usd: bool) -> tuple[Any, ...]:
    """By one measure for all: dollars only where they are known of every strategy, else reads across racks."""
    scores = row.scores
    cost = row.usd_per_day if in_usd and row.usd_per_day is not None else scores.read_partition_s
    return (round(cost, 6), scores.violation_minutes, scores.false_triggers, scores.moves, row.strategy)


def _usd_per_day(scores: StrategyScores) -> float | None:
    if not scores.seconds:
        return None
    if not (scores.read_bytes or scores.copied_bytes or scores.replication_bytes):
        nothing_crossed = not (scores.read_partition_s or scores.dark_group_s)
        return 0.0 if nothing_crossed else None
    if not (scores.read_usd or scores.copied_usd or scores.replication_usd):
        return None
    return (scores.read_usd + scores.copied_usd + scores.replication_usd) / scores.seconds * _DAY_S


def _difference(base: float | None, own: float | None) -> float | None:
    return None if base is None or own is None else base - own


def _false(row: RankedStrategy) -> str:
    unjudged = f" (+{row.scores.unjudged_triggers} unknown)" if row.scores.unjudged_triggers else ""
    return f"{row.scores.false_triggers:,}{unjudged}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.2f}"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else lasted(1_000 * seconds)
