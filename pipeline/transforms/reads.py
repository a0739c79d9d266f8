"""Who read how much of what, and over which route.

Records by the offsets that a group committed; a group that commits nothing is assumed to keep up with the end. Offsets
that went back (a reset) end a stretch. Copies of tasks commit nothing: they are assumed to keep up with changelogs.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipeline.schemas.gold import READ_TRAFFIC
from pipeline.transforms.mergeable_aggregate import MergeableAggregate
from pipeline.transforms.routes import route
from pipeline.transforms.spans import all_or_null, day_of, part_of, spanned
from pipeline.transforms.traffic import halves, with_bytes

CATCHING_UP = 1.1
"""Who reads more than this times what is appended reads what lay there before."""
_READER = ("cluster", "instance", "group", "role", "reader", "topic", "partition")
_GIVEN = ("cluster", "look", "group", "member", "role", "rack", "told_rack", "topic", "partition", "committed_offset")
_PLACE = ("cluster", "look", "topic", "partition")
_READ = ("cluster", "hour_ms", "group", "role", "reader", "topic", "partition")
TAKEN = MergeableAggregate(
    (*_READ, "was", "now"), {"ms": F.sum, "records": F.sum, "appended": F.sum, "committed": F.max}
)
"""By routes: they hardly ever change, so halves are told once for all looks at which they stayed."""


def reading(reads: DataFrame, changes: DataFrame, times: DataFrame) -> DataFrame:
    """Each reader of each partition at each look beside what it was at the look before.

    ``changes`` is `traffic.seen`, ``times`` `spans.timeline`. ``read`` is null where it is unknown; ``lag`` is the
    look's own; ``now`` and ``was`` are routes.
    """
    in_order = Window.partitionBy(*_READER).orderBy("monotonic_ms", "look")
    about = F.broadcast(times.select("cluster", "look", "instance", "monotonic_ms", "previous"))
    told = (
        reads.select(*_GIVEN)
        .join(about, on=["cluster", "look"], how="inner")
        # The owner of a partition reads it for the group; copies of a task read it each for itself.
        .withColumn("reader", F.when(F.col("role") == "active", "").otherwise(F.col("member")))
        .withColumn("before", F.lag(F.struct("look", "rack", "told_rack", "committed_offset")).over(in_order))
        .drop("previous")
    )
    joined = told.join(changes, on=[*_PLACE], how="inner")
    paired = (F.col("before.look") == F.col("previous")) & F.col("was").isNotNull()
    committed = F.col("committed_offset") - F.col("before.committed_offset")
    behind = F.col("end_offset") - F.col("committed_offset")
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
        F.when((F.col("role") == "active") & behind.isNotNull(), F.greatest(behind, F.lit(0))).alias("lag"),
        route(F.col("now"), F.col("rack"), F.col("told_rack")).alias("now"),
        F.when(paired, route(F.col("was"), F.col("before.rack"), F.col("before.told_rack"))).alias("was"),
    )


def taken(readings: DataFrame, spans: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """What readers took, as `TAKEN`, of `reading` rows by the hours (or windows) that ``spans`` names."""
    told = spanned(readings.where(F.col("read").isNotNull()), spans)
    return TAKEN.up(
        told.withColumn("records", part_of(F.col("read")))
        .withColumn("appended", part_of(F.coalesce("appended", F.lit(0))))
        .withColumn("committed", F.col("basis") == "committed"),
        before,
    )


def routed(taken: DataFrame, sizes: DataFrame) -> DataFrame:
    """What was read by hour and route, of `taken` rows.

    Columns: cluster, hour_ms, group, role, reader, topic, partition, source_rack, target_rack, why, ms, records,
    appended, committed (whether by committed offsets) and bytes.
    """
    halved = taken.withColumn("half", F.explode(halves(F.col("was"), F.col("now"))))
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
    """gold.read_traffic of `routed` rows."""
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
        added.withColumn("bytes_per_s", F.col("bytes") / F.col("seconds"))
        .withColumn("basis", F.when(F.col("committed"), "committed").otherwise("tail"))
        .withColumn("catching_up", F.col("committed") & (F.col("records") > F.col("appended") * CATCHING_UP))
        .withColumn("day", day_of(F.col("hour_ms")))
        .withColumn("records", F.col("records").cast("long"))
        .select(*READ_TRAFFIC.schema.names)
    )
