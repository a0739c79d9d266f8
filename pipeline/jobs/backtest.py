"""Replay of recorded history under several strategies: bronze in, backtest.units out, one row per finished unit.

Invariants: a unit that is finished is not worked out again, also by a run that comes after a kill; the result depends
on the rows and the settings alone, not on how many tasks there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import uuid4

from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from agent.errors import BadInput
from agent.telemetry.events import GROUP_SHAPES
from agent.values.number_format import counted
from pipeline.backtest.look import KINDS, EventRow
from pipeline.backtest.replay import LONGEST_MS
from pipeline.backtest.strategies import BacktestStrategy
from pipeline.backtest.units import WHOLE, BacktestPart, replay_units, slice_looks, unit_id
from pipeline.bin_packing import placed
from pipeline.local_relation import local_relation
from pipeline.owner_rules import whole_name
from pipeline.python_workers import map_in_arrow
from pipeline.schemas.backtest import SLICES, UNITS
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.table import columns
from pipeline.session import setting, task_slots
from pipeline.tables import TableStore, WriterBatch
from pipeline.transforms.spans import HOUR_MS
from pipeline.transforms.whole_looks import whole_looks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

DAY_MS = 24 * HOUR_MS
GROUPS_PER_BUCKET = 500
_TASKS_PER_CORE = 3
_PARTS_PER_TASK = 8
_SLICE_ORDER = ("cluster", "stretch_ms", "bucket", "taken_ms", "look", "kind", "subject")
_EVENT_ORDER = ("cluster", "stretch_ms", "bucket", "taken_ms", "look", "n")
_UNIT = columns(UNITS.schema["unit"])
_RUN_OF_LOOK = columns(SLICES.schema["look"], SLICES.schema["bucket"])
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestRequest:
    """The history to replay, and the strategies."""

    strategies: tuple[BacktestStrategy, ...]
    from_ms: int | None = None
    """First moment; None: as far back as there is anything."""
    to_ms: int | None = None
    """First moment that is left out; None: to the end."""
    by: Literal["looks", "groups"] = "looks"
    groups: str | None = None
    """Shell-style pattern; None: all."""
    cluster: str | None = None
    stretch_ms: int = DAY_MS
    """Every stretch begins with what the agent knew then; effects of acts end with it."""
    buckets: int | None = None
    """Parts of a cluster's groups; None: one for each 500."""
    longest_ms: int = LONGEST_MS
    tasks: int | None = None
    """At a time; None: some per core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestSummary:
    """What a run came to."""

    rows: tuple[Mapping[str, Any], ...]
    """The units of all strategies, without acts and proposals."""
    messages: tuple[str, ...] = field(default=())

    @property
    def shared(self) -> float:
        """Part of the group snapshots that were as in the look before, and were not worked out again."""
        once = {(row["cluster"], row["stretch_ms"], row["bucket"]): row for row in self.rows}.values()
        total = sum(row["snapshots"] for row in once)
        return 1 - sum(row["fresh"] for row in once) / total if total else 0.0


class HistoryStretch(NamedTuple):
    """A stretch of a cluster's history, by the digest of the events that it is made of."""

    cluster: str
    stretch_ms: int
    input: str


class _Todo(NamedTuple):
    part: BacktestPart
    content: str
    weight: int


def run_backtest(tables: TableStore, request: BacktestRequest, say: Say = lambda _: None) -> BacktestSummary:
    """Every unit of the stretch, from the table or computed now. Raises BadInput when there is no look."""
    _check(request)
    spark = tables.spark
    if request.by == "groups":
        # What was cut into shorter or longer stretches before stays in the table.
        stretches = cut(tables, request, say)
        selected = local_relation(spark, stretches, columns(*(SLICES.schema[name] for name in HistoryStretch._fields)))
        rows = _slices(tables, request).join(
            F.broadcast(selected), on=["cluster", "stretch_ms", "input"], how="left_semi"
        )
    else:
        rows = _events(tables, request)
    parts = _parts(rows)
    if not parts:
        raise BadInput(
            "There is no look to replay in that period",
            why=_why_empty(tables, request),
            todo="Check --from, --to and spark.tables.",
        )
    longest_ms = request.longest_ms
    ids = {(one.part, s): unit_id(s, one.part, one.content, longest_ms) for one in parts for s in request.strategies}
    known = {row.unit for row in _of_ids(tables, ids.values()).select("unit").collect()}
    todo = {
        one: missing
        for one in parts
        if (missing := [(s, ids[one.part, s]) for s in request.strategies if ids[one.part, s] not in known])
    }
    tasks = request.tasks or _TASKS_PER_CORE * task_slots(spark)
    writer, finished = f"backtest {uuid4().hex}", 0
    for number, wave in enumerate(_waves(list(todo), tasks * _PARTS_PER_TASK)):
        work = {one.part: todo[one] for one in wave}
        results = _results(rows, wave, work, longest_ms, min(tasks, len(wave)))
        with _small_batches(spark, request.by):
            tables.append(UNITS, results, WriterBatch(writer, number))
        finished += sum(len(of) for of in work.values())
        say(f"{finished} of {sum(map(len, todo.values()))} units are computed; {len(known)} were already there")
    return _done(_of_ids(tables, ids.values()))


