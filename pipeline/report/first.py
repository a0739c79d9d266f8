"""First line of a report: the most valuable thing to do, with its figure.

The order of priorities: what saves most dollars a day, then what is dearest now, then what moves most bytes, then what
is unknown because racks are unknown. Without an open proposal the sentence names the greatest cost and that
nothing is proposed about it, or that nothing is known at all.
"""

from __future__ import annotations

from agent.values.proposal import ProposalReason
from pipeline.report import words
from pipeline.report.facts import OpenProposal, ReportFacts
from pipeline.report.summaries import CONSUME
from pipeline.schemas import gold

_ADVICE = {
    ProposalReason.MEND_RACK_SPREAD: "Move replicas of {}, so that no rack holds more copies than it must",
    ProposalReason.LEADERS_TO_READERS: "Give {} leaders in the racks of its readers",
    ProposalReason.LEADERS_EVEN: "Spread the preferred leaders of {} evenly over the racks",
    ProposalReason.WARMUP_PROMOTABLE: "Rebalance {} once, its warm-ups have caught up",
    ProposalReason.REBALANCE_IMPROVES: "Rebalance {} once",
    ProposalReason.SET_CLIENT_RACK: "Set client.rack for {}",
    ProposalReason.SET_BROKER_RACK: "Set broker.rack of {}",
    ProposalReason.SET_SELECTOR: "Set replica.selector.class of {}, so that reads stay in the rack",
    ProposalReason.CHANGE_ASSIGNOR: "Change the assignor of {} to a rack-aware one",
    ProposalReason.SET_STRATEGY: "Set rack.aware.assignment.strategy of {}",
    ProposalReason.SET_STANDBYS: "Spread the standbys of {} over the racks",
    ProposalReason.UPGRADE_CLIENT: "Upgrade the clients of {}, they are too old to send their rack",
    ProposalReason.USE_DROP_IN_ASSIGNOR: "Give the clients of {} a rack-aware assignor, see docs/clients.md",
    ProposalReason.REMOVE_THROTTLE: "Remove the leftover throttle on {}",
}
_HOUR, _DAY = words.SECONDS_PER_HOUR, words.SECONDS_PER_DAY


class CoveredPace:
    """Amounts of the period, scaled to an hour or a day by the seconds that are booked: what looks cover, and gaps."""

    def __init__(self, facts: ReportFacts) -> None:
        self.price = price_applied(facts)
        self._seconds = {row.cluster: row.seconds + row.gap_seconds for row in facts.coverage}

    def over(self, amount: float | None, cluster: str, seconds: float) -> float | None:
        """The amount in that many seconds; None when it, or what the looks cover, is unknown."""
        covered = self._seconds.get(cluster)
        return None if amount is None or not covered else amount * seconds / covered

    def volume(self, size_bytes: float | None, cluster: str) -> str:
        """``1.9 GB/h``; without a pace the amount alone."""
        rate = self.over(size_bytes, cluster, _HOUR)
        return words.volume(size_bytes) if rate is None else words.volume(rate) + "/h"


def first_line(facts: ReportFacts) -> str:
    """One sentence."""
    pace = CoveredPace(facts)
    ranked = by_worth(facts)
    if ranked:
        return f"{todo(ranked[0])}: {worth(ranked[0], pace)}."
    if gold.OUTCOMES.name in facts.absent:
        return f"Unknown: the table {gold.OUTCOMES.name} does not exist yet, so no proposal can be shown."
    dearest = _dearest(facts)
    if dearest is not None:
        cluster, what, size, usd = dearest
        cost = _a_day(usd, cluster, pace)
        return f"Nothing is proposed now; {what} crosses racks most: {pace.volume(size, cluster)}{cost}."
    return _nothing_crosses(facts)


def _nothing_crosses(facts: ReportFacts) -> str:
    """The sentence without a proposal and without a byte that is known to cross racks."""
    if not facts.pairs:
        return "Unknown: the tables hold no traffic of this period."
    unknown = [row for row in facts.pairs if row.zone == "UNKNOWN"]
    if unknown:
        why = "; ".join(sorted({words.shown(row.why_unknown) for row in unknown if row.why_unknown})[:2])
        some = words.volume(sum(row.bytes or 0.0 for row in unknown))
        size = "all bytes" if len(unknown) == len(facts.pairs) else some
        because = f" ({why})" if why else ""
        return f"Set the missing racks first: for {size} it is unknown whether they cross racks{because}."
    if any(row.sizeless for row in facts.pairs if row.zone == "CROSS_ZONE"):
        return "Unknown: records cross racks, and the size of some of them is unknown."
    return "Nothing to do: no byte crosses racks, and there are no open proposals."


