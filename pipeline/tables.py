"""Tables below one root folder, as Delta Lake or as Parquet: read, append exactly once, replace.

Invariants: a batch that was appended once is not appended again, by any writer; a reader sees a change whole or not at
all; a table that a newer rackwise made is refused before anything is read of it or written to it.

Each table is the folder ``<root>/<layer>/<name>``. Next to the data is ``_rackwise.json``: version and format.
On Parquet a table is either appended to or replaced, never both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Literal, NamedTuple

from pyspark.sql import functions as F

from agent.errors import BadInput
from pipeline.delta_tables import DeltaFiles
from pipeline.files import DAY_MS, StoredFiles, renames_folders
from pipeline.local_relation import local_relation
from pipeline.parquet_tables import ParquetFiles
from pipeline.schemas.table import day_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.schemas.table import TableSpec

Format = Literal["delta", "parquet"]
Where = Mapping[str, Iterable[str | int]]
"""Column -> values: rows that have one of the values in every column."""

_MARK = "_rackwise.json"
_VACUUMED = "_vacuumed.json"
"""Written after each vacuum."""
_KEPT_FROM = "_kept-from-"
"""Prefix of a file of a layer's folder; the first day whose rows were never deleted follows."""
_AHEAD_MS = 3_600_000
"""By so much clocks of producers may run ahead."""
_A_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DAY = re.compile(r"/day=(\d{4}-\d{2}-\d{2})/")
_PLAIN = re.compile(r"[A-Za-z0-9._:-]*")


class WriterBatch(NamedTuple):
    """One batch of one writer: the same writer never appends the same number twice."""

    writer: str
    number: int
    """Grows by batch."""


class TableStore:
    """The tables of one root. One writer per table at a time, of which the threads take turns; readers at any time."""

    def __init__(self, spark: SparkSession, root: str, format: Format = "delta") -> None:  # noqa: A002 Spark's word
        self.spark = spark
        self.root = root.rstrip("/")
        self.format: Format = format
        self._files = StoredFiles(spark)
        if format == "parquet" and not renames_folders(self.root):
            raise BadInput(
                f"{self.root} cannot have Parquet tables",
                why="an object store has no folders to rename, and a change would be seen in parts",
                todo="Use Delta Lake: spark.format: delta",
            )
        self._layout = DeltaFiles(spark, self._files) if format == "delta" else ParquetFiles(spark, self._files)
        self._checked: set[str] = set()
        self._turns: dict[str, Lock] = {}

    def path(self, table: TableSpec) -> str:
        """The table's folder."""
        return f"{self.root}/{table.name.replace('.', '/')}"

    def exists(self, table: TableSpec) -> bool:
        """Whether anything was ever written to it. Raises BadInput for one that this rackwise cannot read."""
        self._check(table)
        return self._layout.exists(self.path(table))

    def read(self, table: TableSpec) -> DataFrame:
        """All rows: the written-out columns in their order, then any that a newer rackwise added.

        A table that is not there yet has no rows. Raises BadInput for one that this rackwise cannot read.
        """
        if not self.exists(table):
            return local_relation(self.spark, (), table.schema)
        rows = self._layout.read(self.path(table), table)
        there = set(rows.columns)
        more = [name for name in rows.columns if name not in table.schema.names]
        return rows.select(
            *(
                (F.col(field.name) if field.name in there else F.lit(None)).cast(field.dataType).alias(field.name)
                for field in table.schema
            ),
            *(F.col(f"`{name}`") for name in more),
        )

    def days(self, table: TableSpec, by_ms: int | None = None) -> tuple[str, ...]:
        """The days that a table partitioned by ``day`` has files of, sorted; from the list of files alone.

        ``by_ms`` leaves out days of records that were not written by then: the clock of their producer ran ahead.
        """
        if not self.exists(table):
            return ()
        files = self._layout.read(self.path(table), table).inputFiles()
        days = {found[1] for file in files if (found := _DAY.search(file))}
        return tuple(sorted(day for day in days if by_ms is None or day <= day_of(by_ms + _AHEAD_MS)))

    def append(self, table: TableSpec, rows: DataFrame, batch: WriterBatch) -> None:
        """Add the rows, unless this batch was added before. Columns that are not written out are added to the table."""
        with self._turn(table):
            self._layout.append(self.path(table), table, conformed(table, rows), batch.writer, batch.number)

    def replace_where(self, table: TableSpec, rows: DataFrame, *where: Where, fresh: bool = False) -> None:
        """In place of the rows that any of ``where`` names, these; without ``where``, in place of all rows.

        Every one of ``rows`` must itself be named by ``where``. Naming the columns that the table is partitioned by
        makes it cheaper, and so does ``fresh``, where no row that ``where`` names exists: none is searched then.
        """
        with self._turn(table):
            self._layout.replace(self.path(table), table, conformed(table, rows), named(where), fresh=fresh)

    def kept_from(self, layer: str) -> str:
        """The first UTC day of which no vacuum deleted rows in the layer, yyyy-mm-dd; empty where none ever did."""
        return max(self._cuts(layer), default="")

    def vacuum(self, table: TableSpec, now_ms: int, before_day: str | None = None) -> None:
        """Delete what changes of long ago left behind and no reader needs; nothing where there is no table.

        Of a table partitioned by ``day`` the small files of days that are over become one, and rows of days earlier
        than ``before_day`` go as well. At most once a day, counted from the making of the table: a vacuum lists every
        file. What was deleted is remembered (`kept_from`).
        """
        if not self.exists(table):
            return
        path = self.path(table)
        done = f"{path}/{_VACUUMED}"
        last_ms = self._files.modified_ms(done if self._files.exists(done) else f"{path}/{_MARK}")
        if now_ms - last_ms < DAY_MS:
            return
        with self._turn(table):
            days = (day_of(now_ms), before_day) if "day" in table.partitioned_by else (None, None)
            if days[1] is not None:
                self._remember_cut(table.name.partition(".")[0], days[1])
            self._layout.vacuum(path, *days)
            self._files.delete(done)
            self._files.write(done, "{}")

    def _cuts(self, layer: str) -> list[str]:
        names = self._files.names(f"{self.root}/{layer}")
        days = [name.removeprefix(_KEPT_FROM) for name in names if name.startswith(_KEPT_FROM)]
        return [day for day in days if _A_DAY.fullmatch(day)]

    def _remember_cut(self, layer: str, day: str) -> None:
        """Before the first row goes, and never without a file: a refresh goes by it, and may begin at any time."""
        before = self._cuts(layer)
        if day <= max(before, default=""):
            return
        self._files.write(f"{self.root}/{layer}/{_KEPT_FROM}{day}", "{}")
        for earlier in before:
            self._files.delete(f"{self.root}/{layer}/{_KEPT_FROM}{earlier}")

    @contextmanager
    def _turn(self, table: TableSpec) -> Iterator[None]:
        """A turn at a table that is ours to write, and marked as such before its first row."""
        # Three streams share quarantine: two that make it at once would refuse each other.
        with self._turns.setdefault(table.name, Lock()):
            self._check(table)
            path = f"{self.path(table)}/{_MARK}"
            if not self._files.exists(path):
                mark = {"table": table.name, "version": table.version, "format": self.format}
                self._files.write(path, json.dumps(mark))
            yield

    def _check(self, table: TableSpec) -> None:
        path = self.path(table)
        if path in self._checked:
            return
        text = self._files.read(f"{path}/{_MARK}")
        if text is not None:
            _check_mark(table, path, self.format, text)
            self._checked.add(path)


