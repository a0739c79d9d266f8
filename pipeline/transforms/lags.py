"""How far groups are behind, by hour: over all partitions of a topic at each look, then over the looks of the hour."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.schemas.gold import LAGS
from pipeline.transforms.mergeable_aggregate import MergeableAggregate
from pipeline.transforms.spans import day_of

_KEY = ("cluster", "hour_ms", "group", "topic")
BEHIND = MergeableAggregate(
    _KEY, {"looks": F.sum, "unknown_looks": F.sum, "least": F.min, "total": F.sum, "most": F.max, "last": F.max}
)


def behind(readings: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """How far groups were behind, as `BEHIND`, of `reads.reading` rows.

    A look counts as unknown where one partition's lag is unknown.
    """
    at_look = (
        readings.where(F.col("role") == "active")
        .groupBy("cluster", "hour_ms", "group", "topic", "look", "taken_ms")
        .agg(F.when(F.count("lag") == F.count(F.lit(1)), F.sum("lag")).alias("lag"))
    )
    known = F.col("lag").isNotNull()
    return BEHIND.up(
        at_look.select(
            *_KEY,
            known.cast("long").alias("looks"),
            (~known).cast("long").alias("unknown_looks"),
            F.col("lag").alias("least"),
            F.col("lag").alias("total"),
            F.col("lag").alias("most"),
            F.when(known, F.struct("taken_ms", "look", "lag")).alias("last"),
        ),
        before,
    )


def lags(behind: DataFrame) -> DataFrame:
    """gold.lags of `behind` rows."""
    return behind.select(
        *_KEY,
        F.col("looks").cast("int").alias("looks"),
        F.col("unknown_looks").cast("int").alias("unknown_looks"),
        F.col("least").alias("lag_min"),
        (F.col("total") / F.nullif(F.col("looks"), F.lit(0))).alias("lag_mean"),
        F.col("most").alias("lag_max"),
        F.col("last.lag").alias("lag_last"),
        day_of(F.col("hour_ms")).alias("day"),
    ).select(*LAGS.schema.names)
