"""What groups read, by hand: commits and none, resets, gaps, readers that move, copies, borders of hours."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.transforms.reads import read_changes, read_routes, read_sums
from tests.pipeline.silver_rows import CLUSTER, HOUR_MS, Row, at, look, read, reads

PICTURE = "struct<leader_rack:string,isr_racks:array<string>,isr_told_racks:array<string>,selector:boolean>"
CHANGES = (
    "cluster string, instance string, run string, topic_id string, look string, topic string, partition int, "
    f"previous string, taken_ms long, hour_ms long, end_offset long, records long, now {PICTURE}, was {PICTURE}"
)
TIMES = (
    "cluster string, look string, instance string, monotonic_ms long, previous string, of_instance_ms long, "
    "previous_ms long"
)
WAY = "struct<source:string,target:string,why:string>"
READING = (
    "cluster string, look string, topic string, partition int, previous string, taken_ms long, hour_ms long, "
    f"group string, role string, reader string, read long, appended long, basis string, lag long, now {WAY}, was {WAY}"
)
FIRST, SECOND, LATER = (look("i", number, second=second) for number, second in ((1, 0), (2, 60), (3, 2_000)))
PLACED = ("a", ["a", "b"], ["a", "b"], True)
ENDS = {"i-1": (100, None, None), "i-2": (160, 60, PLACED), "i-3": (500, None, None)}
"""Look -> end offset, records appended, how the partition was placed before. The agent was down before the third."""
NEAR, FAR = ("b", "b", None), ("a", "c", None)


def test_what_each_reader_reads_between_looks(spark: SparkSession) -> None:
    previous = {"i-1": None, "i-2": "i-1", "i-3": None}
    times = [
        (CLUSTER, of["look"], "i", of["monotonic_ms"], previous[of["look"]], of["monotonic_ms"], before_ms)
        for of, before_ms in ((FIRST, None), (SECOND, FIRST["monotonic_ms"]), (LATER, None))
    ]
    changes = [
        (
            CLUSTER,
            "i",
            "i",
            "id-t",
            of["look"],
            "t",
            0,
            previous[of["look"]],
            of["taken_ms"],
            HOUR_MS,
            end,
            records,
            PLACED,
            was,
        )
        for of in (FIRST, SECOND, LATER)
        for end, records, was in (ENDS[of["look"]],)
    ]
    standby = {"role": "standby", "member": "m"}
    rows = [
        *(read(FIRST, "g", "t", "b", 100), read(SECOND, "g", "t", "b", 150), read(LATER, "g", "t", "b", 480)),
        *(read(FIRST, "silent", "t", "b"), read(SECOND, "silent", "t", "b")),
        *(read(FIRST, "reset", "t", "b", 100), read(SECOND, "reset", "t", "b", 40)),
        # Committed offsets were asked for after the ends.
        *(read(FIRST, "ahead", "t", "b", 100), read(SECOND, "ahead", "t", "b", 165)),
        *(read(FIRST, "moved", "t", "b", 100), read(SECOND, "moved", "t", "c", 160, member="n")),
        *(read(FIRST, "app", "t", "b", **standby), read(SECOND, "app", "t", "b", **standby)),
        read(SECOND, "new", "t", "b", 150),
        # Of its topic no look tells where it is.
        read(SECOND, "g", "unseen", "b", 150),
    ]

    def told(
        of: Row, group: str, read_: int | None, basis: str | None, lag: int | None, **more: Any
    ) -> tuple[Any, ...]:
        _, records, _ = ENDS[of["look"]]
        paired = basis is not None
        return (
            CLUSTER, of["look"], "t", 0, previous[of["look"]], of["taken_ms"], HOUR_MS, group,
            more.get("role", "active"), more.get("reader", ""), read_, records, basis, lag, more.get("now", NEAR),
            NEAR if paired else None,
        )  # fmt: skip

    copy = {"role": "standby", "reader": "m"}
    expected = [
        told(FIRST, "g", None, None, 0),
        told(SECOND, "g", 50, "committed", 10),
        told(LATER, "g", None, None, 20),
        *(told(FIRST, "silent", None, None, None), told(SECOND, "silent", 60, "tail", None)),
        *(told(FIRST, "reset", None, None, 0), told(SECOND, "reset", None, "committed", 120)),
        *(told(FIRST, "ahead", None, None, 0), told(SECOND, "ahead", 65, "committed", 0)),
        *(told(FIRST, "moved", None, None, 0), told(SECOND, "moved", 60, "committed", 0, now=FAR)),
        *(told(FIRST, "app", None, None, None, **copy), told(SECOND, "app", 60, "tail", None, **copy)),
        told(SECOND, "new", None, None, 10),
    ]
    found = read_changes(
        reads(spark, *rows), spark.createDataFrame(changes, CHANGES), spark.createDataFrame(times, TIMES)
    )
    wanted = spark.createDataFrame(expected, READING)
    assertDataFrameEqual(found.select(*wanted.columns), wanted)


SPANS = (
    "cluster string, look string, previous string, seen boolean, hour_ms long, from_share double, to_share double, "
    "ms long"
)
SIZES = "cluster string, hour_ms long, topic string, partition int, bytes_per_record double"
ROUTED = (
    "cluster string, hour_ms long, group string, topic string, source_rack string, target_rack string, ms double, "
    "records double, appended double, committed boolean, bytes double"
)
BEFORE_MS = HOUR_MS - 3_600_000


def test_what_is_read_by_hour_and_route(spark: SparkSession) -> None:
    """A pair of looks of 80 seconds, a quarter of it before the hour."""

    def given(group: str, topic: str, *figures: Any, was: tuple[Any, ...] = NEAR) -> tuple[Any, ...]:
        """``figures`` are read, appended and basis."""
        place = (CLUSTER, "i-2", topic, 0, "i-1", at(60), HOUR_MS)
        return (*place, group, "active", "", *figures, None, NEAR, was)

    readings = [
        given("g", "t", 101, 101, "committed"),
        given("moved", "t", 100, None, "tail", was=FAR),
        given("idle", "unsized", 0, 0, "committed"),
        given("blind", "unsized", 8, 8, "committed"),
        given("reset", "t", None, 9, "committed"),
    ]
    spans = [
        (CLUSTER, "i-2", "i-1", True, BEFORE_MS, 0.0, 0.25, 20_000),
        (CLUSTER, "i-2", "i-1", True, HOUR_MS, 0.25, 1.0, 60_000),
    ]
    sizes = [(CLUSTER, hour_ms, "t", 0, 10.0) for hour_ms in (BEFORE_MS, HOUR_MS)]

    def took(hour_ms: int, group: str, topic: str, way: tuple[Any, ...], *figures: Any) -> tuple[Any, ...]:
        return CLUSTER, hour_ms, group, topic, way[0], way[1], *figures

    expected = [
        # 101 records are 25 and 76: a record falls into one hour or the other.
        took(BEFORE_MS, "g", "t", NEAR, 20_000.0, 25.0, 25.0, True, 250.0),
        took(HOUR_MS, "g", "t", NEAR, 60_000.0, 76.0, 76.0, True, 760.0),
        # The moment of the move is unknown: half the time for either route.
        took(BEFORE_MS, "moved", "t", FAR, 10_000.0, 12.5, 0.0, False, 125.0),
        took(BEFORE_MS, "moved", "t", NEAR, 10_000.0, 12.5, 0.0, False, 125.0),
        took(HOUR_MS, "moved", "t", FAR, 30_000.0, 37.5, 0.0, False, 375.0),
        took(HOUR_MS, "moved", "t", NEAR, 30_000.0, 37.5, 0.0, False, 375.0),
        # Nothing is nothing, whatever a record's size.
        took(BEFORE_MS, "idle", "unsized", NEAR, 20_000.0, 0.0, 0.0, True, 0.0),
        took(HOUR_MS, "idle", "unsized", NEAR, 60_000.0, 0.0, 0.0, True, 0.0),
        took(BEFORE_MS, "blind", "unsized", NEAR, 20_000.0, 2.0, 2.0, True, None),
        took(HOUR_MS, "blind", "unsized", NEAR, 60_000.0, 6.0, 6.0, True, None),
    ]
    by_hour = read_sums(spark.createDataFrame(readings, READING), spark.createDataFrame(spans, SPANS))
    found = read_routes(by_hour, spark.createDataFrame(sizes, SIZES))
    wanted = spark.createDataFrame(expected, ROUTED)
    assertDataFrameEqual(found.select(*wanted.columns), wanted)
