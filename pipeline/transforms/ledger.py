"""The ledger: bytes from rack to rack, by path, group, topic and hour.

====================  ================================================================================================
produce               to the leader's rack; whence, only where a file names the racks of producers
replicate             from the leader's rack to that of each follower in sync
catch-up              from the leader's rack to that of a follower that is not: what is appended meanwhile, which it
                      fetches later, and what its log dir has lost and fetches again, booked when the loss shows
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

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.exact_sums import all_or_null
from pipeline.schemas.gold import LEDGER
from pipeline.transforms.mergeable_aggregate import MergeableAggregate
from pipeline.transforms.pictures import at_broker, followers, has_unknown, placement, racks_beyond, settled_brokers
from pipeline.transforms.prices import priced
from pipeline.transforms.routes import FOLLOWER_UNKNOWN, LEADER_UNKNOWN, PRODUCER_UNKNOWN, zone
from pipeline.transforms.spans import day_of, of_gap, part_of, share_of, spanned
from pipeline.transforms.traffic import halves, with_bytes

_FLOW = (
    "cluster", "hour_ms", "path", "group", "topic", "source_rack", "target_rack", "why", "bytes", "unavoidable",
    "gap_share",
)  # fmt: skip
_ROUNDING = 1e-9
CATCH_UP = "catch-up"
_PARTITION = ("cluster", "hour_ms", "topic", "partition")
PLACEMENT_SUMS = MergeableAggregate((*_PARTITION, "was", "now"), {"records": F.try_sum, "gap_records": F.try_sum})
"""By placements: they hardly ever change, so halves are computed once for all looks at which they stayed."""
COPY_SUMS = MergeableAggregate(
    ("cluster", "hour_ms", "path", "topic", "source_rack", "target_rack"),
    {"bytes": F.try_sum, "gap_bytes": F.try_sum, "untold": F.sum},
)
"""``untold``: copies whose log dir was not described."""


def ledger(
    grew: DataFrame, *, copied: DataFrame, sizes: DataFrame, routes: DataFrame, producers: DataFrame, prices: DataFrame
) -> DataFrame:
    """gold.ledger of `placement_sums`, `copy_sums`, `traffic.record_sizes` and `reads.read_routes`."""
    placed = _placed(grew, sizes)
    flows = (_produced(placed, producers), _replicated(placed), _consumed(routes), _moved(copied))
    all_flows = reduce(DataFrame.unionByName, [flow.select(*_FLOW) for flow in flows])
    key = ("cluster", "hour_ms", "path", "group", "topic", "source_rack", "target_rack", "zone", "why_unknown")
    kind = zone(F.col("source_rack"), F.col("target_rack"), F.col("why"))
    racks = {name: F.coalesce(name, F.lit("")) for name in ("source_rack", "target_rack")}
    added = (
        all_flows.withColumns({"zone": kind, "why_unknown": F.col("why"), **racks})
        .groupBy(*key)
        .agg(
            all_or_null(F.col("bytes")).alias("bytes"),
            all_or_null(F.col("unavoidable")).alias("unavoidable_bytes"),
            all_or_null(F.col("bytes") * F.col("gap_share")).alias("gap_bytes"),
            F.max("gap_share").alias("gap_share"),
        )
        .withColumns(
            {"confidence": F.when(F.col("gap_share") > 0, "counted").otherwise("seen"), "day": day_of(F.col("hour_ms"))}
        )
    )
    covered = sizes.groupBy("cluster", "hour_ms").agg(F.max("seconds").alias("seconds"))
    timed = added.join(F.broadcast(covered), on=["cluster", "hour_ms"], how="left")
    return priced(timed, prices).select(*LEDGER.schema.names)


def placement_sums(changes: DataFrame, spans: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """Records, as `PLACEMENT_SUMS`, of `traffic.partition_changes` rows by the hours or windows of ``spans``."""
    cut = spanned(changes.where(F.col("records").isNotNull()), spans)
    return PLACEMENT_SUMS.aggregate(
        cut.withColumns(
            {name: placement(F.col(name)) for name in ("was", "now")} | {"records": part_of(F.col("records"))}
        ).withColumn("gap_records", of_gap(F.col("records"))),
        before,
    )


def _placed(sums: DataFrame, sizes: DataFrame) -> DataFrame:
    """Bytes appended by hour and partition, for each placement that held meanwhile."""
    halved = sums.withColumn("half", F.explode(halves(F.col("was"), F.col("now"))))
    added = halved.groupBy(*_PARTITION, F.col("half.held").alias("held")).agg(
        *(F.sum(F.col(name) * F.col("half.weight")).alias(name) for name in ("records", "gap_records"))
    )
    return (
        with_bytes(added, sizes)
        .withColumns({"group": F.lit(""), "gap_share": share_of("gap_records", "records")})
        .select("cluster", "hour_ms", "group", "topic", "partition", "bytes", "gap_share", "held")
    )


def _produced(placed: DataFrame, producers: DataFrame) -> DataFrame:
    """What producers of each rack wrote; the rest is written from unknown racks."""
    named = producers.where(F.col("topic") != "*").select("topic").distinct()
    topics = placed.select("topic").distinct()
    anywhere = producers.where(F.col("topic") == "*").select("rack", "share")
    others = topics.join(F.broadcast(named), on="topic", how="left_anti").crossJoin(F.broadcast(anywhere))
    by_topic = producers.where(F.col("topic") != "*").unionByName(others, allowMissingColumns=True)
    shares = by_topic.groupBy("topic").agg(
        F.collect_list(F.struct("rack", "share")).alias("shares"),
        F.sum("share").alias("total"),
        F.max("share").alias("most"),
    )
    known = F.coalesce("shares", F.array().cast("array<struct<rack:string,share:double>>"))
    total = F.coalesce("total", F.lit(0.0))
    rest = F.array(F.struct(F.lit(None).cast("string").alias("rack"), (1.0 - total).alias("share")))
    every = F.when(total > 1.0 - _ROUNDING, known).otherwise(F.concat(known, rest))
    near = F.filter(known, lambda one: one["rack"] == F.col("leader_rack"))
    at_leader = F.aggregate(near, F.lit(0.0), lambda sum_, one: sum_ + one["share"])
    # The best leader is where most of it is written; of what crosses now, this part would cross even so.
    needed = F.when(total > 1.0 - _ROUNDING, (1.0 - F.col("most")) / F.nullif(1.0 - at_leader, F.lit(0.0)))
    split = (
        placed.withColumn("leader_rack", F.col("held.leader_rack"))
        .join(F.broadcast(shares), on="topic", how="left")
        .withColumns({"needed": needed, "producer": F.explode(every)})
        .withColumns(
            {
                "bytes": F.col("bytes") * F.col("producer.share"),
                "source_rack": F.col("producer.rack"),
                "target_rack": F.col("leader_rack"),
            }
        )
    )
    why = F.when(F.col("source_rack").isNull(), PRODUCER_UNKNOWN).when(F.col("leader_rack").isNull(), LEADER_UNKNOWN)
    crossing = F.col("source_rack") != F.col("target_rack")
    unavoidable = F.when(why.isNull() & crossing, F.col("bytes") * F.col("needed")).when(why.isNull(), F.lit(0.0))
    return split.withColumns({"path": F.lit("produce"), "why": why, "unavoidable": unavoidable})


def _replicated(placed: DataFrame) -> DataFrame:
    """What each follower fetches. Of the copies that cross, as many are needed as racks beyond the leader's."""
    held = F.col("held")
    beyond = racks_beyond(held)
    wanted = _other_racks_wanted(held)
    needed = (
        F.when(wanted.isNull(), None)
        .when(
            ~has_unknown(beyond, held["leader_rack"]), F.least(F.lit(1.0), wanted / F.nullif(F.size(beyond), F.lit(0)))
        )
        # Even if each follower of unknown rack is in a rack of its own, all that are known to cross are needed.
        .when(wanted >= F.size(beyond), F.lit(1.0))
    )
    split = placed.withColumns({"needed": needed, "follower": F.explode(followers(held))}).withColumns(
        {"target_rack": at_broker(held, "broker_racks", F.col("follower")), "source_rack": held["leader_rack"]}
    )
    why = F.when(F.col("source_rack").isNull(), LEADER_UNKNOWN).when(F.col("target_rack").isNull(), FOLLOWER_UNKNOWN)
    local = F.col("source_rack") == F.col("target_rack")
    unavoidable = F.when(why.isNull() & local, F.lit(0.0)).when(why.isNull(), F.col("bytes") * F.col("needed"))
    path = F.when(F.array_contains(held["isr"], F.col("follower")), "replicate").otherwise(CATCH_UP)
    return split.withColumns({"path": path, "why": why, "unavoidable": unavoidable})


