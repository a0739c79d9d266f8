"""The ledger beside counters, for a report: what is booked, what offsets and sizes tell, and the difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.values.number_format import counted
from config.foreign_text import shortened
from pipeline.exact_sums import total_sum, total_sums
from pipeline.report import words


class LedgerBalance(NamedTuple):
    """One cluster's ledger beside its counters, over the rows of which both are known."""

    cluster: str
    booked_bytes: float
    counted_bytes: float
    missing_bytes: float
    """What counters tell and the ledger lacks, summed over topics, paths and hours."""
    extra_bytes: float
    """What the ledger has and counters do not tell."""
    worst_path: str | None
    """Path and topic with the largest difference; None without one."""
    worst_topic: str | None
    unknown: int
    """Rows of which the difference is unknown."""
    why_unknown: str | None
    """The most frequent reason; of several the first by name."""


def balances(conservation: DataFrame) -> DataFrame:
    """`LedgerBalance` by cluster, of gold.conservation."""
    known = F.col("why_unknown").isNull()
    difference = F.col("difference_bytes")
    worst = F.struct("size", "path", "topic")

    def total(what: Column) -> Column:
        return F.coalesce(total_sum(F.when(known, what)), F.lit(0.0))

    # First by what makes a row, so that texts are compared in few of them: Spark sorts all rows for their maximum.
    by_path = conservation.groupBy("cluster", "path", "topic", "why_unknown").agg(
        *(total(F.col(name)).alias(name) for name in ("booked_bytes", "counted_bytes")),
        total(F.greatest(-difference, F.lit(0.0))).alias("missing_bytes"),
        total(F.greatest(difference, F.lit(0.0))).alias("extra_bytes"),
        F.max(F.when(known, F.abs(difference))).alias("size"),
        F.count(F.lit(1)).alias("rows"),
    )
    unknown = F.sum(F.when(~known, F.col("rows")))
    by_reason = by_path.groupBy("cluster", "why_unknown").agg(
        *total_sums(*LedgerBalance._fields[1:5]),
        F.max(F.when(F.col("size") >= 1.0, worst)).alias("worst"),
        F.coalesce(unknown, F.lit(0)).alias("unknown"),
    )
    return (
        by_reason.groupBy("cluster")
        .agg(
            *total_sums(*LedgerBalance._fields[1:5]),
            F.max("worst").alias("worst"),
            F.sum("unknown").alias("unknown"),
            F.min_by("why_unknown", F.struct(-F.col("unknown"), "why_unknown")).alias("why_unknown"),
        )
        .withColumns({"worst_path": F.col("worst.path"), "worst_topic": F.col("worst.topic")})
        .select(*LedgerBalance._fields)
        .orderBy("cluster")
    )


def balance_notes(rows: tuple[LedgerBalance, ...]) -> Iterator[str]:
    """A sentence for each cluster."""
    for row in rows:
        yield (
            f"The ledger of cluster {words.short(row.cluster)} beside its counters: "
            f"booked {words.volume(row.booked_bytes)}, counted {words.volume(row.counted_bytes)}; "
            f"{_difference(row)}{_unknown(row)}."
        )


def _difference(row: LedgerBalance) -> str:
    if row.worst_path is None:
        return "no difference"
    lacks, more = (words.volume(size) for size in (row.missing_bytes, row.extra_bytes))
    share = words.share(row.missing_bytes + row.extra_bytes, row.counted_bytes)
    return (
        f"it lacks {lacks} and has {more} too many ({share}), most of it on path {row.worst_path} of topic "
        f"{words.short(row.worst_topic or '')}"
    )


def _unknown(row: LedgerBalance) -> str:
    if not row.unknown:
        return ""
    why = shortened(row.why_unknown or "")
    return f"; for {counted(row.unknown, 'row')} of topic, path and hour it is unknown ({why})"