def conformed(table: TableSpec, rows: DataFrame) -> DataFrame:
    """The written-out columns in their order, types and comments, then the others."""
    more = [name for name in rows.columns if name not in table.schema.names]
    return rows.select(
        *(F.col(field.name).cast(field.dataType).alias(field.name, metadata=field.metadata) for field in table.schema),
        *(F.col(f"`{name}`") for name in more),
    )


def _check_mark(table: TableSpec, path: str, format: str, text: str) -> None:  # noqa: A002 Spark's word
    try:
        mark = json.loads(text)
        name, version, written = str(mark["table"]), int(mark["version"]), str(mark["format"])
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(
            f"{path} is not a table of rackwise",
            why=f"its {_MARK} cannot be read: {error!r}",
            todo="Name another root.",
        ) from error
    if name != table.name or written != format:
        raise BadInput(
            f"{path} holds {name} as {written}, not {table.name} as {format}",
            why="a root has one format",
            todo=f"Add --format {written}, or name another root with --tables.",
        )
    if version > table.version:
        raise BadInput(
            f"{path} is of version {version}, and this rackwise reads up to {table.version}",
            why="a newer rackwise wrote it, and its columns may have another meaning",
            todo="Use that version of rackwise, or another root.",
        )


def named(where: Iterable[Where]) -> str | None:
    """The rows that any of ``where`` names, as SQL: any alternative, each all of its columns. None names every row."""
    alternatives = [" AND ".join(_one_of(column, values) for column, values in one.items()) for one in where]
    return " OR ".join(f"({one})" for one in alternatives) if alternatives else None


def _one_of(column: str, values: Iterable[str | int]) -> str:
    literals = ", ".join(map(_literal, values))
    # SQL has no empty list.
    return f"`{column}` IN ({literals})" if literals else "false"


def _literal(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value):
        return f"'{value}'"
    # Names of topics and groups are foreign text: as hex nothing in them can end the literal.
    return f"CAST(X'{value.encode('utf-8', 'replace').hex()}' AS STRING)"
