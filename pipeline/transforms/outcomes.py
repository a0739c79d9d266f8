"""Outcomes of proposals: prediction, life, and the values measured after their execution.

Measured is a window of looks before the first request and one after the end, by the same ledger that prices hours: of
a topic its replication and reads, of a group its reads. Moves and copied bytes are those that looks show.

The life of a proposal comes from bronze.proposals (its prediction, and when it became void) and bronze.journal (when
rackwise itself began and ended it; of several attempts the newest counts). A proposal executed by hand is not in the
journal: it is void here, by its own record.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F

from agent.journal.triggers import TriggerEffect, TriggerVerdict
from agent.values.reassignment import ENDED, BatchState, PlanState
from pipeline.exact_sums import TRILLIONTHS, all_or_null, total
from pipeline.schemas.gold import OUTCOMES
from pipeline.schemas.zones import CROSS_ZONE, UNKNOWN_ZONE
from pipeline.transforms.journal_entries import NOT_ASKED, attempt, plan_name
from pipeline.transforms.spans import LAST_MS, day_of

WINDOW_MS = 600_000
"""How long before and after is measured, at most; shorter where looks begin or end. Other acts meanwhile are in it."""
SETTLE_MS = 5_000
"""For this time, in ms, after the end leaders and readers may still change."""
DAY_S = 86_400
_KEY = ("cluster", "proposal")
_MEASURED = {
    "before_bytes_per_s": "double", "before_usd_per_day": "double", "after_bytes_per_s": "double",
    "after_usd_per_day": "double", "measured_moves": "int", "measured_move_bytes": "double",
}  # fmt: skip
"""Columns of `crossing` and `moved`."""


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
    cross = F.col("zone") == CROSS_ZONE
    by_window = (
        named.select(*_KEY, "phase", "hour_ms")
        .join(of, on=[*_KEY], how="inner")
        .join(seconds, on=["cluster", "hour_ms"], how="inner")
        .join(flows, on=["cluster", "hour_ms"], how="inner")
        .where(mine)
    )
    # One unknown route or size makes the figure unknown, as it does where it is predicted.
    unknown = F.count_if((F.col("zone") == UNKNOWN_ZONE) | F.col("bytes").isNull()) > 0
    unpriced = F.count_if(cross & F.col("usd").isNull()) > 0
    # Dollars of about a minute become those of a day, in which what a billionth leaves out would show.
    usd = total(cross, F.col("usd"), TRILLIONTHS)
    rates = by_window.groupBy(*_KEY, "phase").agg(
        F.when(~unknown, total(cross, F.col("bytes")) / F.max("seconds")).alias("bytes_per_s"),
        F.when(~unknown & ~unpriced, usd / F.max("seconds") * DAY_S).alias("usd_per_day"),
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
        targets.join(partitions.select(*place, "taken_ms", "look", "replicas"), on=place, how="inner")
        .where(F.col("taken_ms") >= F.col("done_ms"))
        .groupBy(*_KEY, "topic", "partition", "before", "after")
        .agg(F.min_by("replicas", F.struct("taken_ms", "look")).alias("replicas"))
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


def outcomes(proposals: DataFrame, acts: DataFrame, *measured: DataFrame, now_ms: int) -> DataFrame:
    """gold.proposal_outcomes of `published` and `acted` rows; ``measured`` are `crossing` and `moved` rows, or none."""
    document = F.col("said")
    joined = proposals.join(acts, on=[*_KEY], how="left")
    for rows in measured:
        joined = joined.join(rows, on=[*_KEY], how="left")
    absent = {name: F.lit(None).cast(kind) for name, kind in _MEASURED.items() if name not in joined.columns}
    state = F.coalesce(
        "acted_state",
        F.when(F.col("void_ms").isNotNull(), "void")
        .when(F.col("expires_ms") < now_ms, "expired")
        .otherwise("standing"),
    )
    expected, came = document["predicted"]["cross_rack_bytes_per_s_after"], F.col("after_bytes_per_s")
    columns = joined.withColumns(absent).select(
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
        came.alias("measured_bytes_per_s"),
        F.col("before_bytes_per_s"),
        (document["predicted"]["usd_per_day_before"] - document["predicted"]["usd_per_day_after"]).alias(
            "predicted_usd_per_day"
        ),
        (F.col("before_usd_per_day") - F.col("after_usd_per_day")).alias("measured_usd_per_day"),
        ((came - expected) / F.nullif(expected, F.lit(0.0))).alias("error_share"),
        day_of(F.col("created_ms")).alias("day"),
    )
    return columns.select(*OUTCOMES.schema.names)


# --- acts of proposals ----------------------------------------------------------------------------------------------

CREATED, VOID = "rackwise.proposal.created.", "rackwise.proposal.void."
_DOCUMENT = (
    "id string, kind string, reason string, subject struct<kind:string,name:string>, "
    "predicted struct<cross_rack_bytes_per_s_before:double,cross_rack_bytes_per_s_after:double,"
    "usd_per_day_before:double,usd_per_day_after:double,moves:int,bytes_to_move:double,seconds:double>, "
    "created_ms long, expires_ms long"
)
_LIFE = "id string, at_ms long"
_TARGETS = (
    "topics array<array<string>>, replicas array<array<int>>, "
    "topic array<int>, partition array<int>, before array<int>, after array<int>"
)
"""Columns; those but the partition's number point into the two tables."""
_TRIGGER = (
    "group_id string, proposal_id string, acted_ms long, effect string, "
    "judgement struct<verdict:string,at_ms:long,came:int,beyond_count:int>"
)
_STATES = {
    **dict.fromkeys([state for state in PlanState if state not in ENDED], "running"),
    PlanState.DONE: "done",
    PlanState.CANCELLED: "cancelled",
    PlanState.ROLLED_BACK: "cancelled",
    PlanState.FAILED: "failed",
}
_VERDICTS = {
    TriggerVerdict.AS_PREDICTED: "done",
    TriggerVerdict.PARTLY: "done",
    TriggerVerdict.OTHERWISE: "done",
    TriggerVerdict.OVERTAKEN: "done",
    TriggerVerdict.CANNOT_TELL: "done",
    TriggerVerdict.NO_EFFECT: "failed",
    TriggerVerdict.NO_REBALANCE: "failed",
    TriggerVerdict.NOT_DONE: "failed",
}
UNKNOWN = "unknown"
"""State of an act whose entry has a word of a newer agent."""


