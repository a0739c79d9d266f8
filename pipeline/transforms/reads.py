"""Reads by group: bytes and routes (gold.read_traffic), lags (gold.lags) and locality (gold.locality).

Records are counted by the offsets that a group committed, whether members are shown or not: in a rebalance they are
where they were at the look before, and without members the rack of the reader is unknown. A group that commits nothing
is assumed to keep up with the end. Offsets that went back (a reset) end a stretch. Copies of tasks commit nothing: they
are assumed to keep up with changelogs. Lags are summed over all partitions of a topic at each look, then over the looks
of the hour; locality is by hour and by the rack of the readers.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.exact_sums import all_or_null
from pipeline.schemas.gold import LAGS, LOCALITY, READ_TRAFFIC
from pipeline.schemas.silver import HIDDEN, UNASSIGNED
from pipeline.schemas.zones import CROSS_ZONE, SAME_ZONE, UNKNOWN_ZONE
from pipeline.transforms.mergeable_aggregate import MergeableAggregate
from pipeline.transforms.routes import MEMBERS_HIDDEN, NO_MEMBER, READER_UNKNOWN, nearest, route, zone
from pipeline.transforms.spans import day_of, known_lately, of_gap, part_of, share_of, spanned
from pipeline.transforms.traffic import halves, per_second, with_bytes

CATCHING_UP = 1.1
"""Who reads more than this times what is appended reads what lay there before."""
_READER = ("cluster", "instance", "group", "role", "reader", "topic", "partition")
_COLUMNS = ("cluster", "look", "group", "member", "role", "rack", "told_rack", "topic", "partition", "committed_offset")
_PLACE = ("cluster", "look", "topic", "partition")
_READ = ("cluster", "hour_ms", "group", "role", "reader", "topic", "partition")
_ADDED = ("ms", "records", "appended", "gap_ms", "gap_records", "by_commits")
READ_SUMS = MergeableAggregate((*_READ, "was", "now"), dict.fromkeys(_ADDED, F.try_sum) | {"committed": F.max})
"""Of it in gaps ``gap_ms`` and ``gap_records``, and by commits ``by_commits``. By routes: they hardly ever change, so
halves are computed once for all looks at which they stayed."""
NEWEST_READERS = MergeableAggregate(_READER, {"of_reader": F.max, "of_commit": F.max})
"""What looks showed last of the reader of a partition (monotonic_ms, look, rack, told_rack), and of what its group
committed (monotonic_ms, look, committed_offset)."""


def read_changes(reads: DataFrame, changes: DataFrame, times: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """Each reader of each partition at each look, with its state at the look before.

    ``changes`` is `traffic.partition_changes`, ``times`` `spans.timeline`; ``before``, as `NEWEST_READERS`, what was
    known of readers at all looks before these. ``read`` is null where it is unknown; ``lag`` is the look's own; ``now``
    and ``was`` are routes. ``of_reader`` and ``of_commit`` are as in `NEWEST_READERS`.
    """
    in_order = Window.partitionBy(*_READER).orderBy("monotonic_ms", "look")
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    of_looks = ("cluster", "look", "instance", "monotonic_ms", "of_instance_ms", "previous", "previous_ms")
    about = F.broadcast(times.select(*of_looks))
    lined_up = (
        reads.select(*_COLUMNS)
        .withColumnRenamed("role", "told_role")
        .withColumns({"role": _role(F.col("told_role")), "reader": _reader(F.col("told_role"))})
        .join(about, on=["cluster", "look"], how="inner")
        .withColumns({"of_reader": _of_reader(), "of_commit": _of_commit()})
        .withColumns(
            {f"{name}_before": F.last(name, ignorenulls=True).over(earlier) for name in ("of_reader", "of_commit")}
        )
    )
    if before is not None:
        older = before.withColumnsRenamed({"of_reader": "older_reader", "of_commit": "older_commit"})
        lined_up = lined_up.join(older, on=[*NEWEST_READERS.key], how="left").withColumns(
            {
                "of_reader_before": F.coalesce("of_reader_before", "older_reader"),
                "of_commit_before": F.coalesce("of_commit_before", "older_commit"),
            }
        )
    seen = F.when(known_lately("of_reader_before"), F.col("of_reader_before"))
    hidden = F.col("told_role") == HIDDEN
    told = lined_up.withColumns(
        {
            "rack": F.when(hidden, seen["rack"]).otherwise(F.col("rack")),
            "told_rack": F.when(hidden, seen["told_rack"]).otherwise(F.col("told_rack")),
            "no_rack": _why_without_rack(F.col("told_role")),
        }
    ).withColumn("before", F.lag(F.struct("look", "rack", "told_rack", "no_rack")).over(in_order))
    looked = told.where(F.col("of_instance_ms").isNotNull()).withColumn(
        "commit_before", F.when(known_lately("of_commit_before"), F.col("of_commit_before")["committed_offset"])
    )
    joined = looked.drop("instance", "previous").join(changes, on=[*_PLACE], how="inner")
    follows = F.col("previous").isNotNull() & F.col("was").isNotNull()
    paired = follows & (F.col("before.look") == F.col("previous"))
    then = F.when(paired, F.col("before")).when(follows & F.col("commit_before").isNotNull(), _as_now())
    placed = joined.withColumn("then", then).withColumns(
        {
            "place": nearest(F.col("now"), F.col("told_rack")),
            "place_then": nearest(F.col("was"), F.col("then.told_rack")),
        }
    )
    was = F.col("then")
    return placed.select(
        *_PLACE,
        *("instance", "run", "topic_id"),
        "previous",
        "taken_ms",
        "hour_ms",
        "group",
        "role",
        "reader",
        (F.col("told_role") == "active").alias("shown"),
        _read(follows, paired).alias("read"),
        F.col("records").alias("appended"),
        F.when(F.col("commit_before").isNotNull() & follows, "committed").when(paired, "tail").alias("basis"),
        F.when(F.col("role") == "active", _lag()).alias("lag"),
        "committed_offset",
        F.coalesce(follows & (F.col("committed_offset") < F.col("commit_before")), F.lit(False)).alias("went_back"),  # noqa: FBT003
        route(F.col("now"), F.col("rack"), F.col("told_rack"), F.col("place"), F.col("no_rack")).alias("now"),
        F.when(
            was.isNotNull(), route(F.col("was"), was["rack"], was["told_rack"], F.col("place_then"), was["no_rack"])
        ).alias("was"),
        "of_reader",
        "of_commit",
    )


def newest_readers(readings: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """What is known last of readers, as `NEWEST_READERS`, of `read_changes` rows."""
    known = F.col("of_reader").isNotNull() | F.col("of_commit").isNotNull()
    return NEWEST_READERS.aggregate(readings.where((F.col("role") == "active") & known), before)


def _role(told: Column) -> Column:
    """A partition is read for the group by one reader, whether a member is shown or commits alone tell of it."""
    return F.when(told.isin(HIDDEN, UNASSIGNED), "active").otherwise(told)


def _reader(told: Column) -> Column:
    """Copies of a task read it each for itself."""
    return F.when(_role(told) == "active", "").otherwise(F.col("member"))


def _of_reader() -> Column:
    at = F.struct(F.col("of_instance_ms").alias("monotonic_ms"), "look", "rack", "told_rack")
    return F.when(F.col("told_role") == "active", at)


def _of_commit() -> Column:
    at = F.struct(F.col("of_instance_ms").alias("monotonic_ms"), "look", "committed_offset")
    return F.when((F.col("role") == "active") & F.col("committed_offset").isNotNull(), at)


def _why_without_rack(told: Column) -> Column:
    return F.when(told == HIDDEN, MEMBERS_HIDDEN).when(told == UNASSIGNED, NO_MEMBER).otherwise(READER_UNKNOWN)


def _as_now() -> Column:
    """Of one that the look before did not show, though commits tell what it read meanwhile."""
    return F.struct(F.lit(None).cast("string").alias("look"), "rack", "told_rack", "no_rack")


def _read(follows: Column, paired: Column) -> Column:
    """By commits where there are any; a commit that did not answer is made up for by the next one."""
    committed = F.col("committed_offset") - F.col("commit_before")
    by_commits = F.when(committed >= 0, committed)
    idle = (F.col("told_role") == UNASSIGNED) & (by_commits == 0)
    return (
        F.when(~follows | idle, None)
        .when(F.col("commit_before").isNotNull(), by_commits)
        .when(paired & ((F.col("told_role") == "active") | (F.col("role") != "active")), F.col("records"))
    )


def _lag() -> Column:
    lag = F.col("end_offset") - F.col("committed_offset")
    return F.when(lag.isNotNull(), F.greatest(lag, F.lit(0)))


def read_sums(readings: DataFrame, spans: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """What readers took, as `READ_SUMS`, of `read_changes` rows by the hours (or windows) that ``spans`` names."""
    known = spanned(readings.where(F.col("read").isNotNull()), spans)
    return READ_SUMS.aggregate(
        known.withColumns(
            {
                "records": part_of(F.col("read")),
                "appended": part_of(F.coalesce("appended", F.lit(0))),
                "gap_ms": of_gap(F.col("ms")),
                "committed": F.col("basis") == "committed",
            }
        ).withColumns(
            {
                "gap_records": of_gap(F.col("records")),
                "by_commits": F.when(F.col("committed"), F.col("records")).otherwise(F.lit(0).cast("long")),
            }
        ),
        before,
    )


def read_routes(sums: DataFrame, sizes: DataFrame) -> DataFrame:
    """What was read by hour and route, of `read_sums` rows.

    Columns: cluster, hour_ms, group, role, reader, topic, partition, source_rack, target_rack, why, ms, records,
    appended, gap_ms, gap_records, by_commits (records), committed (whether any are), bytes and seconds.
    """
    halved = sums.withColumn("half", F.explode(halves(F.col("was"), F.col("now"))))
    weight, held = F.col("half.weight"), F.col("half.held")
    added = halved.groupBy(
        *_READ, held["source"].alias("source_rack"), held["target"].alias("target_rack"), held["why"].alias("why")
    ).agg(*(F.sum(F.col(name) * weight).alias(name) for name in _ADDED), F.max("committed").alias("committed"))
    return with_bytes(added, sizes)


def read_traffic(routes: DataFrame) -> DataFrame:
    """gold.read_traffic of `read_routes` rows."""
    key = ("cluster", "hour_ms", "group", "topic", "partition")
    in_gaps = F.col("bytes") * share_of("gap_records", "records")
    both = (all_or_null(F.col("bytes") - in_gaps).alias("bytes"), all_or_null(in_gaps).alias("gap_bytes"))
    by_reader = routes.groupBy(*key, "role", "reader").agg(
        *(F.try_sum(name).alias(name) for name in _ADDED), F.max("committed").alias("committed"), *both
    )
    added = by_reader.groupBy(*key).agg(
        (F.max(F.col("ms") - F.col("gap_ms")) / 1000.0).alias("seconds"),
        (F.max("gap_ms") / 1000.0).alias("gap_seconds"),
        *(F.sum(name).alias(name) for name in ("records", "appended", "gap_records")),
        F.max("committed").alias("committed"),
        *(all_or_null(F.col(name)).alias(name) for name in ("bytes", "gap_bytes")),
    )
    return added.withColumns(
        {
            "catching_up": F.col("committed") & (F.col("records") > F.col("appended") * CATCHING_UP),
            "records": (F.col("records") - F.col("gap_records")).try_cast("long"),
            "gap_records": F.col("gap_records").try_cast("long"),
            "bytes_per_s": per_second("bytes"),
            "basis": F.when(F.col("committed"), "committed").otherwise("tail"),
            "day": day_of(F.col("hour_ms")),
        }
    ).select(*READ_TRAFFIC.schema.names)


# --- lags -----------------------------------------------------------------------------------------------------------

_LAG_KEY = ("cluster", "hour_ms", "group", "topic")
LAG_SUMS = MergeableAggregate(
    _LAG_KEY, {"looks": F.sum, "unknown_looks": F.sum, "least": F.min, "total": F.try_sum, "most": F.max, "last": F.max}
)


def lag_sums(readings: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """How far groups were behind, as `LAG_SUMS`, of `read_changes` rows.

    A look counts as unknown where one partition's lag is unknown.
    """
    at_look = (
        readings.where(F.col("role") == "active")
        .groupBy("cluster", "hour_ms", "group", "topic", "look", "taken_ms")
        .agg(F.when(F.count("lag") == F.count(F.lit(1)), F.try_sum("lag")).alias("lag"))
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
        readings.where(F.col("shown")).select(
            "cluster",
            "hour_ms",
            "group",
            F.coalesce("now.target", F.lit("")).alias("rack"),
            (kind == SAME_ZONE).cast("long").alias("local"),
            F.lit(1).cast("long").alias("total"),
            (kind == UNKNOWN_ZONE).cast("long").alias("unknown"),
        ),
        before,
    )


def locality(sums: DataFrame, routes: DataFrame) -> DataFrame:
    """gold.locality of `locality_sums` rows, and the bytes of `read_routes` rows. Copies of tasks are no readers."""
    looked = sums.select(*_LOCALITY_KEY, *(F.col(name).cast("double").alias(name) for name in LOCALITY_SUMS.by))
    kind = zone(F.col("source_rack"), F.col("target_rack"), F.col("why"))
    within = F.when(kind == SAME_ZONE, F.col("bytes")).when(kind == CROSS_ZONE, F.lit(0.0))
    in_bytes = (
        routes.where(F.col("role") == "active")
        .groupBy("cluster", "hour_ms", "group", F.coalesce("target_rack", F.lit("")).alias("rack"))
        .agg(all_or_null(within).alias("local_bytes"), all_or_null(F.col("bytes")).alias("total_bytes"))
    )
    return (
        looked.join(in_bytes, on=[*_LOCALITY_KEY], how="left")
        .withColumn("day", day_of(F.col("hour_ms")))
        .select(*LOCALITY.schema.names)
    )
