"""Looks by changes: a look holds the events that the last full look does not have, and names those that it keeps.

Each look by changes stands on a full look alone, never on another look by changes: a record that is lost spoils one
look, or the looks of one full look, until the next. The events of both have the numbers that the look in full would
have. Offsets and sizes move in every look; of a kept event they are its full look's plus deltas, one integer each.

Events about the cluster are always written (`_WRITTEN`): their readers take the newest without looking further back.

Invariant: `whole_look` of `changed_events` gives the events that the look in full has. Foreign bytes give a sentence,
in time and memory linear in the events: each event of the full look is kept once at most.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from agent.telemetry.derived import DERIVED_SHAPES
from agent.telemetry.events import INPUT_SHAPES, EventKind, KeptData, KeptRun, LookRow, TelemetryEvent
from agent.telemetry.looks import IncompleteLookError, looks_in
from agent.values.number_format import counted
from agent.values.typed_json import LEAST_INT, MOST_INT, UnreadableError, from_json, to_json

SHAPES: Mapping[EventKind, type] = {**INPUT_SHAPES, **DERIVED_SHAPES, EventKind.KEPT: KeptData}
"""Kinds of events that are no fragments, with the shape of their data."""
_WRITTEN = frozenset({EventKind.LOOK, EventKind.GAPS, EventKind.LIMITS, EventKind.MEMORY, EventKind.REPORT})
_MOVING: Mapping[EventKind, tuple[tuple[str, str], ...]] = {
    EventKind.TOPIC: (("end_offsets", "offset"), ("replica_bytes", "bytes")),
    EventKind.COMMITTED_OFFSETS: (("offsets", "offset"),),
}
"""Lists of an event's data whose rows have a number that moves, and its name."""
_MOST_NUMBERS = 40_000
"""In one event: with 20 digits each it still fits into a record."""


class LookHead(NamedTuple):
    """What all events of a look have in common."""

    cluster: str
    look: str
    taken_ms: int


class _Known(NamedTuple):
    """An event of the full look."""

    n: int
    still: Any
    """All of its data but the numbers that move."""
    moving: array[int]


class FullLook:
    """A look as it was written in full, for the looks that stand on it."""

    def __init__(self, head: LookHead) -> None:
        self.head = head
        self._known: dict[tuple[EventKind, str, int], _Known] = {}

    def events(self, rows: Iterable[LookRow]) -> Iterator[TelemetryEvent]:
        """Every event of the look, which is remembered on the way."""
        seen: Counter[tuple[EventKind, str]] = Counter()
        for n, row in enumerate(rows):
            if row.kind not in _WRITTEN:
                self._known[row.kind, row.subject, _turn(seen, row)] = _Known(n, *_parts(row))
            yield _written(self.head, n, row)

    def changed_events(self, head: LookHead, rows: Iterable[LookRow]) -> Iterator[TelemetryEvent]:
        """The events of a later look that differ from this one, then those that name the others."""
        seen: Counter[tuple[EventKind, str]] = Counter()
        runs = _Runs()
        n = 0
        for n, row in enumerate(rows, 1):
            known = self._known.get((row.kind, row.subject, _turn(seen, row)))
            if known is None or not runs.keep(n - 1, known, row):
                yield self._standing(_written(head, n - 1, row))
        parts = tuple(runs.parts())
        for number, part in enumerate(parts):
            row = LookRow(EventKind.KEPT, f"cluster/{head.cluster}", KeptData(number, len(parts), part))
            yield self._standing(_written(head, n + number, row))

    def _standing(self, event: TelemetryEvent) -> TelemetryEvent:
        return event._replace(base=self.head.look, base_taken_ms=self.head.taken_ms)


def _written(head: LookHead, n: int, row: LookRow) -> TelemetryEvent:
    data = to_json(SHAPES[row.kind], row.data)
    return TelemetryEvent(row.kind, row.subject, head.cluster, head.look, n, head.taken_ms, data)


def _turn(seen: Counter[tuple[EventKind, str]], row: LookRow) -> int:
    """How many events of its kind and subject came before: a subject has several findings."""
    key = row.kind, row.subject
    seen[key] += 1
    return seen[key] - 1


def _parts(row: LookRow) -> tuple[Any, array[int]]:
    """What stays the same from look to look as long as nothing happens, and the numbers that move all the same."""
    data, lists = row.data, _MOVING.get(row.kind, ())
    if not lists:
        return data, _NONE
    still: list[Any] = [value for name, value in data._asdict().items() if name not in dict(lists)]
    moving = array("q")
    for name, number in lists:
        rows = getattr(data, name)
        at = type(rows[0])._fields.index(number) if rows else 0
        still.append([value for one in rows for place, value in enumerate(one) if place != at])
        moving.extend(one[at] for one in rows)
    return still, moving


_NONE: array[int] = array("q")


