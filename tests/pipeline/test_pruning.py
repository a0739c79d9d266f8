"""Jobs over a stretch of time read the files of that stretch alone, however long telemetry was ingested."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.backtest.strategies import chosen
from pipeline.jobs import backtest, fleet, refresh, weights
from pipeline.jobs.touched_looks import LookKey, kept_looks, looks_of_days, taken_on
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.gold import PARTITION_TRAFFIC, READ_TRAFFIC
from pipeline.schemas.silver import LOOKS
from pipeline.schemas.table import day_of
from pipeline.tables import TableStore, WriterBatch
from tests.pipeline import test_weights
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
    return files_of(rows.inputFiles(), "day")


def files_of(files: Iterable[str], column: str) -> list[str]:
    """Values of the column that these files are divided by."""
    return sorted({found[1] for file in files if (found := re.search(rf"/{column}=([^/]+)/", file))})


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


@pytest.mark.usefixtures("statistics")
def test_a_record_of_a_clock_that_runs_ahead_hides_no_looks_from_fleet(delta_tables: TableStore) -> None:
    one = bronze_rows(events_of(recorded(lambda _: shop(), 1)))
    ahead_ms = round(time.time() * 1_000) + 3 * DAY_MS
    for number, at_ms in enumerate((BEGIN_MS, BEGIN_MS + DAY_MS, ahead_ms)):
        rows = [(*row[:3], at_ms / 1_000, *row[4:17], day_of(at_ms)) for row in one]
        ingest(delta_tables, rows, number)
    assert delta_tables.days(TELEMETRY) == (*DAYS[:2], day_of(ahead_ms))
    assert days_read(fleet.recent_events(delta_tables, 1)) == [DAYS[1]]
    assert days_read(fleet.recent_events(delta_tables, 9)) == [*DAYS[:2]]


@pytest.mark.usefixtures("statistics")
def test_weights_read_the_days_of_their_window_and_their_cluster_alone(
    delta_tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark, hour_ms, last_ms = delta_tables.spark, test_weights.HOUR, BEGIN_MS + 4 * DAY_MS
    hours = [
        (BEGIN_MS + number * DAY_MS + at * hour_ms, {"cluster": cluster})
        for cluster in ("C1", "C2")
        for number in range(len(DAYS))
        for at in (-12, -1, 0, 11)
    ]
    traffic = [test_weights.traffic(at_ms, 0, 1, 3_600.0, **cluster) for at_ms, cluster in hours]
    reads = [test_weights.read(at_ms, 0, 3_600.0, **cluster) for at_ms, cluster in hours]
    taken = [{"cluster": cluster, "look": "i-1", "taken_ms": last_ms, "complete": True} for cluster in ("C1", "C2")]
    for table, given in ((PARTITION_TRAFFIC, traffic), (READ_TRAFFIC, reads), (LOOKS, taken)):
        delta_tables.append(table, test_weights.rows(spark, table, *given), WriterBatch("t", 0))

    frames: list[DataFrame] = []
    for name in ("topic_weights", "group_weights"):
        monkeypatch.setattr(weights, name, _noted(frames, getattr(weights, name)))
    for window_ms, days in ((DAY_MS, DAYS[3:5]), (11 * hour_ms, DAYS[4:5]), (13 * hour_ms, DAYS[3:5])):
        made = weights.make_weights(delta_tables, "C1", window_ms=window_ms, now_ms=last_ms)
        assert (made.topics, made.groups, made.others) == (1, 1, ("C2",))
        of_gold = [[file for file in frame.inputFiles() if "/gold/" in file] for frame in frames[-2:]]
        assert [files_of(files, "day") for files in of_gold] == [[*days]] * 2
        assert [files_of(files, "cluster") for files in of_gold] == [["C1"]] * 2


def _noted(frames: list[DataFrame], make: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def noted(*given: Any) -> DataFrame:
        frames.append(make(*given))
        return frames[-1]

    return noted
