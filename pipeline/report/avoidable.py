"""What can be saved: costs across racks that another placement or setting avoids, one line for each remedy.

Invariant: every avoidable dollar is in one line. What no placement avoids, and what a reassignment copies once, is in
none of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from pipeline.owner_rules import OwnerBook, OwnerRule
from pipeline.report.facts import LASTING_PATHS, ReportFacts, TopicCost, WeekCoverage
from pipeline.report.pace import DAY, MONTH, CoveredPace, sum_of_known
from pipeline.report.remedies import CostRemedy, RemedyBook
from pipeline.report.weeks import comparable


class AvoidableLine(NamedTuple):
    """What one remedy can save in one cluster."""

    remedy: CostRemedy
    groups: tuple[str, ...]
    """The dearest first; empty where no group is the cause."""
    topics: tuple[str, ...]
    paths: tuple[str, ...]
    owners: tuple[OwnerRule | None, ...]
    """Of these, each once; None for what has no owner."""
    avoidable_bytes: float
    unpriced_bytes: float
    usd: float | None
    """In the period; None where no price is known."""
    usd_per_day: float | None
    usd_per_month: float | None
    change_usd_per_day: float | None
    """Against the same days a week before; None where one of the two is unknown."""


class AvoidableCost(NamedTuple):
    """All lines, the dearest first, and their sums."""

    lines: tuple[AvoidableLine, ...]
    usd_per_day: float | None
    """None where nothing has a known price."""
    usd_per_month: float | None
    change_usd_per_day: float | None
    before_usd_per_day: float | None
    unavoidable_usd_per_day: float | None
    unsure_bytes: float


def avoidable_cost(facts: ReportFacts) -> AvoidableCost:
    """The lines of the facts."""
    pace, weeks = CoveredPace(facts), {row.cluster: row for row in facts.weeks}
    remedies, owners = RemedyBook(facts), OwnerBook(facts.owners)
    costs: dict[tuple[str, str, str], list[TopicCost]] = defaultdict(list)
    found: dict[tuple[str, str, str], CostRemedy] = {}
    for cost in facts.topics:
        if cost.avoidable_bytes > 0:
            remedy = remedies.of(cost)
            found.setdefault(remedy[:3], remedy)
            costs[remedy[:3]].append(cost)
    lines = [_line(remedy, costs[key], pace, weeks.get(remedy.cluster), owners) for key, remedy in found.items()]
    lines.sort(key=lambda one: (-(one.usd_per_day or one.usd or 0.0), -one.avoidable_bytes, one.remedy[:3]))
    return _summed(facts, lines, pace, weeks)


def _line(
    remedy: CostRemedy, costs: Sequence[TopicCost], pace: CoveredPace, week: WeekCoverage | None, owners: OwnerBook
) -> AvoidableLine:
    usd = sum_of_known(cost.avoidable_usd for cost in costs)
    return AvoidableLine(
        remedy=remedy,
        groups=tuple(dict.fromkeys(cost.group for cost in costs if cost.group)),
        topics=tuple(dict.fromkeys(cost.topic for cost in costs)),
        paths=tuple(sorted({cost.path for cost in costs})),
        owners=tuple(dict.fromkeys(owners.of(cost.topic, cost.group) for cost in costs)),
        avoidable_bytes=sum(cost.avoidable_bytes for cost in costs),
        unpriced_bytes=sum(cost.unpriced_bytes for cost in costs),
        usd=usd,
        usd_per_day=pace.over(usd, remedy.cluster, DAY),
        usd_per_month=pace.over(usd, remedy.cluster, MONTH),
        change_usd_per_day=_change(*_weekly(costs, week)),
    )


def _summed(
    facts: ReportFacts, lines: Sequence[AvoidableLine], pace: CoveredPace, weeks: dict[str, WeekCoverage]
) -> AvoidableCost:
    by_cluster: dict[str, list[TopicCost]] = defaultdict(list)
    for cost in facts.topics:
        by_cluster[cost.cluster].append(cost)
    pairs = [_weekly(costs, weeks.get(cluster)) for cluster, costs in by_cluster.items()]
    whole = bool(pairs) and all(recent is not None and before is not None for recent, before in pairs)
    recent, before = (sum_of_known(pair[at] for pair in pairs) if whole else None for at in (0, 1))
    kept = [
        pace.over(max(cost.usd - (cost.avoidable_usd or 0.0), 0.0), cost.cluster, DAY)
        for cost in facts.topics
        if cost.usd is not None and not cost.unsure_bytes and cost.path in LASTING_PATHS
    ]
    return AvoidableCost(
        lines=tuple(lines),
        usd_per_day=sum_of_known(line.usd_per_day for line in lines),
        usd_per_month=sum_of_known(line.usd_per_month for line in lines),
        change_usd_per_day=_change(recent, before),
        before_usd_per_day=before,
        unavoidable_usd_per_day=sum_of_known(kept),
        unsure_bytes=sum(cost.unsure_bytes for cost in facts.topics),
    )


def _weekly(costs: Sequence[TopicCost], week: WeekCoverage | None) -> tuple[float | None, float | None]:
    """Dollars a day in the latest days, and in the same days a week before."""
    if week is None or not comparable(week.recent_s, week.before_s):
        return None, None
    recent, before = [cost.recent_usd for cost in costs], [cost.before_usd for cost in costs]
    if None in recent or None in before:
        return None, None
    return (sum_of_known(recent) or 0.0) * DAY / week.recent_s, (sum_of_known(before) or 0.0) * DAY / week.before_s


def _change(recent: float | None, before: float | None) -> float | None:
    return None if recent is None or before is None else recent - before