def published(proposals: DataFrame) -> DataFrame:
    """One row per proposal: cluster, proposal, its last document, created_ms, expires_ms (its last), void_ms."""
    newest = (
        proposals.where(F.col("type").startswith(CREATED) & F.col("data").isNotNull())
        .select("cluster", "time_ms", "offset", F.from_json("data", _DOCUMENT).alias("said"))
        .where(F.col("said.id").isNotNull())
        .groupBy("cluster", F.col("said.id").alias("proposal"))
        .agg(
            F.max_by("said", F.struct("time_ms", "offset")).alias("said"),
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

    Of a proposal with several attempts it is the newest. ``targets`` (topic, partition, before, after) is null for a
    trigger, ``came`` (moves that came) for a plan.
    """
    rows = journal.where(F.col("data").isNotNull())
    return _plans(rows).unionByName(_triggers(rows))


def _plans(rows: DataFrame) -> DataFrame:
    plan = F.col("key").startswith("plan/")
    sent = F.col("key").startswith("batch/") & (F.col("kind") == BatchState.SENT.value)
    attempts = (
        _by_attempt(rows.where(plan | sent))
        .agg(
            F.max_by("kind", F.when(plan, F.struct("epoch", "seq"))).alias("kind"),
            F.min(F.when(plan, F.col("at_ms"))).alias("accepted_ms"),
            F.min(F.when(plan & _ended(F.col("kind")), F.col("at_ms"))).alias("done_ms"),
            F.min(F.when(sent, F.col("at_ms"))).alias("sent_ms"),
        )
        .where(F.col("kind").isNotNull())
    )
    newest = attempts.groupBy(*_KEY).agg(F.max_by(F.struct(*attempts.columns[2:]), "number").alias("newest"))
    whole = newest.select(*_KEY, "newest.*").join(_targets(rows), on=[*_KEY, "number"], how="left")
    return whole.select(
        *_KEY,
        _word(F.col("kind"), {state.value: word for state, word in _STATES.items()}).alias("acted_state"),
        F.coalesce("sent_ms", "accepted_ms").alias("applied_ms"),
        F.when(_ended(F.col("kind")), F.col("done_ms")).alias("done_ms"),
        "targets",
        F.lit(None).cast("int").alias("came"),
    )


def _by_attempt(rows: DataFrame, *more: str) -> GroupedData:
    """Entries of plans by cluster, proposal and number of the attempt."""
    of = rows.withColumn("attempt", attempt(plan_name(F.col("key"))))
    return of.groupBy("cluster", F.col("attempt.of").alias("proposal"), F.col("attempt.number").alias("number"), *more)


def _targets(rows: DataFrame) -> DataFrame:
    """The partitions of plans, by cluster, proposal and number of the attempt: each of their records once."""
    parts = (
        _by_attempt(rows.where(F.col("key").startswith("targets/")), "key")
        .agg(F.max_by("data", F.struct("epoch", "seq")).alias("data"))
        .select(*_KEY, "number", F.from_json("data", _TARGETS).alias("of"))
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
    return parts.groupBy(*_KEY, "number").agg(F.flatten(F.collect_list(every)).alias("targets"))


def _time(name: str) -> Column:
    """The time in epoch milliseconds; null for one that no calendar has."""
    return F.when(F.col(name).between(0, LAST_MS), F.col(name))


def _ended(kind: Column) -> Column:
    return kind.isin(*(state.value for state in PlanState if state in ENDED))


def _word(said: Column, words: Mapping[str, str]) -> Column:
    """The word for what an entry says; `UNKNOWN` where there is none."""
    return F.coalesce(*(F.when(said == one, word) for one, word in words.items()), F.lit(UNKNOWN))


def _triggers(rows: DataFrame) -> DataFrame:
    newest = (
        rows.where(F.col("key").startswith("trigger/"))
        .select("cluster", "epoch", "seq", F.from_json("data", _TRIGGER).alias("told"))
        .groupBy("cluster", F.col("told.proposal_id").alias("proposal"))
        .agg(F.max_by("told", F.struct("epoch", "seq")).alias("told"))
    )
    effect, verdict = F.col("told.effect"), F.col("told.judgement.verdict")
    state = (
        F.when(effect.isin(*NOT_ASKED), "failed")
        .when(verdict.isNotNull(), _word(verdict, {one.name: word for one, word in _VERDICTS.items()}))
        .when(effect.isNull() | effect.isin(*(one.name for one in TriggerEffect)), "running")
        .otherwise(UNKNOWN)
    )
    return newest.select(
        *_KEY,
        state.alias("acted_state"),
        _time("told.acted_ms").alias("applied_ms"),
        _time("told.judgement.at_ms").alias("done_ms"),
        F.lit(None)
        .cast("array<struct<topic:string,partition:int,before:array<int>,after:array<int>>>")
        .alias("targets"),
        F.try_add("told.judgement.came", F.col("told.judgement.beyond_count")).alias("came"),
    )
