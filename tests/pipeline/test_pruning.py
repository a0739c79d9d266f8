"""Jobs over a stretch of time read the files of that stretch alone, however long telemetry was ingested."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.backtest.strategies import chosen
from pipeline.jobs import backtest, fleet, refresh
from pipeline.jobs.touched_looks import LookKey, kept_looks, looks_of_days, taken_on
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.silver import LOOKS
from pipeline.tables import TableStore
from tests.pipeline.histories import bronze_rows, events_of, recorded, shop
from tests.pipeline.silver_rows import HOUR_MS, look, looks
from tests.pipeline.test_backtest_job import ingest

DAYS = tuple(f"2025-10-0{number}" for number in range(1, 7))
DAY_MS = 86_400_000
BEGIN_MS = round(datetime(2025, 10, 1, 12, tzinfo=UTC).timestamp() * 1_000)
_STATS = ("spark.databricks.delta.stats.collect", "spark.databricks.delta.stats.skipping")


@pytest.fixture
def statistics(spark: SparkSession) -> Iterator[None]:
    """As in the sessions of commands: the other tests spare themselves the statistics of files."""
    before = {name: str(spark.conf.get(name)) for name in _STATS}
    for name in _STATS:
        spark.conf.set(name, "true")
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def days_read(rows: DataFrame) -> list[str]:
    """Days of the files that a query reads."""
    return sorted({found[1] for file in rows.inputFiles() if (found := re.search(r"/day=([-0-9]+)/", file))})


@pytest.mark.usefixtures("statistics")
def test_fleet_backtest_and_refresh_read_their_days_alone_and_deleted_days_are_left_as_they_are(
    delta_tables: TableStore,
) -> None:
    one = bronze_rows(events_of(recorded(lambda _: shop(), 1)))
    for number, day in enumerate(DAYS):
        at = BEGIN_MS + number * DAY_MS
        cluster = "old" if number == 0 else "new"
        rows = [
            (*row[:3], at / 1_000, *row[4:8], cluster, f"0000abcd-{number}", row[10], at, *row[12:17], day)
            for row in one
        ]
        ingest(delta_tables, rows, number)
    assert days_read(delta_tables.read(TELEMETRY)) == list(delta_tables.days(TELEMETRY)) == list(DAYS)

    of_cluster = delta_tables.read(TELEMETRY).where(F.col("cluster") == "old")
    assert days_read(of_cluster) == [DAYS[0]], "by the bounds of each file: bronze is not partitioned by cluster"
    newest = fleet.recent_events(delta_tables, 2)
    assert days_read(newest) == list(DAYS[-2:])
    assert {row["cluster"] for row in newest.select("cluster").distinct().collect()} == {"new"}
    assert days_read(fleet.recent_events(delta_tables, 100)) == list(DAYS)

    stretch = backtest.BacktestRequest(
        strategies=chosen("no-action"), from_ms=BEGIN_MS + DAY_MS, to_ms=BEGIN_MS + 3 * DAY_MS
    )
    assert days_read(backtest._events(delta_tables, stretch)) == list(DAYS[1:3])

    assert days_read(delta_tables.read(TELEMETRY).where(taken_on(DAYS[2:3]))) == [DAYS[2]]
    assert days_read(delta_tables.read(TELEMETRY).where(taken_on([DAYS[4], DAYS[1]]))) == [DAYS[1], DAYS[4]]
    keys = [LookKey("new", f"0000abcd-{number}", BEGIN_MS + number * DAY_MS) for number in range(6)]
    assert looks_of_days(delta_tables, (DAYS[2],)) == (keys[2],)
    of_looks, _ = refresh._of_looks(delta_tables.read(TELEMETRY), [keys[3]], 0)
    assert days_read(of_looks) == [DAYS[3]]

    assert kept_looks(delta_tables) is None, "nothing was computed yet"
    seen = [
        look(
            "0000abcd",
            number,
            second=(key.taken_ms - HOUR_MS) / 1_000,
            cluster="new" if number else "old",
            day=DAYS[number],
        )
        for number, key in enumerate(keys)
    ]
    delta_tables.replace_where(LOOKS, looks(delta_tables.spark, *seen))
    assert kept_looks(delta_tables) is None, "bronze reaches as far back"
    delta_tables.vacuum(TELEMETRY, 2 * BEGIN_MS, DAYS[2])
    assert kept_looks(delta_tables) == tuple(keys[3:]), "a look of the first day may lack its beginning"
