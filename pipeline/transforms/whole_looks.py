"""Looks by changes as if they were recorded in full: with the events that they keep of the full look they stand on.

A look whose full look is not in bronze, or not whole, keeps its `kept` events, from which `look_rows` tells what it
waits for. Events that did not move are copied as text; those that did are read and written once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from agent.telemetry.changes import kept_places, moved_data
from agent.telemetry.events import EventKind, from_pieces
from agent.telemetry.looks import IncompleteLookError
from pipeline.python_workers import map_in_arrow
from pipeline.schemas.bronze import TELEMETRY


class StandingEvent(NamedTuple):
    """A row of bronze.telemetry."""

    event_id: str
    v: int
    kind: str
    subject: str
    cluster: str
    look: str
    n: int
    taken_ms: int
    data: str


_SCHEMA = t.StructType([TELEMETRY.schema[name] for name in StandingEvent._fields])
_ROWS = 1_000
"""Rows that leave at a time."""
_MOST_N = 2**31 - 1
"""What the column of an event's number holds."""


def whole_looks(rows: DataFrame, telemetry: DataFrame) -> DataFrame:
    """The rows of bronze.telemetry with what looks by changes keep; ``telemetry`` has the full looks as well."""
    standing = standing_looks(rows)
    return with_kept(rows, full_looks(telemetry, standing)) if standing else rows.select(*StandingEvent._fields)


def standing_looks(rows: DataFrame) -> list[Row]:
    """The looks by changes among the rows, each with its full look: cluster, look, base, base_taken_ms."""
    by_changes = rows.where(F.col("base").isNotNull())
    return by_changes.select("cluster", "look", "base", "base_taken_ms").distinct().collect()


def full_looks(telemetry: DataFrame, standing: Sequence[Row]) -> DataFrame:
    """The events of the full looks on which they stand."""
    times = [row["base_taken_ms"] for row in standing]
    return telemetry.where(
        F.col("cluster").isin(sorted({row["cluster"] for row in standing}))
        & F.col("look").isin(sorted({row["base"] for row in standing}))
        & F.col("taken_ms").between(min(times), max(times))
        & F.col("base").isNull()
    )


def with_kept(rows: DataFrame, full: DataFrame) -> DataFrame:
    """The rows with what looks by changes keep of these full looks."""
    fields = StandingEvent._fields
    both = full.select(*fields, F.col("look").alias("base"), F.lit(0).alias("turn")).unionByName(
        rows.where(F.col("base").isNotNull()).select(*fields, "base", F.lit(1).alias("turn"))
    )
    ordered = both.repartition("cluster", "base").sortWithinPartitions("cluster", "base", "turn", "look", "n")
    return rows.where(F.col("base").isNull()).select(*fields).unionByName(map_in_arrow(ordered, _whole, _SCHEMA))


def _whole(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(_SCHEMA)
    rows = (row for batch in batches for row in batch.to_pylist())
    of_bases = groupby(rows, key=itemgetter("cluster", "base"))
    whole = (event for _, of_base in of_bases for event in _standing(of_base))
    while part := [event._asdict() for event in islice(whole, _ROWS)]:
        yield pa.RecordBatch.from_pylist(part, schema=schema)


def _standing(rows: Iterable[dict[str, object]]) -> Iterator[StandingEvent]:
    """The looks by changes that stand on one full look, which comes first."""
    full: dict[int, list[StandingEvent]] = {}
    for turn, of_turn in groupby(rows, key=itemgetter("turn")):
        events = (StandingEvent(**{name: row[name] for name in StandingEvent._fields}) for row in of_turn)  # type: ignore[arg-type]
        if turn == 0:
            for event in events:
                full.setdefault(event.n, []).append(event)
            continue
        for _, of_look in groupby(events, key=attrgetter("look")):
            yield from whole_rows(list(of_look), full)


def whole_rows(own: list[StandingEvent], full: Mapping[int, list[StandingEvent]]) -> list[StandingEvent]:
    """The look with what it keeps; as it is where that is not possible. ``full``: events and fragments by number."""
    kept = {event.n: event for event in own if event.kind == EventKind.KEPT}
    first = own[0]
    found: list[StandingEvent] = []
    try:
        for place in kept_places((json.loads(event.data) for event in kept.values()), full):
            if not 0 <= place.n <= _MOST_N:
                return own
            sources = full[place.of]
            if place.deltas is not None:
                sources = [_moved(sources, place.deltas)]
            for source in sources:
                part = source.event_id.removeprefix(f"{source.cluster}/{source.look}/{source.n}")
                name = f"{first.cluster}/{first.look}/{place.n}{part}"
                found.append(source._replace(event_id=name, look=first.look, n=place.n, taken_ms=first.taken_ms))
    except Exception:  # noqa: BLE001 foreign bytes; `look_rows` finds out why
        return own
    return [event for event in own if event.kind != EventKind.KEPT] + found


def _moved(sources: list[StandingEvent], deltas: Iterator[int]) -> StandingEvent:
    """The event plus its deltas, fragments joined. Raises IncompleteLookError and UnreadableError."""
    first = sources[0]
    if first.kind != EventKind.FRAGMENT:
        kind, data = EventKind(first.kind), json.loads(first.data)
    else:
        pieces = [json.loads(one.data) for one in sources]
        held = {int(piece["part"]): str(piece["text"]) for piece in pieces}
        whole = from_pieces(held) if len(held) == int(pieces[0]["parts"]) else None
        if whole is None:
            raise IncompleteLookError("an event of its full look is not whole")
        kind, data = whole.kind, whole.data
    return first._replace(
        event_id=f"{first.cluster}/{first.look}/{first.n}",
        kind=str(kind),
        data=json.dumps(moved_data(kind, data, deltas)),
    )
