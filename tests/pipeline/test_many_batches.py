"""What many small batches leave behind: a few files in each table, and every row once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pipeline.schemas.table import LONG, STRING, TableSpec, column, columns
from pipeline.tables import TableStore, WriterBatch

_LEAST = "spark.databricks.delta.autoCompact.minNumFiles"
SOME = 4
BATCHES = 9
ROWS = TableSpec(
    "silver.rows",
    "A table for these tests.",
    columns(column("number", LONG, "Number.", required=True), column("day", STRING, "Day.", required=True)),
    key=("number",),
    partitioned_by=("day",),
)


@pytest.fixture
def few_are_many(spark: SparkSession) -> Iterator[None]:
    """As if so few files were as many as Delta lets gather by default, which is 50."""
    spark.conf.set(_LEAST, str(SOME))
    yield
    spark.conf.unset(_LEAST)


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.drill
def test_files_of_small_batches_are_put_together(delta_tables: TableStore) -> None:
    spark = delta_tables.spark
    for number in range(BATCHES):
        rows = spark.createDataFrame([(number, "2026-01-01")], "number long, day string").coalesce(1)
        if number % 2:
            delta_tables.append(ROWS, rows, WriterBatch("w", number))
        else:
            delta_tables.replace_where(ROWS, rows, {"day": ["2026-01-01"], "number": [number]})
    found = delta_tables.read(ROWS)
    assert len(found.inputFiles()) <= SOME
    assert sorted(row["number"] for row in found.collect()) == list(range(BATCHES))
