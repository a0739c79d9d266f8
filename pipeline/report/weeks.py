"""The latest days of a report's period, and the same days a week before, with which they are compared.

A shift by whole weeks keeps the rhythm of days and hours. Both are at most a week long, so they never overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.report.facts import LookCoverage
from pipeline.report.period import ReportPeriod
from pipeline.transforms.spans import HOUR_MS

WEEK_MS = 7 * 24 * HOUR_MS
_LEAST_SHARE = 0.5
"""Share of the time that looks cover now, which they must have covered a week before for the two to be compared."""


class LatestDays(NamedTuple):
    """A stretch of time: up to but without its end."""

    from_ms: int
    to_ms: int

    @property
    def week_before(self) -> LatestDays:
        """The stretch a week before."""
        return LatestDays(self.from_ms - WEEK_MS, self.to_ms - WEEK_MS)


def latest_days(coverage: Sequence[LookCoverage]) -> LatestDays:
    """The last seven days that looks cover, or all of them where they are fewer; none without a look."""
    if not coverage:
        return LatestDays(0, 0)
    end = max(row.last_ms for row in coverage) + HOUR_MS
    return LatestDays(max(min(row.first_ms for row in coverage), end - WEEK_MS), end)


def widened(period: ReportPeriod) -> ReportPeriod:
    """The period and the week before it, where every stretch lies that its latest days are compared with."""
    return period if period.from_ms is None else period._replace(from_ms=period.from_ms - WEEK_MS)


def comparable(recent_s: float, before_s: float) -> bool:
    """Whether looks cover enough of both stretches."""
    return recent_s > 0 and before_s >= _LEAST_SHARE * recent_s