def price_applied(facts: ReportFacts) -> str:
    """`` at $0.02 per GB``: the price that the ledger applied across racks; empty where none was."""
    low = [row.usd_per_gb_low for row in facts.pairs if row.usd_per_gb_low is not None]
    high = [row.usd_per_gb_high for row in facts.pairs if row.usd_per_gb_high is not None]
    if not low or not high:
        return ""
    least, most = f"${min(low):.3g}", f"${max(high):.3g}"
    return f" at {least} per GB" if least == most else f" at {least} to {most} per GB"


def by_worth(facts: ReportFacts) -> tuple[OpenProposal, ...]:
    """The open proposals, the most valuable first."""
    pace = CoveredPace(facts)

    def key(row: OpenProposal) -> tuple[float, float, float, str, str, str]:
        usd = pace.over(row.usd, row.cluster, _DAY)
        hourly = pace.over(row.avoidable_bytes, row.cluster, _HOUR)
        return (
            -(row.gain_usd_per_day if row.gain_usd_per_day is not None else _possible(row, usd)),
            -(hourly or 0.0),
            -((row.unknown_bytes or 0.0) + (row.undecided_bytes or 0.0)),
            row.kind,
            row.subject or "",
            row.proposal,
        )

    return tuple(sorted(facts.standing, key=key))


def todo(row: OpenProposal) -> str:
    """The proposal's change, as an imperative."""
    subject = subject_of(row.subject)
    reason = (row.reason or "").upper()
    if reason in ProposalReason.__members__:
        return _ADVICE[ProposalReason[reason]].format(subject)
    return f"Check proposal {row.proposal} about {subject}"


def worth(row: OpenProposal, pace: CoveredPace) -> str:
    """What it is about in figures: what crosses racks now, what that costs, what is saved."""
    parts: list[str] = []
    if row.cross_bytes:
        now = f"{pace.volume(row.cross_bytes, row.cluster)} cross racks{_a_day(row.usd, row.cluster, pace)}"
        parts.append(now)
    if row.undecided_bytes:
        undecided = pace.volume(row.undecided_bytes, row.cluster)
        parts.append(f"for {undecided} of these it is unknown whether a placement avoids them")
    if row.unknown_bytes:
        parts.append(f"for {pace.volume(row.unknown_bytes, row.cluster)} it is unknown whether they cross racks")
    if row.gain_usd_per_day:
        parts.append(f"predicted to change the cost by {words.money(-row.gain_usd_per_day, sign=True)} a day")
    elif row.after_bytes_per_s is not None:
        parts.append(f"predicted to leave {words.per_second(row.after_bytes_per_s)} across racks")
    return ", ".join(parts) or "its bytes are unknown"


def subject_of(subject: str | None) -> str:
    """``group/billing`` in words."""
    kind, _, name = (subject or "").partition("/")
    return f"{kind} {words.short(name)}" if name else "the cluster"


def _possible(row: OpenProposal, usd_per_day: float | None) -> float:
    """The part of its subject's bill that a placement is known to avoid, where there is no prediction."""
    if usd_per_day is None or not row.cross_bytes or row.avoidable_bytes is None:
        return 0.0
    return usd_per_day * row.avoidable_bytes / row.cross_bytes


def _a_day(usd: float | None, cluster: str, pace: CoveredPace) -> str:
    if usd is None:
        return ", without a known price"
    daily = pace.over(usd, cluster, _DAY)
    bill = f"{words.money(usd)} in the period" if daily is None else f"about {words.money(daily)} a day"
    return f", {bill}{pace.price}"


def _dearest(facts: ReportFacts) -> tuple[str, str, float, float | None] | None:
    """(cluster, what, bytes, dollars) of the group, or else the path, that sends most across racks."""
    sizes: dict[tuple[str, str], float] = {}
    prices: dict[tuple[str, str], float | None] = {}
    for row in facts.costs:
        what = f"what group {words.short(row.group)} reads" if row.path == CONSUME else f"path {row.path}"
        key = row.cluster, what
        sizes[key] = sizes.get(key, 0.0) + (row.cross_bytes or 0.0)
        known = prices.get(key, 0.0)
        prices[key] = None if row.usd is None or known is None else known + row.usd
    best = max(sizes, key=lambda key: (prices[key] or 0.0, sizes[key], key), default=None)
    return None if best is None or not sizes[best] else (*best, sizes[best], prices[best])
