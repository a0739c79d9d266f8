"""How far groups are behind, by hour: over all partitions of a topic at each look, then over the looks of the hour."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.schemas.gold import LAGS
from pipeline.transforms.spans import day_of


def lags(readings: DataFrame) -> DataFrame:
    """gold.lags of `reads.reading` rows. A look counts as unknown where one partition's lag cannot be told."""
    at_look = (
        readings.where(F.col("role") == "active")
        .groupBy("cluster", "hour_ms", "group", "topic", "look", "taken_ms")
        .agg(F.when(F.count("lag") == F.count(F.lit(1)), F.sum("lag")).alias("lag"))
    )
    return (
        at_look.groupBy("cluster", "hour_ms", "group", "topic")
        .agg(
            F.count("lag").cast("int").alias("looks"),
            (F.count(F.lit(1)) - F.count("lag")).cast("int").alias("unknown_looks"),
            F.min("lag").alias("lag_min"),
            (F.sum("lag") / F.count("lag")).alias("lag_mean"),
            F.max("lag").alias("lag_max"),
            F.max_by("lag", F.when(F.col("lag").isNotNull(), F.struct("taken_ms", "look"))).alias("lag_last"),
        )
        .withColumn("day", day_of(F.col("hour_ms")))
        .select(*LAGS.schema.names)
    )
