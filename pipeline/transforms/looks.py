"""Silver rows from telemetry: the agent's own stages rebuild and model each look, one look at a time.

All tables come out of one pass as one wide table with a struct for each; exactly one of them is set in a row.
Memory is bounded by one look for each task. An unreadable look is a row with its problem, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import attrgetter

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from pipeline.schemas.silver import SILVER
from pipeline.schemas.table import LONG, STRING, TableSpec, column, columns
from pipeline.transforms.look_rows import BronzeEvent, SilverRow, day_of, instance_of, rows_of_look, unreadable

_COMMON = ("cluster", "look", "taken_ms")
_ROWS = 5_000
"""Rows that leave at a time."""


def _short(table: TableSpec) -> str:
    return table.name.partition(".")[2]


def _own_columns(table: TableSpec) -> t.StructType:
    return t.StructType([field for field in table.schema.fields if field.name not in (*_COMMON, "day")])


WIDE = columns(
    column("cluster", STRING, "Cluster id.", required=True),
    column("look", STRING, "Id of the look.", required=True),
    column("taken_ms", LONG, "When the look began, epoch milliseconds.", required=True),
    *(t.StructField(_short(table), _own_columns(table), nullable=True) for table in SILVER),
    column("day", STRING, "UTC day of taken_ms.", required=True),
)


def look_rows(telemetry: DataFrame) -> DataFrame:
    """Rows of all silver tables, as `WIDE`, of bronze.telemetry rows; whole looks must be among them."""
    ordered = telemetry.repartition("cluster", "look").sortWithinPartitions("cluster", "look", "n")
    return ordered.select(*BronzeEvent._fields).mapInArrow(_rows, WIDE)


def silver_table(wide: DataFrame, table: TableSpec) -> DataFrame:
    """The rows of one silver table out of the wide one."""
    name = _short(table)
    own = [F.col(f"{name}.{field.name}").alias(field.name) for field in _own_columns(table).fields]
    by_name = {field.name: column for field, column in zip(_own_columns(table).fields, own, strict=True)}
    chosen = [by_name.get(field.name, F.col(field.name)) for field in table.schema.fields]
    return wide.where(F.col(name).isNotNull()).select(*chosen)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(WIDE)
    for look in _looks(batches):
        try:
            # One look fits into memory; what a column cannot hold shows before anything of it has left.
            yield from list(_parts(look, rows_of_look(look), schema))
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            yield from _parts(look, (unreadable(f"the look cannot be read: {error!r}"),), schema)


def _parts(look: list[BronzeEvent], given: Iterable[SilverRow], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows = _wide(look[0], given)
    while part := list(islice(rows, _ROWS)):
        yield pa.RecordBatch.from_pylist(part, schema=schema)


def _looks(batches: Iterator[pa.RecordBatch]) -> Iterator[list[BronzeEvent]]:
    """The events look by look; those of one look are adjacent."""
    events = (BronzeEvent(**row) for batch in batches for row in batch.to_pylist())
    for _, of_look in groupby(events, key=attrgetter("cluster", "look")):
        yield list(of_look)


def _wide(first: BronzeEvent, rows: Iterable[SilverRow]) -> Iterator[dict[str, object]]:
    common = {"cluster": first.cluster, "look": first.look, "taken_ms": first.taken_ms, "day": day_of(first.taken_ms)}
    for given in rows:
        row = given.row | {"instance": instance_of(first.look)} if given.table == "looks" else given.row
        yield {**common, given.table: row}
