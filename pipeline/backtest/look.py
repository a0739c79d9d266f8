"""A look of history, whole or by group, and its rebuilding from rows of bronze.telemetry.

Two fidelities, one value. A whole look is rebuilt from its events and holds everything that the agent saw; a look that
cannot be rebuilt is unusable, with the reason. A look by group holds groups with the topics that they read and the
brokers, and no replicas of topics: other readers of them are in another part.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent.decode.members import decode_members
from agent.model.build_snapshot import build_snapshot
from agent.telemetry.events import INPUT_SHAPES, MOST_EVENT_BYTES, VERSION, EventKind, TelemetryEvent, from_lines
from agent.telemetry.looks import CycleInputs, IncompleteLookError, observation_from_events
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import Memory
from agent.values.snapshot import Snapshot
from agent.values.typed_json import ForeignJsonError, UnreadableError, read_json

Rates = NDArray[np.float64]
"""Bytes per second of every partition of a group's topics, by topic and number; NaN is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HistoryLook:
    """The snapshot of a look, and the memory of earlier ones."""

    name: str
    snapshot: Snapshot
    memory: Memory
    """As recorded: made of what came before this look."""
    limits: Limits
    """Those in force."""
    whole: bool
    recorded: CycleInputs | None = None
    """The look as it was written, for strategies under which it shows something else; None for one by group."""
    rates: Mapping[str, Rates] | None = None
    """By group; None where the snapshot has them all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnusableLook:
    """A look that cannot be replayed."""

    name: str
    taken_ms: int
    why: str


def whole_look(recorded: CycleInputs, decode: Memo, model: Memo) -> HistoryLook:
    """The look as the agent's own stages made it out then."""
    return HistoryLook(
        name=recorded.look,
        snapshot=seen_under(recorded, recorded.limits, decode, model),
        memory=recorded.memory,
        limits=recorded.limits,
        whole=True,
        recorded=recorded,
    )


def seen_under(recorded: CycleInputs, limits: Limits, decode: Memo, model: Memo) -> Snapshot:
    """What the look shows under those limits."""
    decoded = decode_members(recorded.observation, decode)
    return build_snapshot(recorded.observation, decoded, recorded.memory, limits, model)


# --- rows of bronze.telemetry ---------------------------------------------------------------------------------------

KINDS = tuple(sorted((*INPUT_SHAPES, EventKind.KEPT, EventKind.FRAGMENT)))
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


def looks_of(rows: Iterable[EventRow]) -> Iterator[CycleInputs | UnusableLook]:
    """Every look of one cluster, in the order of the rows; those of a look are adjacent.

    A row may come twice. A look that lacks events, or that a newer rackwise wrote, is marked as unusable.
    """
    for look, events in groupby(rows, key=attrgetter("look")):
        of_look = list(events)
        try:
            yield observation_from_events(_events(of_look))
        except (IncompleteLookError, UnreadableError) as error:
            yield UnusableLook(name=look, taken_ms=of_look[0].taken_ms, why=str(error))


def _events(rows: Iterable[EventRow]) -> Iterator[TelemetryEvent]:
    pieces: list[str] = []
    for row in rows:
        if row.v > VERSION:
            raise UnreadableError(f"an event of version {row.v} needs a newer rackwise; this one reads up to {VERSION}")
        if row.kind == EventKind.FRAGMENT:
            pieces.append(_line(row))
        elif row.kind in INPUT_SHAPES:
            yield TelemetryEvent(
                EventKind(row.kind), row.subject, row.cluster, row.look, row.n, row.taken_ms, _data(row), row.v
            )
    yield from from_lines(dict.fromkeys(pieces))


def _data(row: EventRow) -> dict[str, object]:
    try:
        data = read_json(row.data, most_bytes=MOST_EVENT_BYTES, as_seen=True)
    except (ForeignJsonError, TypeError) as error:
        raise UnreadableError(f"event {row.n} of look {row.look} has no data that can be read: {error}") from error
    if not isinstance(data, dict):
        raise UnreadableError(f"event {row.n} of look {row.look} has data that is no object")
    return data


def _line(row: EventRow) -> str:
    return json.dumps({**row._asdict(), "data": _data(row)})
