"""Rack drift: changed racks of brokers and replicas, how long they lasted, and their cause.

A broker that came back in another rack is one row, not one for each of its replicas. Replicas are compared between
looks in which no reassignment of theirs was running. A change lasts until the racks are others again.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.schemas.gold import RACK_DRIFT
from pipeline.transforms.pictures import has_unknown
from pipeline.transforms.spans import day_of, hour_of

OF_TOPIC = "topic/"
_STATE = ("cluster", "subject", "partition")


def changes_of_racks(partitions: DataFrame, brokers: DataFrame, looks: DataFrame) -> DataFrame:
    """Rows of gold.rack_drift, without their ends, of silver rows; ``looks`` are all looks of that time."""
    rows = _of_partitions(partitions, looks).unionByName(_of_brokers(brokers))
    return (
        rows.withColumns({"ended_ms": F.lit(None).cast("long"), "lasted_s": F.lit(None).cast("double")})
        .withColumns({"hour_ms": hour_of(F.col("began_ms")), "day": day_of(F.col("began_ms"))})
        .select(*RACK_DRIFT.schema.names)
    )


def drifting_topics(partitions: DataFrame, looks: DataFrame) -> DataFrame:
    """Topics of which `changes_of_racks` may have a row (all others have none): cluster, topic, moved.

    ``moved``: whether a move that ran at the first look has ended. One pass without an order: hardly any topic changes,
    and to line up all of them took a fifth of the time of a batch's tasks in the largest world.
    """
    first = looks.where("complete").groupBy("cluster").agg(F.min("taken_ms").alias("first_ms"))
    state = F.xxhash64("topic_id", F.sort_array("replicas"), F.sort_array("replica_racks"))
    shared = F.size(F.array_distinct("replica_racks")) < F.size("replica_racks")
    by_partition = (
        partitions.withColumn("settled", is_settled())
        .withColumn("state", F.when(F.col("settled"), state))
        .groupBy("cluster", "topic", "partition")
        .agg(
            (F.min("state") != F.max("state")).alias("changed"),
            F.max(F.col("settled") & shared).alias("shared"),
            F.min(F.when(F.col("settled"), F.col("taken_ms"))).alias("since_ms"),
            (F.max("settled") & ~F.min_by("settled", "taken_ms")).alias("moved"),
        )
        .join(F.broadcast(first), on="cluster", how="inner")
    )
    is_new = F.col("shared") & (F.col("since_ms") > F.col("first_ms"))
    drifting = by_partition.where(F.col("changed") | is_new | F.col("moved"))
    return drifting.groupBy("cluster", "topic").agg(F.max("moved").alias("moved"))


def with_ends(drift: DataFrame, partitions: DataFrame, brokers: DataFrame, every: DataFrame) -> DataFrame:
    """Rows of gold.rack_drift with their ends, as far as these silver rows show them, and their duration.

    ``every``: the partitions of all topics, for how long something lasts whose end is not seen.
    """
    states = racks_of(partitions, brokers)
    last = racks_of(every, brokers).groupBy("cluster").agg(F.max("taken_ms").alias("last_ms"))
    later = (
        drift.select(*_STATE, "began_ms", "after")
        .alias("row")
        .join(states.alias("state"), on=_same_subject("row", "state"), how="inner")
        .where((F.col("state.taken_ms") > F.col("row.began_ms")) & (F.col("state.racks") != F.col("row.after")))
        .groupBy(*(F.col(f"row.{name}").alias(name) for name in (*_STATE, "began_ms")))
        .agg(F.min("state.taken_ms").alias("other_ms"))
    )
    ended = F.least("row.ended_ms", "end.other_ms")
    lasted = F.coalesce(ended, F.greatest(F.col("last_ms"), F.col("row.began_ms"))) - F.col("row.began_ms")
    same = _same_subject("row", "end") & (F.col("row.began_ms") == F.col("end.began_ms"))
    joined = (
        drift.alias("row")
        .join(later.alias("end"), on=same, how="left")
        .join(F.broadcast(last.withColumnRenamed("cluster", "of")), on=F.col("row.cluster") == F.col("of"), how="left")
    )
    columns = {name: F.col(f"row.{name}") for name in RACK_DRIFT.schema.names}
    columns |= {"ended_ms": ended, "lasted_s": F.greatest(F.col("row.lasted_s"), lasted / 1000.0)}
    return joined.select(*(column.alias(name) for name, column in columns.items()))


def racks_of(partitions: DataFrame, brokers: DataFrame) -> DataFrame:
    """The racks of every subject at every look that shows them: cluster, subject, partition, taken_ms, racks."""
    replicas = _settled(partitions).select(*_STATE, "taken_ms", "racks")
    relabelled = brokers.where(F.col("rack").isNotNull()).select(
        "cluster",
        F.concat(F.lit("broker/"), "broker").alias("subject"),
        F.lit(None).cast("int").alias("partition"),
        "taken_ms",
        F.array("rack").alias("racks"),
    )
    return replicas.unionByName(relabelled)


def is_settled() -> Column:
    """Of silver.partitions: its replicas do not move, and their racks are known."""
    return F.col("adding").isNull() & ~has_unknown(F.col("replica_racks"), F.lit(""))


def _same_subject(one: str, other: str) -> Column:
    return (
        (F.col(f"{one}.cluster") == F.col(f"{other}.cluster"))
        & (F.col(f"{one}.subject") == F.col(f"{other}.subject"))
        & F.col(f"{one}.partition").eqNullSafe(F.col(f"{other}.partition"))
    )


def _settled(partitions: DataFrame) -> DataFrame:
    return (
        partitions.where(is_settled())
        .withColumn("subject", F.concat(F.lit(OF_TOPIC), "topic"))
        .withColumn("racks", F.sort_array("replica_racks"))
    )


def _of_partitions(partitions: DataFrame, looks: DataFrame) -> DataFrame:
    in_order = Window.partitionBy("cluster", "topic", "partition").orderBy("taken_ms", "look")
    topic = Window.partitionBy("cluster", "topic")
    first = looks.where("complete").groupBy("cluster").agg(F.min("taken_ms").alias("first_ms"))
    room = looks.where("complete").select("cluster", "look", F.col("racks").alias("rooms"))
    moving = F.max("reassigned_by_us").over(in_order.rowsBetween(-1, -1))
    dated = partitions.withColumns({"topic_since_ms": F.min("taken_ms").over(topic), "moved_by_us": moving})
    settled = (
        _settled(dated)
        .join(F.broadcast(room), on=["cluster", "look"], how="left")
        .join(F.broadcast(first), on="cluster", how="inner")
        .withColumn("was", F.lag(F.struct("racks", "replicas", "topic_id")).over(in_order))
    )
    different = (F.col("was.racks") != F.col("racks")) & ~_same_brokers()
    new = F.col("was").isNull() & (F.col("taken_ms") > F.col("first_ms")) & F.col("shares_rack")
    shares = (F.size(F.array_distinct("racks")) < F.size("racks")) & (
        F.size(F.array_distinct("racks")) < F.col("rooms")
    )
    return (
        settled.withColumn("shares_rack", shares)
        .where(F.coalesce(different, F.lit(False)) | F.coalesce(new, F.lit(False)))  # noqa: FBT003
        .select(
            "cluster",
            "subject",
            "partition",
            F.col("taken_ms").alias("began_ms"),
            F.col("was.racks").alias("before"),
            F.col("racks").alias("after"),
            "shares_rack",
            _cause().alias("cause"),
        )
    )


def _same_brokers() -> Column:
    """The same brokers as before: then racks of brokers changed, and the topic did not."""
    same_topic = F.col("was.topic_id").eqNullSafe(F.col("topic_id"))
    return same_topic & (F.sort_array("was.replicas") == F.sort_array("replicas"))


def _cause() -> Column:
    return (
        F.when(F.col("was").isNull() & (F.col("topic_since_ms") < F.col("taken_ms")), "new partitions")
        .when(F.col("was").isNull(), "created blind")
        .when(~F.col("was.topic_id").eqNullSafe(F.col("topic_id")), "recreated")
        .when(F.col("moved_by_us"), "reassigned by us")
        .when(~F.col("moved_by_us"), "reassigned by others")
        .otherwise("unknown")
    )


def _of_brokers(brokers: DataFrame) -> DataFrame:
    in_order = Window.partitionBy("cluster", "broker").orderBy("taken_ms", "look")
    known = brokers.where(F.col("rack").isNotNull()).withColumn("was", F.lag("rack").over(in_order))
    return known.where(F.col("was") != F.col("rack")).select(
        "cluster",
        F.concat(F.lit("broker/"), "broker").alias("subject"),
        F.lit(None).cast("int").alias("partition"),
        F.col("taken_ms").alias("began_ms"),
        F.array("was").alias("before"),
        F.array("rack").alias("after"),
        F.lit(None).cast("boolean").alias("shares_rack"),
        F.lit("relabelled").alias("cause"),
    )
