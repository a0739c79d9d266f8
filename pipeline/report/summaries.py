"""Gold tables summed for a report: ``DataFrame -> DataFrame``, columns as the values in `facts` name them.

Invariant: a sum over nothing is 0, a sum over unknown values alone is null, and what a sum leaves out because it is
unknown is counted apart. Sums do not depend on the order of the rows.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.exact_sums import total, total_sum, total_sums
from pipeline.report.facts import (
    LASTING_PATHS,
    DailyCost,
    LookCoverage,
    MeasuredOutcome,
    OpenProposal,
    PredictionErrors,
    RackDrift,
    RackPairBytes,
    ReaderLocality,
    RebalanceCounts,
    RestoreSpeed,
    WarmupTimes,
)
from pipeline.report.words import HOUR_S
from pipeline.schemas.zones import CROSS_ZONE, UNKNOWN_ZONE

CONSUME = "consume"
OTHER_READS = "consume, all other groups"
_THIN = 0.9
_QUANTITIES = {
    "moves": "moves",
    "bytes moved": "move_bytes",
    "seconds": "seconds",
    "cross-rack bytes/s": "bytes_per_s",
    "dollars a day": "usd_per_day",
}
"""What is predicted and measured -> how the names of both columns end."""


def covered_hours(traffic: DataFrame) -> DataFrame:
    """Per hour of a cluster: seconds that looks cover, and those of gaps. ``traffic`` is gold.partition_traffic."""
    return traffic.groupBy("cluster", "day", "hour_ms").agg(
        F.max("seconds").alias("seconds"), F.coalesce(F.max("gap_seconds"), F.lit(0.0)).alias("gap_seconds")
    )


def coverage(hours: DataFrame) -> DataFrame:
    """Per cluster: hours and seconds that looks cover. ``hours`` is `covered_hours`."""
    ends = hours.groupBy("cluster").agg(F.min("hour_ms").alias("first_ms"), F.max("hour_ms").alias("last_ms"))
    inner = (F.col("hour_ms") > F.col("first_ms")) & (F.col("hour_ms") < F.col("last_ms"))
    return (
        hours.join(ends, on="cluster", how="inner")
        .groupBy("cluster", "first_ms", "last_ms")
        .agg(
            F.count_if(F.col("seconds") > 0).alias("hours"),
            total_sum(F.col("seconds")).alias("seconds"),
            F.count_if(inner & (F.col("seconds") > 0) & (F.col("seconds") < _THIN * HOUR_S)).alias("thin_hours"),
            total_sum(F.col("gap_seconds")).alias("gap_seconds"),
            total_sum(F.greatest(F.col("seconds") - HOUR_S, F.lit(0.0))).alias("twice_s"),
        )
        .select(*LookCoverage._fields)
        .orderBy("cluster")
    )


def costs(ledger: DataFrame, most: int) -> DataFrame:
    """Per day: what each of the dearest groups, all other groups, and every other path sent across racks.

    ``ledger`` is `ledger_sums`, here and below.
    """
    spent = ledger.groupBy("cluster", "day", "path", "group").agg(*_crossings())
    dearest = (
        spent.where(F.col("path") == CONSUME)
        .groupBy("cluster", "group")
        .agg(F.sum("usd").alias("usd"), F.sum("cross_bytes").alias("bytes"))
        .orderBy(F.desc_nulls_last("usd"), F.desc_nulls_last("bytes"), "cluster", "group")
        .limit(most)
        .select("cluster", "group", F.lit(1).alias("named"))
    )
    folded = (F.col("path") == CONSUME) & F.col("named").isNull()
    return (
        spent.join(F.broadcast(dearest), on=["cluster", "group"], how="left")
        .withColumns(
            {
                "path": F.when(folded, OTHER_READS).otherwise(F.col("path")),
                "group": F.when(folded, "").otherwise(F.col("group")),
            }
        )
        .groupBy("cluster", "day", "path", "group")
        .agg(*total_sums(*DailyCost._fields[4:8]), F.sum("sizeless").alias("sizeless"))
        .select(*DailyCost._fields)
        .orderBy("cluster", "day", "path", "group")
    )


def pairs(ledger: DataFrame) -> DataFrame:
    """Per path and pair of racks, over the whole period."""
    return (
        ledger.groupBy("cluster", "path", "source_rack", "target_rack", "zone", "why_unknown")
        .agg(
            *total_sums("bytes", "unavoidable_bytes", "usd"),
            F.max("price_date").alias("price_date"),
            _sizeless(),
            F.min("usd_per_gb_low").alias("usd_per_gb_low"),
            F.max("usd_per_gb_high").alias("usd_per_gb_high"),
            total(_undecided(), F.col("bytes")).alias("undecided_bytes"),
        )
        .select(*RackPairBytes._fields)
        .orderBy("cluster", "path", "zone", "source_rack", "target_rack", F.asc_nulls_first("why_unknown"))
    )


def near(locality: DataFrame, most: int) -> DataFrame:
    """Per group and rack of its readers, for the groups that read most from elsewhere."""
    both = F.col("local_bytes").isNotNull() & F.col("total_bytes").isNotNull()
    rows = locality.groupBy("cluster", "group", "rack").agg(
        *total_sums("local", "total", "unknown"),
        *(total_sum(F.when(both, F.col(name))).alias(name) for name in ("local_bytes", "total_bytes")),
    )
    order = (F.desc_nulls_last("bytes"), F.desc_nulls_last("partitions"), "cluster", "group")
    worst = (
        rows.groupBy("cluster", "group")
        .agg(
            total_sum(F.col("total_bytes") - F.col("local_bytes")).alias("bytes"),
            total_sum(F.col("total") - F.col("local") - F.col("unknown")).alias("partitions"),
            # Carried along: joined again, the table would be read again.
            F.collect_list(F.struct(*ReaderLocality._fields[2:])).alias("racks"),
        )
        .orderBy(*order)
        .limit(most)
    )
    by_rack = worst.select("cluster", "group", "bytes", "partitions", F.inline("racks"))
    return by_rack.orderBy(*order, "rack").select(*ReaderLocality._fields)


def warmups(rows: DataFrame) -> DataFrame:
    """Per application and outcome. ``rows`` is gold.warmups."""
    return (
        rows.groupBy("cluster", "group", "outcome")
        .agg(
            F.count("*").alias("number"),
            F.min("seconds").alias("low_s"),
            F.percentile("seconds", 0.5).alias("median_s"),
            F.max("seconds").alias("high_s"),
            F.percentile("waited_s", 0.5).alias("waited_s"),
            _share(F.col("stalled_s"), F.col("seconds")).alias("stalled_share"),
        )
        .select(*WarmupTimes._fields)
        .orderBy("cluster", "group", "outcome")
    )


def restores(rates: DataFrame) -> DataFrame:
    """Per application and store, the slowest first. ``rates`` is gold.restore_rates."""
    return rates.select(*RestoreSpeed._fields).orderBy(F.asc_nulls_last("median"), "cluster", "group", "subtopology")


def rebalances(rows: DataFrame) -> DataFrame:
    """Per group and cause, the most frequent first. ``rows`` is gold.rebalances."""
    return (
        rows.groupBy("cluster", "group", F.coalesce("cause", F.lit("unknown")).alias("cause"))
        .agg(
            F.count("*").alias("number"),
            F.percentile("seconds_most", 0.5).alias("median_s"),
            F.max("seconds_most").alias("longest_s"),
            F.sum("moved").alias("moved"),
            F.count_if(F.col("moved").isNull()).alias("unseen"),
        )
        .select(*RebalanceCounts._fields)
        .orderBy(F.desc("number"), "cluster", "group", "cause")
    )


def drifts(rows: DataFrame) -> DataFrame:
    """What lasts first, then the latest. ``rows`` is gold.rack_drift."""
    return rows.select(*RackDrift._fields).orderBy(
        F.col("ended_ms").isNotNull(), F.desc("began_ms"), "cluster", "subject", F.asc_nulls_first("partition")
    )


def outcomes(rows: DataFrame) -> DataFrame:
    """Proposals that were acted on, the latest first. ``rows`` is gold.proposal_outcomes."""
    return (
        rows.where(F.col("applied_ms").isNotNull())
        .orderBy(F.desc("applied_ms"), "cluster", "proposal")
        .select(*MeasuredOutcome._fields)
    )


def errors(rows: DataFrame) -> DataFrame:
    """Per quantity, over the proposals that have both. ``rows`` is gold.proposal_outcomes."""
    applied = rows.where(F.col("applied_ms").isNotNull())
    each = F.array(
        *(
            F.struct(
                F.lit(quantity).alias("quantity"),
                _error(F.col(f"predicted_{name}"), F.col(f"measured_{name}")).alias("error"),
            )
            for quantity, name in _QUANTITIES.items()
        )
    )
    return (
        applied.select(F.explode(each).alias("row"))
        .select("row.quantity", "row.error")
        .where(F.col("error").isNotNull())
        .groupBy("quantity")
        .agg(
            F.count("*").alias("number"),
            F.percentile("error", 0.1).alias("low"),
            F.percentile("error", 0.5).alias("median"),
            F.percentile("error", 0.9).alias("high"),
            F.max_by("error", F.struct(F.abs("error"), "error")).alias("worst"),
        )
        .select(*PredictionErrors._fields)
        .orderBy("quantity")
    )


def standing(proposals: DataFrame, ledger: DataFrame) -> DataFrame:
    """Open proposals, the dearest subjects first, each with its subject's present bytes across racks."""
    flows = _by_subject(ledger)
    return (
        proposals.where(F.col("state") == "standing")
        .join(flows, on=["cluster", "subject"], how="left")
        .orderBy(
            F.desc_nulls_last(F.greatest("predicted_usd_per_day", "usd")),
            F.desc_nulls_last("avoidable_bytes"),
            "cluster",
            "proposal",
        )
        .select(*OpenProposal._fields)
    )


