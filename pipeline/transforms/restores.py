"""How fast applications restore, by store: what their warm-ups tell, and what went with it when they stalled."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.schemas.gold import RESTORE_RATES

LEARNED_MS = 14 * 24 * 3_600_000
"""Of each cluster the restores of so long teach, up to its last."""
SHORTEST_S = 1.0
"""A restore that advanced for less tells no rate."""
_MOST = 0.5
"""What goes with more than this share of the stalls is what they are said to go with."""


def restore_rates(warmups: DataFrame) -> DataFrame:
    """gold.restore_rates of all gold.warmups rows. A rate is of the time in which something was restored."""
    advanced_s = F.col("seconds") - F.col("stalled_s")
    newest = F.max("last_ms").over(Window.partitionBy("cluster"))
    lately = warmups.withColumn("newest_ms", newest).where(F.col("last_ms") >= F.col("newest_ms") - LEARNED_MS)
    told = lately.where((F.col("records") > 0) & (advanced_s >= SHORTEST_S)).select(
        "cluster",
        "group",
        # Under KIP-1071 a subtopology may be any text; what is no number is left out.
        F.get(F.split("task", "_"), F.lit(0)).try_cast("int").alias("subtopology"),
        (F.col("records") / advanced_s).alias("rate"),
        "changelogs",
        "seconds",
        "stalled_s",
        F.coalesce("stalled_rebalancing_s", F.lit(0.0)).alias("rebalancing_s"),
        F.coalesce("stalled_sharing_s", F.lit(0.0)).alias("sharing_s"),
        "last_ms",
    )
    added = (
        told.where(F.col("subtopology").isNotNull())
        .groupBy("cluster", "group", "subtopology")
        .agg(
            F.coalesce(F.max_by("changelogs", "last_ms"), F.array().cast("array<string>")).alias("changelogs"),
            F.count(F.lit(1)).cast("int").alias("samples"),
            F.percentile("rate", [0.1, 0.5, 0.9]).alias("rates"),
            *(
                F.sum(F.col(name).cast("decimal(20,3)")).cast("double").alias(name)
                for name in ("seconds", "stalled_s", "rebalancing_s", "sharing_s")
            ),
            F.max("last_ms").alias("until_ms"),
        )
    )
    return (
        added.withColumn("low", F.col("rates")[0])
        .withColumn("median", F.col("rates")[1])
        .withColumn("high", F.col("rates")[2])
        .withColumn("stalled_share", F.col("stalled_s") / F.col("seconds"))
        .withColumn("stalls_when", _stalls_when())
        .select(*RESTORE_RATES.schema.names)
    )


def _stalls_when() -> Column:
    stalled = F.col("stalled_s")
    rest = stalled - F.col("rebalancing_s") - F.col("sharing_s")

    def said(word: str, part: Column, clause: str) -> Column:
        share = F.format_string("%.0f", part / stalled * 100)
        return F.when(part > stalled * _MOST, F.concat(F.lit(f"{word}: {clause} in "), share, F.lit(" % of the time")))

    return F.when(
        stalled > 0,
        F.coalesce(
            said("rebalancing", F.col("rebalancing_s"), "the group was not Stable"),
            said("sharing", F.col("sharing_s"), "another copy of the same process was restoring"),
            said("alone", rest, "nothing that looks show went with it"),
            F.lit("mixed: nothing went with more than half of it"),
        ),
    )
