"""How far groups are behind, by hand: unknown lags, hours, clusters, copies of tasks."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.schemas.gold import LAGS
from pipeline.transforms.reads import lag_sums, lags
from tests.pipeline.silver_rows import CLUSTER, DAY, HOUR_MS, Row, at, frame

READINGS = (
    "cluster string, look string, taken_ms long, hour_ms long, group string, role string, topic string, partition int, "
    "lag long"
)
HOUR_S = 3_600


def seen(
    group: str, second: int, *lag: int | None, cluster: str = CLUSTER, role: str = "active"
) -> list[tuple[Any, ...]]:
    """The lags of a topic's partitions at a look."""
    hour_ms = HOUR_MS + second // HOUR_S * HOUR_S * 1000
    look = (cluster, f"i-{second}", at(second), hour_ms, group, role, "t")
    return [(*look, number, one) for number, one in enumerate(lag)]


def told(group: str, *figures: float | None, hour: int = 0, cluster: str = CLUSTER) -> Row:
    names = ("looks", "unknown_looks", "lag_min", "lag_mean", "lag_max", "lag_last")
    known = dict(zip(names, figures, strict=True))
    hour_ms = HOUR_MS + hour * HOUR_S * 1000
    return {"cluster": cluster, "hour_ms": hour_ms, "group": group, "topic": "t", "day": DAY} | known


def test_how_far_groups_are_behind_by_hour(spark: SparkSession) -> None:
    readings = [
        # At the second look nothing is committed for one of the partitions.
        *(*seen("g", 0, 10, 5), *seen("g", 60, 0, None), *seen("g", 120, 4, 1)),
        *(*seen("starts", 0, None, None), *seen("starts", 60, 3, 4)),
        *(*seen("loses", 0, 3), *seen("loses", 60, None)),
        *(*seen("never", 0, None), *seen("never", 60, None)),
        # The hour before is another row, and so is a group of the same name elsewhere.
        *(*seen("long", -60, 100), *seen("long", 0, 50)),
        *(*seen("twin", 0, 1), *seen("twin", 0, 9, cluster="other")),
        *seen("app", 0, 8, role="standby"),
    ]
    expected = [
        told("g", 2, 1, 5, 10.0, 15, 5),
        told("starts", 1, 1, 7, 7.0, 7, 7),
        told("loses", 1, 1, 3, 3.0, 3, 3),
        told("never", 0, 2, None, None, None, None),
        told("long", 1, 0, 100, 100.0, 100, 100, hour=-1),
        told("long", 1, 0, 50, 50.0, 50, 50),
        told("twin", 1, 0, 1, 1.0, 1, 1),
        told("twin", 1, 0, 9, 9.0, 9, 9, cluster="other"),
    ]
    assertDataFrameEqual(lags(lag_sums(spark.createDataFrame(readings, READINGS))), frame(spark, LAGS, *expected))
