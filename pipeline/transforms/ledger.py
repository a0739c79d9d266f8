"""The ledger: bytes from rack to rack, by path, group, topic and hour.

====================  ================================================================================================
produce               to the leader's rack; whence, only where a file names the racks of producers
replicate             from the leader's rack to each follower's, also to one that is down, which fetches it later
consume               over the reader's route: the leader, or an in-sync replica in the reader's client.rack
move                  from the leader's rack to each replica that a reassignment adds: what it copied in that time
====================  ================================================================================================

What a broker cuts off at the end of an answer and sends again is not in it: next to nothing for readers that keep up;
for readers that catch up and replicas that are copied, about half a batch for each answer (a megabyte by default).

Unavoidable is what no placement avoids: replicas on min(replication factor, racks) racks need as many copies beyond
the leader's rack, and producers in several racks write to one leader. All reading can be local without a move.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.schemas.gold import LEDGER
from pipeline.transforms.mergeable_aggregate import MergeableAggregate
from pipeline.transforms.prices import priced
from pipeline.transforms.routes import FOLLOWER_UNKNOWN, LEADER_UNKNOWN, PRODUCER_UNKNOWN, zone
from pipeline.transforms.spans import all_or_null, day_of, part_of, spanned
from pipeline.transforms.traffic import halves, with_bytes

_FLOW = ("cluster", "hour_ms", "path", "group", "topic", "source_rack", "target_rack", "why", "bytes", "unavoidable")
_ROUNDING = 1e-9
_PARTITION = ("cluster", "hour_ms", "topic", "partition")
PLACEMENT_SUMS = MergeableAggregate((*_PARTITION, "was", "now"), {"records": F.sum})
"""By placements: they hardly ever change, so halves are computed once for all looks at which they stayed."""
COPY_SUMS = MergeableAggregate(
    ("cluster", "hour_ms", "topic", "source_rack", "target_rack"), {"bytes": F.sum, "untold": F.sum}
)
"""``untold``: copies whose log dir was not described."""


class LedgerInput(NamedTuple):
    """What a ledger is made of."""

    placement_sums: DataFrame
    """`placement_sums`."""
    copy_sums: DataFrame
    """`copy_sums`."""
    sizes: DataFrame
    """`traffic.record_sizes`."""
    routes: DataFrame
    """`reads.read_routes`."""
    producers: DataFrame
    prices: DataFrame


def ledger(inputs: LedgerInput) -> DataFrame:
    """gold.ledger of its input."""
    placed = _placed(inputs.placement_sums, inputs.sizes)
    flows = (
        _produced(placed, inputs.producers),
        _replicated(placed),
        _consumed(inputs.routes),
        _moved(inputs.copy_sums),
    )
    all_flows = reduce(DataFrame.unionByName, [flow.select(*_FLOW) for flow in flows])
    key = ("cluster", "hour_ms", "path", "group", "topic", "source_rack", "target_rack", "zone", "why_unknown")
    added = (
        all_flows.withColumn("zone", zone(F.col("source_rack"), F.col("target_rack"), F.col("why")))
        .withColumns({name: F.coalesce(name, F.lit("")) for name in ("source_rack", "target_rack")})
        .withColumnRenamed("why", "why_unknown")
        .groupBy(*key)
        .agg(
            all_or_null(F.col("bytes")).alias("bytes"),
            all_or_null(F.col("unavoidable")).alias("unavoidable_bytes"),
        )
        .withColumn("day", day_of(F.col("hour_ms")))
    )
    return priced(added, inputs.prices).select(*LEDGER.schema.names)


def placement_sums(changes: DataFrame, spans: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """Records, as `PLACEMENT_SUMS`, of `traffic.partition_changes` rows by the hours or windows of ``spans``."""
    cut = spanned(changes.where(F.col("records").isNotNull()), spans)
    return PLACEMENT_SUMS.aggregate(
        cut.withColumns(
            {name: _placement(F.col(name)) for name in ("was", "now")} | {"records": part_of(F.col("records"))}
        ),
        before,
    )


def _placed(sums: DataFrame, sizes: DataFrame) -> DataFrame:
    """Bytes appended by hour and partition, for each placement that held meanwhile."""
    halved = sums.withColumn("half", F.explode(halves(F.col("was"), F.col("now"))))
    added = halved.groupBy(*_PARTITION, F.col("half.held").alias("held")).agg(
        F.sum(F.col("records") * F.col("half.weight")).alias("records")
    )
    return (
        with_bytes(added, sizes)
        .withColumn("group", F.lit(""))
        .select("cluster", "hour_ms", "group", "topic", "partition", "bytes", "held.*")
    )


def _placement(picture: Column) -> Column:
    followers = F.filter(picture["placed"], lambda one: ~one["broker"].eqNullSafe(picture["leader"]) & ~one["adding"])
    racks = F.transform(followers, lambda one: one["rack"])
    return F.struct(
        picture["leader_rack"].alias("leader_rack"), racks.alias("followers"), picture["racks"].alias("racks")
    )


def _produced(placed: DataFrame, producers: DataFrame) -> DataFrame:
    """What producers of each rack wrote; the rest is written from unknown racks."""
    named = producers.where(F.col("topic") != "*").select("topic").distinct()
    topics = placed.select("topic").distinct()
    anywhere = producers.where(F.col("topic") == "*").select("rack", "share")
    others = topics.join(F.broadcast(named), on="topic", how="left_anti").crossJoin(F.broadcast(anywhere))
    by_topic = producers.where(F.col("topic") != "*").unionByName(others, allowMissingColumns=True)
    shares = by_topic.groupBy("topic").agg(F.collect_list(F.struct("rack", "share")).alias("shares"))
    known = F.coalesce("shares", F.array().cast("array<struct<rack:string,share:double>>"))
    total = F.aggregate(known, F.lit(0.0), lambda sum_, one: sum_ + one["share"])
    rest = F.array(F.struct(F.lit(None).cast("string").alias("rack"), (1.0 - total).alias("share")))
    every = F.when(total > 1.0 - _ROUNDING, known).otherwise(F.concat(known, rest))
    near = F.filter(known, lambda one: one["rack"] == F.col("leader_rack"))
    at_leader = F.aggregate(near, F.lit(0.0), lambda sum_, one: sum_ + one["share"])
    most = F.array_max(F.transform(known, lambda one: one["share"]))
    # The best leader is where most of it is written; of what crosses now, this part would cross even so.
    needed = F.when(total > 1.0 - _ROUNDING, (1.0 - most) / F.nullif(1.0 - at_leader, F.lit(0.0)))
    split = (
        placed.join(F.broadcast(shares), on="topic", how="left")
        .withColumn("needed", needed)
        .withColumn("producer", F.explode(every))
        .withColumn("bytes", F.col("bytes") * F.col("producer.share"))
        .withColumn("source_rack", F.col("producer.rack"))
        .withColumn("target_rack", F.col("leader_rack"))
    )
    why = F.when(F.col("source_rack").isNull(), PRODUCER_UNKNOWN).when(F.col("leader_rack").isNull(), LEADER_UNKNOWN)
    crossing = F.col("source_rack") != F.col("target_rack")
    unavoidable = F.when(why.isNull() & crossing, F.col("bytes") * F.col("needed")).when(why.isNull(), F.lit(0.0))
    return split.withColumns({"path": F.lit("produce"), "why": why, "unavoidable": unavoidable})


def _replicated(placed: DataFrame) -> DataFrame:
    """What each follower fetches. Of the copies that cross, as many are needed as racks beyond the leader's."""
    crossing = F.size(F.filter("followers", lambda rack: rack != F.col("leader_rack")))
    known = F.col("leader_rack").isNotNull() & F.forall("followers", lambda rack: rack.isNotNull())
    wanted = F.least(F.size("followers") + 1, F.col("racks")) - 1
    needed = F.when(known & F.col("racks").isNotNull(), F.least(F.lit(1.0), wanted / F.nullif(crossing, F.lit(0))))
    split = (
        placed.withColumn("needed", needed)
        .withColumn("target_rack", F.explode("followers"))
        .withColumn("source_rack", F.col("leader_rack"))
    )
    why = F.when(F.col("source_rack").isNull(), LEADER_UNKNOWN).when(F.col("target_rack").isNull(), FOLLOWER_UNKNOWN)
    local = F.col("source_rack") == F.col("target_rack")
    unavoidable = F.when(why.isNull() & local, F.lit(0.0)).when(why.isNull(), F.col("bytes") * F.col("needed"))
    return split.withColumns({"path": F.lit("replicate"), "why": why, "unavoidable": unavoidable})


