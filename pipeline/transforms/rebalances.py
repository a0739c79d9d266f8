"""Rebalances in the looks: time, longest duration, members that joined and left, moved partitions, cause.

A rebalance shows in two looks that show a group Stable, with another generation or epoch. What happened twice between
two looks is one rebalance here.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from agent.values.kafka import STABLE
from pipeline.schemas.gold import REBALANCES
from pipeline.transforms.journal_entries import NOT_ASKED
from pipeline.transforms.spans import day_of, hour_of

CLOCKS_MS = 5_000
"""Possible difference, in ms, between the clocks of two agents."""


def rebalances(groups: DataFrame, reads: DataFrame, triggers: DataFrame) -> DataFrame:
    """gold.rebalances of silver.groups and silver.reads rows, and triggers (cluster, group, proposal, at_ms)."""
    events = _events(groups)
    moved = _moved(events, reads)
    with_moves = events.join(moved, on=["cluster", "group", "seen_look"], how="left")
    triggered = (
        with_moves.alias("told")
        .join(triggers.alias("asked"), on=["cluster", "group"], how="inner")
        .where(F.col("at_ms").between(F.col("after_ms") - CLOCKS_MS, F.col("seen_ms") + CLOCKS_MS))
        .groupBy("cluster", "group", "seen_look")
        .agg(F.max_by("proposal", F.struct("at_ms", "proposal")).alias("trigger"))
    )
    return (
        with_moves.join(triggered, on=["cluster", "group", "seen_look"], how="left")
        .withColumns({"cause": _cause(), "seconds_most": (F.col("seen_ms") - F.col("after_ms")) / 1000.0})
        .withColumns({"hour_ms": hour_of(F.col("seen_ms")), "day": day_of(F.col("seen_ms"))})
        .select(*REBALANCES.schema.names)
    )


def triggers_of(journal: DataFrame) -> DataFrame:
    """Rebalances that rackwise triggered, of bronze.journal rows: cluster, group, proposal, at_ms."""
    trigger = F.from_json("data", "group_id string, proposal_id string, acted_ms long, effect string")
    return (
        journal.where(F.col("key").startswith("trigger/") & F.col("data").isNotNull())
        .select("cluster", trigger.alias("told"))
        .where(F.col("told.acted_ms").isNotNull() & ~F.coalesce("told.effect", F.lit("")).isin(*NOT_ASKED))
        .select(
            "cluster",
            F.col("told.group_id").alias("group"),
            F.col("told.proposal_id").alias("proposal"),
            F.col("told.acted_ms").alias("at_ms"),
        )
        .distinct()
    )


def _events(groups: DataFrame) -> DataFrame:
    in_order = Window.partitionBy("cluster", "group").orderBy("taken_ms", "look")
    shown = groups.where((F.col("state") == STABLE) & F.col("rebalance").isNotNull() & ~F.col("hidden"))
    compared = shown.withColumn("before", F.lag(F.struct("rebalance", "taken_ms", "look", "members")).over(in_order))
    return compared.where(F.col("before.rebalance") != F.col("rebalance")).select(
        "cluster",
        "group",
        "kind",
        "rebalance",
        F.col("before.taken_ms").alias("after_ms"),
        F.col("before.look").alias("after_look"),
        F.col("taken_ms").alias("seen_ms"),
        F.col("look").alias("seen_look"),
        F.col("before.members").alias("members_before"),
        F.col("members").alias("members_after"),
    )


def _moved(events: DataFrame, reads: DataFrame) -> DataFrame:
    """By rebalance: partitions with another reader, partitions that are new, and whether the readers are the same."""
    key = ("cluster", "group", "seen_look", "topic", "partition")
    active = reads.where(F.col("role") == "active")
    ends = F.explode(F.array(*(F.struct(F.col(look).alias("look"), F.lit(late).alias("late"))
                               for look, late in (("after_look", False), ("seen_look", True)))))  # fmt: skip
    looked = events.select("cluster", "group", "seen_look", ends.alias("end")).select(
        "cluster", "group", "seen_look", "end.look", "end.late"
    )
    at_ends = active.join(F.broadcast(looked), on=["cluster", "group", "look"], how="inner")
    by_partition = at_ends.groupBy(*key).agg(
        F.max(F.when(~F.col("late"), F.col("member"))).alias("was"),
        F.max(F.when(F.col("late"), F.col("member"))).alias("now"),
    )
    return by_partition.groupBy("cluster", "group", "seen_look").agg(
        F.count_if(F.col("was") != F.col("now")).cast("int").alias("moved"),
        F.count_if(F.col("was").isNull()).alias("more"),
        (F.sort_array(F.collect_set("was")) == F.sort_array(F.collect_set("now"))).alias("same_readers"),
    )


def _cause() -> Column:
    before, after = F.col("members_before"), F.col("members_after")
    return (
        F.when(F.col("trigger").isNotNull(), "triggered")
        .when(after > before, "members joined")
        .when(after < before, "members left")
        .when(~F.col("same_readers"), "members changed")
        .when(F.col("more") > 0, "new partitions")
        .when(F.col("kind") == "classic streams", "probing")
        .otherwise("unknown")
    )
