"""A ledger of written-out rows of silver, worked out once, with the rows that it is expected to have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from pipeline.schemas.gold import LEDGER
from pipeline.transforms.conservation import conservation, counter_sums
from pipeline.transforms.ledger import copy_sums, ledger, placement_sums
from pipeline.transforms.prices import PriceRow, ProducerRow, price_table, producer_table
from pipeline.transforms.reads import read_changes, read_routes, read_sums
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


class SilverRows(Protocol):
    """Rows of three tables of silver."""

    looks: list[Row]
    partitions: list[Row]
    reads: list[Row]


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


RECORDS, RECORD_BYTES = 600, 100
"""Appended in a minute to each topic of `Minutes`, and the size of one."""


class Minutes:
    """A look in each of these minutes; the agent was restarted before those that are named."""

    def __init__(self, *minutes: int, cluster: str = "c", restarts: tuple[int, ...] = ()) -> None:
        self.at = {
            minute: look(f"i{sum(one <= minute for one in restarts)}", minute, second=60 * minute, cluster=cluster)
            for minute in minutes
        }
        self.looks = list(self.at.values())
        self.partitions: list[Row] = []
        self.reads: list[Row] = []

    def topic(self, name: str, **more: Any) -> Minutes:
        for minute, of in self.at.items():
            end = RECORDS * minute
            self.partitions.append(partition(of, name, end, end * RECORD_BYTES) | more)
        return self

    def commits(self, group: str, topic: str, **more: Any) -> Minutes:
        """A group that keeps up; values may be made of the minute, and None is no row."""
        for minute, of in self.at.items():
            told = {name: value(minute) if callable(value) else value for name, value in more.items()}
            rack, role = told.pop("rack", "c"), told.pop("role", "active")
            if role is None:
                continue
            rack, member = (rack, "m") if role == "active" else (None, "")
            row = read(of, group, topic, rack, RECORDS * minute, role=role, member=member)
            self.reads.append(row | told)
        return self


class LedgerWorld:
    """The ledger of all the records, computed once."""

    def __init__(self, spark: SparkSession, *told: SilverRows, producers: tuple[ProducerRow, ...] = PRODUCERS) -> None:
        times = looks(spark, *(row for one in told for row in one.looks))
        line, spans = timeline(times), by_hour(pairs(times))
        rows = partitions(spark, *(row for one in told for row in one.partitions))
        changes = partition_changes(rows, line).localCheckpoint()
        sizes = record_sizes(partition_traffic(traffic_sums(changes, spans))).localCheckpoint()
        readers = reads(spark, *(row for one in told for row in one.reads))
        self.readings = read_changes(readers, changes, line).localCheckpoint()
        self.routes = read_routes(read_sums(self.readings, spans), sizes).localCheckpoint()
        standing, prices = producer_table(spark, producers), price_table(spark, PRICES)
        copied = copy_sums(changes, spans).localCheckpoint()
        known = {"routes": self.routes, "copied": copied, "sizes": sizes}
        grew = placement_sums(changes, spans)
        self.ledger = ledger(grew, **known, producers=standing, prices=prices).localCheckpoint()
        counters = counter_sums(changes, self.readings, spans)
        self.sides = {"counters": counters.localCheckpoint(), **known}
        self.conservation = conservation(self.ledger, **self.sides)
        self._spark = spark

    def check(
        self,
        path: str,
        names: str,
        *expected: Row,
        topics: Sequence[str] | None = None,
        where: Column | None = None,
    ) -> None:
        """The rows of the path for the topics of these names are exactly these."""
        found = self.ledger.where((F.col("path") == path) & F.col("topic").isin(topics or names.split()))
        if where is not None:
            found = found.where(where)
        assertDataFrameEqual(found, frame(self._spark, LEDGER, *expected))


def flow(path: str, topic: str, source: str, target: str, bytes_: float | None, *, group: str = "", **more: Any) -> Row:
    """A row of the ledger; within racks, and from a to b and c at the prices above, it knows its zone and price."""
    why = more.get("why_unknown")
    zone = "UNKNOWN" if why else "SAME_ZONE" if source == target else "CROSS_ZONE"
    price = {("a", "b"): 0.01, ("a", "c"): 0.02}.get((source, target))
    usd = 0.0 if zone == "SAME_ZONE" else price * bytes_ / 1e9 if price and bytes_ is not None and not why else None
    return {
        "cluster": CLUSTER, "hour_ms": HOUR_MS, "path": path, "group": group, "topic": topic, "source_rack": source,
        "target_rack": target, "zone": zone, "bytes": bytes_, "unavoidable_bytes": None if why else 0.0, "usd": usd,
        "seconds": 60.0, "gap_bytes": None if bytes_ is None else 0.0, "confidence": "seen", "day": DAY,
    } | more  # fmt: skip
