"""Traffic of partitions: records by end offsets, bytes by the size of a record on disk.

Over a gap between looks end offsets tell as exactly what was appended; it is kept apart, as rates are of the time that
looks cover.

A record's size comes from what the log grew over what was appended, between looks with described sizes. That holds for
logs that only grow: where segments were deleted, intervals with a small ratio are left out, and a compacted topic
takes what the agent had learned. The bytes per record of a whole log hold for neither.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.schemas.gold import PARTITION_TRAFFIC
from pipeline.transforms.mergeable_aggregate import MergeableAggregate, listed
from pipeline.transforms.pictures import has_unknown, picture
from pipeline.transforms.spans import LEAP_MS, LONGEST_MS, day_of, hour_of, known_lately, of_gap, part_of, spanned

_KEY = ("cluster", "hour_ms", "topic", "partition")
_GROWN = ("grown_bytes", "grown_records", "rated")
TRAFFIC_SUMS = MergeableAggregate(
    _KEY,
    dict.fromkeys(("ms", "records", "gap_ms", "gap_records", *_GROWN), F.try_sum) | {"grown": listed, "learned": F.max},
)
"""Of it in gaps: ``gap_ms`` and ``gap_records``. ``grown``: each interval between two sizes (ratio, bytes, records),
``rated`` how many have a ratio, ``grown_bytes`` and ``grown_records`` of all; ``learned``: of the last look."""
NEWEST_SIZES = MergeableAggregate(
    ("cluster", "instance", "topic", "partition"), dict.fromkeys(("sized", "filled", "ended"), F.max)
)
"""What looks showed last of a partition, each with monotonic_ms, look and topic_id: its size (taken_ms, size_bytes,
end_offset), the sizes of all of its replicas (brokers, bytes), and its end_offset."""
_CUT_SHARE = 0.5
"""Where segments were deleted, an interval whose bytes per record are below this share of the median is left out."""
_WHOLE_SHARE = 0.9
"""With at least this share of the median, all intervals together show no deletion."""
_MADE_UP_SHARE = 1 / 3
"""With at least this share of what the small intervals lack, the largest ones show no deletion either."""


def partition_changes(partitions: DataFrame, times: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """Each partition at each look, with its state at the look before.

    ``times`` is `spans.timeline`; ``before``, as `NEWEST_SIZES`, the newest sizes of all looks before these.
    ``records`` is null where the looks are no pair or offsets went back; of a topic that is another one of the same
    name it is what was written to the new one.
    ``now`` and ``was`` are as in `pictures.picture`. ``sized``, ``filled`` and ``ended`` are as in `NEWEST_SIZES`;
    ``filled_before`` (brokers, bytes) are the replicas of the newest earlier one of the last quarter of an hour.
    """
    in_order = Window.partitionBy("cluster", "instance", "topic", "partition").orderBy("monotonic_ms", "look")
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    dated = partitions.drop("taken_ms", "day").join(F.broadcast(times), on=["cluster", "look"], how="inner")
    last = F.lag(F.struct("look", "topic_id", "now")).over(in_order)
    lagged = (
        dated.withColumn("now", picture())
        .withColumns({"sized": _sized(), "filled": _filled(), "ended": _ended()})
        .withColumns({f"{name}_before": F.last(name, ignorenulls=True).over(earlier) for name in NEWEST_SIZES.by})
        .withColumn("before", last)
    )
    if before is not None:
        older = before.withColumnsRenamed({name: f"older_{name}" for name in NEWEST_SIZES.by})
        lagged = lagged.join(older, on=[*NEWEST_SIZES.key], how="left").withColumns(
            {f"{name}_before": F.coalesce(f"{name}_before", f"older_{name}") for name in NEWEST_SIZES.by}
        )
    follows = F.col("before.look") == F.col("previous")
    paired = follows & F.col("before.topic_id").eqNullSafe(F.col("topic_id"))
    delta = F.col("end_offset") - F.when(_is_of_now("ended_before"), F.col("ended_before.end_offset"))
    # A topic that was deleted and made again begins at 0.
    made_again = follows & (F.col("before.topic_id") != F.col("topic_id"))
    filled = F.struct("filled_before.brokers", "filled_before.bytes")
    return lagged.where(F.col("of_instance_ms").isNotNull()).select(
        *("cluster", "instance", "run", "look", "previous", "taken_ms", "topic", "topic_id", "partition"),
        hour_of(F.col("taken_ms")).alias("hour_ms"),
        *("end_offset", "compacted", "learned_bytes_per_record", "now"),
        F.when(paired, F.col("before.now")).alias("was"),
        F.when(paired & (delta >= 0), delta).when(made_again, F.col("end_offset")).alias("records"),
        F.coalesce(paired & (delta < 0), F.lit(False)).alias("went_back"),  # noqa: FBT003
        _grown().alias("grown"),
        F.when(_is_of_now("filled_before"), filled).alias("filled_before"),
        *NEWEST_SIZES.by,
    )


def _at_look() -> tuple[Column, Column]:
    return F.col("of_instance_ms").alias("monotonic_ms"), F.col("look")


def _sized() -> Column:
    known = F.col("size_fresh") & F.col("size_bytes").isNotNull() & F.col("end_offset").isNotNull()
    return F.when(known, F.struct(*_at_look(), "taken_ms", "topic_id", "size_bytes", "end_offset"))


def _filled() -> Column:
    known = F.col("size_fresh") & ~has_unknown(F.col("replica_bytes"), F.lit(0).cast("long"))
    replicas = (F.col("replicas").alias("brokers"), F.col("replica_bytes").alias("bytes"))
    return F.when(known, F.struct(*_at_look(), "topic_id", *replicas))


def _ended() -> Column:
    """An answer that is missing at one look is made up for at the next."""
    return F.when(F.col("end_offset").isNotNull(), F.struct(*_at_look(), "topic_id", "end_offset"))


def traffic_sums(changes: DataFrame, spans: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """Traffic of partitions, as `TRAFFIC_SUMS`, of `partition_changes` rows, by the hours or windows of ``spans``.

    The sums of other looks, ``before``, are added; so it is with all sums of looks.
    """
    known = spanned(changes, spans).where(F.col("records").isNotNull())
    return TRAFFIC_SUMS.aggregate(
        known.withColumns(
            {
                "records": part_of(F.col("records")),
                "gap_ms": of_gap(F.col("ms")),
                "grown_bytes": F.col("grown.bytes"),
                "grown_records": F.col("grown.records"),
                "rated": F.col("grown.ratio").isNotNull().cast("long"),
                "grown": F.when(F.col("grown").isNotNull(), F.array("grown")),
                "learned": F.struct("taken_ms", F.col("learned_bytes_per_record").alias("bytes_per_record")),
            }
        ).withColumn("gap_records", of_gap(F.col("records"))),
        before,
    )


def newest_sizes(changes: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """The newest sizes, as `NEWEST_SIZES`, of `partition_changes` rows."""
    return NEWEST_SIZES.aggregate(
        changes.where(F.coalesce(*(F.col(f"{name}.look") for name in NEWEST_SIZES.by)).isNotNull()), before
    )


def partition_traffic(taken: DataFrame) -> DataFrame:
    """gold.partition_traffic of `traffic_sums` rows."""
    added = taken.select(
        *_KEY,
        ((F.col("ms") - F.col("gap_ms")) / 1000.0).alias("seconds"),
        (F.col("records") - F.col("gap_records")).alias("records"),
        (F.col("gap_ms") / 1000.0).alias("gap_seconds"),
        "gap_records",
        F.sort_array("grown").alias("grown"),
        *_GROWN,
        F.col("learned.bytes_per_record").alias("learned"),
    )
    grown = added.withColumns({name: _uncut(name) for name in ("grown_bytes", "grown_records")})
    topic = Window.partitionBy("cluster", "hour_ms", "topic")
    of_topic = F.try_sum("grown_bytes").over(topic) / F.nullif(F.try_sum("grown_records").over(topic), F.lit(0))
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
        .withColumns({"bytes": _in_bytes("records"), "gap_bytes": _in_bytes("gap_records")})
        .withColumns({f"{name}_per_s": per_second(name) for name in ("records", "bytes")})
        .withColumn("day", day_of(F.col("hour_ms")))
        .select(*PARTITION_TRAFFIC.schema.names)
    )


def record_sizes(traffic: DataFrame) -> DataFrame:
    """Bytes per record by cluster, hour_ms, topic and partition, and the seconds that looks cover."""
    return traffic.select(*_KEY, "bytes_per_record", "seconds")


def with_bytes(rows: DataFrame, sizes: DataFrame) -> DataFrame:
    """Rows of an hour's partitions with what their ``records`` come to in bytes, by `record_sizes`."""
    return rows.join(sizes, on=[*_KEY], how="left").withColumn("bytes", _in_bytes("records"))


