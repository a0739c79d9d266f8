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

from agent.process import no_collection
from agent.propose.codec import proposal_to_bytes
from agent.values.memo import Memo
from pipeline.backtest.look import EventRow, HistoryLook, UnusableLook, looks_of, whole_look
from pipeline.backtest.replay import StrategyResult, replay
from pipeline.backtest.score import ScoredAct
from pipeline.backtest.slices import LookRebuilder, LookSlice, LookSlicer, TornSlices
from pipeline.backtest.strategies import BacktestStrategy

if TYPE_CHECKING:
    import pyarrow as pa

EDITION = 1
"""Grows when equal input would give another result."""
WHOLE = -1
"""The bucket of whole looks."""
SHOWN_PROBLEMS = 5
_SLICES_EACH = 2_000
Batches = Iterable["pa.RecordBatch"]
Row = dict[str, Any]
Item = TypeVar("Item")


class BacktestPart(NamedTuple):
    """The looks that are replayed together: a stretch of a cluster's history, and a bucket of its groups."""

    cluster: str
    stretch_ms: int
    bucket: int


def unit_id(strategy: BacktestStrategy, part: BacktestPart, content: str, longest_ms: int) -> str:
    """The name of a unit's result; ``content`` is the digest of its rows, ``longest_ms`` is that of `replay`."""
    text = json.dumps([EDITION, strategy.digest, part, content, [longest_ms]])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def replay_units(
    batches: Batches,
    *,
    todo: Mapping[BacktestPart, Sequence[tuple[BacktestStrategy, str]]],
    longest_ms: int,
    schema: Any,
    by_group: bool,
) -> Iterator[pa.RecordBatch]:
    """Rows in, one batch of results per part out. Rows are slices if groups are replayed apart, else bronze's events.

    ``todo`` has strategies with the names of their units, ``longest_ms`` is that of `replay`.
    """
    for part, rows in _parts(batches, LookSlice._fields if by_group else EventRow._fields):
        wanted = todo.get(part, ())
        looks = _rebuilt(part, rows) if by_group else _whole(rows)
        with no_collection():  # values without cycles, which live until the stretch is through
            results = replay(looks, [strategy for strategy, _ in wanted], longest_ms=longest_ms)
        yield _batch(
            [_row(part, strategy, unit, result) for (strategy, unit), result in zip(wanted, results, strict=True)],
            schema,
        )


def slice_looks(batches: Batches, *, buckets: int, content: str, schema: Any) -> Iterator[pa.RecordBatch]:
    """Bronze's events of one stretch in, the slices of every usable look out; ``content`` is the digest of its rows.

    The buckets of the incoming rows are runs of looks.
    """
    for part, rows in _parts(batches, EventRow._fields):
        slicer = LookSlicer(buckets)
        cells = (
            {**part._asdict(), **one._asdict(), "input": content}
            for look in _whole(rows)
            if not isinstance(look, UnusableLook)
            for one in slicer.rows(look)
        )
        for some in chunks(cells, _SLICES_EACH):
            yield _batch(some, schema)


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
