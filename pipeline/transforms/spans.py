"""Time that looks cover: pairs of consecutive looks, split at the hours.

A pair is of two looks of one instance, one right after the other by its monotonic clock. A restart, a look that is
missing for long and a clock that leaps are gaps. Where two agents look at once, each stretch of time is taken from the
one whose pair began first. Invariant: every millisecond of an instance's run counts once at most; an hour
that an instance ran through twice, as its clock was set back, may have more than 3,600 seconds.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

HOUR_MS = 3_600_000
LONGEST_MS = 900_000
"""Looks that are further apart are no pair: what happened in between cannot be attributed."""
LEAP_MS = 900_000
"""A wall clock that differs from the monotonic one by more ends a stretch."""
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999."""
CONTEXT_MS = 2 * LONGEST_MS + LEAP_MS
"""Greatest distance, in ms, from an hour to a look that contributes to it."""


def pairs(looks: DataFrame) -> DataFrame:
    """Consecutive looks of silver.looks: cluster, look, previous, begin_ms, end_ms, from_ms, length_ms.

    ``from_ms`` is where the part begins that no other instance covers; a pair without such a part is left out.
    """
    in_order = Window.partitionBy("cluster", "instance").orderBy("monotonic_ms", "look")
    length = F.col("monotonic_ms") - F.lag("monotonic_ms").over(in_order)
    leap = F.abs(F.col("taken_ms") - F.lag("taken_ms").over(in_order) - length)
    consecutive = (
        looks.where("complete")
        .select(
            "cluster",
            "instance",
            "look",
            F.lag("look").over(in_order).alias("previous"),
            length.alias("length_ms"),
            leap.alias("leap_ms"),
            F.col("taken_ms").alias("end_ms"),
        )
        .where((F.col("length_ms") > 0) & (F.col("length_ms") <= LONGEST_MS) & (F.col("leap_ms") <= LEAP_MS))
        .withColumn("begin_ms", F.col("end_ms") - F.col("length_ms"))
    )
    near = Window.partitionBy("cluster").orderBy("begin_ms").rangeBetween(-LONGEST_MS, 0)
    others = F.filter(
        F.collect_list(F.struct("begin_ms", "instance", "end_ms")).over(near),
        lambda other: (
            (other["instance"] != F.col("instance"))
            & (F.struct(other["begin_ms"], other["instance"]) < F.struct(F.col("begin_ms"), F.col("instance")))
        ),
    )
    covered = F.array_max(F.transform(others, lambda other: other["end_ms"]))
    return (
        consecutive.withColumn("from_ms", F.greatest("begin_ms", F.coalesce(covered, F.col("begin_ms"))))
        .where("from_ms < end_ms")
        .select("cluster", "look", "previous", "begin_ms", "end_ms", "from_ms", "length_ms")
    )


def by_hour(look_pairs: DataFrame) -> DataFrame:
    """The pairs, cut at the borders of UTC hours: cluster, look, previous, hour_ms, from_share, to_share, ms.

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


def timeline(looks: DataFrame) -> DataFrame:
    """Whole looks with the one before, null where they are no pair, and what holds for all that they show."""
    before = pairs(looks).select("cluster", "look", "previous")
    whole = looks.where("complete").select(
        "cluster",
        "look",
        "instance",
        "taken_ms",
        "monotonic_ms",
        F.col("selector_is_rack_aware").alias("selector"),
        "racks",
    )
    return whole.join(before, on=["cluster", "look"], how="left")


def touched_hours(looks: DataFrame, touched: DataFrame) -> DataFrame:
    """Hours (cluster, hour_ms) that may read otherwise since these looks (cluster, look) are there or are whole.

    One that comes late may hold sizes with which those of later looks are compared.
    """
    in_order = Window.partitionBy("cluster", "instance").orderBy("monotonic_ms", "look")
    marked = looks.join(
        F.broadcast(touched.select("cluster", "look").distinct().withColumn("touched", F.lit(True))),  # noqa: FBT003
        on=["cluster", "look"],
        how="left",
    )
    near = F.array(*(F.coalesce(F.lag("touched", back).over(in_order), F.lit(False)) for back in (0, 1)))  # noqa: FBT003
    reach = F.coalesce(F.col("monotonic_ms") - F.lag("monotonic_ms", 2).over(in_order), F.lit(LONGEST_MS))
    newest = F.max("taken_ms").over(Window.partitionBy("cluster", "instance"))
    return (
        marked.select(
            "cluster",
            "taken_ms",
            near.alias("near"),
            F.least(F.greatest(reach, F.lit(0)), F.lit(2 * LONGEST_MS)).alias("reach_ms"),
            F.least(F.col("taken_ms") + LONGEST_MS, newest).alias("until_ms"),
        )
        .where(F.array_contains("near", True))  # noqa: FBT003
        .select(
            "cluster",
            F.explode(
                F.sequence(
                    hour_of(F.col("taken_ms") - F.col("reach_ms")),
                    hour_of(F.col("until_ms")),
                    F.lit(HOUR_MS).cast("long"),
                )
            ).alias("hour_ms"),
        )
        .distinct()
    )


def hour_of(epoch_ms: Column) -> Column:
    """The begin of the UTC hour."""
    return (epoch_ms - F.pmod(epoch_ms, F.lit(HOUR_MS))).cast("long")


def day_of(epoch_ms: Column) -> Column:
    """The UTC day, yyyy-mm-dd; the first day of the epoch for a time that no calendar has. Sessions speak UTC."""
    day = F.date_format(F.timestamp_millis(epoch_ms), "yyyy-MM-dd")
    return F.when(epoch_ms.between(FIRST_MS, LAST_MS), day).when(epoch_ms.isNotNull(), "1970-01-01")


def part_of(number: Column) -> Column:
    """The share of a whole number that falls into a part; the shares of all parts add up to it."""
    return (F.floor(number * F.col("to_share") + 0.5) - F.floor(number * F.col("from_share") + 0.5)).cast("long")


def exact_sum(number: Column) -> Column:
    """A sum that does not depend on the order of its numbers, which Spark does not keep; to a thousandth."""
    return F.sum(number.cast("decimal(28,3)")).cast("double")


def all_or_null(number: Column) -> Column:
    """The exact sum; null when one of the numbers is."""
    return F.when(F.count(number) == F.count(F.lit(1)), exact_sum(number))


def _parts(cut: DataFrame, lower: Column, upper: Column) -> DataFrame:
    begin, end = F.greatest(F.col("from_ms"), lower), F.least(F.col("end_ms"), upper)
    return cut.select(
        "cluster",
        "look",
        "previous",
        "hour_ms",
        ((begin - F.col("begin_ms")) / F.col("length_ms")).alias("from_share"),
        ((end - F.col("begin_ms")) / F.col("length_ms")).alias("to_share"),
        (end - begin).alias("ms"),
    )