def per_second(name: str) -> Column:
    """The column over the seconds that looks cover; null where they cover none."""
    return F.col(name) / F.nullif(F.col("seconds"), F.lit(0.0))


def halves(was: Column, now: Column) -> Column:
    """What held during a pair, with weights: when it changed in between is unknown, so each half the time."""
    whole = F.array(F.struct(now.alias("held"), F.lit(1.0).alias("weight")))
    both = F.array(*(F.struct(one.alias("held"), F.lit(0.5).alias("weight")) for one in (was, now)))
    return F.when(was.isNull() | was.eqNullSafe(now), whole).otherwise(both)


def _in_bytes(records: str) -> Column:
    """No records are no bytes, also where the size of one is unknown."""
    return F.when(F.col(records) == 0, F.lit(0.0)).otherwise(F.col(records) * F.col("bytes_per_record"))


def _is_of_now(name: str) -> Column:
    """Whether it is of the same topic and not old."""
    return F.col(name)["topic_id"].eqNullSafe(F.col("topic_id")) & known_lately(name)


def _grown() -> Column:
    """Growth since the last described size: ratio, bytes, records. Null where it shows no size of a record."""
    was = F.col("sized_before")
    near_by = (
        (F.col("monotonic_ms") - was["monotonic_ms"] <= LONGEST_MS)
        # No farther apart than looks are read together: a clock that leapt in between must make no difference.
        & (F.abs(F.col("taken_ms") - was["taken_ms"]) <= LONGEST_MS + LEAP_MS)
    )
    records = F.col("sized.end_offset") - was["end_offset"]
    grew = F.col("sized.size_bytes") - was["size_bytes"]
    teaches = (
        was["topic_id"].eqNullSafe(F.col("topic_id"))
        & ((was["look"] == F.col("previous")) | F.coalesce(near_by, F.lit(False)))  # noqa: FBT003
        & (records >= 0)
        & (grew >= 0)
        & (records + grew > 0)
        & ~F.coalesce("compacted", F.lit(False))  # noqa: FBT003
    )
    ratio = (grew / F.nullif(records, F.lit(0))).alias("ratio")
    return F.when(teaches, F.struct(ratio, grew.alias("bytes"), records.alias("records")))


