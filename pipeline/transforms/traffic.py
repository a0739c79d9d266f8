"""Traffic of partitions: records by end offsets, bytes by the size of a record on disk.

A record's size comes from what the log grew over what was appended, between looks with described sizes. That holds for
logs that only grow: where segments were deleted, intervals with a small ratio are left out, and a compacted topic
takes what the agent had learned. The bytes per record of a whole log hold for neither.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.schemas.gold import PARTITION_TRAFFIC
from pipeline.transforms.mergeable_aggregate import MergeableAggregate, listed
from pipeline.transforms.spans import LEAP_MS, LONGEST_MS, day_of, hour_of, part_of, spanned

_KEY = ("cluster", "hour_ms", "topic", "partition")
TRAFFIC_SUMS = MergeableAggregate(_KEY, {"ms": F.sum, "records": F.sum, "grown": listed, "learned": F.max})
"""``grown``: each interval between two sizes (ratio, bytes, records); ``learned``: of the last look."""
NEWEST_SIZES = MergeableAggregate(("cluster", "instance", "topic", "partition"), {"sized": F.max})
"""The newest described size of a partition: monotonic_ms, look, taken_ms, topic_id, size_bytes, end_offset."""
_CUT_SHARE = 0.5
"""Where segments were deleted, an interval whose bytes per record are below this share of the median is left out."""
_WHOLE_SHARE = 0.9
"""With at least this share of the median, all intervals together show no deletion."""


def partition_changes(partitions: DataFrame, times: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """Each partition at each look, with its state at the look before.

    ``times`` is `spans.timeline`; ``before``, as `NEWEST_SIZES`, the newest sizes of all looks before these.
    ``records`` is null where the looks are no pair, the topic is another one of the same name, or offsets went back.
    ``now`` and ``was`` are pictures: leader_rack, placed (broker, rack, bytes, adding), isr_racks, isr_told_racks,
    selector, racks, size_bytes. ``sized`` is as in `NEWEST_SIZES`.
    """
    in_order = Window.partitionBy("cluster", "instance", "topic", "partition").orderBy("monotonic_ms", "look")
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    sized = F.when(
        F.col("size_fresh") & F.col("size_bytes").isNotNull() & F.col("end_offset").isNotNull(),
        F.struct("monotonic_ms", "look", "taken_ms", "topic_id", "size_bytes", "end_offset"),
    )
    last = F.struct("look", "topic_id", "end_offset", "now")
    dated = partitions.drop("taken_ms", "day").join(F.broadcast(times), on=["cluster", "look"], how="inner")
    lagged = dated.withColumns({"now": _picture(), "sized": sized}).withColumns(
        {"before": F.lag(last).over(in_order), "sized_before": F.last("sized", ignorenulls=True).over(earlier)}
    )
    if before is not None:
        older = before.withColumnRenamed("sized", "older")
        lagged = lagged.join(older, on=[*NEWEST_SIZES.key], how="left").withColumn(
            "sized_before", F.coalesce("sized_before", "older")
        )
    paired = (F.col("before.look") == F.col("previous")) & F.col("before.topic_id").eqNullSafe(F.col("topic_id"))
    delta = F.col("end_offset") - F.col("before.end_offset")
    return lagged.select(
        "cluster",
        "instance",
        "look",
        "previous",
        "taken_ms",
        hour_of(F.col("taken_ms")).alias("hour_ms"),
        "topic",
        "partition",
        "end_offset",
        "compacted",
        "learned_bytes_per_record",
        "now",
        F.when(paired, F.col("before.now")).alias("was"),
        F.when(paired & (delta >= 0), delta).alias("records"),
        _grown().alias("grown"),
        "sized",
    )


def traffic_sums(changes: DataFrame, spans: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """Traffic of partitions, as `TRAFFIC_SUMS`, of `partition_changes` rows, by the hours or windows of ``spans``.

    The sums of other looks, ``before``, are added; so it is with all sums of looks.
    """
    known = spanned(changes, spans).where(F.col("records").isNotNull())
    return TRAFFIC_SUMS.aggregate(
        known.withColumn("records", part_of(F.col("records")))
        .withColumn("grown", F.when(F.col("grown").isNotNull(), F.array("grown")))
        .withColumn("learned", F.struct("taken_ms", F.col("learned_bytes_per_record").alias("bytes_per_record"))),
        before,
    )


def newest_sizes(changes: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """The newest sizes, as `NEWEST_SIZES`, of `partition_changes` rows."""
    return NEWEST_SIZES.aggregate(changes.where(F.col("sized").isNotNull()), before)


def partition_traffic(taken: DataFrame) -> DataFrame:
    """gold.partition_traffic of `traffic_sums` rows."""
    added = taken.select(
        *_KEY,
        (F.col("ms") / 1000.0).alias("seconds"),
        "records",
        F.sort_array("grown").alias("grown"),
        F.col("learned.bytes_per_record").alias("learned"),
    )
    own = _uncut(F.col("grown"))
    grown = added.withColumns({"grown_bytes": _sum_of(own, "bytes"), "grown_records": _sum_of(own, "records")})
    topic = Window.partitionBy("cluster", "hour_ms", "topic")
    of_topic = F.sum("grown_bytes").over(topic) / F.nullif(F.sum("grown_records").over(topic), F.lit(0))
    measured = F.col("grown_bytes") / F.nullif(F.col("grown_records"), F.lit(0))
    sized = grown.withColumns({"of_topic": of_topic, "measured": measured})
    per_record = F.coalesce("measured", "of_topic", "learned")
    confidence = (
        F.when(F.col("measured").isNotNull(), "measured")
        .when(F.col("of_topic").isNotNull(), "topic")
        .when(F.col("learned").isNotNull(), "remembered")
        .otherwise("none")
    )
    return (
        sized.withColumns({"bytes_per_record": per_record, "confidence": confidence})
        .withColumn("bytes", _in_bytes())
        .withColumns({f"{name}_per_s": F.col(name) / F.col("seconds") for name in ("records", "bytes")})
        .withColumn("day", day_of(F.col("hour_ms")))
        .select(*PARTITION_TRAFFIC.schema.names)
    )


def record_sizes(traffic: DataFrame) -> DataFrame:
    """Bytes per record by cluster, hour_ms, topic and partition."""
    return traffic.select(*_KEY, "bytes_per_record")


def with_bytes(rows: DataFrame, sizes: DataFrame) -> DataFrame:
    """Rows of an hour's partitions with what their ``records`` come to in bytes, by `record_sizes`."""
    return rows.join(sizes, on=[*_KEY], how="left").withColumn("bytes", _in_bytes())


