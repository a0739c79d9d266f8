"""Tables as plain Parquet: a change becomes visible by one rename of a folder.

An appended batch is the folder ``batch=<writer>-<number>``: written under a hidden name, renamed when it is whole, and
left as it is when it is there already. A replaced table is ``batch=-`` with one folder per partition: what comes in its
place is written whole into a hidden folder, whose rename decides; then its partitions are put in place one by one. A
process that dies in between leaves the decided folder, and the next writer of the table puts in place what is left.
Object stores have no folders to rename, so Parquet tables are refused there.

Invariant: nothing of a change is seen before it is decided, and nothing of what is decided is lost. Between the two a
reader may find some partitions new and some old; where that matters, use Delta Lake.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as t

from pipeline.files import DAY_MS, located

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from pipeline.files import StoredFiles
    from pipeline.schemas.table import TableSpec

_BATCH = "batch"
_REPLACED = f"{_BATCH}=-"
_WRITING = "_writing-"
_DECIDED = "_decided-"
_GONE = "_gone.json"
_MORE = "_columns-"
"""Prefix of files that list added columns, numbered in their order; none is ever rewritten."""
_WHOLE = "part"
"""Stands for the partition of a table that has none."""


class ParquetFiles:
    """Parquet tables by path."""

    def __init__(self, spark: SparkSession, files: StoredFiles) -> None:
        self._spark = spark
        self._files = files

    def exists(self, path: str) -> bool:
        """Whether a batch is there."""
        return any(name.startswith(f"{_BATCH}=") for name in self._files.names(path))

    def read(self, path: str, table: TableSpec) -> DataFrame:
        """All rows, with columns that are in some files only."""
        # Spark would take a day for a date, and a batch for a number: what partitions are is written out.
        schema = self._columns(path, table).add(_BATCH, t.StringType()).add(_WHOLE, t.StringType())
        return self._spark.read.schema(schema).parquet(located(path)).drop(_BATCH, _WHOLE)

    def append(self, path: str, table: TableSpec, rows: DataFrame, writer: str, number: int) -> None:
        """Add the rows as a folder of their own, unless it is there."""
        batch = f"{_BATCH}={writer}-{number}"
        if self._files.exists(f"{path}/{batch}"):
            return
        hidden = f"{path}/{_WRITING}{writer}-{number}-{uuid.uuid4().hex[:8]}"
        self._write(hidden, table, rows)
        self._remember_columns(path, table, rows)
        if not self._files.move(hidden, f"{path}/{batch}"):
            self._files.delete(hidden)

    def replace(
        self, path: str, table: TableSpec, rows: DataFrame, condition: str | None, *, fresh: bool = False
    ) -> None:
        """The rows in place of those that fulfil the condition; ``fresh``: none does."""
        self._finish(path)
        if condition is None or not self.exists(path):
            self._swap(path, table, rows, self._partitions(path))
            return
        gone = F.coalesce(F.lit(False) if fresh else F.expr(condition), F.lit(False))  # noqa: FBT003 a literal of SQL
        self._change(path, table, rows, gone)

    def vacuum(self, path: str, _today: str | None = None, _before_day: str | None = None) -> None:
        """Delete what a process that died began to write a day ago or longer, and no reader ever saw.

        Settings refuse a retention for Parquet, so there is no day before which rows are deleted.
        """
        old = time.time_ns() // 1_000_000 - DAY_MS
        for name in self._files.names(path):
            if name.startswith(_WRITING) and self._files.modified_ms(f"{path}/{name}") < old:
                self._files.delete(f"{path}/{name}")

    def _change(self, path: str, table: TableSpec, rows: DataFrame, gone: Column) -> None:
        """Write the touched partitions anew: what stays of them, and the rows."""
        there = self.read(path, table)
        kept = there.where(~gone)
        if not table.partitioned_by:
            self._swap(path, table, kept.unionByName(rows, allowMissingColumns=True), self._partitions(path))
            return
        part = table.partitioned_by[0]
        touched = there.where(gone).select(part).unionByName(rows.select(part)).distinct()
        kept = kept.join(F.broadcast(touched), on=part, how="left_semi")
        folders = [f"{part}={value}" for (value,) in touched.collect()]
        self._swap(path, table, kept.unionByName(rows, allowMissingColumns=True), folders)

    def _swap(self, path: str, table: TableSpec, rows: DataFrame, touched: Iterable[str]) -> None:
        """Put the rows' partitions in the place of the old ones, and drop those touched that have no rows any more."""
        name = uuid.uuid4().hex
        hidden = f"{path}/{_WRITING}{name}"
        self._write(hidden, table, rows)
        self._remember_columns(path, table, rows)
        gone = sorted(set(touched) - set(self._folders(hidden)))
        self._files.write(f"{hidden}/{_GONE}", json.dumps(gone))
        self._files.move(hidden, f"{path}/{_DECIDED}{name}")  # the commit
        self._finish(path)

    def _finish(self, path: str) -> None:
        """Put in place what was decided and is not in place yet. Only writers do: two at once would undo each other."""
        for name in self._files.names(path):
            if not name.startswith(_DECIDED):
                continue
            decided = f"{path}/{name}"
            for folder in json.loads(self._files.read(f"{decided}/{_GONE}") or "[]"):
                self._files.delete(f"{path}/{_REPLACED}/{folder}")
            for folder in self._folders(decided):
                self._files.delete(f"{path}/{_REPLACED}/{folder}")
                self._files.move(f"{decided}/{folder}", f"{path}/{_REPLACED}/{folder}")
            self._files.delete(decided)

    def _columns(self, path: str, table: TableSpec) -> t.StructType:
        """The written-out columns, then those that were added."""
        known = t.StructType(list(table.schema.fields))
        for name in self._files.names(path):
            if name.startswith(_MORE):
                more = t.StructType.fromJson(json.loads(self._files.read(f"{path}/{name}") or "{}"))
                known = t.StructType([*known.fields, *(field for field in more if field.name not in known.names)])
        return known

    def _remember_columns(self, path: str, table: TableSpec, rows: DataFrame) -> None:
        known = self._columns(path, table)
        new = [field for field in rows.schema if field.name not in known.names]
        if new:
            self._files.write(f"{path}/{_MORE}{len(known):04d}.json", t.StructType(new).json())

    def _write(self, path: str, table: TableSpec, rows: DataFrame) -> None:
        parts = table.partitioned_by[:1]
        frame = rows if parts else rows.withColumn(_WHOLE, F.lit("all"))
        frame.write.mode("overwrite").partitionBy(*(parts or (_WHOLE,))).parquet(located(path))

    def _partitions(self, path: str) -> list[str]:
        return self._folders(f"{path}/{_REPLACED}")

    def _folders(self, path: str) -> list[str]:
        """Partition folders below: of the first column that a table is partitioned by, no others are used."""
        return [name for name in self._files.names(path) if "=" in name and not name.startswith(("_", "."))]
