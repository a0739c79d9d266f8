"""Units of work: one part of a cluster over one stretch of history, replayed under some strategies.

A unit is named by the digest of everything that it depends on, so that what was worked out once is never worked out
again and a run that was killed goes on. Batches of rows come in sorted by unit and time and are read once; a unit's
rows are its own, so units may be spread over processes as one likes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from agent.propose.codec import proposal_to_bytes
from agent.values.garbage_collector import no_collection
from agent.values.memo import Memo
from pipeline.backtest.look import EventRow, HistoryLook, UnusableLook, looks_of, whole_look
from pipeline.backtest.replay import LONGEST_MS, StrategyResult, replay
from pipeline.backtest.score import ScoredAct
from pipeline.backtest.slices import LookRebuilder, LookSlicer, TornSlices
from pipeline.backtest.strategies import BacktestStrategy

if TYPE_CHECKING:
    import pyarrow as pa

EDITION = 1
"""Grows when equal input would give another result."""
WHOLE = -1
"""The bucket of whole looks."""
SHOWN_PROBLEMS = 5
_SLICE_COLUMNS = (
    "bucket", "taken_ms", "look", "kind", "subject", "group_digest", "topics_digest", "group_body", "topics_body",
    "moving", "weights_digest", "weights_body", "rates",
)  # fmt: skip
Batches = Iterable["pa.RecordBatch"]
Row = dict[str, Any]
Item = TypeVar("Item")


class BacktestPart(NamedTuple):
    """The looks that are replayed together: a stretch of a cluster's history, and a bucket of its groups."""

    cluster: str
    stretch_ms: int
    bucket: int


class ReplaySettings(NamedTuple):
    """What holds for all units."""

    longest_ms: int = LONGEST_MS
    """Longest time between two looks, in ms, that the first one covers."""


def unit_id(strategy: BacktestStrategy, part: BacktestPart, content: str, settings: ReplaySettings) -> str:
    """The name of a unit's result; ``content`` is the digest of its rows."""
    text = json.dumps([EDITION, strategy.digest, part, content, settings])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class ReplayUnits:
    """Batches of rows in, results out. The rows are slices if groups are replayed apart, else events of bronze."""

    def __init__(
        self,
        todo: Mapping[BacktestPart, Sequence[tuple[BacktestStrategy, str]]],
        settings: ReplaySettings,
        schema: Any,
        *,
        by_group: bool,
    ) -> None:
        self._todo, self._settings, self._schema, self._by_group = todo, settings, schema, by_group

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """One batch of results per unit."""
        for part, rows in _parts(batches, _SLICE_COLUMNS if self._by_group else EventRow._fields):
            looks = _rebuilt(part, rows) if self._by_group else _whole(rows)
            yield _replayed(part, looks, self._todo, self._settings, self._schema)


class SliceLooks:
    """Batches of bronze's events in, slices out."""

    def __init__(
        self, buckets: int, content: Mapping[tuple[str, int], str], schema: Any, rows_each: int = 2_000
    ) -> None:
        self._buckets, self._content, self._schema, self._rows_each = buckets, content, schema, rows_each

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The slices of every usable look. The buckets of the incoming rows are runs of looks."""
        for part, rows in _parts(batches, EventRow._fields):
            for cells in chunks(self._slices(part, rows), self._rows_each):
                yield _batch(cells, self._schema)

    def _slices(self, part: BacktestPart, rows: Iterable[Sequence[Any]]) -> Iterator[Row]:
        slicer = LookSlicer(self._buckets)
        for look in _whole(rows):
            if not isinstance(look, UnusableLook):
                for one in slicer.rows(look):
                    cells = dict(zip(_SLICE_COLUMNS, one, strict=True))
                    yield {**part._asdict(), **cells, "input": self._content[part[:2]]}


def chunks(rows: Iterable[Item], most: int) -> Iterator[list[Item]]:
    """Rows in lists of limited length."""
    rest = iter(rows)
    while some := list(islice(rest, most)):
        yield some


def _parts(batches: Batches, columns: Sequence[str]) -> Iterator[tuple[BacktestPart, Iterator[Sequence[Any]]]]:
    """The parts, each with the values of these columns row by row."""
    names = (*BacktestPart._fields, *columns)
    rows = (row for batch in batches for row in zip(*(batch.column(name).to_pylist() for name in names), strict=True))
    for part, of_part in groupby(rows, key=lambda row: BacktestPart(*row[:3])):
        yield part, (row[3:] for row in of_part)


def _whole(rows: Iterable[Sequence[Any]]) -> Iterator[HistoryLook | UnusableLook]:
    decode, model = Memo(), Memo()
    for found in looks_of(map(EventRow._make, rows)):
        if isinstance(found, UnusableLook):
            yield found
            continue
        look = whole_look(found, decode, model)
        decode.turn()
        model.turn()
        yield look


def _rebuilt(part: BacktestPart, rows: Iterable[Sequence[Any]]) -> Iterator[HistoryLook | UnusableLook]:
    rebuilt = LookRebuilder(part.cluster)
    for (taken_ms, name), of_look in groupby(rows, key=itemgetter(1, 2)):
        try:
            yield rebuilt.look(list(of_look))
        except TornSlices as error:
            yield UnusableLook(name=name, taken_ms=taken_ms, why=str(error))


def _replayed(
    part: BacktestPart,
    looks: Iterable[HistoryLook | UnusableLook],
    todo: Mapping[BacktestPart, Sequence[tuple[BacktestStrategy, str]]],
    settings: ReplaySettings,
    schema: Any,
) -> pa.RecordBatch:
    wanted = todo.get(part, ())
    with no_collection():  # values without cycles, which live until the stretch is through
        results = replay(looks, [strategy for strategy, _ in wanted], longest_ms=settings.longest_ms)
    rows = [_row(part, strategy, unit, result) for (strategy, unit), result in zip(wanted, results, strict=True)]
    return _batch(rows, schema)


def _row(part: BacktestPart, strategy: BacktestStrategy, unit: str, result: StrategyResult) -> Row:
    scores = result.scores._asdict()
    return {
        "unit": unit,
        "strategy": strategy.name,
        "settings": strategy.digest,
        "by": "looks" if part.bucket == WHOLE else "groups",
        **part._asdict(),
        "snapshots": scores.pop("groups"),
        "fresh": result.fresh,
        "unusable": len(result.unusable),
        "problems": [f"{one.name}: {one.why}" for one in result.unusable[:SHOWN_PROBLEMS]],
        **scores,
        "acts": [_act(act) for act in result.acts],
        "said": [
            {"look": look, "at_ms": at_ms, "slot": slot, "proposal": name, "document": document.decode()}
            for look, at_ms, slot, name, document in result.published
        ],
    }


def _act(act: ScoredAct) -> Row:
    proposal = act.proposal
    return {
        "look": act.look,
        "at_ms": act.at_ms,
        "proposal": proposal.id,
        "kind": proposal.kind.value,
        "reason": proposal.reason.name.lower(),
        "subject": str(proposal.subject),
        "moves": len(proposal.moves),
        "ended": act.ended.value,
        "ended_ms": act.ended_ms,
        "saved_partition_s": act.saved_partition_s,
        "saved_bytes": act.saved_bytes,
        "saved_usd": act.saved_usd,
        "false_trigger": act.false,
        "document": proposal_to_bytes(proposal).decode(),
    }


def _batch(rows: list[Row], schema: Any) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415 an optional extra; this module is read without it

    return pa.RecordBatch.from_pylist(rows, schema=schema)
