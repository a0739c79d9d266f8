"""Which time looks cover: gaps, restarts, clocks that jump, two agents at once, borders of hours."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.transforms.spans import by_hour, pairs, touched_hours
from tests.pipeline.silver_rows import CLUSTER, HOUR_MS, Row, look, looks

SPAN = "cluster string, look string, previous string, hour_ms long, from_share double, to_share double, ms long"


def span(now: str, before: str, ms: int, first: float = 0.0, last: float = 1.0, *, hour: int = 0) -> tuple[object, ...]:
    return CLUSTER, now, before, HOUR_MS + hour * 3_600_000, first, last, ms


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(
            [look("i", 1, second=0), look("i", 2, second=60), look("i", 4, second=180)],
            [span("i-2", "i-1", 60_000), span("i-4", "i-2", 120_000)],
            id="looks of one agent, one of them not in full, cover the time between them",
        ),
        pytest.param(
            [look("i", 1, second=-20), look("i", 2, second=60)],
            [span("i-2", "i-1", 20_000, 0.0, 0.25, hour=-1), span("i-2", "i-1", 60_000, 0.25, 1.0)],
            id="what lies on both sides of an hour's border is shared out",
        ),
        pytest.param(
            [look("i", 1, second=0), look("j", 1, second=60), look("j", 2, second=120)],
            [span("j-2", "j-1", 60_000)],
            id="nobody tells what happened while the agent was started again",
        ),
        pytest.param(
            [look("i", 1, second=0), look("i", 2, second=901), look("i", 3, second=961)],
            [span("i-3", "i-2", 60_000)],
            id="looks that are missing for more than a quarter of an hour are a gap",
        ),
        pytest.param(
            [look("i", 1, second=0), look("i", 2, second=60, complete=False), look("i", 3, second=120)],
            [span("i-3", "i-1", 120_000)],
            id="a look that did not arrive whole is passed over",
        ),
        pytest.param(
            [
                look("i", 1, second=600, monotonic=0),
                look("i", 2, second=660, monotonic=60),
                look("i", 3, second=420, monotonic=120),
            ],
            [span("i-2", "i-1", 60_000), span("i-3", "i-2", 60_000)],
            id="a clock that was set back by five minutes makes nothing longer or shorter",
        ),
        pytest.param(
            [
                look("i", 1, second=0, monotonic=0),
                look("i", 2, second=7200, monotonic=60),
                look("i", 3, second=7260, monotonic=120),
            ],
            [span("i-3", "i-2", 60_000, hour=2)],
            id="a clock that leaps by two hours ends a stretch",
        ),
        pytest.param(
            [
                look("i", 1, second=0),
                look("j", 1, second=30),
                look("i", 2, second=60),
                look("j", 2, second=90),
                look("i", 3, second=120),
            ],
            [
                span("i-2", "i-1", 60_000),
                span("j-2", "j-1", 30_000, 0.5, 1.0),
                span("i-3", "i-2", 30_000, 0.5, 1.0),
            ],
            id="two agents that look at once tell each minute once",
        ),
        pytest.param([look("i", 1, second=0)], [], id="one look alone covers nothing"),
    ],
)
def test_what_looks_cover(spark: SparkSession, rows: list[Row], expected: list[tuple[object, ...]]) -> None:
    assertDataFrameEqual(by_hour(pairs(looks(spark, *rows))), spark.createDataFrame(expected, SPAN))


@pytest.mark.parametrize(
    ("touched", "hours"),
    [
        pytest.param("i-1", [-1, 0], id="the first look reaches into the hour of the next"),
        pytest.param("i-2", [-1, 0], id="a look right after the border touches the hour before"),
        pytest.param("i-4", [0], id="a look in the middle touches its hour alone"),
    ],
)
def test_which_hours_a_look_touches(spark: SparkSession, touched: str, hours: list[int]) -> None:
    times = (-20, 40, 100, 160)
    there = looks(spark, *(look("i", number, second=second) for number, second in enumerate(times, 1)))
    mine = spark.createDataFrame([(CLUSTER, touched)], "cluster string, look string")
    expected = [(CLUSTER, HOUR_MS + hour * 3_600_000) for hour in hours]
    assertDataFrameEqual(touched_hours(there, mine), spark.createDataFrame(expected, "cluster string, hour_ms long"))
