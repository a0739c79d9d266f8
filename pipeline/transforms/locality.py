"""How local the reading of every group is, by hour and by the rack of its readers."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.schemas.gold import LOCALITY
from pipeline.transforms.routes import zone
from pipeline.transforms.spans import all_or_null, day_of

_KEY = ("cluster", "hour_ms", "group", "rack")


def locality(readings: DataFrame, routes: DataFrame) -> DataFrame:
    """gold.locality of `reads.reading` rows, and the bytes of `reads.routed` rows. Copies of tasks are no readers."""
    near = zone(F.col("now.source"), F.col("now.target"), F.col("now.why"))
    looked = (
        readings.where(F.col("role") == "active")
        .groupBy("cluster", "hour_ms", "group", F.coalesce("now.target", F.lit("")).alias("rack"))
        .agg(
            F.count_if(near == "SAME_ZONE").cast("double").alias("local"),
            F.count(F.lit(1)).cast("double").alias("total"),
            F.count_if(near == "UNKNOWN").cast("double").alias("unknown"),
        )
    )
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
