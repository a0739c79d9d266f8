"""Looks out of the rows of bronze.telemetry: which are whole, and why the others cannot be lived through again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from agent.telemetry.events import INPUT_SHAPES, MOST_LINE_BYTES, VERSION, Event, Kind, from_lines
from agent.telemetry.looks import IncompleteLookError, Recorded, observation_from_events
from agent.values.foreign_json import ForeignJsonError, read_json
from agent.values.typed_json import UnreadableError
from pipeline.backtest.look import UnusableLook

KINDS = tuple(sorted((*INPUT_SHAPES, Kind.FRAGMENT)))
"""Kinds of events that rebuild a look."""


class EventRow(NamedTuple):
    """One event, as bronze has it."""

    cluster: str
    look: str
    n: int
    taken_ms: int
    v: int
    kind: str
    subject: str
    data: str


def looks_of(rows: Iterable[EventRow]) -> Iterator[Recorded | UnusableLook]:
    """Every look of one cluster, in the order of the rows; those of a look lie together.

    A row may come twice. A look that lacks events, or that a newer rackwise wrote, is marked as unusable.
    """
    for look, events in groupby(rows, key=attrgetter("look")):
        found = list(events)
        try:
            yield observation_from_events(_events(found))
        except (IncompleteLookError, UnreadableError) as error:
            yield UnusableLook(name=look, taken_ms=found[0].taken_ms, why=str(error))


def _events(rows: Iterable[EventRow]) -> Iterator[Event]:
    pieces: list[str] = []
    for row in rows:
        if row.v > VERSION:
            raise UnreadableError(f"an event of version {row.v} needs a newer rackwise; this one reads up to {VERSION}")
        if row.kind == Kind.FRAGMENT:
            pieces.append(_line(row))
        elif row.kind in INPUT_SHAPES:
            yield Event(Kind(row.kind), row.subject, row.cluster, row.look, row.n, row.taken_ms, _data(row), row.v)
    yield from from_lines(dict.fromkeys(pieces))


def _data(row: EventRow) -> dict[str, object]:
    try:
        data = read_json(row.data, most_bytes=MOST_LINE_BYTES, as_seen=True)
    except (ForeignJsonError, TypeError) as error:
        raise UnreadableError(f"event {row.n} of look {row.look} has no data that can be read: {error}") from error
    if not isinstance(data, dict):
        raise UnreadableError(f"event {row.n} of look {row.look} has data that is no object")
    return data


def _line(row: EventRow) -> str:
    return json.dumps({**row._asdict(), "data": _data(row)})