def cut(tables: TableStore, request: BacktestRequest, say: Say = lambda _: None) -> list[HistoryStretch]:
    """Cut the looks of every stretch that was not cut yet, or of which more events came since; all that are cut now."""
    events = _events(tables, request)
    parts = _parts(events)
    known = {
        (row.cluster, row.stretch_ms, row.input)
        for row in tables.read(SLICES).select("cluster", "stretch_ms", "input").distinct().collect()
    }
    todo = [one for one in parts if (one.part.cluster, one.part.stretch_ms, one.content) not in known]
    for number, one in enumerate(todo, 1):
        _cut_one(tables, events, one, request)
        say(f"{number} of {len(todo)} periods are split by group")
    return [HistoryStretch(one.part.cluster, one.part.stretch_ms, one.content) for one in parts]


# --- rows -------------------------------------------------------------------------------------------------------


def _events(tables: TableStore, request: BacktestRequest) -> DataFrame:
    telemetry = tables.read(TELEMETRY)
    for name in EventRow._fields:
        telemetry = telemetry.where(F.col(name).isNotNull())
    kinds = F.col("kind").isin([str(kind) for kind in KINDS])
    rows = whole_looks(_between(telemetry.where(kinds), request), telemetry)
    return rows.where(kinds).select(
        _stretch(request).alias("stretch_ms"), F.lit(WHOLE).alias("bucket"), "event_id", *EventRow._fields
    )


def _slices(tables: TableStore, request: BacktestRequest) -> DataFrame:
    rows = _between(tables.read(SLICES), request)
    if request.groups is not None:
        rows = rows.where((F.col("kind") == 0) | F.col("subject").rlike(whole_name(request.groups)))
    return rows


def _between(rows: DataFrame, request: BacktestRequest) -> DataFrame:
    if request.from_ms is not None:
        rows = rows.where(F.col("taken_ms") >= request.from_ms)
    if request.to_ms is not None:
        rows = rows.where(F.col("taken_ms") < request.to_ms)
    return rows if request.cluster is None else rows.where(F.col("cluster") == request.cluster)


def _stretch(request: BacktestRequest) -> Any:
    return (F.floor(F.col("taken_ms") / F.lit(request.stretch_ms)) * F.lit(request.stretch_ms)).cast("long")


def _parts(rows: DataFrame) -> list[_Todo]:
    """The parts with the digests of their rows, in order. A sum of hashes does not mind the order of rows."""
    hashed = (
        ("look", "kind", "subject", "group_digest", "topics_digest", "moving", "weights_digest", "rates")
        if "group_digest" in rows.columns
        else ("event_id", "v", "taken_ms", "data")
    )
    grouped = rows.groupBy("cluster", "stretch_ms", "bucket").agg(
        F.count(F.lit(1)).alias("rows"), F.sum(F.xxhash64(*hashed).cast("decimal(38,0)")).alias("content")
    )
    todo = [
        _Todo(BacktestPart(row.cluster, row.stretch_ms, row.bucket), f"{row.rows}/{row.content}", row.rows)
        for row in grouped.collect()
    ]
    return sorted(todo)


def _why_empty(tables: TableStore, request: BacktestRequest) -> str:
    """What there is instead."""
    if not tables.exists(TELEMETRY):
        return f"{TELEMETRY.name} has no whole look: there is no such table below {tables.root} (spark.tables)"
    everything = BacktestRequest(strategies=request.strategies, by=request.by)
    rows = _slices(tables, everything) if request.by == "groups" else _events(tables, everything)
    one = rows.agg(F.min("taken_ms").alias("first"), F.max("taken_ms").alias("last")).collect()[0]
    if one["first"] is None:
        return f"{TELEMETRY.name} has no whole look; looks are recorded every record.every and at each planning"
    clusters = ", ".join(sorted(row.cluster for row in rows.select("cluster").distinct().collect()))
    return f"whole looks cover {_when(one['first'])} to {_when(one['last'])}, of {clusters}"


