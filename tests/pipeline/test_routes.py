"""Who serves a reader, case by case: the nearest in-sync replica, the leader, or unknown."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from pipeline.transforms.routes import (
    LEADER_UNKNOWN,
    READER_UNKNOWN,
    REPLICA_UNKNOWN,
    SELECTOR_UNKNOWN,
    nearest,
    route,
    zone,
)

GIVEN = (
    "case string, picture struct<isr_racks:array<string>,isr_told_racks:array<string>,leader_rack:string,"
    "selector:boolean>, rack string, told string"
)
FOUND = "case string, source string, target string, why string, zone string"
ABC = ["a", "b", "c"]


def of(isr: list[str | None] | None = None, told: list[str | None] | None = None, **more: Any) -> tuple[Any, ...]:
    """A partition led from a, with replicas in sync in a, b and c, whose brokers look at racks."""
    stand = ABC if isr is None else isr
    return stand, stand if told is None else told, more.get("leader", "a"), more.get("selector", True)


CASES: list[tuple[str, tuple[Any, ...], str | None, str | None, tuple[str | None, ...]]] = [
    ("an in-sync replica in the rack that the reader tells", of(), "c", "c", ("c", "c", None, "SAME_ZONE")),
    ("no replica there is in sync", of(["a", "b"]), "c", "c", ("a", "c", None, "CROSS_ZONE")),
    ("no replica is in sync at all", of([]), "a", "a", ("a", "a", None, "SAME_ZONE")),
    ("the reader tells no rack", of(), "c", None, ("a", "c", None, "CROSS_ZONE")),
    ("brokers do not look at racks", of(selector=False), "c", "c", ("a", "c", None, "CROSS_ZONE")),
    ("whether they do is unknown", of(selector=None), "c", "c", (None, "c", SELECTOR_UNKNOWN, "UNKNOWN")),
    ("it makes no difference at the leader's", of(selector=None), "a", "a", ("a", "a", None, "SAME_ZONE")),
    ("nor where no broker tells that rack", of(selector=None), "z", "z", ("a", "z", None, "CROSS_ZONE")),
    ("the reader stands elsewhere than it tells", of(), "c", "b", ("b", "c", None, "CROSS_ZONE")),
    ("so does the broker", of(["a", "x"], ["a", "b"]), "x", "b", ("x", "x", None, "SAME_ZONE")),
    ("where it stands is not known", of(["a", None], ["a", "b"]), "b", "b", (None, "b", REPLICA_UNKNOWN, "UNKNOWN")),
    ("brokers tell no racks", of(ABC, [None, None, None]), "a", "a", ("a", "a", None, "SAME_ZONE")),
    ("there is no leader", of(leader=None), "z", None, (None, "z", LEADER_UNKNOWN, "UNKNOWN")),
    ("the leader's rack does not matter", of(leader=None), "c", "c", ("c", "c", None, "SAME_ZONE")),
    ("where the reader stands is not known", of(), None, "c", ("c", None, READER_UNKNOWN, "UNKNOWN")),
]


def test_who_serves_a_reader(spark: SparkSession) -> None:
    given = spark.createDataFrame([(case, picture, rack, told) for case, picture, rack, told, _ in CASES], GIVEN)
    picture, told = F.col("picture"), F.col("told")
    found = route(picture, F.col("rack"), told, nearest(picture, told), F.lit(READER_UNKNOWN))
    way = given.select("case", found.alias("way")).select(
        "case", "way.*", zone(F.col("way.source"), F.col("way.target"), F.col("way.why")).alias("zone")
    )
    expected = spark.createDataFrame([(case, *served) for case, _, _, _, served in CASES], FOUND)
    assertDataFrameEqual(way, expected)
