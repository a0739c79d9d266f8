"""Time between looks, split at the hours: what looks cover, and the gaps over which counters tell the same.

A pair is of two consecutive looks. It is *seen* where both are of one instance, one right after the other by its
monotonic clock. Over a gap (a restart, looks that are missing for long, a clock that leaps) the pair is of the last
look before it and the first one after it, of whichever instance: offsets on both sides tell exactly what flowed, though
not when, nor by which routes. Where two agents look at once, each stretch of time is taken from the one whose pair
began first. Invariant: every millisecond of an instance's run counts once at most; an hour that an instance ran
through twice, as its clock was set back, may have more than 3,600 seconds.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

HOUR_MS = 3_600_000
LONGEST_MS = 900_000
"""Looks that are further apart do not cover the time between them."""
LEAP_MS = 900_000
"""A wall clock that differs from the monotonic one by more ends a stretch."""
GAP_MS = 24 * HOUR_MS
"""A longer gap is booked nowhere: a look would change hours of days before it."""
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999."""
CONTEXT_MS = 2 * LONGEST_MS + LEAP_MS
"""Greatest distance, in ms, from an hour to a look that contributes to it, without a gap in between."""
_DRIFT_MS = 1_000
"""By so much the monotonic clock and the wall clock may differ over a pair of looks without a leap."""


def pairs(looks: DataFrame) -> DataFrame:
    """Pairs of looks of silver.looks: cluster, look, previous, seen, begin_ms, end_ms, from_ms, length_ms.

    ``from_ms`` is where the part begins that no other instance covers; a pair without such a part is left out.
    """
    near = Window.partitionBy("cluster").orderBy("since_ms").rangeBetween(-LONGEST_MS, _DRIFT_MS)
    others = F.filter(
        F.collect_list(F.when(F.col("seen"), F.struct("since_ms", "instance", "order_ms"))).over(near),
        lambda other: other["instance"] != F.col("instance"),
    )
    earlier = F.filter(
        others, lambda other: F.struct(other["since_ms"], other["instance"]) < F.struct("since_ms", "instance")
    )
    covered = F.array_max(F.transform(earlier, lambda other: other["order_ms"])) - F.col("order_ms") + F.col("end_ms")
    is_spanned = F.exists(others, lambda other: other["order_ms"] >= F.col("order_ms") - _DRIFT_MS)
    return (
        _lined_up(looks)
        .withColumns({"covered": covered, "spanned": is_spanned})
        .where(F.col("seen") | ~F.col("spanned"))
        .withColumn("from_ms", F.when(F.col("seen"), F.greatest("begin_ms", "covered")).otherwise(F.col("begin_ms")))
        .where("from_ms < end_ms")
        .select("cluster", "look", "previous", "seen", "begin_ms", "end_ms", "from_ms", "length_ms")
    )


def _lined_up(looks: DataFrame) -> DataFrame:
    """Each whole look with the one that it is compared with, which after a gap may be of another instance.

    ``order_ms`` is a clock for all instances: the monotonic one, set by the wall clock of the instance's last look, so
    that looks before a leap are still before those after it; ``since_ms`` is the pair's begin by it.
    """
    in_order = Window.partitionBy("cluster", "instance").orderBy("monotonic_ms", "look")
    of_instance = in_order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    by_order = Window.partitionBy("cluster").orderBy("order_ms", "look")
    length = F.col("monotonic_ms") - F.lag("monotonic_ms").over(in_order)
    elapsed = F.col("taken_ms") - F.lag("taken_ms").over(in_order)
    ahead = F.last(F.col("taken_ms") - F.col("monotonic_ms")).over(of_instance)
    timed = (
        looks.where("complete")
        .select(
            "cluster",
            "instance",
            "look",
            F.col("taken_ms").alias("end_ms"),
            F.lag("look").over(in_order).alias("earlier"),
            length.alias("length_ms"),
            elapsed.alias("elapsed_ms"),
            _sure((length > 0) & (F.abs(elapsed - length) > LEAP_MS)).alias("leapt"),
            (F.col("monotonic_ms") + ahead).alias("order_ms"),
        )
        .withColumns(
            {
                "seen": _sure(F.col("length_ms").between(1, LONGEST_MS) & ~F.col("leapt")),
                "nearest": F.lag(F.struct("look", "order_ms")).over(by_order),
            }
        )
    )
    # A machine that slept has the wall clock right, one whose clock was set has the monotonic one right.
    slept = F.col("leapt") & F.col("elapsed_ms").between(F.col("length_ms"), GAP_MS)
    by_instance = F.col("seen") | F.col("leapt")
    length_ms = (
        F.when(slept, F.col("elapsed_ms"))
        .when(by_instance, F.col("length_ms"))
        .otherwise(F.col("order_ms") - F.col("nearest.order_ms"))
    )
    previous = F.when(by_instance, F.col("earlier")).otherwise(F.col("nearest.look"))
    return (
        timed.withColumns({"previous": previous, "length_ms": length_ms})
        .where(F.col("length_ms").between(1, GAP_MS))
        .withColumns(
            {"begin_ms": F.col("end_ms") - F.col("length_ms"), "since_ms": F.col("order_ms") - F.col("length_ms")}
        )
    )