def looked(looks: DataFrame) -> DataFrame:
    """Looks by why they could not be used; null for those that could. ``looks`` is silver.looks.

    Looks that the agent wrote in short on purpose are neither.
    """
    lost = ~F.col("complete") & F.coalesce(F.col("full"), ~F.col("complete"))
    why = F.when(lost, F.coalesce("problem", F.lit("reason not recorded")))
    return _counted_by(looks.where(F.col("complete") | lost).select(why.alias("why")))


def quarantined(records: DataFrame) -> DataFrame:
    """Records that could not be read, by the word that their reason begins with. ``records`` is bronze.quarantine."""
    return _counted_by(records.select(F.trim(F.split_part("reason", F.lit(":"), F.lit(1))).alias("why")))


def _counted_by(reasons: DataFrame) -> DataFrame:
    return reasons.groupBy("why").agg(F.count("*").alias("number")).orderBy(F.desc("number"), "why")


def _by_subject(ledger: DataFrame) -> DataFrame:
    """What every group reads, and what has to do with every topic, across racks; what is copied is paid once."""
    flowing = ledger.where(F.col("path").isin(*LASTING_PATHS))
    groups = flowing.where(F.col("path") == CONSUME).withColumn("subject", F.concat(F.lit("group/"), "group"))
    topics = flowing.withColumn("subject", F.concat(F.lit("topic/"), "topic"))
    return (
        groups.unionByName(topics)
        .groupBy("cluster", "subject")
        .agg(
            *_crossings(),
            total(_zone(CROSS_ZONE), F.col("avoidable")).alias("avoidable_bytes"),
            total(_undecided(), F.col("bytes")).alias("undecided_bytes"),
        )
        .select("cluster", "subject", "cross_bytes", "avoidable_bytes", "unknown_bytes", "usd", "undecided_bytes")
    )


