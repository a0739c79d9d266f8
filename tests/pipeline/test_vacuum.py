"""What changes leave behind goes in time, what is read never, and whatever goes wrong with it leaves a table whole."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from pipeline import delta_tables as delta_layout
from pipeline.delta_tables import KEPT, keeping
from pipeline.files import StoredFiles
from pipeline.schemas.bronze import JOURNAL, PROPOSALS, TELEMETRY
from pipeline.schemas.gold import LEDGER
from pipeline.schemas.silver import LOOKS
from pipeline.schemas.table import TableSpec, day_of
from pipeline.stream.vacuum import TableVacuum
from pipeline.tables import Format, TableStore, WriterBatch
from tests.pipeline.test_many_batches import ROWS

_KEPT_FILES = "spark.databricks.delta.properties.defaults.deletedFileRetentionDuration"
DAY = "2026-01-01"
DAY_MS = 86_400_000
EVERY, CHANGES = 2, 4
LAYER = ROWS.name.partition(".")[0]


@pytest.fixture
def quick_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if ten changes were so few."""
    monkeypatch.setattr(delta_layout, "_LEAST_CHANGES", EVERY)
    monkeypatch.setattr(delta_layout, "crc32", lambda _: 0)


@pytest.fixture
def no_day(spark: SparkSession) -> Iterator[None]:
    """As if what was replaced just now had been so for a day."""
    before = spark.conf.get(_KEPT_FILES)
    spark.conf.set(_KEPT_FILES, "interval 0 hours")
    yield
    spark.conf.set(_KEPT_FILES, before)


def changed(tables: TableStore, number: int) -> None:
    rows = tables.spark.createDataFrame([(number, DAY)], "number long, day string").coalesce(1)
    tables.replace_where(ROWS, rows, {"day": [DAY]})


def rows(tables: TableStore) -> list[int]:
    return sorted(row["number"] for row in tables.read(ROWS).collect())


def aged(path: Path, hours: float) -> None:
    then = time.time() - hours * 3_600
    os.utime(path, (then, then))


def versions(tables: TableStore) -> list[int]:
    log = Path(tables.path(ROWS), "_delta_log")
    return sorted(int(file.name[:20]) for file in log.glob("*.json") if file.name[:20].isdigit())


def data(tables: TableStore) -> set[Path]:
    return set(Path(tables.path(ROWS), f"day={DAY}").glob("*.parquet"))


def tomorrow() -> int:
    """A vacuum is due a day after the table was made."""
    return time.time_ns() // 1_000_000 + DAY_MS + 60_000


def age_log(tables: TableStore, hours: float) -> None:
    """A minute from change to change: Delta takes changes of one moment for a clock that went back, and keeps them."""
    for file in Path(tables.path(ROWS), "_delta_log").iterdir():
        if (version := file.name[:20]).isdigit():
            aged(file, hours - int(version) / 60)


def again(tables: TableStore) -> TableStore:
    """As another process finds them."""
    return TableStore(tables.spark, tables.root)


def appended(tables: TableStore, numbers: Iterable[int], day: str = DAY) -> None:
    for number in numbers:
        new = tables.spark.createDataFrame([(number, day)], "number long, day string").coalesce(1)
        tables.append(ROWS, new, WriterBatch("w", number))


@pytest.mark.usefixtures("quick_checkpoints")
def test_streams_and_time_travel_reach_back_a_day_and_delta_cuts_off_the_log_before_it(
    delta_tables: TableStore, tmp_path: Path
) -> None:
    spark, path = delta_tables.spark, delta_tables.path(ROWS)

    def downstream() -> list[int]:
        """What a downstream stream has read of the table by now."""
        target = str(tmp_path / "downstream")
        source = spark.readStream.format("delta").load(path)
        sink = source.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
        sink.trigger(availableNow=True).start(target).awaitTermination(300)
        return sorted(row["number"] for row in spark.read.format("delta").load(target).collect())

    appended(delta_tables, [0])
    assert downstream() == [0]
    appended(delta_tables, range(1, CHANGES))
    age_log(delta_tables, 1)
    delta_tables.vacuum(ROWS, tomorrow())
    assert downstream() == list(range(CHANGES))
    assert spark.read.format("delta").option("versionAsOf", 1).load(path).count() == 2
    assert versions(delta_tables)[0] == 0

    age_log(delta_tables, 73)
    appended(delta_tables, range(CHANGES, CHANGES + EVERY))
    left = versions(delta_tables)
    assert EVERY <= left[0] < left[-1], "whole days of the log are gone, up to a checkpoint"
    assert left == list(range(left[0], left[-1] + 1))
    assert rows(again(delta_tables)) == list(range(CHANGES + EVERY))


