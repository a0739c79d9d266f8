"""The ledger by hand: each path, who serves whom, what cannot be told and why, what is unavoidable, what it costs."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from pipeline.schemas.gold import LAGS, LOCALITY, READ_TRAFFIC
from pipeline.transforms.prices import ProducerRow
from pipeline.transforms.reads import lag_sums, lags, locality, locality_sums, read_traffic
from pipeline.transforms.routes import (
    FOLLOWER_UNKNOWN,
    LEADER_UNKNOWN,
    PRODUCER_UNKNOWN,
    READER_UNKNOWN,
    SELECTOR_UNKNOWN,
)
from tests.pipeline.ledger_world import LedgerWorld, Told, flow
from tests.pipeline.silver_rows import CLUSTER, DAY, HOUR_MS, Row, frame

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
        .topic("rolling")
        .topic("rolling", partition=1, leader=2, leader_selector=False)
        .topic("rolling", partition=2, leader=2, leader_selector=None)
        .reader("during", "rolling", "c")
        .reader("during", "rolling", "c", partition=1)
        .reader("during", "rolling", "c", partition=2)
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
def world(spark: SparkSession) -> LedgerWorld:
    plain = Told("plain", selector_is_rack_aware=False).topic("t").reader("g", "t", "c")
    unknown = Told("unknown", selector_is_rack_aware=None).topic("t").reader("g", "t", "c")
    rackless = {"racks": None, "known_racks": 2}
    one_without = (
        Told("one without a rack", **rackless)
        .topic("three", replicas=[1, 2, 5])
        .topic("two", replicas=[1, 2])
        .topic("crammed", replicas=[1, 4])
    )
    enough = (
        Told("one without a rack of four", racks=None, known_racks=3).topic("three").topic("half", replicas=[1, 2, 9])
    )
    return LedgerWorld(spark, everything(), plain, unknown, one_without, enough)


def test_what_producers_write(world: LedgerWorld) -> None:
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
    world = LedgerWorld(spark, told, producers=(ProducerRow("*", "b", 0.5), ProducerRow("own", "a", 1.0)))
    world.check(
        "produce",
        "anybody own",
        flow("produce", "anybody", "b", "a", 30_000.0, unavoidable_bytes=None),
        flow("produce", "anybody", "", "a", 30_000.0, why_unknown=PRODUCER_UNKNOWN),
        flow("produce", "own", "a", "a", 60_000.0),
    )


def test_what_followers_fetch(world: LedgerWorld) -> None:
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


def test_where_a_broker_has_no_rack_what_is_unavoidable_is_told_or_unknown_but_never_nothing(
    world: LedgerWorld,
) -> None:
    some = {"cluster": "one without a rack"}
    world.check(
        "replicate",
        "three two crammed half",
        # Three replicas: there are two racks or three, so the copy from a to b may be needed in whole or in half.
        flow("replicate", "three", "a", "b", 60_000.0, unavoidable_bytes=None, **some),
        flow("replicate", "three", "a", "", 60_000.0, why_unknown=FOLLOWER_UNKNOWN, **some),
        # Two replicas need two racks, and two are known.
        flow("replicate", "two", "a", "b", 60_000.0, unavoidable_bytes=60_000.0, **some),
        flow("replicate", "crammed", "a", "a", 60_000.0, **some),
        *(
            flow("replicate", "three", "a", to, 60_000.0, unavoidable_bytes=60_000.0, cluster=enough)
            for enough in ("one without a rack of four",)
            for to in ("b", "c")
        ),
        flow("replicate", "half", "a", "b", 60_000.0, unavoidable_bytes=60_000.0, cluster="one without a rack of four"),
        flow(
            "replicate", "half", "a", "", 60_000.0, why_unknown=FOLLOWER_UNKNOWN, cluster="one without a rack of four"
        ),
    )


def test_what_followers_fetch_that_are_not_in_sync(world: LedgerWorld) -> None:
    world.check("catch-up", "behind", flow("catch-up", "behind", "a", "c", 60_000.0, unavoidable_bytes=60_000.0))


def test_who_reads_from_where(world: LedgerWorld) -> None:
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


def test_during_a_rolling_change_of_the_selector_each_leader_routes_by_its_own(world: LedgerWorld) -> None:
    world.check(
        "consume",
        "rolling",
        flow("consume", "rolling", "c", "c", 60_000.0, group="during"),
        flow("consume", "rolling", "b", "c", 60_000.0, group="during"),
        flow("consume", "rolling", "", "c", 60_000.0, group="during", why_unknown=SELECTOR_UNKNOWN),
    )


def test_what_reassignments_copy(world: LedgerWorld) -> None:
    world.check(
        "move",
        "ending quick running cancelled unsized",
        flow("move", "ending", "a", "a", 35_000.0),
        flow("move", "quick", "a", "c", 60_000.0),
        flow("move", "running", "a", "c", 7_000.0),
        flow("move", "unsized", "a", "c", None, unavoidable_bytes=None),
    )


def test_what_groups_read(world: LedgerWorld, spark: SparkSession) -> None:
    def took(group: str, records: int, basis: str, *, late: bool = False) -> Row:
        return {
            "cluster": CLUSTER, "hour_ms": HOUR_MS, "group": group, "topic": "u", "partition": 0, "seconds": 60.0,
            "records": records, "bytes": records * 100.0, "bytes_per_s": records * 100 / 60, "basis": basis,
            "catching_up": late, "gap_seconds": 0.0, "gap_records": 0, "gap_bytes": 0.0, "day": DAY,
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


def test_how_far_groups_are_behind(world: LedgerWorld, spark: SparkSession) -> None:
    def lag(group: str, *figures: float | None) -> Row:
        names = ("looks", "unknown_looks", "lag_min", "lag_mean", "lag_max", "lag_last")
        return {"cluster": CLUSTER, "hour_ms": HOUR_MS, "group": group, "topic": "u", "day": DAY} | dict(
            zip(names, figures, strict=True)
        )

    # At the second look the shop has committed nothing for one of its partitions.
    expected = [lag("shop", 1, 1, 0, 0.0, 0, 0), lag("whole", 2, 0, 0, 5.0, 10, 10)]
    mine = world.readings.where(F.col("group").isin("shop", "whole"))
    assertDataFrameEqual(lags(lag_sums(mine)), frame(spark, LAGS, *expected))


def test_how_local_groups_are(world: LedgerWorld, spark: SparkSession) -> None:
    def locally(group: str, rack: str, *figures: float | None) -> Row:
        names = ("local", "total", "unknown", "local_bytes", "total_bytes")
        return {"cluster": CLUSTER, "hour_ms": HOUR_MS, "group": group, "rack": rack, "day": DAY} | dict(
            zip(names, figures, strict=True)
        )

    expected = [
        locally("shop", "c", 2.0, 2.0, 0.0, 58_000.0, 58_000.0),
        # What it read is unknown until its next commit.
        locally("shop", "b", 0.0, 2.0, 0.0, None, None),
        locally("whole", "", 0.0, 2.0, 2.0, None, 59_000.0),
    ]
    mine = F.col("group").isin("shop", "whole")
    found = locality(locality_sums(world.readings.where(mine)), world.routes.where(mine))
    assertDataFrameEqual(found, frame(spark, LOCALITY, *expected))
