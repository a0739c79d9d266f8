"""How local groups read, by hand: racks that are not known, bytes that are not, what is no reading."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.schemas.gold import LOCALITY
from pipeline.transforms.reads import locality, locality_sums
from pipeline.transforms.routes import LEADER_UNKNOWN, READER_UNKNOWN
from tests.pipeline.silver_rows import CLUSTER, DAY, HOUR_MS, Row, frame

ROUTES = (
    "cluster string, hour_ms long, group string, role string, source_rack string, target_rack string, why string, "
    "bytes double"
)
READINGS = (
    "cluster string, hour_ms long, group string, shown boolean, now struct<source:string,target:string,why:string>"
)


def reading(group: str, *way: str | None, role: str = "active", cluster: str = CLUSTER) -> tuple[Any, ...]:
    return cluster, HOUR_MS, group, role == "active", way


def route(
    group: str, way: str, bytes_: float | None, *, why: str | None = None, role: str = "active"
) -> tuple[Any, ...]:
    source, _, target = way.partition("->")
    return CLUSTER, HOUR_MS, group, role, source or None, target or None, why, bytes_


def locally(group: str, rack: str, *figures: float | None, cluster: str = CLUSTER) -> Row:
    names = ("local", "total", "unknown", "local_bytes", "total_bytes")
    known = dict(zip(names, figures, strict=True))
    return {"cluster": cluster, "hour_ms": HOUR_MS, "group": group, "rack": rack, "day": DAY} | known


def test_how_local_groups_read_by_rack(spark: SparkSession) -> None:
    readings = [
        *(reading("g", "a", "a", None), reading("g", "a", "a", None), reading("g", "b", "a", None)),
        *(reading("g", "a", "b", None), reading("g", None, "b", LEADER_UNKNOWN)),
        reading("g", "a", None, READER_UNKNOWN),
        reading("g", "a", "a", None, cluster="other"),
        reading("unsized", "a", "a", None),
        reading("app", "a", "b", None, role="standby"),
    ]
    routes = [
        *(route("g", "a->a", 100.0), route("g", "b->a", 50.0)),
        *(route("g", "a->b", 30.0), route("g", "->b", 20.0, why=LEADER_UNKNOWN)),
        route("unsized", "a->a", None),
        # What a copy of a task fetches is no read.
        route("g", "b->a", 7_000.0, role="standby"),
    ]
    expected = [
        locally("g", "a", 2.0, 3.0, 0.0, 100.0, 150.0),
        # Part of what b reads comes from an unknown rack, which may be b.
        locally("g", "b", 0.0, 2.0, 1.0, None, 50.0),
        locally("g", "", 0.0, 1.0, 1.0, None, None),
        locally("g", "a", 1.0, 1.0, 0.0, None, None, cluster="other"),
        locally("unsized", "a", 1.0, 1.0, 0.0, None, None),
    ]
    found = locality(locality_sums(spark.createDataFrame(readings, READINGS)), spark.createDataFrame(routes, ROUTES))
    assertDataFrameEqual(found, frame(spark, LOCALITY, *expected))