def _other_racks_wanted(held: Column) -> Column:
    """On how many racks beside the leader's replicas are, spread as well as racks allow; null while unknown.

    More racks than replicas make no difference, so one that is not known makes none where enough others are.
    """
    replicas = F.size(followers(held)) + 1
    racks = F.coalesce(held["racks"], F.when(held["known_racks"] >= replicas, held["known_racks"]))
    return F.when(racks.isNotNull(), F.least(replicas, racks) - 1)


def _consumed(routes: DataFrame) -> DataFrame:
    unavoidable = F.when(F.col("why").isNull() & F.col("bytes").isNotNull(), F.lit(0.0))
    share = share_of("gap_records", "records")
    return routes.withColumns({"path": F.lit("consume"), "unavoidable": unavoidable, "gap_share": share})


def copy_sums(changes: DataFrame, spans: DataFrame, before: DataFrame | None = None) -> DataFrame:
    """What reassignments copied and replicas lost, as `COPY_SUMS`, by the sizes of replicas."""
    moved = copies(changes).drop("run", "held").withColumn("path", F.lit("move"))
    lost = losses(changes).withColumn("path", F.lit(CATCH_UP))
    cut = spanned(moved.unionByName(lost), spans)
    return COPY_SUMS.aggregate(
        cut.withColumns(
            {"bytes": part_of(F.col("copied")), "untold": F.col("copied").isNull().cast("long")}
        ).withColumn("gap_bytes", of_gap(F.col("bytes"))),
        before,
    )


