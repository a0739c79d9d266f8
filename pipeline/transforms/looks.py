"""Silver rows from telemetry: the agent's own stages rebuild and model each look, one look at a time.

All tables come out of one pass as one wide table with a struct for each; exactly one of them is set in a row.
A large look is divided (`pipeline.transforms.large_looks`), so that tasks share it; the memory of a task is bounded by
one small look or one part. An unreadable look is a row with its problem, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, groupby, islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from pipeline.python_workers import map_in_arrow
from pipeline.schemas import bronze
from pipeline.schemas.silver import SILVER
from pipeline.schemas.table import LONG, STRING, TableSpec, column, columns, day_of
from pipeline.transforms.large_looks import about_the_cluster, of_parts, put_together, with_parts
from pipeline.transforms.look_parts import LookPart, events_about_the_cluster, part_events, rows_of_part
from pipeline.transforms.look_rows import BronzeEvent, SilverRow, instance_of, problem_of, rows_of_look, unreadable

_COMMON = ("cluster", "look", "taken_ms")
_ROWS = 5_000
"""Rows that leave at a time."""
_UNFIT = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""What Arrow raises for a value that a column cannot hold: too large a number, half a surrogate pair."""


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


_PART = columns(
    *(column(name, LONG, "Of a part of a large look.") for name in ("number", "of", "events", "expected")),
    *(column(name, LONG, "How many the part has.") for name in ("topics", "groups")),
    column("problem", STRING, "Why the part cannot be read."),
)
_PARTS = t.StructType([*WIDE.fields, t.StructField("part", _PART, nullable=True)])
_EVENTS = t.StructType([bronze.TELEMETRY.schema[name] for name in BronzeEvent._fields])


def look_rows(
    telemetry: DataFrame,
    large: Mapping[tuple[str, str], int] | None = None,
    hold: Callable[[DataFrame], DataFrame] = lambda frame: frame,
) -> DataFrame:
    """Rows of all silver tables, as `WIDE`, of bronze.telemetry rows; whole looks must be among them.

    ``large``: cluster and look -> into how many parts it is divided. ``hold`` keeps the rows of the parts, which are
    read more than once.
    """
    events = telemetry.select(*BronzeEvent._fields)
    if not large:
        return _small(events)
    of = of_parts(telemetry, large)
    heads = map_in_arrow(about_the_cluster(events, of), _heads, _EVENTS)
    parts = with_parts(events, heads, of, sum(large.values()) + len(large))
    rows = map_in_arrow(parts, partial(_rows, schema=to_arrow_schema(_PARTS)), _PARTS)
    others = events.join(F.broadcast(of), ["cluster", "look"], "left_anti")
    return put_together(hold(rows)).select(*WIDE.names).unionByName(_small(others))


def _small(events: DataFrame) -> DataFrame:
    ordered = events.repartition("cluster", "look").sortWithinPartitions("cluster", "look", "n")
    return map_in_arrow(ordered, partial(_rows, schema=to_arrow_schema(WIDE)), WIDE)


def silver_table(wide: DataFrame, table: TableSpec) -> DataFrame:
    """The rows of one silver table out of the wide one."""
    name = _short(table)
    own = [F.col(f"{name}.{field.name}").alias(field.name) for field in _own_columns(table).fields]
    by_name = {field.name: column for field, column in zip(_own_columns(table).fields, own, strict=True)}
    chosen = [by_name.get(field.name, F.col(field.name)) for field in table.schema.fields]
    return wide.where(F.col(name).isNotNull()).select(*chosen)


def _heads(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(_EVENTS)
    for events in _looks(batches):
        given = [BronzeEvent(**row) for row in events]
        try:
            batch = _event_batch(events_about_the_cluster(given), schema)
        except _UNFIT:
            batch = _event_batch(given, schema)  # as it came, so it fits; each part joins its fragments again
        yield batch


def _event_batch(events: Iterable[BronzeEvent], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([event._asdict() for event in events], schema=schema)


def _rows(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for events in _looks(batches):
        first = next(events)
        part = LookPart(first.pop("number"), first.pop("of")) if "of" in first else None
        head = BronzeEvent(**first)
        rest = (BronzeEvent(*map(row.__getitem__, BronzeEvent._fields)) for row in events)
        try:
            # A small look or a part fits into memory; what a column cannot hold shows before anything of it has left.
            yield from list(_batches(head, _silver_rows(chain([head], rest), part), schema))
        except _UNFIT as error:
            yield from _batches(head, (_unreadable(problem_of(error), part),), schema)


def _silver_rows(events: Iterator[BronzeEvent], part: LookPart | None) -> Iterable[SilverRow]:
    return rows_of_look(events) if part is None else rows_of_part(part_events(events, part), part)


def _unreadable(problem: str, part: LookPart | None) -> SilverRow:
    return unreadable(problem) if part is None else SilverRow("part", {**part._asdict(), "problem": problem})


def _batches(head: BronzeEvent, given: Iterable[SilverRow], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows = _wide(head, given)
    while some := list(islice(rows, _ROWS)):
        yield pa.RecordBatch.from_pylist(some, schema=schema)


def _looks(batches: Iterator[pa.RecordBatch]) -> Iterator[Iterator[dict[str, Any]]]:
    """The rows of events look by look, or part by part; those of one are adjacent."""
    rows = (row for batch in batches for row in batch.to_pylist())
    for _, of_look in groupby(rows, key=lambda row: (row["cluster"], row["look"], row.get("number"))):
        yield of_look


def _wide(first: BronzeEvent, rows: Iterable[SilverRow]) -> Iterator[dict[str, object]]:
    common = {"cluster": first.cluster, "look": first.look, "taken_ms": first.taken_ms, "day": day_of(first.taken_ms)}
    for given in rows:
        row = given.row | {"instance": instance_of(first.look)} if given.table == "looks" else given.row
        yield {**common, given.table: row}