def _sure(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))  # noqa: FBT003


def by_hour(look_pairs: DataFrame) -> DataFrame:
    """The pairs, cut at the borders of UTC hours: cluster, look, previous, seen, hour_ms, from_share, to_share, ms.

    The shares are of the whole pair, so that the parts of a number add up to it.
    """
    hours = F.sequence(hour_of(F.col("from_ms")), hour_of(F.col("end_ms") - 1), F.lit(HOUR_MS).cast("long"))
    cut = look_pairs.withColumn("hour_ms", F.explode(hours))
    return _parts(cut, F.col("hour_ms"), F.col("hour_ms") + HOUR_MS)


def by_window(look_pairs: DataFrame, windows: DataFrame) -> DataFrame:
    """The parts of pairs within windows (cluster, hour_ms as the window's name, window_from_ms, window_to_ms)."""
    within = (F.col("end_ms") > F.col("window_from_ms")) & (F.col("from_ms") < F.col("window_to_ms"))
    cut = look_pairs.join(F.broadcast(windows), on="cluster", how="inner").where(within)
    return _parts(cut, F.col("window_from_ms"), F.col("window_to_ms"))


def spanned(rows: DataFrame, spans: DataFrame) -> DataFrame:
    """Rows of looks with the parts of time (`by_hour`, `by_window`) that each covers: hour_ms is that of the part."""
    return rows.drop("hour_ms").join(F.broadcast(spans), on=["cluster", "look", "previous"], how="inner")


def timeline(looks: DataFrame, look_pairs: DataFrame | None = None) -> DataFrame:
    """Whole looks with the one before, null where they are no pair, and what holds for all that they show.

    ``look_pairs`` are their pairs, as far as these are at hand.
    A look whose pair is with one of another instance has a row beside it in which that one stands in, in the line of
    its instance: what goes from one look to the next finds there what it is compared with. ``of_instance_ms`` is the
    monotonic clock, null of stand-ins, whose clock is another one; ``previous_ms`` that of the look before, where it is
    of the same instance. ``run`` is another one after each leap: within a run hours follow each other.
    """
    in_order = Window.partitionBy("cluster", "instance").orderBy("monotonic_ms", "look")
    last = F.lag(F.struct("look", "monotonic_ms")).over(in_order)
    elapsed = F.col("taken_ms") - F.lag("taken_ms").over(in_order)
    leap = F.abs(elapsed - F.col("monotonic_ms") + F.lag("monotonic_ms").over(in_order))
    leapt = F.when((elapsed < 0) | (leap > LEAP_MS), F.col("look"))
    before = (pairs(looks) if look_pairs is None else look_pairs).select("cluster", "look", "previous")
    whole = looks.where("complete").select(
        "cluster", "look", "instance", "taken_ms", "monotonic_ms", "racks", "known_racks"
    )
    paired = (
        whole.withColumns({"last": last, "leapt": leapt})
        .withColumn("run", F.coalesce(F.last("leapt", ignorenulls=True).over(in_order), "instance"))
        .join(before, on=["cluster", "look"], how="left")
        .withColumn("previous_ms", F.when(F.col("last.look") == F.col("previous"), F.col("last.monotonic_ms")))
        .drop("last", "leapt")
    )
    after = paired.where(F.col("previous").isNotNull()).select(
        "cluster",
        F.col("previous").alias("look"),
        F.col("instance").alias("line"),
        (F.col("monotonic_ms") - 1).alias("before_ms"),
    )
    stand_ins = (
        whole.join(F.broadcast(after), on=["cluster", "look"], how="inner")
        .where(F.col("line") != F.col("instance"))
        .select(
            "cluster",
            "look",
            F.col("line").alias("instance"),
            "taken_ms",
            F.col("before_ms").alias("monotonic_ms"),
            "racks",
            "known_racks",
            F.lit(None).cast("string").alias("previous"),
            F.lit(None).cast("string").alias("run"),
            *(F.lit(None).cast("long").alias(name) for name in ("previous_ms", "of_instance_ms")),
        )
    )
    return paired.withColumn("of_instance_ms", F.col("monotonic_ms")).unionByName(stand_ins)