def _when(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


# --- work -------------------------------------------------------------------------------------------------------


def _results(
    rows: DataFrame,
    wave: Sequence[_Todo],
    work: Mapping[BacktestPart, Sequence[tuple[BacktestStrategy, str]]],
    longest_ms: int,
    tasks: int,
) -> DataFrame:
    groups = "group_digest" in rows.columns
    ordered = placed(rows, BacktestPart._fields, {one.part: one.weight for one in wave}, tasks).sortWithinPartitions(
        *(_SLICE_ORDER if groups else _EVENT_ORDER)
    )
    replaying = partial(
        replay_units, todo=work, longest_ms=longest_ms, schema=to_arrow_schema(UNITS.schema), by_group=groups
    )
    return map_in_arrow(ordered, replaying, UNITS.schema)


def _cut_one(tables: TableStore, events: DataFrame, one: _Todo, request: BacktestRequest) -> None:
    """Cut one stretch; its looks go to tasks in runs, each of which writes its own bodies."""
    spark = tables.spark
    cluster, stretch_ms, _ = one.part
    rows = events.where((F.col("cluster") == cluster) & (F.col("stretch_ms") == stretch_ms))
    looks = sorted((row.taken_ms, row.look) for row in rows.select("taken_ms", "look").distinct().collect())
    runs = min(len(looks), task_slots(spark))
    groups = rows.where(F.col("kind").isin(list(map(str, GROUP_SHAPES))))
    buckets = request.buckets or -(-groups.select("subject").distinct().count() // GROUPS_PER_BUCKET) or 1
    of_run = [(look, number * runs // len(looks)) for number, (_, look) in enumerate(looks)]
    run_of = local_relation(spark, of_run, _RUN_OF_LOOK)
    by_run = rows.drop("bucket").join(F.broadcast(run_of), "look", how="inner").repartitionById(runs, "bucket")
    cutting = partial(slice_looks, buckets=buckets, content=one.content, schema=to_arrow_schema(SLICES.schema))
    slices = map_in_arrow(by_run.sortWithinPartitions(*_EVENT_ORDER), cutting, SLICES.schema)
    with _small_batches(spark, "looks"):
        tables.replace_where(SLICES, slices, {"cluster": [cluster], "stretch_ms": [stretch_ms]})


def _waves(parts: Sequence[_Todo], most: int) -> Iterator[Sequence[_Todo]]:
    """Parts that are written together, stretch after stretch, so that a killed run has finished the first ones."""
    ordered = sorted(parts, key=lambda one: (one.part.stretch_ms, one.part.cluster, one.part.bucket))
    for at in range(0, len(ordered), most):
        yield ordered[at : at + most]


def _small_batches(spark: SparkSession, by: str) -> AbstractContextManager[None]:
    """Events are up to a megabyte each: few of them at a time."""
    return setting(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "10000" if by == "groups" else "500"})


def _of_ids(tables: TableStore, ids: Iterable[str]) -> DataFrame:
    """Those of the units that are finished."""
    wanted = local_relation(tables.spark, zip(ids, strict=True), _UNIT)
    return tables.read(UNITS).join(F.broadcast(wanted), "unit", "left_semi")


def _done(units: DataFrame) -> BacktestSummary:
    # A unit that two runs worked out at once is one.
    rows = {row.unit: row.asDict() for row in units.drop("acts", "said").collect()}
    ordered = [rows[one] for one in sorted(rows)]
    problems = sorted({problem for row in ordered for problem in row["problems"]})
    left_out = {(row["cluster"], row["stretch_ms"], row["bucket"]): row["unusable"] for row in ordered}
    messages = tuple(problems)
    if total := sum(left_out.values()):
        messages = (f"{counted(total, 'look')} could not be replayed: left out", *messages)
    return BacktestSummary(rows=tuple(ordered), messages=messages)


def _check(request: BacktestRequest) -> None:
    if request.from_ms is not None and request.to_ms is not None and request.from_ms >= request.to_ms:
        raise BadInput("The period is empty", why="--from is not before --to", todo="Give a later --to.")
    if request.by == "looks" and request.groups is not None:
        raise BadInput(
            "Whole looks cannot be replayed for some groups only",
            why="all readers of a topic decide together about its replicas",
            todo="Add --by groups to --groups, or leave --groups out.",
        )
    if request.groups is not None:
        try:
            whole_name(request.groups)
        except ValueError as error:
            raise BadInput(
                "--groups names no groups", why=str(error), todo="Write for example --groups 'orders-*'."
            ) from None
    reading = [strategy.name for strategy in request.strategies if strategy.reads_otherwise]
    if request.by == "groups" and reading:
        raise BadInput(
            f"Strategy {reading[0]} changes what a look contains",
            why="--by groups uses looks that were decoded once, with the recorded settings",
            todo="Use --by looks.",
        )