def halves(was: Column, now: Column) -> Column:
    """What held during a pair, with weights: when it changed in between is unknown, so each half the time."""
    whole = F.array(F.struct(now.alias("held"), F.lit(1.0).alias("weight")))
    both = F.array(*(F.struct(one.alias("held"), F.lit(0.5).alias("weight")) for one in (was, now)))
    return F.when(was.isNull() | was.eqNullSafe(now), whole).otherwise(both)


def _in_bytes() -> Column:
    """No records are no bytes, also where the size of one is unknown."""
    return F.when(F.col("records") == 0, F.lit(0.0)).otherwise(F.col("records") * F.col("bytes_per_record"))


def _picture() -> Column:
    adding = F.coalesce("adding", F.array().cast("array<int>"))
    placed = F.transform(
        F.arrays_zip("replicas", "replica_racks", "replica_bytes"),
        lambda one: F.struct(
            one["replicas"].alias("broker"),
            one["replica_racks"].alias("rack"),
            one["replica_bytes"].alias("bytes"),
            F.array_contains(adding, one["replicas"]).alias("adding"),
        ),
    )
    return F.struct(
        "leader",
        "leader_rack",
        placed.alias("placed"),
        "isr_racks",
        "isr_told_racks",
        "selector",
        "racks",
        "size_bytes",
    )


def _grown() -> Column:
    """Growth since the last described size: ratio, bytes, records. Null where it shows no size of a record."""
    was = F.col("sized_before")
    records = F.col("sized.end_offset") - was["end_offset"]
    grew = F.col("sized.size_bytes") - was["size_bytes"]
    teaches = (
        was["topic_id"].eqNullSafe(F.col("topic_id"))
        & (F.col("monotonic_ms") - was["monotonic_ms"] <= LONGEST_MS)
        # No farther apart than looks are read together: a clock that leapt in between must make no difference.
        & (F.abs(F.col("taken_ms") - was["taken_ms"]) <= LONGEST_MS + LEAP_MS)
        & (records >= 0)
        & (grew >= 0)
        & (records + grew > 0)
        & ~F.coalesce("compacted", F.lit(False))  # noqa: FBT003
    )
    ratio = (grew / F.nullif(records, F.lit(0))).alias("ratio")
    return F.when(teaches, F.struct(ratio, grew.alias("bytes"), records.alias("records")))


def _uncut(grown: Column) -> Column:
    """Those in which nothing was deleted; ``grown`` is sorted by ratio, what grew without records first.

    Sizes and offsets of one look are not of one instant: what one interval has too little, the next has too much. So
    all of them count together, unless together they fall short of the median, as they do where a segment is missing.
    """
    rated = F.filter(grown, lambda one: one["ratio"].isNotNull())
    median = F.get(rated, F.floor(F.size(rated) / 2).cast("int"))["ratio"]
    together = _sum_of(grown, "bytes") / F.nullif(_sum_of(grown, "records"), F.lit(0))
    uncut = F.filter(rated, lambda one: one["ratio"] >= median * _CUT_SHARE)
    return F.when(together >= median * _WHOLE_SHARE, grown).otherwise(uncut)


def _sum_of(rows: Column, name: str) -> Column:
    return F.aggregate(rows, F.lit(0).cast("long"), lambda total, one: total + one[name])
