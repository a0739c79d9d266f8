"""The ledger added up by day, once, for all questions of a report: a twentieth of its rows.

Such a row reads as one of the ledger. What is known and what is unknown is never in one row, so a null means what it
means there: of no row that was added up it is known.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.values.rates import BYTES_PER_GB
from pipeline.exact_sums import total_sums
from pipeline.report.facts import LASTING_PATHS
from pipeline.report.period import ReportPeriod, between
from pipeline.report.weeks import LatestDays
from pipeline.schemas.zones import CROSS_ZONE

_LIKE = (
    "cluster", "day", "path", "group", "topic", "source_rack", "target_rack", "zone", "why_unknown", "price_date",
    "asked", "recent", "before",
)  # fmt: skip
_SUMS = ("bytes", "usd", "unavoidable_bytes", "avoidable", "saved")


def ledger_sums(ledger: DataFrame, period: ReportPeriod, latest: LatestDays) -> DataFrame:
    """Rows of gold.ledger that are of the period (``asked``) or of the same days a week before (``before``), by day.

    Beside the ledger's columns: ``rows``, how many they are; ``recent``, whether they are of the latest days;
    ``avoidable``, bytes that no placement needs, and ``saved``, their dollars; ``usd_per_gb_low`` and ``_high``.
    """
    size = F.col("bytes")
    price = F.when((F.col("zone") == CROSS_ZONE) & (size > 0), F.col("usd") / size * BYTES_PER_GB)
    hours = ledger.withColumns(
        {
            "asked": between("hour_ms", period.from_ms, period.to_ms),
            "recent": between("hour_ms", *latest),
            "before": between("hour_ms", *latest.week_before),
            "avoidable": avoidable_bytes(),
        }
    ).where(F.col("asked") | F.col("before"))
    rows = hours.withColumn("saved", F.col("usd") * F.col("avoidable") / F.nullif(size, F.lit(0.0)))
    # What makes rows unlike each other besides their names: a null, no bytes at all, nothing to be avoided.
    kinds = [F.col(name).isNull().alias(f"no_{name}") for name in _SUMS]
    kinds += [(F.col(name) > 0).alias(f"some_{name}") for name in ("bytes", "avoidable")]
    return (
        rows.groupBy(*_LIKE, *kinds)
        .agg(
            F.count(F.lit(1)).alias("rows"),
            *total_sums(*_SUMS),
            F.min(price).alias("usd_per_gb_low"),
            F.max(price).alias("usd_per_gb_high"),
        )
        .drop(*(f"no_{name}" for name in _SUMS), "some_bytes", "some_avoidable")
    )


def avoidable_bytes() -> Column:
    """Bytes that another placement or setting avoids; null where that is unknown."""
    more = F.greatest(F.col("bytes") - F.col("unavoidable_bytes"), F.lit(0.0))
    known = F.when(F.col("unavoidable_bytes").isNotNull(), more)
    return F.when(F.col("path").isin(*LASTING_PATHS), known).otherwise(0.0)