def _consumed(routes: DataFrame) -> DataFrame:
    unavoidable = F.when(F.col("why").isNull() & F.col("bytes").isNotNull(), F.lit(0.0))
    return routes.withColumns({"path": F.lit("consume"), "unavoidable": unavoidable})


def copy_sums(changes: DataFrame, spans: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """What reassignments copied, as `COPY_SUMS`, by what the new replicas hold more than at the look before."""
    cut = spanned(copies(changes), spans)
    return COPY_SUMS.aggregate(
        cut.withColumns({"bytes": part_of(F.col("copied")), "untold": F.col("copied").isNull().cast("long")}),
        before,
    )


def _moved(sums: DataFrame) -> DataFrame:
    why = F.when(F.col("source_rack").isNull(), LEADER_UNKNOWN).when(F.col("target_rack").isNull(), FOLLOWER_UNKNOWN)
    return (
        sums.withColumns({"path": F.lit("move"), "group": F.lit(""), "why": why})
        .withColumn("bytes", F.when(F.col("untold") == 0, F.col("bytes").cast("double")))
        .withColumn("unavoidable", F.when(why.isNull() & F.col("bytes").isNotNull(), F.lit(0.0)))
    )


def copies(changes: DataFrame) -> DataFrame:
    """Copies under way: cluster, look, previous, taken_ms, topic, partition, broker, source_rack, target_rack, copied.

    A replica that is being added has the size in its log dir; one that was added has the whole log. ``copied`` is null
    where no log dir was described.
    """
    now, was = F.col("now"), F.col("was")
    fresh = F.filter(now["placed"], lambda one: one["adding"] | ~_at(was, one["broker"], lambda old: ~old["adding"]))
    return (
        changes.where(was.isNotNull())
        .withColumn("fresh", fresh)
        .where(F.size("fresh") > 0)
        .withColumn("one", F.explode("fresh"))
        .select(
            "cluster",
            "look",
            "previous",
            "taken_ms",
            "topic",
            "partition",
            F.col("one.broker").alias("broker"),
            was["leader_rack"].alias("source_rack"),
            F.col("one.rack").alias("target_rack"),
            (_held(F.col("one"), now) - _held_before(was)).alias("more"),
        )
        .withColumn("copied", F.when(F.col("more").isNotNull(), F.greatest(F.col("more"), F.lit(0))))
        .where(F.col("copied").isNull() | (F.col("copied") > 0))
        .drop("more")
    )


def _at(picture: Column, broker: Column, what: object) -> Column:
    return F.exists(picture["placed"], lambda old: (old["broker"] == broker) & what(old))  # type: ignore[operator]


def _held(one: Column, picture: Column) -> Column:
    """What a replica holds; one that is being added, without a described log dir, holds nothing yet."""
    return F.when(one["adding"], F.coalesce(one["bytes"], F.lit(0).cast("long"))).otherwise(picture["size_bytes"])


def _held_before(was: Column) -> Column:
    old = F.get(F.filter(was["placed"], lambda one: one["broker"] == F.col("one.broker")), F.lit(0))
    return F.when(old.isNull(), F.lit(0).cast("long")).otherwise(_held(old, was))
