"""Proposals: what was predicted, and what was measured after they were carried out.

Measured is a window of looks before the first request and one after the end, by the very ledger that prices hours: of
a topic what it replicates and what is read of it, of a group what it reads. Moves and copied bytes are what looks show.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.schemas.gold import OUTCOMES
from pipeline.transforms.spans import all_or_null, day_of

WINDOW_MS = 600_000
"""How long before and after is measured, at most; shorter where looks begin or end. Other acts meanwhile are in it."""
SETTLE_MS = 5_000
"""After the end, leaders and readers may still change for so long."""
DAY_S = 86_400
_KEY = ("cluster", "proposal")


def windows(lives: DataFrame) -> DataFrame:
    """Before and after each act: cluster, proposal, phase, hour_ms (the window's own begin), its from and to.

    ``lives`` has cluster, proposal, applied_ms and done_ms.
    """
    ended = lives.where(F.col("applied_ms").isNotNull() & F.col("done_ms").isNotNull())
    spans = F.array(
        F.struct(
            F.lit("before").alias("phase"),
            (F.col("applied_ms") - WINDOW_MS).alias("window_from_ms"),
            F.col("applied_ms").alias("window_to_ms"),
        ),
        F.struct(
            F.lit("after").alias("phase"),
            (F.col("done_ms") + SETTLE_MS).alias("window_from_ms"),
            (F.col("done_ms") + SETTLE_MS + WINDOW_MS).alias("window_to_ms"),
        ),
    )
    told = ended.select("cluster", "proposal", F.explode(spans).alias("window")).select(*_KEY, "window.*")
    # A ledger asks for hours. All windows are as long, so those that begin at once are one.
    return told.withColumn("hour_ms", F.col("window_from_ms"))


def crossing(ledger: DataFrame, traffic: DataFrame, named: DataFrame, subjects: DataFrame) -> DataFrame:
    """Cross-rack bytes per second and dollars per day of each proposal's subject: before_… and after_… columns.

    ``ledger`` and ``traffic`` are by windows, ``named`` is `windows`, ``subjects`` has cluster, proposal, kind, name.
    """
    seconds = traffic.groupBy("cluster", "hour_ms").agg(F.max("seconds").alias("seconds"))
    flows = ledger.where(F.col("path").isin("replicate", "consume"))
    mine = (F.col("subject_kind") == "topic") & (F.col("topic") == F.col("subject_name"))
    mine |= (F.col("subject_kind") == "group") & (F.col("group") == F.col("subject_name"))
    of = subjects.select(*_KEY, F.col("kind").alias("subject_kind"), F.col("name").alias("subject_name"))
    cross = F.col("zone") == "CROSS_ZONE"
    told = (
        named.select(*_KEY, "phase", "hour_ms")
        .join(of, on=[*_KEY], how="inner")
        .join(seconds, on=["cluster", "hour_ms"], how="inner")
        .join(flows, on=["cluster", "hour_ms"], how="inner")
        .where(mine)
    )
    # One unknown route or size makes the figure unknown, as it does where it is predicted.
    unknown = F.count_if((F.col("zone") == "UNKNOWN") | F.col("bytes").isNull()) > 0
    unpriced = F.count_if(cross & F.col("usd").isNull()) > 0
    rates = told.groupBy(*_KEY, "phase").agg(
        F.when(~unknown, F.sum(F.when(cross, F.col("bytes")).otherwise(0.0)) / F.first("seconds")).alias("bytes_per_s"),
        F.when(
            ~unknown & ~unpriced, F.sum(F.when(cross, F.col("usd")).otherwise(0.0)) / F.first("seconds") * DAY_S
        ).alias("usd_per_day"),
    )

    def at(phase: str, name: str) -> Column:
        return F.max(F.when(F.col("phase") == phase, F.col(name))).alias(f"{phase}_{name}")

    return rates.groupBy(*_KEY).agg(
        *(at(phase, name) for phase in ("before", "after") for name in ("bytes_per_s", "usd_per_day"))
    )


def moved(lives: DataFrame, copies: DataFrame, partitions: DataFrame) -> DataFrame:
    """What looks show of plans: measured_moves and measured_move_bytes by cluster and proposal.

    A move came when the first look after the end shows the replicas that were planned, in their order. Bytes are null
    where no log dir tells those of one of them.
    """
    targets = (
        lives.where(F.col("targets").isNotNull() & F.col("done_ms").isNotNull())
        .select(*_KEY, "applied_ms", "done_ms", F.explode("targets").alias("target"))
        .select(*_KEY, "applied_ms", "done_ms", "target.*")
    )
    place = ["cluster", "topic", "partition"]
    after = (
        targets.join(partitions.select(*place, "taken_ms", "replicas"), on=place, how="inner")
        .where(F.col("taken_ms") >= F.col("done_ms"))
        .groupBy(*_KEY, "topic", "partition")
        .agg(
            F.min_by("replicas", "taken_ms").alias("replicas"),
            F.first("before").alias("before"),
            F.first("after").alias("after"),
        )
    )
    added = F.size(F.array_except(F.array_intersect("replicas", "after"), "before"))
    led = F.when((F.size(F.array_except("after", "before")) == 0) & (F.col("replicas") == F.col("after")), 1)
    moves = after.groupBy(*_KEY).agg(F.sum(added + F.coalesce(led, F.lit(0))).cast("int").alias("measured_moves"))
    wanted = targets.select(
        *_KEY, *place[1:], "applied_ms", "done_ms", F.explode(F.array_except("after", "before")).alias("broker")
    )
    found = copies.select(*place, "broker", F.col("taken_ms").alias("at_ms"), "copied")
    during = F.col("at_ms").between(F.col("applied_ms"), F.col("done_ms") + WINDOW_MS)
    by_target = wanted.join(found, on=[*place, "broker"], how="left").withColumn(
        "copied", F.when(during, F.col("copied")).when(F.col("at_ms").isNull() | ~during, F.lit(0))
    )
    copied = by_target.groupBy(*_KEY).agg(F.struct(all_or_null(F.col("copied")).alias("bytes")).alias("copied"))
    # What only changes leaders copies nothing.
    in_bytes = F.when(F.col("copied").isNull(), F.lit(0.0)).otherwise(F.col("copied.bytes"))
    return moves.join(copied, on=[*_KEY], how="left").select(
        *_KEY, "measured_moves", in_bytes.alias("measured_move_bytes")
    )


def outcomes(proposals: DataFrame, lives: DataFrame, rates: DataFrame, moves: DataFrame, now_ms: int) -> DataFrame:
    """gold.proposal_outcomes of `proposals.published`, `proposals.acted`, `crossing` and `moved` rows."""
    said = F.col("said")
    told = (
        proposals.join(lives, on=[*_KEY], how="left")
        .join(rates, on=[*_KEY], how="left")
        .join(moves, on=[*_KEY], how="left")
    )
    state = (
        F.when(F.col("acted_state").isNotNull(), F.col("acted_state"))
        .when(F.col("void_ms").isNotNull(), "void")
        .when(F.col("expires_ms") < now_ms, "expired")
        .otherwise("standing")
    )
    expected, measured = said["predicted"]["cross_rack_bytes_per_s_after"], F.col("after_bytes_per_s")
    rows = told.select(
        "cluster",
        "proposal",
        said["kind"].alias("kind"),
        said["reason"].alias("reason"),
        F.concat_ws("/", said["subject"]["kind"], said["subject"]["name"]).alias("subject"),
        "created_ms",
        state.alias("state"),
        "applied_ms",
        F.coalesce("done_ms", F.when(F.col("acted_state").isNull(), F.col("void_ms"))).alias("done_ms"),
        said["predicted"]["moves"].alias("predicted_moves"),
        F.coalesce("measured_moves", "came").alias("measured_moves"),
        said["predicted"]["bytes_to_move"].alias("predicted_move_bytes"),
        "measured_move_bytes",
        said["predicted"]["seconds"].alias("predicted_seconds"),
        ((F.col("done_ms") - F.col("applied_ms")) / 1000.0).alias("measured_seconds"),
        expected.alias("predicted_bytes_per_s"),
        measured.alias("measured_bytes_per_s"),
        F.col("before_bytes_per_s"),
        (said["predicted"]["usd_per_day_before"] - said["predicted"]["usd_per_day_after"]).alias(
            "predicted_usd_per_day"
        ),
        (F.col("before_usd_per_day") - F.col("after_usd_per_day")).alias("measured_usd_per_day"),
        ((measured - expected) / F.nullif(expected, F.lit(0.0))).alias("error_share"),
        day_of(F.col("created_ms")).alias("day"),
    )
    return rows.select(*OUTCOMES.schema.names)
