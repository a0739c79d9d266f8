"""What changes leave behind goes in time, what is read never, and whatever goes wrong with it leaves a table whole."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline import delta_tables as delta_layout
from pipeline.files import HadoopFiles
from pipeline.schemas.table import TableSpec
from pipeline.stream import vacuum
from pipeline.stream.vacuum import TableVacuum
from pipeline.tables import Format, TableStore, WriterBatch
from tests.pipeline.test_many_batches import ROWS

_KEPT = "spark.databricks.delta.properties.defaults.deletedFileRetentionDuration"
DAY = "2026-01-01"
EVERY, CHANGES = 3, 8


@pytest.fixture
def quick_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if ten changes were so few."""
    monkeypatch.setattr(delta_layout, "_LEAST_CHANGES", EVERY)
    monkeypatch.setattr(delta_layout, "crc32", lambda _: 0)


@pytest.fixture
def no_day(spark: SparkSession) -> Iterator[None]:
    """As if what was replaced just now had been so for a day."""
    before = spark.conf.get(_KEPT)
    spark.conf.set(_KEPT, "interval 0 hours")
    yield
    spark.conf.set(_KEPT, before)


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


def changed_often(tables: TableStore) -> TableStore:
    """A table whose one row was replaced again and again, all but once an hour ago; its data are of two days ago."""
    for number in range(CHANGES):
        changed(tables, number)
    return long_ago(tables)


def long_ago(tables: TableStore) -> TableStore:
    for file in Path(tables.path(ROWS), "_delta_log").iterdir():
        if file.name[:20].isdigit() and int(file.name[:20]) < CHANGES - 1:
            aged(file, 1)
    for file in data(tables):
        aged(file, 47)
    return tables


def again(tables: TableStore) -> TableStore:
    """As another process finds them."""
    return TableStore(tables.spark, tables.root)


@pytest.mark.usefixtures("no_day", "quick_checkpoints")
def test_the_log_begins_at_the_newest_checkpoint_that_is_old_and_replaced_data_is_gone(
    delta_tables: TableStore,
) -> None:
    many_changes = changed_often(delta_tables)
    replaced = data(many_changes)
    assert (len(replaced), versions(many_changes)) == (CHANGES, list(range(CHANGES)))
    many_changes.vacuum(ROWS)
    newest = EVERY * ((CHANGES - 2) // EVERY)
    left = versions(many_changes)
    assert left == list(range(newest, left[-1] + 1))
    assert left[-1] >= CHANGES - 1, "Delta writes its vacuum down as well"
    assert len(data(many_changes)) == 1
    assert rows(many_changes) == rows(again(many_changes)) == [CHANGES - 1]
    for number in range(100, 100 + EVERY):
        changed(again(many_changes), number)
    assert rows(many_changes) == rows(again(many_changes)) == [99 + EVERY]
    assert many_changes.spark.read.format("delta").load(many_changes.path(ROWS)).count() == 1


@pytest.mark.usefixtures("quick_checkpoints")
def test_a_table_is_whole_wherever_the_vacuum_ends_and_what_changed_lately_stays(
    delta_tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(CHANGES):
        changed(delta_tables, number)
    before = versions(delta_tables), data(delta_tables)
    delta_tables.vacuum(ROWS)
    assert (versions(delta_tables), data(delta_tables)) == before
    assert rows(delta_tables) == [CHANGES - 1]

    many_changes = long_ago(delta_tables)
    for file in data(many_changes):
        aged(file, 2)
    real, deleted, most = HadoopFiles.delete, [], 0

    def delete(self: HadoopFiles, path: str) -> None:
        if len(deleted) == most:
            raise OSError("no more")
        deleted.append(path)
        real(self, path)

    monkeypatch.setattr(HadoopFiles, "delete", delete)
    for most in (1, 4):  # noqa: B007 `delete` reads it
        with pytest.raises(OSError, match="no more"):
            many_changes.vacuum(ROWS)
        assert rows(again(many_changes)) == [CHANGES - 1]
    most = -1
    many_changes.vacuum(ROWS)
    assert versions(many_changes)[0] == EVERY * ((CHANGES - 2) // EVERY)
    assert rows(again(many_changes)) == [CHANGES - 1]
    assert len(data(many_changes)) == CHANGES, "what was replaced within a day is there for readers of the past"


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
    tables.vacuum(ROWS)
    assert (old.exists(), young.exists(), rows(tables)) == (False, True, [1])


def test_tables_take_turns_and_what_fails_is_told_once(
    delta_tables: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, names, told = [0.0], [], []
    tables: list[Any] = [ROWS._replace(name=f"silver.{name}") for name in "abc"]

    def vacuumed(_self: TableStore, table: TableSpec) -> None:
        names.append((now[0], table.name[-1]))
        if table.name == "silver.b":
            HadoopFiles(delta_tables.spark).read("nowhere://x/y")

    monkeypatch.setattr(vacuum.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(TableStore, "vacuum", vacuumed)
    turns = TableVacuum(delta_tables, tables, told.append, every_s=30)
    for second in range(0, 61, 5):
        now[0] = second
        turns.take_turn()
    assert names == [(10, "a"), (20, "b"), (30, "c"), (40, "a"), (50, "b"), (60, "c")]
    assert len(told) == 1
    assert told[0].startswith("silver.b cannot be compacted, so its number of files grows: ")
    turns.all()
    assert [name for _, name in names[-3:]] == ["a", "b", "c"]
