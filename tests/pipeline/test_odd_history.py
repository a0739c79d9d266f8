"""Histories that are not as they should be, through the whole refresh: nothing is counted twice, gaps stay gaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from agent.telemetry.events import TelemetryEvent
from pipeline.jobs.refresh import RefreshSettings, RefreshSummary, refresh
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.gold import LEDGER, PARTITION_TRAFFIC
from pipeline.schemas.silver import LOOKS
from pipeline.tables import TableStore, WriterBatch
from pipeline.transforms.prices import PriceRow
from tests.builders import TAKEN_MS, an_observation
from tests.pipeline.look_events import events_of, telemetry
from tests.pipeline.silver_rows import HOUR_MS
from tests.snapshots import tp

HOUR_S = 3_600
BEGIN_S = (HOUR_MS - TAKEN_MS) / 1000
"""The hour begins so many seconds after the world began."""
RECORDS_PER_S, RECORD_BYTES = 10, 100


class Seen(NamedTuple):
    """One look."""

    cluster: str
    instance: str
    number: int
    second: float
    """By the world's clock, after the hour began."""
    wall_s: float
    """By the agent's clock, after the hour began."""


def seen(cluster: str, *moments: float | tuple[float, float], instance: str = "12345678", first: int = 1) -> list[Seen]:
    """Looks at these moments; where the agent's clock is wrong, (moment, what it says)."""
    pairs = [moment if isinstance(moment, tuple) else (moment, moment) for moment in moments]
    return [Seen(cluster, instance, first + number, *pair) for number, pair in enumerate(pairs)]


HISTORIES = [
    *seen("down", 0, 60, 120),
    *seen("down", 2_000, 2_060, instance="87654321"),
    *seen("silent", 0, 60, 1_000, 1_060),
    *seen("ahead", 0, 60, (120, 120 + 2 * HOUR_S), (180, 180 + 2 * HOUR_S)),
    *seen("back", 600, 660, (720, 420), (780, 480)),
    *seen("before", 0, 60),
    *seen("renamed", 120, 180, first=3),
    *seen("hostile", 0, 60),
    *seen("far", 0, 60, 120, 180),
    *seen("farther", 0, 60, 120),
]
MORE_THAN_A_LONG = 10**30
LONGEST = 2**63 - 1
FAR = ((-LONGEST, 0), (LONGEST, 0), (0, LONGEST), (0, -LONGEST - 1))
"""End offset and size: each fits into a column, and no difference of two."""


def events(history: list[Seen]) -> Iterator[TelemetryEvent]:
    """Ten records of 100 bytes a second go to a partition that is led from rack a and copied to b and c."""
    for one in history:
        moment = BEGIN_S + one.second
        told = an_observation().topic("orders", (1, 2, 3), ends=(round(RECORDS_PER_S * moment),))
        told.sizes = {(id_, tp("orders-0")): round(RECORDS_PER_S * RECORD_BYTES * moment) for id_ in (1, 2, 3)}
        looked = told.at(moment)
        looked = replace(looked, cluster_id=one.cluster, taken_ms=HOUR_MS + round(one.wall_s * 1000))
        if one.cluster == "hostile":
            looked = replace(looked, monotonic_ms=MORE_THAN_A_LONG)
        if one.cluster == "far":
            end, size = FAR[one.number - 1]
            sizes = dict.fromkeys(looked.replica_bytes, size)
            looked = replace(looked, end_offsets={tp("orders-0"): end}, replica_bytes=sizes)
        if one.cluster == "farther":
            committed = {"a": {tp("orders-0"): LONGEST if one.number == 1 else 0}}
            clock = (0, LONGEST, -LONGEST)[one.number - 1]
            looked = replace(looked, committed_offsets=committed, monotonic_ms=clock)
        yield from events_of(looked, f"{one.instance}-{one.number}")


class Found(NamedTuple):
    tables: TableStore
    done: RefreshSummary


@pytest.fixture(scope="module")
def found(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Found:
    tables = TableStore(spark, str(tmp_path_factory.mktemp("odd")), "parquet")
    tables.append(TELEMETRY, telemetry(spark, events(HISTORIES)), WriterBatch("test", 0))
    return Found(tables, refresh(tables, settings=RefreshSettings(prices=(PriceRow("a", "b", 0.01),))))


@pytest.mark.parametrize(
    ("cluster", "hours"),
    [
        pytest.param("down", {0: 180}, id="while the agent was down and started again"),
        pytest.param("silent", {0: 120}, id="looks of one agent that are missing"),
        pytest.param("ahead", {0: 60, 1: 0, 2: 60}, id="a clock that leaps ahead by two hours"),
        pytest.param("back", {0: 180}, id="a clock that is set back by six minutes"),
        pytest.param("before", {0: 60}, id="a cluster until its id changed"),
        pytest.param("renamed", {0: 60}, id="the same cluster under its new id"),
    ],
)
def test_what_looks_cover_counts_once_and_gaps_are_booked_by_the_offsets_on_both_sides(
    found: Found, cluster: str, hours: dict[int, int]
) -> None:
    rows = found.tables.read(PARTITION_TRAFFIC).where(F.col("cluster") == cluster).collect()
    told = {(row["hour_ms"] - HOUR_MS) // 3_600_000: (row["seconds"], row["records"], row["bytes"]) for row in rows}
    each = RECORDS_PER_S, RECORDS_PER_S * RECORD_BYTES
    assert told == {hour: (seconds, seconds * each[0], seconds * each[1]) for hour, seconds in hours.items()}
    moments = [one.second for one in HISTORIES if one.cluster == cluster]
    assert sum(row["records"] + row["gap_records"] for row in rows) == RECORDS_PER_S * (moments[-1] - moments[0])
    flows = found.tables.read(LEDGER).where((F.col("cluster") == cluster) & (F.col("path") == "produce")).collect()
    assert {(row["hour_ms"] - HOUR_MS) // 3_600_000: row["seconds"] for row in flows} == hours
    booked = sum(row["bytes"] for row in flows)
    assert booked == pytest.approx(RECORD_BYTES * RECORDS_PER_S * (moments[-1] - moments[0]))
    gaps = sum(row["gap_bytes"] for row in flows)
    assert booked - gaps == pytest.approx(RECORD_BYTES * RECORDS_PER_S * sum(hours.values()))


def test_a_pair_without_a_price_costs_something_unknown_and_is_named(found: Found) -> None:
    costs = {
        (row["source_rack"], row["target_rack"]): row["usd"]
        for row in found.tables.read(LEDGER).where("cluster = 'down' and path = 'replicate'").collect()
    }
    assert costs == {("a", "b"): pytest.approx(2_060 * 1_000 * 0.01 / 1e9), ("a", "c"): None}
    assert [line for line in found.done.messages if "price" in line] == [
        "a -> c has no price, so what it costs is unknown: set price.usd_per_gb, price.between or price.table",
    ]


@pytest.mark.parametrize(("cluster", "looks"), [("hostile", 2), ("far", 4), ("farther", 3)])
def test_a_look_with_numbers_that_cannot_be_counted_with_is_a_row_that_says_so_and_ends_nothing(
    found: Found, cluster: str, looks: int
) -> None:
    rows = found.tables.read(LOOKS).where(F.col("cluster") == cluster).collect()
    assert [(row["complete"], row["monotonic_ms"]) for row in rows] == [(False, None)] * looks
    assert all(row["problem"].startswith("the look cannot be read: ") for row in rows)
    assert rows[0]["problem"] in found.done.messages
