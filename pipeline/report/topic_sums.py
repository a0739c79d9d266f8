"""The ledger summed by group and topic: what crossed racks, what of it can be avoided, and how it was a week before.

What reassignments and catching up copy is paid once and ends by itself: nothing of it counts as avoidable. Where it is
unknown how much no placement avoids, it is unknown as well how much can be avoided: such bytes are counted apart.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.exact_sums import total, total_sum
from pipeline.report.facts import DayCoverage, OpenFinding, TopicCost, WeekCoverage
from pipeline.report.period import between
from pipeline.report.weeks import LatestDays
from pipeline.report.words import HOUR_S
from pipeline.schemas.zones import CROSS_ZONE


def topic_costs(ledger: DataFrame) -> DataFrame:
    """Per path, group and topic. ``ledger`` is `ledger_sums`, of the period and of the stretch a week before."""
    asked, recent, before, size = (F.col(name) for name in ("asked", "recent", "before", "bytes"))
    saving = F.coalesce(F.col("avoidable") > 0, F.lit(False))  # noqa: FBT003
    return (
        ledger.where((F.col("zone") == CROSS_ZONE) & (size > 0))
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


def week_coverage(hours: DataFrame, latest: LatestDays) -> DataFrame:
    """Per cluster: seconds that are booked of both stretches. ``hours`` is `summaries.covered_hours`."""
    booked = F.col("seconds") + F.col("gap_seconds")
    return (
        hours.groupBy("cluster")
        .agg(
            total(between("hour_ms", *latest), booked).alias("recent_s"),
            total(between("hour_ms", *latest.week_before), booked).alias("before_s"),
        )
        .select(*WeekCoverage._fields)
        .orderBy("cluster")
    )


def day_coverage(hours: DataFrame) -> DataFrame:
    """Per cluster and day. ``hours`` is `summaries.covered_hours`."""
    return (
        hours.groupBy("cluster", "day")
        .agg(F.count("*").alias("hours"), total_sum(F.least(F.col("seconds"), F.lit(HOUR_S))).alias("seconds"))
        .select(*DayCoverage._fields)
        .orderBy("cluster", "day")
    )


def proposal_texts(proposals: DataFrame, outcomes: DataFrame) -> DataFrame:
    """`ProposalText` of each open proposal, by its newest document. ``proposals`` is bronze.proposals."""
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
