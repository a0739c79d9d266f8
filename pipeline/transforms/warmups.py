"""Warm-ups of tasks: begin, progress and end; and the restore rates of the stores that they give.

A warm-up shows in consecutive looks that see the copy in that role. What comes right after the last of them is its
end: the copy runs as active there, or it is gone. Where looks are missing then, it is unknown. Restore rates are those
of an application's stores, with the conditions under which their restores stalled.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from agent.values.kafka import STABLE
from pipeline.exact_sums import exact_sum
from pipeline.schemas.gold import RESTORE_RATES, WARMUPS
from pipeline.transforms.spans import HOUR_MS, LONGEST_MS, day_of, hour_of

_COPY = ("cluster", "group", "process", "task")


def warmups(copies: DataFrame, groups: DataFrame) -> DataFrame:
    """gold.warmups of silver.copies and silver.groups rows."""
    in_order = Window.partitionBy(*_COPY).orderBy("taken_ms", "look")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    neighbours = _with_next_look(copies, groups).select(
        "*",
        F.lag("role").over(in_order).alias("role_before"),
        F.lag("taken_ms").over(in_order).alias("seen_before"),
        F.lag("next_ms").over(in_order).alias("next_before"),
        F.lead("role").over(in_order).alias("role_after"),
        F.lead("taken_ms").over(in_order).alias("seen_after"),
    )
    # Two agents may look in the same millisecond.
    goes_on = (F.col("role_before") == "warm-up") & F.col("taken_ms").isin(F.col("seen_before"), F.col("next_before"))
    began = F.when(F.coalesce(goes_on, F.lit(False)), 0).otherwise(1)  # noqa: FBT003
    episodes = neighbours.where(F.col("role") == "warm-up").withColumn("episode", F.sum(began).over(so_far))
    return _summed(_steps(episodes, groups))


def _with_next_look(copies: DataFrame, groups: DataFrame) -> DataFrame:
    """The copies with the time of the next look that shows their group, null for the last."""
    empty = groups.where((F.col("members") == 0) & ~F.col("hidden"))
    looks = copies.select("cluster", "group", "taken_ms").union(empty.select("cluster", "group", "taken_ms")).distinct()
    in_order = Window.partitionBy("cluster", "group").orderBy("taken_ms")
    after = looks.withColumn("next_ms", F.lead("taken_ms").over(in_order))
    return copies.join(after, on=["cluster", "group", "taken_ms"], how="inner")


def _steps(episodes: DataFrame, groups: DataFrame) -> DataFrame:
    """What happened between one sight and the next: seconds, records restored, and whether and why it stalled."""
    in_order = Window.partitionBy(*_COPY, "episode").orderBy("taken_ms", "look")
    beside = Window.partitionBy("cluster", "look", "group", "process")
    ready = F.max(F.coalesce("caught_up", F.lit(False))).over(  # noqa: FBT003
        in_order.rowsBetween(Window.unboundedPreceding, -1)
    )
    closed = F.lag("lag").over(in_order) - F.col("lag")
    appended = F.col("end_offset_sum") - F.lag("end_offset_sum").over(in_order)
    states = groups.select("cluster", "look", "group", "state")
    return (
        episodes.join(states, on=["cluster", "look", "group"], how="left")
        .withColumns(
            {
                "before_ready": ~F.coalesce(ready, F.lit(False)),  # noqa: FBT003
                "step_ms": F.col("taken_ms") - F.lag("taken_ms").over(in_order),
                "closed": closed,
                "restored": F.when(closed.isNotNull(), F.greatest(closed + F.coalesce(appended, F.lit(0)), F.lit(0.0))),
                "advances": F.coalesce(closed > 0, F.lit(False)),  # noqa: FBT003
            }
        )
        .withColumn("others", F.sum(F.col("advances").cast("int")).over(beside) - F.col("advances").cast("int"))
    )


def _summed(steps: DataFrame) -> DataFrame:
    counts = F.col("before_ready")
    stalled = counts & (F.col("closed") <= 0)
    rebalancing = stalled & (F.coalesce("state", F.lit(STABLE)) != STABLE)
    sharing = stalled & ~rebalancing & (F.col("others") > 0)
    place = F.struct("taken_ms", "look")
    with_lag = F.when(F.col("lag").isNotNull(), place)
    added = steps.groupBy(*_COPY, "episode").agg(
        F.min("taken_ms").alias("began_ms"),
        F.max("taken_ms").alias("last_ms"),
        F.min(F.when(F.col("caught_up"), F.col("taken_ms"))).alias("ready_ms"),
        F.min_by("lag", with_lag).alias("lag_first"),
        F.max_by("lag", with_lag).alias("lag_last"),
        exact_sum(F.when(counts, F.col("restored"))).alias("records"),
        F.max_by(F.struct("next_ms", "role_after", "seen_after"), place).alias("after"),
        F.max("changelogs").alias("changelogs"),
        *(
            (F.coalesce(F.sum(F.when(when, F.col("step_ms"))), F.lit(0)) / 1000.0).alias(name)
            for name, when in (
                ("stalled_s", stalled),
                ("stalled_rebalancing_s", rebalancing),
                ("stalled_sharing_s", sharing),
            )
        ),
    )
    waited = F.when(F.col("outcome") == "promoted", (F.col("after.seen_after") - F.col("ready_ms")) / 1000.0)
    return (
        added.withColumns(
            {
                "outcome": _outcome(F.col("after")),
                "seconds": (F.coalesce("ready_ms", "last_ms") - F.col("began_ms")) / 1000.0,
            }
        )
        .withColumns({"waited_s": waited, "hour_ms": hour_of(F.col("began_ms")), "day": day_of(F.col("began_ms"))})
        .select(*WARMUPS.schema.names)
    )


def _outcome(after: Column) -> Column:
    late = after["next_ms"] - F.col("last_ms") > LONGEST_MS
    there = after["seen_after"] == after["next_ms"]
    return (
        F.when(after["next_ms"].isNull(), "running")
        .when(late, "unknown")
        .when(there & (after["role_after"] == "active"), "promoted")
        .otherwise("given up")
    )


# --- restore rates --------------------------------------------------------------------------------------------------

LEARNED_MS = 14 * 24 * HOUR_MS
"""Restores of this time, up to a cluster's last, give its rates."""
SHORTEST_S = 1.0
"""A restore that advanced for less time has no rate."""
_MOST = 0.5
"""A cause with more than this share of the stalls is named as theirs."""


