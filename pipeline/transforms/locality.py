"""How local the reading of every group is, by hour and by the rack of its readers."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.schemas.gold import LOCALITY
from pipeline.transforms.mergeable_aggregate import MergeableAggregate
from pipeline.transforms.routes import zone
from pipeline.transforms.spans import all_or_null, day_of

_KEY = ("cluster", "hour_ms", "group", "rack")
NEAR = MergeableAggregate(_KEY, {"local": F.sum, "total": F.sum, "unknown": F.sum})


def near(readings: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """How often readers had what they read in their rack, as `NEAR`, of `reads.reading` rows."""
    way = zone(F.col("now.source"), F.col("now.target"), F.col("now.why"))
    return NEAR.up(
        readings.where(F.col("role") == "active").select(
            "cluster",
            "hour_ms",
            "group",
            F.coalesce("now.target", F.lit("")).alias("rack"),
            (way == "SAME_ZONE").cast("long").alias("local"),
            F.lit(1).cast("long").alias("total"),
            (way == "UNKNOWN").cast("long").alias("unknown"),
        ),
        before,
    )


def locality(near: DataFrame, routes: DataFrame) -> DataFrame:
    """gold.locality of `near` rows, and the bytes of `reads.routed` rows. Copies of tasks are no readers."""
    looked = near.select(*_KEY, *(F.col(name).cast("double").alias(name) for name in NEAR.by))
    way = zone(F.col("source_rack"), F.col("target_rack"), F.col("why"))
    within = F.when(way == "SAME_ZONE", F.col("bytes")).when(way == "CROSS_ZONE", F.lit(0.0))
    in_bytes = (
        routes.where(F.col("role") == "active")
        .groupBy("cluster", "hour_ms", "group", F.coalesce("target_rack", F.lit("")).alias("rack"))
        .agg(
            all_or_null(within).alias("local_bytes"),
            all_or_null(F.col("bytes")).alias("total_bytes"),
        )
    )
    return (
        looked.join(in_bytes, on=[*_KEY], how="left")
        .withColumn("day", day_of(F.col("hour_ms")))
        .select(*LOCALITY.schema.names)
    )
