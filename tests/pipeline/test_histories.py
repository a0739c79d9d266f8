"""Histories, hour by hour: what lies longer back than an hour's context is known all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.jobs.histories import drift_write
from pipeline.jobs.work import Hour, Work
from pipeline.schemas import silver
from pipeline.schemas.gold import RACK_DRIFT
from pipeline.tables import Tables
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
    tables = Tables(spark, str(tmp_path), "parquet")
    rows, brokers = story(looks)
    for table, of_table in ((silver.LOOKS, looks), (silver.PARTITIONS, rows), (silver.BROKERS, brokers)):
        tables.replace_where(table, frame(spark, table, *of_table))
    wanted = frame(spark, RACK_DRIFT, expected)
    work = Work(tables)
    assertDataFrameEqual(drift_write(work).rows, wanted)
    work.hours = [Hour(CLUSTER, HOUR_MS)]
    assertDataFrameEqual(drift_write(work).rows, wanted)