@pytest.mark.usefixtures("no_day")
def test_replaced_data_goes_once_a_day_and_rows_of_days_beyond_the_retention_with_it(
    delta_tables: TableStore,
) -> None:
    for number in range(3):
        changed(delta_tables, number)
    appended(delta_tables, [10], "2026-01-02")
    appended(delta_tables, [11], "2026-01-03")
    for file in data(delta_tables):
        aged(file, 47)
    assert len(data(delta_tables)) == 3
    delta_tables.vacuum(ROWS, time.time_ns() // 1_000_000, "2026-01-03")
    assert len(data(delta_tables)) == 3, "it was made today"
    assert delta_tables.kept_from(LAYER) == ""
    delta_tables.vacuum(ROWS, tomorrow())
    assert len(data(delta_tables)) == 1
    assert rows(delta_tables) == [2, 10, 11]

    delta_tables.vacuum(ROWS, time.time_ns() // 1_000_000, "2026-01-03")
    assert delta_tables.days(ROWS) == (DAY, "2026-01-02", "2026-01-03"), "its last vacuum was within a day"
    delta_tables.vacuum(ROWS, tomorrow(), "2026-01-02")
    assert delta_tables.days(ROWS) == ("2026-01-02", "2026-01-03")
    assert rows(delta_tables) == rows(again(delta_tables)) == [10, 11]
    assert again(delta_tables).kept_from(LAYER) == "2026-01-02"
    delta_tables.vacuum(ROWS, tomorrow() + DAY_MS, "2026-01-03")
    delta_tables.vacuum(ROWS, tomorrow() + 2 * DAY_MS, "2026-01-01")
    assert again(delta_tables).kept_from(LAYER) == "2026-01-03", "a longer retention brings nothing back"
    assert len(list(Path(delta_tables.root, LAYER).glob("_kept-from-*"))) == 1
    assert rows(delta_tables) == [11]
    assert data(delta_tables) == set(), "nothing refers to them any more"


def test_small_files_of_days_that_are_over_become_one_each(delta_tables: TableStore) -> None:
    now_ms = tomorrow()
    days = (DAY, day_of(now_ms - DAY_MS), day_of(now_ms))
    for number in range(9):
        appended(delta_tables, [number], days[number % 3])

    def files() -> list[int]:
        names = delta_tables.read(ROWS).inputFiles()
        return [sum(f"/day={day}/" in name for name in names) for day in days]

    assert files() == [3, 3, 3]
    delta_tables.vacuum(ROWS, now_ms)
    assert files() == [1, 1, 3]
    assert rows(delta_tables) == rows(again(delta_tables)) == list(range(9))
    delta_tables.vacuum(ROWS, now_ms + DAY_MS)
    assert files() == [1, 1, 1]
    assert rows(delta_tables) == list(range(9))


def test_a_table_that_was_made_with_another_retention_gets_that_of_the_settings(
    delta_tables: TableStore, spark: SparkSession
) -> None:
    changed(delta_tables, 1)
    path = delta_tables.path(ROWS)

    def kept() -> dict[str, str]:
        (row,) = DeltaTable.forPath(spark, path).detail().select("properties").collect()
        return {name: row["properties"][name] for name in KEPT}

    assert set(kept().values()) == {"interval 1 day"}
    before = {name: str(spark.conf.get(name)) for name in KEPT.values()}
    try:
        for name, value in keeping(7_200_000).items():
            spark.conf.set(name, value)
        delta_tables.vacuum(ROWS, tomorrow())
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert set(kept().values()) == {"interval 7200 seconds"}
    assert rows(delta_tables) == [1]


def test_what_a_dead_process_left_half_written_goes_after_a_day(
    make_tables: Callable[[str, Format], TableStore],
) -> None:
    tables = make_tables("plain", "parquet")
    tables.append(ROWS, tables.spark.createDataFrame([(1, DAY)], "number long, day string"), WriterBatch("w", 1))
    old, young = (Path(tables.path(ROWS), f"_writing-{name}") for name in ("old", "young"))
    for folder in (old, young):
        folder.mkdir()
        (folder / "part.parquet").write_bytes(b"PAR1")
    aged(old, 25)
    tables.vacuum(ROWS, tomorrow())
    assert (old.exists(), young.exists(), rows(tables)) == (False, True, [1])


class JavaError(Exception):
    """As Py4J raises what pyspark has no class of its own for."""

    def __str__(self) -> str:
        return (
            "An error occurred while calling o52.vacuum.\n: org.apache.spark.SparkException: Job aborted\n"
            "\tat org.apache.spark.X.y(X.scala:1)\nCaused by: java.io.IOException: No space left on device"
        )


def test_tables_take_turns_and_what_fails_is_told_once(
    delta_tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, names, told, days = [0.0], [], [], list[str | None]()
    tables: list[Any] = [ROWS._replace(name=f"silver.{name}") for name in "abc"]

    def vacuumed(_self: TableStore, table: TableSpec, now_ms: int, before_day: str | None) -> None:
        names.append((now[0], table.name[-1]))
        days.append(before_day)
        assert abs(now_ms - time.time_ns() // 1_000_000) < DAY_MS
        if table.name == "silver.b":
            StoredFiles(delta_tables.spark).read("nowhere://x/y")
        if table.name == "silver.c":
            raise JavaError

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(TableStore, "vacuum", vacuumed)
    turns = TableVacuum(delta_tables, tables, told.append, retention={}, every_s=30)
    for second in range(0, 61, 5):
        now[0] = second
        turns.take_turn()
    assert names == [(10, "a"), (20, "b"), (30, "c"), (40, "a"), (50, "b"), (60, "c")]
    assert len(told) == 2
    assert told[0].startswith("silver.b cannot be compacted, so its number of files grows: ")
    assert told[1] == "silver.c cannot be compacted, so its number of files grows: IOException: No space left on device"
    turns.all()
    assert [name for _, name in names[-3:]] == ["a", "b", "c"]
    assert set(days) == {None}, "without a retention rows are kept for ever"

    days.clear()
    kept = {"bronze": 2 * DAY_MS, "silver": 3 * DAY_MS, "gold": None}
    TableVacuum(delta_tables, (PROPOSALS, JOURNAL, TELEMETRY, LOOKS, LEDGER), told.append, retention=kept).all()
    assert days[:2] == [None, None], "outcomes are made of all of them"
    today = date.fromisoformat(day_of(time.time_ns() // 1_000_000))
    assert days[2:] == [f"{today - timedelta(2)}", f"{today - timedelta(3)}", None]