def touched_hours(looks: DataFrame, touched: DataFrame, look_pairs: DataFrame | None = None) -> DataFrame:
    """Hours (cluster, hour_ms) that may read otherwise since these looks (cluster, look) are there or are whole.

    One that comes late may hold sizes with which those of later looks are compared; one next to a gap changes all
    hours of the gap.
    """
    named = F.broadcast(touched.select("cluster", "look").distinct().withColumn("touched", F.lit(True)))  # noqa: FBT003
    in_order = Window.partitionBy("cluster", "instance").orderBy("monotonic_ms", "look")
    marked = looks.join(named, on=["cluster", "look"], how="left")
    near = F.array(*(F.coalesce(F.lag("touched", back).over(in_order), F.lit(False)) for back in (0, 1)))  # noqa: FBT003
    reach = F.coalesce(F.col("monotonic_ms") - F.lag("monotonic_ms", 2).over(in_order), F.lit(LONGEST_MS))
    newest = F.max("taken_ms").over(Window.partitionBy("cluster", "instance"))
    around = marked.select(
        "cluster",
        near.alias("near"),
        (F.col("taken_ms") - F.least(F.greatest(reach, F.lit(0)), F.lit(2 * LONGEST_MS))).alias("first_ms"),
        F.least(F.col("taken_ms") + LONGEST_MS, newest).alias("last_ms"),
    ).where(F.array_contains("near", True))  # noqa: FBT003
    gaps = (pairs(looks) if look_pairs is None else look_pairs).where(~F.col("seen"))
    beside = [gaps.join(named.withColumnRenamed("look", end), on=["cluster", end]) for end in ("look", "previous")]
    stretches = [
        rows.select("cluster", F.col("begin_ms").alias("first_ms"), F.col("end_ms").alias("last_ms")) for rows in beside
    ]
    every = stretches[0].unionByName(stretches[1]).unionByName(around.drop("near"))
    hours = F.sequence(hour_of(F.col("first_ms")), hour_of(F.col("last_ms")), F.lit(HOUR_MS).cast("long"))
    return every.select("cluster", F.explode(hours).alias("hour_ms")).distinct()


def known_lately(name: str) -> Column:
    """Whether a struct with look and monotonic_ms is of the look before, or of a quarter of an hour before that."""
    age_ms = F.col("previous_ms") - F.col(name)["monotonic_ms"]
    return _sure(F.col(name)["look"] == F.col("previous")) | _sure(age_ms.between(0, LONGEST_MS))


def hour_of(epoch_ms: Column) -> Column:
    """The begin of the UTC hour."""
    return (epoch_ms - F.pmod(epoch_ms, F.lit(HOUR_MS))).cast("long")


def day_of(epoch_ms: Column) -> Column:
    """The UTC day, yyyy-mm-dd; the first day of the epoch for a time that no calendar has. Sessions speak UTC."""
    day = F.date_format(F.timestamp_millis(epoch_ms), "yyyy-MM-dd")
    return F.when(epoch_ms.between(FIRST_MS, LAST_MS), day).when(epoch_ms.isNotNull(), "1970-01-01")


def instance_of_look() -> Column:
    """The agent's instance, from the id of the look in ``look``: as `pipeline.transforms.look_rows.instance_of`."""
    return F.regexp_extract("look", "(?s)^(.*)-", 1)


def of_gap(number: Column) -> Column:
    """The same in a gap, 0 where looks cover the time."""
    return F.when(F.col("seen"), F.lit(0).cast("long")).otherwise(number)


def share_of(part: str, whole: str) -> Column:
    """The part as a share of the whole; of nothing 0."""
    return F.coalesce(F.col(part) / F.nullif(F.col(whole), F.lit(0)), F.lit(0.0))


def part_of(number: Column) -> Column:
    """The share of a whole number that falls into a part; the shares of all parts add up to it."""
    return (F.floor(number * F.col("to_share") + 0.5) - F.floor(number * F.col("from_share") + 0.5)).cast("long")


def _parts(cut: DataFrame, lower: Column, upper: Column) -> DataFrame:
    begin, end = F.greatest(F.col("from_ms"), lower), F.least(F.col("end_ms"), upper)
    return cut.select(
        "cluster",
        "look",
        "previous",
        "seen",
        "hour_ms",
        ((begin - F.col("begin_ms")) / F.col("length_ms")).alias("from_share"),
        ((end - F.col("begin_ms")) / F.col("length_ms")).alias("to_share"),
        (end - begin).alias("ms"),
    )
