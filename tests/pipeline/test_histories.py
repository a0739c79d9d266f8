"""Histories, hour by hour: what lies longer back than an hour's context is known all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.jobs.histories import drift_write
from pipeline.jobs.work import ClusterHour, RefreshWork
from pipeline.schemas import silver
from pipeline.schemas.gold import RACK_DRIFT
from pipeline.tables import TableStore
from tests.pipeline.silver_rows import CLUSTER, DAY, HOUR_MS, Row, at, frame, look, partition

pytestmark = pytest.mark.drill

HOUR_S = 3_600
BEFORE_S = -3 * HOUR_S


def broker(of: Row, rack: str | None) -> Row:
    return {
        "cluster": CLUSTER, "look": of["look"], "taken_ms": of["taken_ms"], "day": DAY, "broker": 2, "rack": rack,
        "rack_state": "unknown" if rack is None else "known", "alive": rack is not None,
    }  # fmt: skip


def told(subject: str, before: str, after: str, **more: Any) -> Row:
    return {
        "cluster": CLUSTER, "subject": subject, "partition": 0, "began_ms": at(60), "before": [*before],
        "after": [*after], "lasted_s": 60.0, "shares_rack": False, "hour_ms": HOUR_MS, "day": DAY,
    } | more  # fmt: skip


MOVING: Row = {"replicas": [1, 2, 3, 4], "adding": [4], "removing": [3], "reassigned_by_us": True}
MOVED: Row = {"replicas": [1, 2, 4]}


def ended_move(looks: list[Row]) -> tuple[list[Row], list[Row]]:
    states: list[Row] = [{}, *[MOVING] * (len(looks) - 3), MOVED, MOVED]
    rows = [partition(of, "orders", 0, **state) for of, state in zip(looks, states, strict=True)]
    return rows, [broker(of, "b") for of in looks]


def moved_meanwhile(looks: list[Row]) -> tuple[list[Row], list[Row]]:
    first, *later = looks
    return [partition(first, "orders", 0), *(partition(of, "orders", 0, **MOVED) for of in later)], []


def came_back(looks: list[Row]) -> tuple[list[Row], list[Row]]:
    racks = ["b", *[None] * (len(looks) - 3), "c", "c"]
    return [], [broker(of, rack) for of, rack in zip(looks, racks, strict=True)]


def seen(*seconds: int) -> list[Row]:
    return [look("i", number, second=second) for number, second in enumerate(seconds)]


@pytest.mark.parametrize(
    ("looks", "story", "expected"),
    [
        pytest.param(
            seen(BEFORE_S, *range(BEFORE_S + 60, 60, 600), 0, 60, 120),
            ended_move,
            told("topic/orders", "abc", "aab", shares_rack=True, cause="reassigned by us"),
            id="a move that took three hours",
        ),
        pytest.param(
            seen(BEFORE_S, 60, 120),
            moved_meanwhile,
            told("topic/orders", "abc", "aab", shares_rack=True, cause="unknown"),
            id="a move while the agent was down",
        ),
        pytest.param(
            seen(BEFORE_S, *range(BEFORE_S + 60, 60, 600), 0, 60, 120),
            came_back,
            told("broker/2", "b", "c", partition=None, shares_rack=None, cause="relabelled"),
            id="a broker that was gone for three hours and came back in another rack",
        ),
    ],
)
def test_an_hour_by_itself_tells_what_all_hours_tell(
    spark: SparkSession, tmp_path: Path, looks: list[Row], story: Any, expected: Row
) -> None:
    tables = TableStore(spark, str(tmp_path), "parquet")
    rows, brokers = story(looks)
    for table, of_table in ((silver.LOOKS, looks), (silver.PARTITIONS, rows), (silver.BROKERS, brokers)):
        tables.replace_where(table, frame(spark, table, *of_table))
    wanted = frame(spark, RACK_DRIFT, expected)
    work = RefreshWork(tables)
    assertDataFrameEqual(drift_write(work).rows, wanted)
    work.hours = [ClusterHour(CLUSTER, HOUR_MS)]
    assertDataFrameEqual(drift_write(work).rows, wanted)


def test_an_hour_of_the_past_is_worked_out_again_and_what_came_after_it_stays(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = TableStore(spark, str(tmp_path), "parquet")
    seconds = (0, 60, *range(600, 4 * HOUR_S, 600))
    looks = seen(*seconds)
    rows = [
        partition(of, topic, 0, **(MOVED if begin <= second < end else {}))
        for topic, begin, end in (("orders", 60, 2 * HOUR_S), ("clicks", 3 * HOUR_S, 5 * HOUR_S))
        for of, second in zip(looks, seconds, strict=True)
    ]
    for table, of_table in ((silver.LOOKS, looks), (silver.PARTITIONS, rows)):
        tables.replace_where(table, frame(spark, table, *of_table))
    work = RefreshWork(tables)
    work.write([drift_write(work)])
    whole = tables.read(RACK_DRIFT).localCheckpoint()
    ends = {(row["subject"], row["ended_ms"]) for row in whole.collect()}
    assert {("topic/orders", at(2 * HOUR_S)), ("topic/clicks", None)} <= ends
    again = RefreshWork(tables)
    again.hours = [ClusterHour(CLUSTER, HOUR_MS)]
    again.write([drift_write(again)])
    assertDataFrameEqual(tables.read(RACK_DRIFT), whole)