class _Runs:
    """Kept events of a look, as they come."""

    def __init__(self) -> None:
        self._runs: list[tuple[int, int, int, list[int]]] = []

    def keep(self, n: int, known: _Known, row: LookRow) -> bool:
        """Whether the row is kept."""
        still, moving = _parts(row)
        if still != known.still or len(moving) > _MOST_NUMBERS:
            return False
        deltas = [now - then for now, then in zip(moving, known.moving, strict=True)]
        if self._runs:
            first, of, count, moved = self._runs[-1]
            if (first + count, of + count) == (n, known.n) and len(moved) + len(deltas) <= _MOST_NUMBERS:
                moved += deltas
                self._runs[-1] = first, of, count + 1, moved
                return True
        self._runs.append((n, known.n, 1, deltas))
        return True

    def parts(self) -> Iterator[tuple[KeptRun, ...]]:
        """All runs, in parts of which each fits into a record."""
        part: list[KeptRun] = []
        size = 0
        for n, of, count, deltas in self._runs:
            run = KeptRun(n, of, count, tuple(deltas) if any(deltas) else ())
            if part and size + len(run.deltas) + len(run) > _MOST_NUMBERS:
                yield tuple(part)
                part, size = [], 0
            part.append(run)
            size += len(run.deltas) + len(run)
        if part:
            yield tuple(part)


# --- reading ------------------------------------------------------------------------------------------------------

_WAITS = "it stands on a full look of which events are missing; looks are known again from the next full look on"
_MOST_FULL = 8
"""Full looks that are held while the looks of a file or a topic are read one after the other."""


def whole_looks(events: Iterable[TelemetryEvent]) -> Iterator[tuple[TelemetryEvent, ...] | IncompleteLookError]:
    """The events of one look after the other, of looks by changes as if they were in full; those of a look adjoin.

    In place of one whose full look is not among the events before, or lacks some, is the reason. Raises
    UnreadableError.
    """
    full: dict[tuple[str, str], tuple[TelemetryEvent, ...]] = {}
    for look in looks_in(events):
        base = base_of(look)
        if base is None:
            if any(event.kind in INPUT_SHAPES for event in look):
                full[look[0].cluster, look[0].look] = look
                while len(full) > _MOST_FULL:
                    del full[next(iter(full))]
            yield look
            continue
        try:
            yield tuple(whole_look(look, full.get((look[0].cluster, base), ())))
        except IncompleteLookError as error:
            yield error


def base_of(events: Iterable[TelemetryEvent]) -> str | None:
    """The full look on which a look stands; None for one in full."""
    return next((event.base for event in events if event.base is not None), None)


def whole_look(events: Iterable[TelemetryEvent], full: Iterable[TelemetryEvent]) -> Iterator[TelemetryEvent]:
    """The events of a look by changes with those that it keeps, as the look in full has them.

    Raises IncompleteLookError where the full look lacks one that is kept, UnreadableError for what is none of both.
    """
    own = {(event.kind is EventKind.KEPT, event.n): event for event in events}
    there = {event.n: event for event in full}
    kept = [event for (is_kept, _), event in own.items() if is_kept]
    yield from (event._replace(base=None, base_taken_ms=None) for (is_kept, _), event in own.items() if not is_kept)
    for place in kept_places((event.data for event in kept), there):
        source = there[place.of]
        moved = source.data if place.deltas is None else moved_data(source.kind, source.data, place.deltas)
        yield source._replace(look=kept[0].look, n=place.n, taken_ms=kept[0].taken_ms, data=moved)


class KeptPlace(NamedTuple):
    """An event of the full look and its place in the look that keeps it."""

    n: int
    of: int
    deltas: Iterator[int] | None
    """From here on, of all events of its run that are left; None where nothing moved."""


def kept_places(kept: Iterable[Mapping[str, Any]], there: Container[int]) -> Iterator[KeptPlace]:
    """Each event that a look keeps, by the data of its `KEPT` events. ``there``: numbers of those of the full look.

    ``deltas`` are used up by who takes them, with `moved_data`. Raises as `whole_look`.
    """
    used: set[int] = set()
    read = {data.part: data for data in (from_json(KeptData, data) for data in kept)}
    for data in read.values():
        if len(read) != data.parts:
            raise IncompleteLookError(f"it has {len(read)} of its {counted(data.parts, 'event')} of kind kept")
        for run in data.runs:
            deltas = iter(run.deltas)
            for of in range(run.of, run.of + run.events):
                if of not in there:
                    raise IncompleteLookError(_WAITS)
                if of in used:
                    raise UnreadableError("a look keeps an event of its full look twice")
                used.add(of)
                yield KeptPlace(run.n + of - run.of, of, deltas if run.deltas else None)
            if next(deltas, None) is not None:
                raise UnreadableError("a look has more deltas than its events have numbers")


def moved_data(kind: EventKind, data: Mapping[str, Any], deltas: Iterator[int]) -> Mapping[str, Any]:
    """The data with its moving numbers plus their deltas. Raises UnreadableError."""
    moved = dict(data)
    try:
        for name, number in _MOVING.get(kind, ()):
            moved[name] = [{**row, number: _sum(row[number], next(deltas))} for row in data[name]]
    except (StopIteration, RuntimeError, TypeError, KeyError) as error:
        raise UnreadableError(f"an event of kind {kind} has no number for each delta, or no delta for each") from error
    return moved


def _sum(then: int, delta: int) -> int:
    if not LEAST_INT <= then + delta <= MOST_INT:
        raise UnreadableError("a number and its delta have more than 64 bits")
    return then + delta