def _uncut(name: str) -> Column:
    """``grown_bytes`` or ``grown_records`` of those intervals in which nothing was deleted; without a ratio 0.

    ``grown`` is sorted by ratio, what grew without records first. Sizes and offsets of one look are not of one instant:
    what one interval has too little, the next has too much. So all of them count together, unless together they fall
    short of the median, as they do where a segment is missing, and as many of the largest ones do not make up for the
    small ones, as they do where looks take as long as the time between them.
    """
    grown, rated = F.col("grown"), F.coalesce("rated", F.lit(0))
    median = F.get(grown, (F.size(grown) - rated + F.floor(rated / 2)).cast("int"))["ratio"]
    together = F.col("grown_bytes") / F.nullif(F.col("grown_records"), F.lit(0))
    small = F.filter(grown, lambda one: one["ratio"] < median * _CUT_SHARE)
    largest = F.slice(grown, -F.greatest(F.size(small), F.lit(1)), F.size(small))
    surplus = _total(largest, "bytes") - median * _total(largest, "records")
    lacking = median * _total(small, "records") - _total(small, "bytes")
    uncut = F.filter(grown, lambda one: one["ratio"] >= median * _CUT_SHARE)
    return (
        F.when(rated == 0, F.lit(0).cast("long"))
        .when((together >= median * _WHOLE_SHARE) | (surplus >= lacking * _MADE_UP_SHARE), F.col(name))
        .otherwise(_total(uncut, name.removeprefix("grown_")))
    )


def _total(rows: Column, name: str) -> Column:
    return F.aggregate(rows, F.lit(0).cast("long"), lambda total, one: F.try_add(total, one[name]))
