"""Outcomes of proposals: prediction, life, and the values measured after their execution.

Measured is a window of looks before the first request and one after the end, by the same ledger that prices hours: of
a topic its replication and reads, of a group its reads. Moves and copied bytes are those that looks show.

The life of a proposal comes from bronze.proposals (its prediction, and when it became void) and bronze.journal (when
rackwise itself began and ended it). A proposal executed by hand is not in the journal: it is void here, by its own
record.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.exact_sums import all_or_null
from pipeline.schemas.gold import OUTCOMES
from pipeline.transforms.spans import LAST_MS, day_of

WINDOW_MS = 600_000
"""How long before and after is measured, at most; shorter where looks begin or end. Other acts meanwhile are in it."""
SETTLE_MS = 5_000
"""For this time, in ms, after the end leaders and readers may still change."""
DAY_S = 86_400
_KEY = ("cluster", "proposal")


def windows(acts: DataFrame) -> DataFrame:
    """Before and after each act: cluster, proposal, phase, hour_ms (the window's own begin), its from and to.

    ``acts`` has cluster, proposal, applied_ms and done_ms.
    """
    ended = acts.where(F.col("applied_ms").isNotNull() & F.col("done_ms").isNotNull())
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
    by_proposal = ended.select("cluster", "proposal", F.explode(spans).alias("window")).select(*_KEY, "window.*")
    # A ledger asks for hours. All windows are as long, so those that begin at once are one.
    return by_proposal.withColumn("hour_ms", F.col("window_from_ms"))


def crossing(ledger: DataFrame, traffic: DataFrame, named: DataFrame, subjects: DataFrame) -> DataFrame:
    """Cross-rack bytes per second and dollars per day of each proposal's subject: before_… and after_… columns.

    ``ledger`` and ``traffic`` are by windows, ``named`` is `windows`, ``subjects`` has cluster, proposal, kind, name.
    """
    seconds = traffic.groupBy("cluster", "hour_ms").agg(F.max("seconds").alias("seconds"))
    flows = ledger.where(F.col("path").isin("replicate", "catch-up", "consume")).drop("seconds")
    mine = (F.col("subject_kind") == "topic") & (F.col("topic") == F.col("subject_name"))
    mine |= (F.col("subject_kind") == "group") & (F.col("group") == F.col("subject_name"))
    of = subjects.select(*_KEY, F.col("kind").alias("subject_kind"), F.col("name").alias("subject_name"))
    cross = F.col("zone") == "CROSS_ZONE"
    by_window = (
        named.select(*_KEY, "phase", "hour_ms")
        .join(of, on=[*_KEY], how="inner")
        .join(seconds, on=["cluster", "hour_ms"], how="inner")
        .join(flows, on=["cluster", "hour_ms"], how="inner")
        .where(mine)
    )
    # One unknown route or size makes the figure unknown, as it does where it is predicted.
    unknown = F.count_if((F.col("zone") == "UNKNOWN") | F.col("bytes").isNull()) > 0
    unpriced = F.count_if(cross & F.col("usd").isNull()) > 0
    rates = by_window.groupBy(*_KEY, "phase").agg(
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


def moved(acts: DataFrame, copies: DataFrame, partitions: DataFrame) -> DataFrame:
    """What looks show of plans: measured_moves and measured_move_bytes by cluster and proposal.

    A move is done when the first look after the end shows the planned replicas in their order. Bytes are null
    where the log dir of one of them was not described.
    """
    targets = (
        acts.where(F.col("targets").isNotNull() & F.col("done_ms").isNotNull())
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
    elected = F.when((F.size(F.array_except("after", "before")) == 0) & (F.col("replicas") == F.col("after")), 1)
    moves = after.groupBy(*_KEY).agg(F.sum(added + F.coalesce(elected, F.lit(0))).cast("int").alias("measured_moves"))
    wanted = targets.select(
        *_KEY, *place[1:], "applied_ms", "done_ms", F.explode(F.array_except("after", "before")).alias("broker")
    )
    in_looks = copies.select(*place, "broker", F.col("taken_ms").alias("at_ms"), "copied")
    during = F.col("at_ms").between(F.col("applied_ms"), F.col("done_ms") + WINDOW_MS)
    by_target = wanted.join(in_looks, on=[*place, "broker"], how="left").withColumn(
        "copied", F.when(during, F.col("copied")).when(F.col("at_ms").isNull() | ~during, F.lit(0))
    )
    copied = by_target.groupBy(*_KEY).agg(F.struct(all_or_null(F.col("copied")).alias("bytes")).alias("copied"))
    # What only changes leaders copies nothing.
    in_bytes = F.when(F.col("copied").isNull(), F.lit(0.0)).otherwise(F.col("copied.bytes"))
    return moves.join(copied, on=[*_KEY], how="left").select(
        *_KEY, "measured_moves", in_bytes.alias("measured_move_bytes")
    )


def outcomes(proposals: DataFrame, acts: DataFrame, rates: DataFrame, moves: DataFrame, now_ms: int) -> DataFrame:
    """gold.proposal_outcomes of `proposals.published`, `proposals.acted`, `crossing` and `moved` rows."""
    document = F.col("said")
    joined = (
        proposals.join(acts, on=[*_KEY], how="left")
        .join(rates, on=[*_KEY], how="left")
        .join(moves, on=[*_KEY], how="left")
    )
    state = (
        F.when(F.col("acted_state").isNotNull(), F.col("acted_state"))
        .when(F.col("void_ms").isNotNull(), "void")
        .when(F.col("expires_ms") < now_ms, "expired")
        .otherwise("standing")
    )
    expected, measured = document["predicted"]["cross_rack_bytes_per_s_after"], F.col("after_bytes_per_s")
    rows = joined.select(
        "cluster",
        "proposal",
        document["kind"].alias("kind"),
        document["reason"].alias("reason"),
        F.concat_ws("/", document["subject"]["kind"], document["subject"]["name"]).alias("subject"),
        "created_ms",
        state.alias("state"),
        "applied_ms",
        F.coalesce("done_ms", F.when(F.col("acted_state").isNull(), F.col("void_ms"))).alias("done_ms"),
        document["predicted"]["moves"].alias("predicted_moves"),
        F.coalesce("measured_moves", "came").alias("measured_moves"),
        document["predicted"]["bytes_to_move"].alias("predicted_move_bytes"),
        "measured_move_bytes",
        document["predicted"]["seconds"].alias("predicted_seconds"),
        ((F.col("done_ms") - F.col("applied_ms")) / 1000.0).alias("measured_seconds"),
        expected.alias("predicted_bytes_per_s"),
        measured.alias("measured_bytes_per_s"),
        F.col("before_bytes_per_s"),
        (document["predicted"]["usd_per_day_before"] - document["predicted"]["usd_per_day_after"]).alias(
            "predicted_usd_per_day"
        ),
        (F.col("before_usd_per_day") - F.col("after_usd_per_day")).alias("measured_usd_per_day"),
        ((measured - expected) / F.nullif(expected, F.lit(0.0))).alias("error_share"),
        day_of(F.col("created_ms")).alias("day"),
    )
    return rows.select(*OUTCOMES.schema.names)


CREATED, VOID = "rackwise.proposal.created.", "rackwise.proposal.void."
# --- acts of proposals ----------------------------------------------------------------------------------------------

_DOCUMENT = (
    "id string, kind string, reason string, subject struct<kind:string,name:string>, "
    "predicted struct<cross_rack_bytes_per_s_before:double,cross_rack_bytes_per_s_after:double,"
    "usd_per_day_before:double,usd_per_day_after:double,moves:int,bytes_to_move:double,seconds:double>, "
    "created_ms long, expires_ms long"
)
_LIFE = "id string, state string, at_ms long"
_PLAN = "proposal_id string, state string"
_TARGETS = (
    "topics array<array<string>>, replicas array<array<int>>, "
    "topic array<int>, partition array<int>, before array<int>, after array<int>"
)
"""Columns; those but the partition's number point into the two tables."""
_OF_PLAN = "^targets/(.*)/[0-9]+$"
_BATCH = "proposal_id string, state string, back boolean"
_TRIGGER = (
    "group_id string, proposal_id string, acted_ms long, effect string, "
    "judgement struct<verdict:string,at_ms:long,came:int,beyond_count:int>"
)
_UNASKED = ("NOT_SENT", "REFUSED")
_MISSED = ("NO_EFFECT", "NO_REBALANCE", "NOT_DONE")


def published(proposals: DataFrame) -> DataFrame:
    """One row per proposal: cluster, proposal, its last document, created_ms, expires_ms (its last), void_ms."""
    newest = (
        proposals.where(F.col("type").startswith(CREATED) & F.col("data").isNotNull())
        .select("cluster", "time_ms", F.from_json("data", _DOCUMENT).alias("said"))
        .where(F.col("said.id").isNotNull())
        .groupBy("cluster", F.col("said.id").alias("proposal"))
        .agg(
            F.max_by("said", "time_ms").alias("said"),
            F.min(_time("said.created_ms")).alias("created_ms"),
            F.max(_time("said.expires_ms")).alias("expires_ms"),
            F.max("time_ms").alias("written_ms"),
        )
    )
    ended = (
        proposals.where(F.col("type").startswith(VOID) & F.col("data").isNotNull())
        .select("cluster", F.from_json("data", _LIFE).alias("life"))
        .groupBy("cluster", F.col("life.id").alias("proposal"))
        .agg(F.max(_time("life.at_ms")).alias("void_ms"))
    )
    return newest.join(ended, on=["cluster", "proposal"], how="left").withColumn(
        # One that was published again since then is open again.
        "void_ms",
        F.when(F.col("void_ms") >= F.col("written_ms"), F.col("void_ms")),
    )


def acted(journal: DataFrame) -> DataFrame:
    """One row per proposal that rackwise carried out: cluster, proposal, acted_state, applied_ms, done_ms, targets.

    ``targets`` (topic, partition, before, after) is null for a trigger, ``came`` (moves that came) for a plan.
    """
    rows = journal.where(F.col("data").isNotNull())
    return _plans(rows).unionByName(_triggers(rows))


def _plans(rows: DataFrame) -> DataFrame:
    at = F.struct("epoch", "seq")
    plans = (
        rows.where(F.col("key").startswith("plan/"))
        .select(
            "cluster", "at_ms", "epoch", "seq", F.from_json("data", _PLAN).alias("plan"), F.lower("kind").alias("kind")
        )
        .groupBy("cluster", F.col("plan.proposal_id").alias("proposal"))
        .agg(
            F.max_by("kind", at).alias("kind"),
            F.max_by("plan", at).alias("plan"),
            F.min("at_ms").alias("accepted_ms"),
            F.min(F.when(_ended(F.col("kind")), F.col("at_ms"))).alias("done_ms"),
        )
    )
    sent = (
        rows.where(F.col("key").startswith("batch/") & (F.col("kind") == "sent"))
        .select("cluster", "at_ms", F.from_json("data", _BATCH).alias("batch"))
        .groupBy("cluster", F.col("batch.proposal_id").alias("proposal"))
        .agg(F.min("at_ms").alias("sent_ms"))
    )
    whole = plans.join(sent, on=["cluster", "proposal"], how="left").join(
        _targets(rows), on=["cluster", "proposal"], how="left"
    )
    return whole.select(
        "cluster",
        "proposal",
        _state(F.col("kind")).alias("acted_state"),
        F.coalesce("sent_ms", "accepted_ms").alias("applied_ms"),
        F.when(_ended(F.col("kind")), F.col("done_ms")).alias("done_ms"),
        "targets",
        F.lit(None).cast("int").alias("came"),
    )


def _targets(rows: DataFrame) -> DataFrame:
    """The partitions of plans, by cluster and proposal: each of their records once."""
    parts = (
        rows.where(F.col("key").startswith("targets/"))
        .groupBy("cluster", "key")
        .agg(F.max_by("data", F.struct("epoch", "seq")).alias("data"))
        .select(
            "cluster",
            F.regexp_extract("key", _OF_PLAN, 1).alias("proposal"),
            F.from_json("data", _TARGETS).alias("of"),
        )
    )
    every = F.transform(
        F.arrays_zip("of.topic", "of.partition", "of.before", "of.after"),
        lambda one: F.struct(
            F.get(F.get("of.topics", one["topic"]), F.lit(0)).alias("topic"),
            one["partition"].alias("partition"),
            F.get("of.replicas", one["before"]).alias("before"),
            F.get("of.replicas", one["after"]).alias("after"),
        ),
    )
    return parts.groupBy("cluster", "proposal").agg(F.flatten(F.collect_list(every)).alias("targets"))


def _time(name: str) -> Column:
    """The time in epoch milliseconds; null for one that no calendar has."""
    return F.when(F.col(name).between(0, LAST_MS), F.col(name))


def _ended(kind: Column) -> Column:
    return kind.isin("done", "cancelled", "rolled back", "failed")


def _state(kind: Column) -> Column:
    return (
        F.when(kind == "done", "done")
        .when(kind.isin("cancelled", "rolled back"), "cancelled")
        .when(kind == "failed", "failed")
        .otherwise("running")
    )


def _triggers(rows: DataFrame) -> DataFrame:
    newest = (
        rows.where(F.col("key").startswith("trigger/"))
        .select("cluster", "epoch", "seq", F.from_json("data", _TRIGGER).alias("told"))
        .groupBy("cluster", F.col("told.proposal_id").alias("proposal"))
        .agg(F.max_by("told", F.struct("epoch", "seq")).alias("told"))
    )
    verdict = F.col("told.judgement.verdict")
    failed = F.coalesce(F.col("told.effect").isin(*_UNASKED), F.lit(False)) | verdict.isin(*_MISSED)  # noqa: FBT003
    state = F.when(F.coalesce(failed, F.lit(False)), "failed").when(verdict.isNull(), "running")  # noqa: FBT003
    return newest.select(
        "cluster",
        "proposal",
        state.otherwise("done").alias("acted_state"),
        _time("told.acted_ms").alias("applied_ms"),
        _time("told.judgement.at_ms").alias("done_ms"),
        F.lit(None)
        .cast("array<struct<topic:string,partition:int,before:array<int>,after:array<int>>>")
        .alias("targets"),
        F.try_add("told.judgement.came", F.col("told.judgement.beyond_count")).alias("came"),
    )
