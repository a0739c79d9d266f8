"""Weights of traffic and restores for the agent, from the gold tables: one row per topic and per group.

Rates are plain averages: bytes of the window over the seconds of it that looks cover. A whole day has every hour of the
daily rhythm in it once; an average that favours the last hours would lean another way every few hours, and with it
every plan. Gaps are neither zero nor guessed. What was not seen in the last hour or the one before it does not exist
any more, and is left out. A group that catches up reads more than it will; these hours are left out.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.exact_sums import exact_sum
from pipeline.schemas.table import day_of
from pipeline.transforms.spans import HOUR_MS

_WORST_LAST = ("measured", "topic", "remembered", "none")
"""Where the size of a record comes from; the worst of the window counts."""


def topic_weights(traffic: DataFrame, last_ms: int, window_ms: int) -> DataFrame:
    """(topic, from_ms, to_ms, partitions), partitions in order; of one cluster's ``gold.partition_traffic``.

    ``last_ms`` is when the last complete look of the cluster was taken.
    """
    by_partition = (
        _within(traffic, last_ms, window_ms)
        .groupBy("topic", "partition")
        .agg(
            _rate("bytes", "bytes").alias("bytes_per_s"),
            _rate("records", "records").alias("records_per_s"),
            _per_record().alias("bytes_per_record"),
            F.max(_rank(F.col("confidence"))).alias("worst"),
            *_times(last_ms),
        )
        .where(_still_there(last_ms))
    )
    confidence = F.element_at(F.array(*map(F.lit, _WORST_LAST)), F.coalesce("worst", F.lit(len(_WORST_LAST))))
    row = F.struct("partition", "bytes_per_s", "records_per_s", "bytes_per_record", confidence.alias("confidence"))
    return by_partition.groupBy("topic").agg(
        F.min("from_ms").alias("from_ms"),
        F.max("to_ms").alias("to_ms"),
        F.sort_array(F.collect_list(row)).alias("partitions"),
    )


def group_weights(reads: DataFrame, restores: DataFrame, last_ms: int, window_ms: int) -> DataFrame:
    """(group, from_ms, to_ms, reads, restores), both in order; of ``gold.read_traffic`` and ``restore_rates``.

    The rows are of one cluster, whose last complete look was taken at ``last_ms``. A group that restores and reads
    nothing is there too; its times are those of that look.
    """
    steady = _within(reads, last_ms, window_ms).where(~F.coalesce("catching_up", F.expr("false")))
    by_partition = (
        steady.groupBy("group", "topic", "partition")
        .agg(_rate("bytes", "bytes").alias("bytes_per_s"), *_times(last_ms))
        .where(_still_there(last_ms) & F.col("bytes_per_s").isNotNull())
    )
    read = by_partition.groupBy("group").agg(
        F.min("from_ms").alias("read_from_ms"),
        F.max("to_ms").alias("read_to_ms"),
        F.sort_array(F.collect_list(F.struct("topic", "partition", "bytes_per_s"))).alias("reads"),
    )
    last = F.lit(last_ms)
    return read.join(_restored(restores), on="group", how="full_outer").select(
        "group",
        F.coalesce("read_from_ms", F.least("until_ms", last)).alias("from_ms"),
        F.coalesce("read_to_ms", last).alias("to_ms"),
        F.coalesce("reads", F.array().cast(read.schema["reads"].dataType)).alias("reads"),
        "restores",
    )


def _within(hours: DataFrame, last_ms: int, window_ms: int) -> DataFrame:
    """The hours in the window before the last look: their days are bounds as well, by which files are left out."""
    after_ms = last_ms - window_ms - HOUR_MS
    inside = (F.col("hour_ms") > after_ms) & (F.col("hour_ms") <= last_ms)
    return hours.where(F.col("day").between(day_of(after_ms), day_of(last_ms)) & inside & (F.col("seconds") > 0))


def _rate(what: str, known: str) -> Column:
    """The average over the seconds in which it is known; null where it never is."""
    seconds = exact_sum(F.when(F.col(known).isNotNull(), F.col("seconds")))
    return F.when(seconds > 0, exact_sum(F.col(what)) / seconds)


def _per_record() -> Column:
    records = F.try_sum(F.when(F.col("bytes").isNotNull(), F.col("records")))
    return F.when(records > 0, exact_sum(F.col("bytes")) / records)


def _times(last_ms: int) -> tuple[Column, Column]:
    begin, end = F.min("hour_ms"), F.least(F.max("hour_ms") + HOUR_MS, F.lit(last_ms))
    return begin.alias("from_ms"), end.alias("to_ms")


def _still_there(last_ms: int) -> Column:
    """Seen in the cluster's last hour, or in the one before it."""
    return F.col("to_ms") > last_ms - last_ms % HOUR_MS - HOUR_MS


def _restored(restores: DataFrame) -> DataFrame:
    row = F.struct("subtopology", "low", "median", "high", "samples", "stalled_share")
    known = restores.where("low is not null and median is not null and high is not null")
    return known.groupBy("group").agg(
        F.max("until_ms").alias("until_ms"), F.sort_array(F.collect_list(row)).alias("restores")
    )


def _rank(confidence: Column) -> Column:
    ranked = F.array_position(F.array(*map(F.lit, _WORST_LAST)), confidence)
    return F.when(ranked > 0, ranked).otherwise(len(_WORST_LAST)).cast("int")
