"""Weights of traffic and restores for the agent, from the gold tables: one row per topic and per group.

Rates are plain averages: bytes of the window over the seconds of it that looks cover. A whole day has every hour of the
daily rhythm in it once; an average that favours the last hours would lean another way every few hours, and with it
every plan. Gaps are neither zero nor guessed. What was not seen in the last hour or the one before it does not exist
any more, and is left out. A group that catches up reads more than it will; these hours are left out.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.transforms.spans import HOUR_MS

_WORST_LAST = ("measured", "topic", "remembered", "none")
"""Where the size of a record comes from; the worst of the window counts."""


def last_looks(looks: DataFrame) -> DataFrame:
    """(cluster, last_ms): when the last complete look of each cluster was taken."""
    return looks.where("complete").groupBy("cluster").agg(F.max("taken_ms").alias("last_ms"))


def topic_weights(traffic: DataFrame, looks: DataFrame, window_ms: int) -> DataFrame:
    """(cluster, topic, from_ms, to_ms, partitions), partitions in order; of ``gold.partition_traffic``."""
    by_partition = (
        _within(traffic, looks, window_ms)
        .groupBy("cluster", "topic", "partition", "last_ms")
        .agg(
            _rate("bytes", "bytes").alias("bytes_per_s"),
            _rate("records", "records").alias("records_per_s"),
            _per_record().alias("bytes_per_record"),
            F.max(_rank(F.col("confidence"))).alias("worst"),
            *_times(),
        )
        .where(_still_there())
    )
    confidence = F.element_at(F.array(*map(F.lit, _WORST_LAST)), F.coalesce("worst", F.lit(len(_WORST_LAST))))
    row = F.struct("partition", "bytes_per_s", "records_per_s", "bytes_per_record", confidence.alias("confidence"))
    return by_partition.groupBy("cluster", "topic").agg(
        F.min("from_ms").alias("from_ms"),
        F.max("to_ms").alias("to_ms"),
        F.sort_array(F.collect_list(row)).alias("partitions"),
    )


def group_weights(reads: DataFrame, restores: DataFrame, looks: DataFrame, window_ms: int) -> DataFrame:
    """(cluster, group, from_ms, to_ms, reads, restores), both in order; of ``gold.read_traffic`` and ``restore_rates``.

    A group that restores and reads nothing is there too; its times are those of its cluster's last look.
    """
    steady = _within(reads, looks, window_ms).where(~F.coalesce("catching_up", F.expr("false")))
    by_partition = (
        steady.groupBy("cluster", "group", "topic", "partition", "last_ms")
        .agg(_rate("bytes", "bytes").alias("bytes_per_s"), *_times())
        .where(_still_there() & F.col("bytes_per_s").isNotNull())
    )
    read = by_partition.groupBy("cluster", "group").agg(
        F.min("from_ms").alias("read_from_ms"),
        F.max("to_ms").alias("read_to_ms"),
        F.sort_array(F.collect_list(F.struct("topic", "partition", "bytes_per_s"))).alias("reads"),
    )
    both = read.join(_restored(restores), on=["cluster", "group"], how="full_outer").join(
        last_looks(looks), on="cluster", how="inner"
    )
    return both.select(
        "cluster",
        "group",
        F.coalesce("read_from_ms", F.least("until_ms", "last_ms")).alias("from_ms"),
        F.coalesce("read_to_ms", "last_ms").alias("to_ms"),
        F.coalesce("reads", F.array().cast(read.schema["reads"].dataType)).alias("reads"),
        "restores",
    )


def _within(hours: DataFrame, looks: DataFrame, window_ms: int) -> DataFrame:
    """The hours in the window before the cluster's last look."""
    recent = hours.join(F.broadcast(last_looks(looks)), on="cluster", how="inner")
    inside = (F.col("hour_ms") + HOUR_MS > F.col("last_ms") - window_ms) & (F.col("hour_ms") <= F.col("last_ms"))
    return recent.where(inside & (F.col("seconds") > 0))


def _rate(what: str, known: str) -> Column:
    """The average over the seconds in which it is known; null where it never is."""
    seconds = F.sum(F.when(F.col(known).isNotNull(), F.col("seconds")))
    return F.when(seconds > 0, F.try_sum(what) / seconds)


def _per_record() -> Column:
    records = F.try_sum(F.when(F.col("bytes").isNotNull(), F.col("records")))
    return F.when(records > 0, F.sum("bytes") / records)


def _times() -> tuple[Column, Column]:
    begin, end = F.min("hour_ms"), F.least(F.max("hour_ms") + HOUR_MS, F.first("last_ms"))
    return begin.alias("from_ms"), end.alias("to_ms")


def _still_there() -> Column:
    """Seen in the cluster's last hour, or in the one before it."""
    return F.col("to_ms") > F.col("last_ms") - F.col("last_ms") % HOUR_MS - HOUR_MS


def _restored(restores: DataFrame) -> DataFrame:
    row = F.struct("subtopology", "low", "median", "high", "samples", "stalled_share")
    known = restores.where("low is not null and median is not null and high is not null")
    rates = known.groupBy("cluster", "group").agg(
        F.max("until_ms").alias("until_ms"), F.sort_array(F.collect_list(row)).alias("restores")
    )
    return rates.select("cluster", "group", "until_ms", "restores")


def _rank(confidence: Column) -> Column:
    ranked = F.array_position(F.array(*map(F.lit, _WORST_LAST)), confidence)
    return F.when(ranked > 0, ranked).otherwise(len(_WORST_LAST)).cast("int")
