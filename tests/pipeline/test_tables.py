"""Tables, as Delta Lake and as Parquet: batches once, replacing, columns that are added, newer versions."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.testing import assertDataFrameEqual

from agent.errors import BadInput
from pipeline.files import StoredFiles
from pipeline.schemas.table import LONG, STRING, TableSpec, column, columns
from pipeline.tables import TableStore, WriterBatch

HOURS = TableSpec(
    "gold.hours",
    "A table for these tests.",
    columns(
        column("cluster", STRING, "Cluster.", required=True),
        column("hour", LONG, "Hour.", required=True),
        column("bytes", LONG, "Bytes."),
        column("day", STRING, "Day.", required=True),
    ),
    key=("cluster", "hour"),
    partitioned_by=("day",),
)
WHOLE = HOURS._replace(name="gold.whole", partitioned_by=())
SCHEMA = "cluster string, hour long, bytes long, day string"


def rows(tables: TableStore, *values: tuple[Any, ...]) -> DataFrame:
    return tables.spark.createDataFrame(list(values), SCHEMA)


def check(tables: TableStore, table: TableSpec, *values: tuple[Any, ...]) -> None:
    assertDataFrameEqual(tables.read(table).select("cluster", "hour", "bytes", "day"), rows(tables, *values))


def test_a_table_that_is_not_there_has_no_rows(tables: TableStore) -> None:
    assert not tables.exists(HOURS)
    found = tables.read(HOURS)
    assert (found.columns, found.count()) == (["cluster", "hour", "bytes", "day"], 0)


def test_a_batch_counts_once_whoever_repeats_it(tables: TableStore) -> None:
    for _ in range(2):
        tables.append(HOURS, rows(tables, ("a", 1, 10, "2026-01-01")), WriterBatch("w", 0))
        tables.append(HOURS, rows(tables, ("a", 2, 20, "2026-01-02")), WriterBatch("w", 1))
    tables.append(HOURS, rows(tables, ("b", 2, 30, "2026-01-02")), WriterBatch("other", 0))
    check(tables, HOURS, ("a", 1, 10, "2026-01-01"), ("a", 2, 20, "2026-01-02"), ("b", 2, 30, "2026-01-02"))


def test_threads_that_make_a_table_at_once_all_write_to_it(tables: TableStore) -> None:
    def write(number: int) -> None:
        tables.append(HOURS, rows(tables, ("a", number, 1, "d")), WriterBatch(f"w{number}", 0))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(3)))
    check(tables, HOURS, *(("a", number, 1, "d") for number in range(3)))


def test_a_table_whose_maker_died_before_its_first_change_has_no_rows_and_is_made(tables: TableStore) -> None:
    tables.append(WHOLE, rows(tables, ("a", 1, 1, "d")), WriterBatch("w", 0))
    path, made = Path(tables.path(HOURS)), Path(tables.path(WHOLE))
    path.mkdir(parents=True)
    shutil.copy(made / "_rackwise.json", path)
    (path / "_rackwise.json").write_text((path / "_rackwise.json").read_text().replace(WHOLE.name, HOURS.name))
    (path / "_delta_log").mkdir()
    shutil.copytree(next(made.glob("batch=*"), made / "_delta_log"), path / "_writing-w-0-0badcafe")
    check(tables, HOURS)
    tables.append(HOURS, rows(tables, ("a", 2, 1, "d")), WriterBatch("w", 0))
    check(tables, HOURS, ("a", 2, 1, "d"))


@pytest.mark.parametrize("table", [HOURS, WHOLE], ids=["a partitioned table", "a table of one piece"])
def test_replacing_touches_the_rows_that_were_named_and_no_others(tables: TableStore, table: TableSpec) -> None:
    before = [("a", 1, 1, "d1"), ("a", 2, 2, "d1"), ("b", 1, 3, "d1"), ("a", 9, 4, "d2"), ("b", 9, 5, "d3")]
    tables.replace_where(table, rows(tables, *before))
    new = [("a", 1, 100, "d1"), ("b", 9, 500, "d3")]
    where = [{"cluster": ["a"], "hour": [1, 9], "day": ["d1", "d2"]}, {"cluster": ["b"], "hour": [9], "day": ["d3"]}]
    for _ in range(2):  # once more changes nothing
        tables.replace_where(table, rows(tables, *new), *where)
        check(tables, table, *new, ("a", 2, 2, "d1"), ("b", 1, 3, "d1"))


@pytest.mark.parametrize("table", [HOURS, WHOLE], ids=["a partitioned table", "a table of one piece"])
def test_rows_that_are_known_to_be_new_are_added_to_what_is_there(tables: TableStore, table: TableSpec) -> None:
    first, second = ("a", 1, 1, "d1"), ("a", 2, 2, "d1")
    for row in (first, second):
        tables.replace_where(table, rows(tables, row), {"hour": [row[1]], "day": ["d1"]}, fresh=True)
    check(tables, table, first, second)


def test_replacing_without_a_condition_leaves_only_the_new_rows(tables: TableStore) -> None:
    tables.replace_where(HOURS, rows(tables, ("a", 1, 1, "d1"), ("a", 2, 2, "d2")))
    tables.replace_where(HOURS, rows(tables, ("a", 3, 3, "d2")))
    check(tables, HOURS, ("a", 3, 3, "d2"))


def test_names_that_would_end_a_literal_do_not(tables: TableStore) -> None:
    odd = 'it\'s \\ `odd` "ü"'
    tables.replace_where(HOURS, rows(tables, (odd, 1, 1, "d1"), ("a", 1, 2, "d1")))
    tables.replace_where(HOURS, rows(tables, (odd, 1, 7, "d1")), {"cluster": [odd], "day": ["d1"]})
    check(tables, HOURS, (odd, 1, 7, "d1"), ("a", 1, 2, "d1"))


def test_a_column_that_a_newer_rackwise_adds_is_kept_and_null_before(tables: TableStore) -> None:
    tables.append(HOURS, rows(tables, ("a", 1, 1, "d1")), WriterBatch("w", 0))
    newer = rows(tables, ("a", 2, 2, "d1")).selectExpr("*", "'x' AS extra")
    tables.append(HOURS, newer, WriterBatch("w", 1))
    expected = tables.spark.createDataFrame(
        [("a", 1, 1, "d1", None), ("a", 2, 2, "d1", "x")], f"{SCHEMA}, extra string"
    )
    assertDataFrameEqual(tables.read(HOURS), expected)


@pytest.mark.parametrize(
    ("mark", "sentence"),
    [
        pytest.param({"version": 2}, "is of version 2, and this rackwise reads up to 1", id="a newer version"),
        pytest.param({"format": "iceberg"}, "holds gold.hours as iceberg, not gold.hours as", id="another format"),
        pytest.param({"table": "gold.other"}, "holds gold.other as", id="another table"),
        pytest.param({"version": "new"}, "is not a table of rackwise", id="a mark that says nothing"),
    ],
)
def test_a_table_that_is_another_one_is_refused(tables: TableStore, mark: dict[str, object], sentence: str) -> None:
    tables.append(HOURS, rows(tables, ("a", 1, 1, "d1")), WriterBatch("w", 0))
    path = Path(tables.path(HOURS)) / "_rackwise.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **mark}))
    fresh = TableStore(tables.spark, tables.root, tables.format)
    for attempt in (fresh.read, fresh.exists, lambda table: fresh.append(table, rows(tables), WriterBatch("w", 1))):
        with pytest.raises(BadInput) as refused:
            attempt(HOURS)
        assert sentence in str(refused.value)


class Killed(Exception):
    """Stands for SIGKILL: nothing after it runs."""


@pytest.mark.parametrize("survived", range(4))
def test_a_change_of_parquet_that_was_decided_is_finished_by_the_next_writer(
    make_tables: Any, monkeypatch: pytest.MonkeyPatch, survived: int
) -> None:
    tables: TableStore = make_tables("root", "parquet")
    tables.replace_where(HOURS, rows(tables, ("a", 1, 1, "d1"), ("a", 2, 2, "d2"), ("a", 3, 3, "d3")))
    steps = iter(range(100))
    for name in ("move", "delete"):
        real = getattr(StoredFiles, name)

        def step(self: StoredFiles, *paths: str, real: Any = real) -> object:
            if next(steps) > survived:
                raise Killed
            return real(self, *paths)

        monkeypatch.setattr(StoredFiles, name, step)
    where = {"day": ["d1", "d2"]}
    with pytest.raises(Killed):
        tables.replace_where(HOURS, rows(tables, ("a", 1, 10, "d1")), where)
    monkeypatch.undo()
    tables.replace_where(HOURS, rows(tables, ("a", 4, 4, "d4")), {"day": ["d4"]})
    check(tables, HOURS, ("a", 1, 10, "d1"), ("a", 3, 3, "d3"), ("a", 4, 4, "d4"))
