"""The ledger summed by group and topic: what crossed racks, what of it can be avoided, and how it was a week before.

What reassignments and catching up copy is paid once and ends by itself: nothing of it counts as avoidable. Where it is
unknown how much no placement avoids, it is unknown as well how much can be avoided: such bytes are counted apart.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.report.exact_sums import total, total_sum
from pipeline.report.facts import LASTING_PATHS, DayCoverage, OpenFinding, ProposalText, TopicCost, WeekCoverage
from pipeline.report.period import ReportPeriod
from pipeline.report.summaries import HOUR_S
from pipeline.report.weeks import WeekWindows


def topic_costs(ledger: DataFrame, period: ReportPeriod, windows: WeekWindows) -> DataFrame:
    """Per path, group and topic. ``ledger`` is gold.ledger, of the period and of the stretch a week before."""
    asked = _between(period.from_ms, period.to_ms)
    recent = _between(windows.recent_from_ms, windows.recent_to_ms)
    before = _between(windows.before_from_ms, windows.before_to_ms)
    size, share = F.col("bytes"), F.col("avoidable") / F.nullif(F.col("bytes"), F.lit(0.0))
    known = F.when(F.col("unavoidable_bytes").isNotNull(), F.greatest(size - F.col("unavoidable_bytes"), F.lit(0.0)))
    avoidable = F.when(F.col("path").isin(*LASTING_PATHS), known).otherwise(0.0)
    saving = F.coalesce(F.col("avoidable") > 0, F.lit(False))  # noqa: FBT003
    return (
        ledger.where((F.col("zone") == "CROSS_ZONE") & (size > 0) & (asked | before))
        .withColumn("avoidable", avoidable)
        .withColumn("saved", F.col("usd") * share)
        .groupBy("cluster", "path", "group", "topic")
        .agg(
            total(asked, size).alias("cross_bytes"),
            total(asked, F.col("usd")).alias("usd"),
            F.coalesce(total_sum(F.when(asked, F.col("avoidable"))), F.lit(0.0)).alias("avoidable_bytes"),
            total(asked & saving, F.col("saved")).alias("avoidable_usd"),
            total(asked & saving & F.col("usd").isNull(), F.col("avoidable")).alias("unpriced_bytes"),
            total(asked & F.col("avoidable").isNull(), size).alias("unsure_bytes"),
            total(recent & saving, F.col("saved")).alias("recent_usd"),
            total(before & saving, F.col("saved")).alias("before_usd"),
        )
        .select(*TopicCost._fields)
        .orderBy(
            F.desc_nulls_last("avoidable_usd"), F.desc("avoidable_bytes"), F.desc("cross_bytes"),
            "cluster", "path", "group", "topic",
        )
    )  # fmt: skip


def week_coverage(traffic: DataFrame, windows: WeekWindows) -> DataFrame:
    """Per cluster: seconds that are booked of both stretches. ``traffic`` is gold.partition_traffic."""
    booked = F.max("seconds") + F.coalesce(F.max("gap_seconds"), F.lit(0.0))
    hours = traffic.groupBy("cluster", "hour_ms").agg(booked.alias("seconds"))
    return (
        hours.groupBy("cluster")
        .agg(
            total(_between(windows.recent_from_ms, windows.recent_to_ms), F.col("seconds")).alias("recent_s"),
            total(_between(windows.before_from_ms, windows.before_to_ms), F.col("seconds")).alias("before_s"),
        )
        .select(*WeekCoverage._fields)
        .orderBy("cluster")
    )


def day_coverage(traffic: DataFrame) -> DataFrame:
    """Per cluster and day. ``traffic`` is gold.partition_traffic."""
    hours = traffic.groupBy("cluster", "day", "hour_ms").agg(F.max("seconds").alias("seconds"))
    return (
        hours.groupBy("cluster", "day")
        .agg(F.count("*").alias("hours"), total_sum(F.least(F.col("seconds"), F.lit(HOUR_S))).alias("seconds"))
        .select(*DayCoverage._fields)
        .orderBy("cluster", "day")
    )


def proposal_texts(proposals: DataFrame, outcomes: DataFrame) -> DataFrame:
    """Of each open proposal its newest document. ``proposals`` is bronze.proposals."""
    document = F.from_json("data", "id string, line string, findings array<string>")
    opened = outcomes.where(F.col("state") == "standing").select("cluster", "proposal")
    return (
        proposals.where(F.col("data").isNotNull())
        .select("cluster", "time_ms", document.alias("said"))
        .withColumn("proposal", F.col("said.id"))
        .join(F.broadcast(opened), on=["cluster", "proposal"], how="left_semi")
        .groupBy("cluster", "proposal")
        # A change of its state is a record too, without either.
        .agg(F.max_by("said", F.struct(F.col("said.findings").isNotNull(), "time_ms")).alias("said"))
        .select("cluster", "proposal", "said.line", F.coalesce("said.findings", F.array()).alias("findings"))
        .select(*ProposalText._fields)
        .orderBy("cluster", "proposal")
    )


def newest_findings(findings: DataFrame, looks: DataFrame) -> DataFrame:
    """Findings of the newest complete look of each cluster. ``looks`` is silver.looks."""
    newest = (
        looks.where("complete")
        .groupBy("cluster")
        .agg(F.max_by(F.struct("look", "day"), F.struct("taken_ms", "look")).alias("last"))
        .select("cluster", "last.*")
    )
    return (
        findings.join(F.broadcast(newest), on=["cluster", "day", "look"], how="left_semi")
        .select(*OpenFinding._fields)
        .orderBy("cluster", "subject", "reason", "id")
    )


def _between(begin_ms: int | None, end_ms: int | None) -> Column:
    within = F.lit(True)  # noqa: FBT003 a literal column
    if begin_ms is not None:
        within &= F.col("hour_ms") >= begin_ms
    return within if end_ms is None else within & (F.col("hour_ms") < end_ms)
