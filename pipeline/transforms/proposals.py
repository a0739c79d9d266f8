"""The lives of proposals: what was published of each, what became of it, when it was carried out.

Out of bronze.proposals (what was predicted, when it became void) and bronze.journal (what rackwise itself began and
ended). What is carried out by hand is not in the journal: such a proposal is void here, as its own record says.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

CREATED, VOID = "rackwise.proposal.created.", "rackwise.proposal.void."
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
    """One row per proposal: cluster, proposal, what it said last, created_ms, expires_ms (its last), void_ms."""
    told = (
        proposals.where(F.col("type").startswith(CREATED) & F.col("data").isNotNull())
        .select("cluster", "time_ms", F.from_json("data", _DOCUMENT).alias("said"))
        .where(F.col("said.id").isNotNull())
        .groupBy("cluster", F.col("said.id").alias("proposal"))
        .agg(
            F.max_by("said", "time_ms").alias("said"),
            F.min("said.created_ms").alias("created_ms"),
            F.max("said.expires_ms").alias("expires_ms"),
            F.max("time_ms").alias("written_ms"),
        )
    )
    ended = (
        proposals.where(F.col("type").startswith(VOID) & F.col("data").isNotNull())
        .select("cluster", F.from_json("data", _LIFE).alias("life"))
        .groupBy("cluster", F.col("life.id").alias("proposal"))
        .agg(F.max("life.at_ms").alias("void_ms"))
    )
    return told.join(ended, on=["cluster", "proposal"], how="left").withColumn(
        # One that was published again since then stands again.
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
            F.col("of.topics")[one["topic"]][0].alias("topic"),
            one["partition"].alias("partition"),
            F.col("of.replicas")[one["before"]].alias("before"),
            F.col("of.replicas")[one["after"]].alias("after"),
        ),
    )
    return parts.groupBy("cluster", "proposal").agg(F.flatten(F.collect_list(every)).alias("targets"))


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
    told = (
        rows.where(F.col("key").startswith("trigger/"))
        .select("cluster", "epoch", "seq", F.from_json("data", _TRIGGER).alias("told"))
        .groupBy("cluster", F.col("told.proposal_id").alias("proposal"))
        .agg(F.max_by("told", F.struct("epoch", "seq")).alias("told"))
    )
    verdict = F.col("told.judgement.verdict")
    failed = F.coalesce(F.col("told.effect").isin(*_UNASKED), F.lit(False)) | verdict.isin(*_MISSED)  # noqa: FBT003
    state = F.when(F.coalesce(failed, F.lit(False)), "failed").when(verdict.isNull(), "running")  # noqa: FBT003
    return told.select(
        "cluster",
        "proposal",
        state.otherwise("done").alias("acted_state"),
        F.col("told.acted_ms").alias("applied_ms"),
        F.col("told.judgement.at_ms").alias("done_ms"),
        F.lit(None)
        .cast("array<struct<topic:string,partition:int,before:array<int>,after:array<int>>>")
        .alias("targets"),
        (F.col("told.judgement.came") + F.col("told.judgement.beyond_count")).alias("came"),
    )
