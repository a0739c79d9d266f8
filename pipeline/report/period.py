"""Period and clusters of a report, and the rows of a table that belong to it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.errors import BadInput
from pipeline.moments import epoch_ms_of


class ReportPeriod(NamedTuple):
    """From the first moment on, up to but without the last one."""

    from_ms: int | None = None
    to_ms: int | None = None
    clusters: tuple[str, ...] = ()
    """Empty for all of them."""


def period_of(begin: str | None, end: str | None, clusters: tuple[str, ...] = ()) -> ReportPeriod:
    """The period between two dates or times as people write them. Raises BadInput."""
    period = ReportPeriod(_moment("--from", begin), _moment("--to", end), clusters)
    if period.from_ms is not None and period.to_ms is not None and period.from_ms >= period.to_ms:
        raise BadInput(
            f"--from {begin} is not before --to {end}", why="the period would be empty", todo="Give a later --to."
        )
    return period


def within(frame: DataFrame, period: ReportPeriod, moment: str) -> DataFrame:
    """Rows of the clusters whose moment is in the period."""
    return of_clusters(frame, period).where(between(moment, period.from_ms, period.to_ms))


def between(moment: str, begin_ms: int | None, end_ms: int | None) -> Column:
    """Whether the moment is of that time; None: no bound."""
    within = F.lit(True)  # noqa: FBT003 a literal column
    if begin_ms is not None:
        within &= F.col(moment) >= begin_ms
    return within if end_ms is None else within & (F.col(moment) < end_ms)


def touching(frame: DataFrame, period: ReportPeriod, begin: str, end: str) -> DataFrame:
    """Rows of the clusters whose stretch of time touches the period; one without an end still lasts."""
    rows = of_clusters(frame, period)
    if period.to_ms is not None:
        rows = rows.where(F.col(begin) < period.to_ms)
    if period.from_ms is not None:
        rows = rows.where(F.col(end).isNull() | (F.col(end) >= period.from_ms))
    return rows


def of_clusters(frame: DataFrame, period: ReportPeriod) -> DataFrame:
    """Rows of the requested clusters."""
    return frame.where(F.col("cluster").isin(*period.clusters)) if period.clusters else frame


def minute_of(moment_ms: int) -> str:
    """``2026-11-21 18:47``, in UTC."""
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def _moment(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return epoch_ms_of(text)
    except ValueError:
        raise BadInput(
            f"{option} {text!r} is not a date",
            why="a date or time in ISO 8601 is expected",
            todo="Write it as 2026-11-21 or 2026-11-21T18:00Z.",
        ) from None
