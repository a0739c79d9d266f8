"""Amounts of a period at their pace: per hour, day and month, by the seconds that are booked."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.report import words
from pipeline.report.facts import ReportFacts

HOUR, DAY, MONTH = words.HOUR_S, words.DAY_S, 30 * words.DAY_S
"""A month has 30 days."""


class CoveredPace:
    """Amounts of the period, scaled by the seconds that are booked: what looks cover, and gaps."""

    def __init__(self, facts: ReportFacts) -> None:
        self.price = price_applied(facts)
        self._seconds = {row.cluster: row.seconds + row.gap_seconds for row in facts.coverage}

    def over(self, amount: float | None, cluster: str, seconds: float) -> float | None:
        """The amount in that many seconds; None when it, or what the looks cover, is unknown."""
        covered = self._seconds.get(cluster)
        return None if amount is None or not covered else amount * seconds / covered

    def volume(self, size_bytes: float | None, cluster: str) -> str:
        """``1.9 GB/h``; without a pace the amount alone."""
        rate = self.over(size_bytes, cluster, HOUR)
        return words.volume(size_bytes) if rate is None else words.volume(rate) + "/h"


def sum_of_known(amounts: Iterable[float | None]) -> float | None:
    """The sum of what is known; None when nothing is."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def price_applied(facts: ReportFacts) -> str:
    """`` at $0.02 per GB``: the price that the ledger applied across racks; empty where none was."""
    low = [row.usd_per_gb_low for row in facts.pairs if row.usd_per_gb_low is not None]
    high = [row.usd_per_gb_high for row in facts.pairs if row.usd_per_gb_high is not None]
    if not low or not high:
        return ""
    least, most = f"${min(low):.3g}", f"${max(high):.3g}"
    return f" at {least} per GB" if least == most else f" at {least} to {most} per GB"