def _moved(sums: DataFrame) -> DataFrame:
    why = F.when(F.col("source_rack").isNull(), LEADER_UNKNOWN).when(F.col("target_rack").isNull(), FOLLOWER_UNKNOWN)
    return sums.withColumns(
        {
            "group": F.lit(""),
            "why": why,
            "gap_share": share_of("gap_bytes", "bytes"),
            "bytes": F.when(F.col("untold") == 0, F.col("bytes").cast("double")),
        }
    ).withColumn("unavoidable", _of_copies(why))


def _of_copies(why: Column) -> Column:
    """A move could be left out; whether a lost replica could be copied within a rack is unknown."""
    within = F.col("source_rack") == F.col("target_rack")
    known = why.isNull() & F.col("bytes").isNotNull()
    return F.when(known & ((F.col("path") == "move") | within), F.lit(0.0))


def copies(changes: DataFrame) -> DataFrame:
    """Copies under way, by look, topic, partition and broker: run, source_rack, target_rack, held and copied.

    ``held`` is what the new replica holds, ``copied`` what of it came since the look before. A replica that is being
    added has the size in its log dir; one that was added has the whole log. ``copied`` is null where no log dir was
    described.
    """
    now, was, broker = F.col("now"), F.col("was"), F.col("broker")
    moving = (F.size(now["adding"]) > 0) | (F.size(was["adding"]) > 0) | (now["brokers"] != was["brokers"])
    fresh = F.array_except(now["brokers"], F.array_except(settled_brokers(was), now["adding"]))
    return (
        changes.where(was.isNotNull() & moving)
        .withColumn("broker", F.explode(fresh))
        .select(
            *_copied_from(was["leader_rack"]),
            "run",
            _held(now, broker).alias("held"),
            (_held(now, broker) - _held_before(was, broker)).alias("more"),
        )
        .withColumn("copied", F.when(F.col("more").isNotNull(), F.greatest(F.col("more"), F.lit(0))))
        .where(F.col("copied").isNull() | (F.col("copied") > 0))
        .drop("more")
    )


def losses(changes: DataFrame) -> DataFrame:
    """What followers lost since they held it, as `copies` has it: ``copied`` is what they have to fetch again.

    A follower out of sync holds less than half of what it held when all replicas were described last (in the last
    quarter of an hour), while its leader holds more. Where that is not known it holds less than a tenth of what its
    leader held.
    """
    now, was, broker = F.col("now"), F.col("was"), F.col("broker")
    # In both looks, and not in sync in both.
    candidates = F.array_except(
        F.array_intersect(followers(now), settled_brokers(was)), F.array_intersect(now["isr"], was["isr"])
    )
    at_was = F.when(was["size_fresh"], at_broker(was, "broker_bytes", broker))
    held = F.coalesce(at_was, at_broker(F.col("filled_before"), "bytes", broker))
    left = at_broker(now, "broker_bytes", broker)
    less = F.when(held.isNotNull(), left * 2 < held).otherwise(left * 10 < was["size_bytes"])
    return (
        changes.where(was.isNotNull() & now["size_fresh"])
        .withColumn("broker", F.explode(candidates))
        .where(less & (left * 2 < now["size_bytes"]))
        .select(
            *_copied_from(now["leader_rack"]),
            F.least(F.coalesce(held, was["size_bytes"]), now["size_bytes"]).alias("copied"),
        )
    )


def _copied_from(source_rack: Column) -> tuple[str | Column, ...]:
    """What tells one copy from others, with its racks; ``broker`` is the one that fetches."""
    return (
        "cluster",
        "look",
        "previous",
        "taken_ms",
        "topic",
        "partition",
        "broker",
        source_rack.alias("source_rack"),
        at_broker(F.col("now"), "broker_racks", F.col("broker")).alias("target_rack"),
    )


def _held(seen: Column, broker: Column) -> Column:
    """What a replica holds; one that is being added, without a described log dir, holds nothing yet."""
    nothing = F.lit(0).cast("long")
    adding = F.array_contains(seen["adding"], broker)
    return F.when(adding, F.coalesce(at_broker(seen, "broker_bytes", broker), nothing)).otherwise(seen["size_bytes"])


def _held_before(was: Column, broker: Column) -> Column:
    return F.when(F.array_contains(was["brokers"], broker), _held(was, broker)).otherwise(F.lit(0).cast("long"))
