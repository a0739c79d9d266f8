"""Rows of silver for tests of transforms: what a row does not say is null, and times are seconds after `HOUR_MS`."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pipeline.schemas import silver
from pipeline.schemas.table import TableSpec

HOUR_MS = 1_760_000_400_000
"""2025-10-09 09:00 UTC."""
DAY = "2025-10-09"
CLUSTER = "c"
RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}

Row = dict[str, Any]


def at(second: float) -> int:
    """Epoch milliseconds of that second."""
    return HOUR_MS + round(second * 1000)


def frame(spark: SparkSession, table: TableSpec, *rows: Row) -> DataFrame:
    """The rows as that table's."""
    unknown = {name for row in rows for name in row} - set(table.schema.names)
    assert not unknown, f"{table.name} has no {sorted(unknown)}"
    return spark.createDataFrame([tuple(row.get(name) for name in table.schema.names) for row in rows], table.schema)


def look(instance: str, number: int, *, second: float, monotonic: float | None = None, **more: Any) -> Row:
    """A whole look; its monotonic clock is that second unless told otherwise."""
    since = second if monotonic is None else monotonic
    return {
        "cluster": CLUSTER, "look": f"{instance}-{number}", "taken_ms": at(second), "instance": instance,
        "monotonic_ms": 5_000_000 + round(since * 1000), "complete": True, "full": True, "racks": 3, "known_racks": 3,
        "selector_is_rack_aware": True, "day": DAY,
    } | more  # fmt: skip


def looks(spark: SparkSession, *rows: Row) -> DataFrame:
    """silver.looks."""
    return frame(spark, silver.LOOKS, *rows)


def partition(of: Row, topic: str, end: int | None, size: int | None = None, **more: Any) -> Row:
    """A partition at a look, by default number 0 on brokers 1, 2 and 3, all in sync and led by 1."""
    replicas = more.pop("replicas", [1, 2, 3])
    isr = more.pop("isr", replicas)
    leader = more.pop("leader", replicas[0])
    racks = more.pop("broker_racks", RACKS)
    return {
        "cluster": of["cluster"], "look": of["look"], "taken_ms": of["taken_ms"], "day": of["day"], "topic": topic,
        "partition": 0, "topic_id": f"id-{topic}", "own": False, "leader": leader, "leader_rack": racks.get(leader),
        "replicas": replicas, "replica_racks": [racks.get(one) for one in replicas], "isr": isr,
        "isr_racks": [racks.get(one) for one in isr], "isr_told_racks": [racks.get(one) for one in isr],
        "end_offset": end, "size_bytes": size, "size_fresh": size is not None, "compacted": False,
        "replica_bytes": [size for _ in replicas], "leader_selector": of["selector_is_rack_aware"],
    } | more  # fmt: skip


def partitions(spark: SparkSession, *rows: Row) -> DataFrame:
    """silver.partitions."""
    return frame(spark, silver.PARTITIONS, *rows)


def read(of: Row, group: str, topic: str, rack: str | None, committed: int | None = None, **more: Any) -> Row:
    """Who reads partition 0 of a topic at a look, telling the rack where it stands unless told otherwise."""
    return {
        "cluster": of["cluster"], "look": of["look"], "taken_ms": of["taken_ms"], "day": of["day"], "group": group,
        "member": "m", "role": "active", "rack": rack, "told_rack": rack, "topic": topic, "partition": 0,
        "committed_offset": committed,
    } | more  # fmt: skip


def reads(spark: SparkSession, *rows: Row) -> DataFrame:
    """silver.reads."""
    return frame(spark, silver.READS, *rows)