def restore_rates(warmups: DataFrame) -> DataFrame:
    """gold.restore_rates of all gold.warmups rows. A rate is of the time in which something was restored."""
    advanced_s = F.col("seconds") - F.col("stalled_s")
    newest = F.max("last_ms").over(Window.partitionBy("cluster"))
    lately = warmups.withColumn("newest_ms", newest).where(F.col("last_ms") >= F.col("newest_ms") - LEARNED_MS)
    rated = lately.where((F.col("records") > 0) & (advanced_s >= SHORTEST_S)).select(
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
        rated.where(F.col("subtopology").isNotNull())
        .groupBy("cluster", "group", "subtopology")
        .agg(
            F.coalesce(
                F.max_by("changelogs", F.struct("last_ms", "changelogs")), F.array().cast("array<string>")
            ).alias("changelogs"),
            F.count(F.lit(1)).cast("int").alias("samples"),
            F.percentile("rate", [0.1, 0.5, 0.9]).alias("rates"),
            *(exact_sum(F.col(name)).alias(name) for name in ("seconds", "stalled_s", "rebalancing_s", "sharing_s")),
            F.max("last_ms").alias("until_ms"),
        )
    )
    return (
        added.withColumns({name: F.col("rates")[place] for place, name in enumerate(("low", "median", "high"))})
        .withColumns({"stalled_share": F.col("stalled_s") / F.col("seconds"), "stalls_when": _stalls_when()})
        .select(*RESTORE_RATES.schema.names)
    )


def _stalls_when() -> Column:
    stalled = F.col("stalled_s")
    rest = stalled - F.col("rebalancing_s") - F.col("sharing_s")

    def sentence(word: str, part: Column, clause: str) -> Column:
        share = F.format_string("%.0f", part / stalled * 100)
        return F.when(part > stalled * _MOST, F.concat(F.lit(f"{word}: {clause} in "), share, F.lit(" % of the time")))

    return F.when(
        stalled > 0,
        F.coalesce(
            sentence("rebalancing", F.col("rebalancing_s"), "the group was not Stable"),
            sentence("sharing", F.col("sharing_s"), "another copy of the same process was restoring"),
            sentence("alone", rest, "nothing that looks show went with it"),
            F.lit("mixed: nothing went with more than half of it"),
        ),
    )