def _crossings() -> tuple[Column, ...]:
    cross, unknown = _zone(CROSS_ZONE), _zone(UNKNOWN_ZONE)
    # Where nothing is known to cross but something might, 0 would be a claim.
    is_known = (F.count_if(cross) > 0) | (F.count_if(unknown) == 0)
    return (
        F.when(is_known, total(cross, F.col("bytes"))).alias("cross_bytes"),
        total(unknown, F.col("bytes")).alias("unknown_bytes"),
        F.when(is_known, total(cross, F.col("usd"))).alias("usd"),
        total(cross & F.col("usd").isNull(), F.col("bytes")).alias("unpriced_bytes"),
        _sizeless(),
    )


def _sizeless() -> Column:
    return F.coalesce(F.sum(F.when(F.col("bytes").isNull(), F.col("rows"))), F.lit(0)).alias("sizeless")


def _undecided() -> Column:
    return _zone(CROSS_ZONE) & F.col("unavoidable_bytes").isNull()


def _zone(name: str) -> Column:
    return F.col("zone") == name


def _share(part: Column, whole: Column) -> Column:
    both = part.isNotNull() & (whole > 0)
    return total_sum(F.when(both, part)) / total_sum(F.when(both, whole))


def _error(predicted: Column, measured: Column) -> Column:
    return F.when(predicted != 0, (measured - predicted) / predicted)
