"""The ledger by hand: each path, who serves whom, what cannot be told and why, what is unavoidable, what it costs."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from pipeline.schemas.gold import LAGS, LEDGER, LOCALITY, READ_TRAFFIC
from pipeline.transforms.ledger import LedgerInput, copy_sums, ledger, placement_sums
from pipeline.transforms.prices import PriceRow, ProducerRow, price_table, producer_table
from pipeline.transforms.reads import (
    lag_sums,
    lags,
    locality,
    locality_sums,
    read_changes,
    read_routes,
    read_sums,
    read_traffic,
)
from pipeline.transforms.routes import (
    FOLLOWER_UNKNOWN,
    LEADER_UNKNOWN,
    PRODUCER_UNKNOWN,
    READER_UNKNOWN,
    SELECTOR_UNKNOWN,
)
from pipeline.transforms.spans import by_hour, pairs, timeline
from pipeline.transforms.traffic import partition_changes, partition_traffic, record_sizes, traffic_sums
from tests.pipeline.silver_rows import (
    CLUSTER,
    DAY,
    HOUR_MS,
    Row,
    frame,
    look,
    looks,
    partition,
    partitions,
    read,
    reads,
)

PRODUCERS = (
    ProducerRow("even", "a", 0.25),
    ProducerRow("even", "b", 0.75),
    ProducerRow("near", "a", 1.0),
    ProducerRow("partly", "c", 0.5),
    ProducerRow("leaderless", "a", 1.0),
)
PRICES = (PriceRow("a", "b", 0.01), PriceRow("a", "c", 0.02))


class Told:
    """Two looks at a cluster, a minute apart. 600 records of 100 bytes are appended to every topic."""

    def __init__(self, cluster: str = CLUSTER, **look_: Any) -> None:
        self.looks = [look("i", n, second=second, cluster=cluster, **look_) for n, second in ((1, 0), (2, 60))]
        self.partitions: list[Row] = []
        self.reads: list[Row] = []

    def topic(self, name: str, *, was: Row | None = None, **more: Any) -> Told:
        for of, end, state in zip(self.looks, (0, 600), (more | (was or {}), more), strict=True):
            self.partitions.append(partition(of, name, end, end * 100, **state))
        return self

    def reader(
        self, group: str, topic: str, rack: str | None, *committed: int | None, was: Row | None = None, **more: Any
    ) -> Told:
        for of, offset, state in zip(self.looks, committed or (None, None), (more | (was or {}), more), strict=True):
            self.reads.append(read(of, group, topic, rack, offset) | state)
        return self


class World:
    """The ledger of all the records, computed once."""

    def __init__(self, spark: SparkSession, *told: Told, producers: tuple[ProducerRow, ...] = PRODUCERS) -> None:
        times = looks(spark, *(row for one in told for row in one.looks))
        line, spans = timeline(times), by_hour(pairs(times))
        rows = partitions(spark, *(row for one in told for row in one.partitions))
        changes = partition_changes(rows, line).localCheckpoint()
        sizes = record_sizes(partition_traffic(traffic_sums(changes, spans))).localCheckpoint()
        readers = reads(spark, *(row for one in told for row in one.reads))
        self.readings = read_changes(readers, changes, line).localCheckpoint()
        self.routes = read_routes(read_sums(self.readings, spans), sizes).localCheckpoint()
        standing, prices = producer_table(spark, producers), price_table(spark, PRICES)
        grounds = LedgerInput(
            placement_sums(changes, spans), copy_sums(changes, spans), sizes, self.routes, standing, prices
        )
        self.ledger = ledger(grounds).localCheckpoint()
        self._spark = spark

    def check(self, path: str, topics: str, *expected: Row) -> None:
        """The rows of the path for those topics are exactly these."""
        found = self.ledger.where((F.col("path") == path) & F.col("topic").isin(topics.split()))
        assertDataFrameEqual(found, frame(self._spark, LEDGER, *expected))


TWO: Row = {"replicas": [1, 2]}
HALF: Row = {"replicas": [1, 2, 4], "adding": [4], "replica_bytes": [0, 0, 25_000]}
BEGUN: Row = {"replicas": [1, 2, 3], "adding": [3], "replica_bytes": [60_000, 60_000, 7_000]}


def everything() -> Told:
    written = Told().topic("anybody").topic("even").topic("near").topic("partly").topic("leaderless", leader=None)
    copied = (
        written.topic("spread")
        .topic("crowded", replicas=[1, 4, 2])
        .topic("lone", replicas=[1])
        .topic("hidden", replicas=[1, 9])
        .topic("adding", replicas=[1, 2, 3], adding=[3])
        .topic("led", was={"leader": 2}, leader=1)
        .topic("four", replicas=[1, 2, 3, 5], broker_racks={1: "a", 2: "b", 3: "c", 5: "c"})
    )
    moved = (
        copied.topic("ending", was=HALF, replicas=[1, 2, 4])
        # It began and ended between two looks.
        .topic("quick", was=TWO, replicas=[1, 3])
        .topic("running", was=TWO, **BEGUN)
        .topic("cancelled", was=BEGUN, **TWO)
        .topic("unsized", was=TWO, replicas=[1, 3], size_bytes=None)
    )
    near = (
        moved.topic("t")
        .topic("behind", isr=[1, 2])
        .reader("near", "t", "c")
        .reader("silent", "t", "c", told_rack=None)
        .reader("elsewhere", "t", "z")
        .reader("unknown", "t", None)
        .reader("out-of-sync", "behind", "c")
        .reader("located", "t", "c", told_rack="b")
        .reader("moved", "t", "c", was={"rack": "a", "told_rack": "a"})
    )
    return (
        near.topic("u")
        .topic("u", partition=1)
        .reader("keeps up", "u", "a", 0, 580)
        .reader("late", "u", "a", 0, 900)
        .reader("no commits", "u", "a")
        .reader("reset", "u", "a", 500, 100)
        .reader("app", "u", "a", role="standby")
        .reader("app", "u", "b", role="standby", member="n")
        .reader("shop", "u", "c", 0, 580)
        .reader("shop", "u", "b", 0, None, partition=1, told_rack=None)
        .reader("whole", "u", None, 0, 590)
    )


@pytest.fixture(scope="module")
def world(spark: SparkSession) -> World:
    plain = Told("plain", selector_is_rack_aware=False).topic("t").reader("g", "t", "c")
    unknown = Told("unknown", selector_is_rack_aware=None).topic("t").reader("g", "t", "c")
    return World(spark, everything(), plain, unknown)


def flow(path: str, topic: str, source: str, target: str, bytes_: float | None, *, group: str = "", **more: Any) -> Row:
    """A row of the ledger; within racks, and from a to b and c at the prices above, it knows its zone and price."""
    why = more.get("why_unknown")
    zone = "UNKNOWN" if why else "SAME_ZONE" if source == target else "CROSS_ZONE"
    price = {("a", "b"): 0.01, ("a", "c"): 0.02}.get((source, target))
    usd = 0.0 if zone == "SAME_ZONE" else price * bytes_ / 1e9 if price and bytes_ is not None and not why else None
    return {
        "cluster": CLUSTER, "hour_ms": HOUR_MS, "path": path, "group": group, "topic": topic, "source_rack": source,
        "target_rack": target, "zone": zone, "bytes": bytes_, "unavoidable_bytes": None if why else 0.0, "usd": usd,
        "day": DAY,
    } | more  # fmt: skip


def test_what_producers_write(world: World) -> None:
    world.check(
        "produce",
        "anybody even near partly leaderless",
        flow("produce", "anybody", "", "a", 60_000.0, why_unknown=PRODUCER_UNKNOWN),
        flow("produce", "even", "a", "a", 15_000.0),
        # Led from b, a quarter would cross all the same.
        flow("produce", "even", "b", "a", 45_000.0, unavoidable_bytes=15_000.0),
        flow("produce", "near", "a", "a", 60_000.0),
        flow("produce", "partly", "c", "a", 30_000.0, unavoidable_bytes=None),
        flow("produce", "partly", "", "a", 30_000.0, why_unknown=PRODUCER_UNKNOWN),
        flow("produce", "leaderless", "a", "", 60_000.0, why_unknown=LEADER_UNKNOWN),
    )


def test_producers_of_all_other_topics_are_those_that_are_told_without_a_name(spark: SparkSession) -> None:
    told = Told().topic("anybody").topic("own")
    world = World(spark, told, producers=(ProducerRow("*", "b", 0.5), ProducerRow("own", "a", 1.0)))
    world.check(
        "produce",
        "anybody own",
        flow("produce", "anybody", "b", "a", 30_000.0, unavoidable_bytes=None),
        flow("produce", "anybody", "", "a", 30_000.0, why_unknown=PRODUCER_UNKNOWN),
        flow("produce", "own", "a", "a", 60_000.0),
    )


def test_what_followers_fetch(world: World) -> None:
    world.check(
        "replicate",
        "spread crowded lone hidden adding led four",
        flow("replicate", "spread", "a", "b", 60_000.0, unavoidable_bytes=60_000.0),
        flow("replicate", "spread", "a", "c", 60_000.0, unavoidable_bytes=60_000.0),
        # Three replicas on three racks would cross twice; on two racks they cross once, which is needed in any case.
        flow("replicate", "crowded", "a", "a", 60_000.0),
        flow("replicate", "crowded", "a", "b", 60_000.0, unavoidable_bytes=60_000.0),
        flow("replicate", "hidden", "a", "", 60_000.0, why_unknown=FOLLOWER_UNKNOWN),
        # What a new replica copies is a move.
        flow("replicate", "adding", "a", "b", 60_000.0, unavoidable_bytes=60_000.0),
        # The leader changed between the looks: half the time each.
        flow("replicate", "led", "a", "b", 30_000.0, unavoidable_bytes=30_000.0),
        flow("replicate", "led", "a", "c", 30_000.0, unavoidable_bytes=30_000.0),
        flow("replicate", "led", "b", "a", 30_000.0, unavoidable_bytes=30_000.0),
        flow("replicate", "led", "b", "c", 30_000.0, unavoidable_bytes=30_000.0),
        # Four replicas on three racks cross three times, and twice must be.
        flow("replicate", "four", "a", "b", 60_000.0, unavoidable_bytes=40_000.0),
        flow("replicate", "four", "a", "c", 120_000.0, unavoidable_bytes=80_000.0),
    )


def test_who_reads_from_where(world: World) -> None:
    world.check(
        "consume",
        "t behind",
        flow("consume", "t", "c", "c", 60_000.0, group="near"),
        flow("consume", "t", "a", "c", 60_000.0, group="silent"),
        flow("consume", "t", "a", "z", 60_000.0, group="elsewhere"),
        flow("consume", "t", "a", "", 60_000.0, group="unknown", why_unknown=READER_UNKNOWN),
        # A replica that is not in sync never serves.
        flow("consume", "behind", "a", "c", 60_000.0, group="out-of-sync"),
        # It stands in c and tells b: brokers believe it.
        flow("consume", "t", "b", "c", 60_000.0, group="located"),
        flow("consume", "t", "a", "a", 30_000.0, group="moved"),
        flow("consume", "t", "c", "c", 30_000.0, group="moved"),
        # Without a selector leaders serve; while it is not known whether there is one, the server is unknown.
        flow("consume", "t", "a", "c", 60_000.0, group="g", cluster="plain"),
        flow("consume", "t", "", "c", 60_000.0, group="g", cluster="unknown", why_unknown=SELECTOR_UNKNOWN),
    )


def test_what_reassignments_copy(world: World) -> None:
    world.check(
        "move",
        "ending quick running cancelled unsized",
        flow("move", "ending", "a", "a", 35_000.0),
        flow("move", "quick", "a", "c", 60_000.0),
        flow("move", "running", "a", "c", 7_000.0),
        flow("move", "unsized", "a", "c", None, unavoidable_bytes=None),
    )


def test_what_groups_read(world: World, spark: SparkSession) -> None:
    def took(group: str, records: int, basis: str, *, late: bool = False) -> Row:
        return {
            "cluster": CLUSTER, "hour_ms": HOUR_MS, "group": group, "topic": "u", "partition": 0, "seconds": 60.0,
            "records": records, "bytes": records * 100.0, "bytes_per_s": records * 100 / 60, "basis": basis,
            "catching_up": late, "day": DAY,
        }  # fmt: skip

    expected = [
        took("keeps up", 580, "committed"),
        took("late", 900, "committed", late=True),
        took("no commits", 600, "tail"),
        # Two copies read their changelog, each for itself. What a group that was reset has read is unknown.
        took("app", 1_200, "tail"),
    ]
    mine = world.routes.where(F.col("group").isin("keeps up", "late", "no commits", "app", "reset"))
    assertDataFrameEqual(read_traffic(mine), frame(spark, READ_TRAFFIC, *expected))


def test_how_far_groups_are_behind(world: World, spark: SparkSession) -> None:
    def lag(group: str, *figures: float | None) -> Row:
        names = ("looks", "unknown_looks", "lag_min", "lag_mean", "lag_max", "lag_last")
        return {"cluster": CLUSTER, "hour_ms": HOUR_MS, "group": group, "topic": "u", "day": DAY} | dict(
            zip(names, figures, strict=True)
        )

    # At the second look the shop has committed nothing for one of its partitions.
    expected = [lag("shop", 1, 1, 0, 0.0, 0, 0), lag("whole", 2, 0, 0, 5.0, 10, 10)]
    mine = world.readings.where(F.col("group").isin("shop", "whole"))
    assertDataFrameEqual(lags(lag_sums(mine)), frame(spark, LAGS, *expected))


def test_how_local_groups_are(world: World, spark: SparkSession) -> None:
    def locally(group: str, rack: str, *figures: float | None) -> Row:
        names = ("local", "total", "unknown", "local_bytes", "total_bytes")
        return {"cluster": CLUSTER, "hour_ms": HOUR_MS, "group": group, "rack": rack, "day": DAY} | dict(
            zip(names, figures, strict=True)
        )

    expected = [
        locally("shop", "c", 2.0, 2.0, 0.0, 58_000.0, 58_000.0),
        locally("shop", "b", 0.0, 2.0, 0.0, 0.0, 60_000.0),
        locally("whole", "", 0.0, 2.0, 2.0, None, 59_000.0),
    ]
    mine = F.col("group").isin("shop", "whole")
    found = locality(locality_sums(world.readings.where(mine)), world.routes.where(mine))
    assertDataFrameEqual(found, frame(spark, LOCALITY, *expected))
