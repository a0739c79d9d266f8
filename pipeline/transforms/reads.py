"""Reads by group: bytes and routes (gold.read_traffic), lags (gold.lags) and locality (gold.locality).

Records are counted by the offsets that a group committed; a group that commits nothing is assumed to keep up with the
end. Offsets that went back (a reset) end a stretch. Copies of tasks commit nothing: they are assumed to keep up with
changelogs. Lags are summed over all partitions of a topic at each look, then over the looks of the hour; locality is
by hour and by the rack of the readers.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipeline.schemas.gold import LAGS, LOCALITY, READ_TRAFFIC
from pipeline.transforms.mergeable_aggregate import MergeableAggregate
from pipeline.transforms.routes import route, zone
from pipeline.transforms.spans import all_or_null, day_of, part_of, spanned
from pipeline.transforms.traffic import halves, with_bytes

CATCHING_UP = 1.1
"""Who reads more than this times what is appended reads what lay there before."""
_READER = ("cluster", "instance", "group", "role", "reader", "topic", "partition")
_COLUMNS = ("cluster", "look", "group", "member", "role", "rack", "told_rack", "topic", "partition", "committed_offset")
_PLACE = ("cluster", "look", "topic", "partition")
_READ = ("cluster", "hour_ms", "group", "role", "reader", "topic", "partition")
READ_SUMS = MergeableAggregate(
    (*_READ, "was", "now"), {"ms": F.sum, "records": F.sum, "appended": F.sum, "committed": F.max}
)
"""By routes: they hardly ever change, so halves are computed once for all looks at which they stayed."""


def read_changes(reads: DataFrame, changes: DataFrame, times: DataFrame) -> DataFrame:
    """Each reader of each partition at each look, with its state at the look before.

    ``changes`` is `traffic.partition_changes`, ``times`` `spans.timeline`. ``read`` is null where it is unknown;
    ``lag`` is the look's own; ``now`` and ``was`` are routes.
    """
    in_order = Window.partitionBy(*_READER).orderBy("monotonic_ms", "look")
    about = F.broadcast(times.select("cluster", "look", "instance", "monotonic_ms", "previous"))
    in_looks = (
        reads.select(*_COLUMNS)
        .join(about, on=["cluster", "look"], how="inner")
        # The owner of a partition reads it for the group; copies of a task read it each for itself.
        .withColumn("reader", F.when(F.col("role") == "active", "").otherwise(F.col("member")))
        .withColumn("before", F.lag(F.struct("look", "rack", "told_rack", "committed_offset")).over(in_order))
        .drop("previous")
    )
    joined = in_looks.join(changes, on=[*_PLACE], how="inner")
    paired = (F.col("before.look") == F.col("previous")) & F.col("was").isNotNull()
    committed = F.col("committed_offset") - F.col("before.committed_offset")
    lag = F.col("end_offset") - F.col("committed_offset")
    basis = F.when(committed.isNull(), "tail").otherwise("committed")
    read = F.when(committed.isNull(), F.col("records")).when(committed >= 0, committed)
    return joined.select(
        *_PLACE,
        "previous",
        "taken_ms",
        "hour_ms",
        "group",
        "role",
        "reader",
        F.when(paired, read).alias("read"),
        F.col("records").alias("appended"),
        F.when(paired, basis).alias("basis"),
        F.when((F.col("role") == "active") & lag.isNotNull(), F.greatest(lag, F.lit(0))).alias("lag"),
        route(F.col("now"), F.col("rack"), F.col("told_rack")).alias("now"),
        F.when(paired, route(F.col("was"), F.col("before.rack"), F.col("before.told_rack"))).alias("was"),
    )


def read_sums(readings: DataFrame, spans: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """What readers took, as `READ_SUMS`, of `read_changes` rows by the hours (or windows) that ``spans`` names."""
    known = spanned(readings.where(F.col("read").isNotNull()), spans)
    return READ_SUMS.aggregate(
        known.withColumn("records", part_of(F.col("read")))
        .withColumn("appended", part_of(F.coalesce("appended", F.lit(0))))
        .withColumn("committed", F.col("basis") == "committed"),
        before,
    )


def read_routes(sums: DataFrame, sizes: DataFrame) -> DataFrame:
    """What was read by hour and route, of `read_sums` rows.

    Columns: cluster, hour_ms, group, role, reader, topic, partition, source_rack, target_rack, why, ms, records,
    appended, committed (whether by committed offsets) and bytes.
    """
    halved = sums.withColumn("half", F.explode(halves(F.col("was"), F.col("now"))))
    weight, held = F.col("half.weight"), F.col("half.held")
    added = halved.groupBy(
        *_READ, held["source"].alias("source_rack"), held["target"].alias("target_rack"), held["why"].alias("why")
    ).agg(
        F.sum(F.col("ms") * weight).alias("ms"),
        F.sum(F.col("records") * weight).alias("records"),
        F.sum(F.col("appended") * weight).alias("appended"),
        F.max("committed").alias("committed"),
    )
    return with_bytes(added, sizes)


def read_traffic(routes: DataFrame) -> DataFrame:
    """gold.read_traffic of `read_routes` rows."""
    key = ("cluster", "hour_ms", "group", "topic", "partition")
    by_reader = routes.groupBy(*key, "role", "reader").agg(
        F.sum("ms").alias("ms"),
        F.sum("records").alias("records"),
        F.sum("appended").alias("appended"),
        F.max("committed").alias("committed"),
        all_or_null(F.col("bytes")).alias("bytes"),
    )
    added = by_reader.groupBy(*key).agg(
        (F.max("ms") / 1000.0).alias("seconds"),
        F.sum("records").alias("records"),
        F.sum("appended").alias("appended"),
        F.max("committed").alias("committed"),
        all_or_null(F.col("bytes")).alias("bytes"),
    )
    return (
        added.withColumn("catching_up", F.col("committed") & (F.col("records") > F.col("appended") * CATCHING_UP))
        .withColumns({"bytes_per_s": F.col("bytes") / F.col("seconds"), "records": F.col("records").cast("long")})
        .withColumn("basis", F.when(F.col("committed"), "committed").otherwise("tail"))
        .withColumn("day", day_of(F.col("hour_ms")))
        .select(*READ_TRAFFIC.schema.names)
    )


# --- lags -----------------------------------------------------------------------------------------------------------

_LAG_KEY = ("cluster", "hour_ms", "group", "topic")
LAG_SUMS = MergeableAggregate(
    _LAG_KEY, {"looks": F.sum, "unknown_looks": F.sum, "least": F.min, "total": F.sum, "most": F.max, "last": F.max}
)


def lag_sums(readings: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """How far groups were behind, as `LAG_SUMS`, of `read_changes` rows.

    A look counts as unknown where one partition's lag is unknown.
    """
    at_look = (
        readings.where(F.col("role") == "active")
        .groupBy("cluster", "hour_ms", "group", "topic", "look", "taken_ms")
        .agg(F.when(F.count("lag") == F.count(F.lit(1)), F.sum("lag")).alias("lag"))
    )
    known = F.col("lag").isNotNull()
    return LAG_SUMS.aggregate(
        at_look.select(
            *_LAG_KEY,
            known.cast("long").alias("looks"),
            (~known).cast("long").alias("unknown_looks"),
            F.col("lag").alias("least"),
            F.col("lag").alias("total"),
            F.col("lag").alias("most"),
            F.when(known, F.struct("taken_ms", "look", "lag")).alias("last"),
        ),
        before,
    )


def lags(sums: DataFrame) -> DataFrame:
    """gold.lags of `lag_sums` rows."""
    return sums.select(
        *_LAG_KEY,
        F.col("looks").cast("int").alias("looks"),
        F.col("unknown_looks").cast("int").alias("unknown_looks"),
        F.col("least").alias("lag_min"),
        (F.col("total") / F.nullif(F.col("looks"), F.lit(0))).alias("lag_mean"),
        F.col("most").alias("lag_max"),
        F.col("last.lag").alias("lag_last"),
        day_of(F.col("hour_ms")).alias("day"),
    ).select(*LAGS.schema.names)


# --- locality -------------------------------------------------------------------------------------------------------

_LOCALITY_KEY = ("cluster", "hour_ms", "group", "rack")
LOCALITY_SUMS = MergeableAggregate(_LOCALITY_KEY, {"local": F.sum, "total": F.sum, "unknown": F.sum})


def locality_sums(readings: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """How often readers had what they read in their rack, as `LOCALITY_SUMS`, of `read_changes` rows."""
    kind = zone(F.col("now.source"), F.col("now.target"), F.col("now.why"))
    return LOCALITY_SUMS.aggregate(
        readings.where(F.col("role") == "active").select(
            "cluster",
            "hour_ms",
            "group",
            F.coalesce("now.target", F.lit("")).alias("rack"),
            (kind == "SAME_ZONE").cast("long").alias("local"),
            F.lit(1).cast("long").alias("total"),
            (kind == "UNKNOWN").cast("long").alias("unknown"),
        ),
        before,
    )


def locality(sums: DataFrame, routes: DataFrame) -> DataFrame:
    """gold.locality of `locality_sums` rows, and the bytes of `read_routes` rows. Copies of tasks are no readers."""
    looked = sums.select(*_LOCALITY_KEY, *(F.col(name).cast("double").alias(name) for name in LOCALITY_SUMS.by))
    kind = zone(F.col("source_rack"), F.col("target_rack"), F.col("why"))
    within = F.when(kind == "SAME_ZONE", F.col("bytes")).when(kind == "CROSS_ZONE", F.lit(0.0))
    in_bytes = (
        routes.where(F.col("role") == "active")
        .groupBy("cluster", "hour_ms", "group", F.coalesce("target_rack", F.lit("")).alias("rack"))
        .agg(
            all_or_null(within).alias("local_bytes"),
            all_or_null(F.col("bytes")).alias("total_bytes"),
        )
    )
    return (
        looked.join(in_bytes, on=[*_LOCALITY_KEY], how="left")
        .withColumn("day", day_of(F.col("hour_ms")))
        .select(*LOCALITY.schema.names)
    )
