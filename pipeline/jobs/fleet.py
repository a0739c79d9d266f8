"""Plans for many clusters in one job: the newest whole look of each in, fleet.plans out.

Work is shared out by what it will take, the heaviest first, so that one huge group is begun at once and has a core for
itself while the others share the rest. What is planned can be published to each cluster's proposals topic.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from pyspark import StorageLevel
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from agent.errors import BadInput
from agent.propose.codec import proposal_from_json
from agent.telemetry.events import EventKind
from agent.telemetry.topic_records import created_headers, slot
from agent.values.number_format import counted
from pipeline.backtest.look import KINDS, EventRow
from pipeline.bin_packing import placed
from pipeline.clusters import clusters_of
from pipeline.fleet.batches import ANSWER, PIECE, UNUSABLE, cut_newest, plan_groups, plan_record
from pipeline.local_relation import local_relation
from pipeline.python_workers import map_in_arrow
from pipeline.schemas.backtest import SLICES
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.fleet import PLANS
from pipeline.schemas.silver import LOOK_IDS, LOOKS
from pipeline.schemas.table import DOUBLE, column, columns
from pipeline.session import setting, task_slots
from pipeline.tables import TableStore, WriterBatch
from pipeline.topic_writer import KeyedRecord
from pipeline.transforms.whole_looks import whole_looks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TASKS_PER_CORE = 8
NEWEST_DAYS = 2
"""Days of telemetry that are read: a cluster without a look in them is not planned."""
_WEIGHT = column("weight", DOUBLE, "What planning it will take, roughly.", required=True)
_PIECES = columns(*(_WEIGHT if name == _WEIGHT.name else SLICES.schema[name] for name in PIECE))


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary:
    """What a run came to."""

    run: str
    clusters: int = 0
    subjects: int = 0
    size: int = 0
    """Partitions, tasks and replicas."""
    improvable: int = 0
    """Groups that could cross racks less."""
    proposals: int = 0
    unplanned: int = 0
    unproven: int = 0
    """Plans of which it is not proven that none is better."""
    messages: tuple[str, ...] = field(default=())

    @property
    def sentence(self) -> str:
        """What happened, for people."""
        return (
            f"planned {counted(self.subjects, 'group or topic', 'groups and topics')} of "
            f"{counted(self.clusters, 'cluster')} (size {self.size:,}): {self.improvable:,} can be improved, "
            f"{counted(self.proposals, 'proposal')}; {self.unplanned:,} could not be planned, "
            f"{self.unproven:,} without a proof to be the best"
        )


class _Newest(NamedTuple):
    cluster: str
    taken_ms: int
    look: str


def plan_looks(
    tables: TableStore,
    *,
    run: str,
    cluster: str | None = None,
    others: Sequence[TableStore] = (),
    days: int = NEWEST_DAYS,
) -> FleetSummary:
    """Plan every cluster from its newest whole look, of whichever root has it; plans go to ``tables``.

    ``others`` are roots that are read as well. Of each root the newest ``days`` that have telemetry are read. Raises
    BadInput where there is no look, or no telemetry in one of them.
    """
    newest, messages = _newest_of_all((tables, *others), cluster, days)
    if not newest:
        raise BadInput(
            "There is no whole look to plan from",
            why="; ".join(messages) or f"{TELEMETRY.name} has none in its newest {counted(days, 'day')}",
            todo="Ingest telemetry first (rackwise spark ingest), or read more days (--days).",
        )
    spark = tables.spark
    parts = (_events_of(root, looks, days) for root, looks in newest)
    events = reduce(lambda some, more: some.unionByName(more), parts)
    cores = task_slots(spark)
    by_cluster = placed(events, ["cluster"], {(one.cluster,): 1.0 for _, looks in newest for one in looks}, cores)
    with setting(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "500"}):  # events are up to a megabyte each
        cutting = partial(cut_newest, schema=to_arrow_schema(_PIECES))
        pieces = map_in_arrow(by_cluster.sortWithinPartitions("cluster", "look", "n"), cutting, _PIECES)
        pieces = pieces.persist(StorageLevel.MEMORY_AND_DISK)
        other_pieces = pieces.where(F.col("kind") != 1).collect()
    try:
        worlds = {row.cluster: bytes(row.group_body) for row in other_pieces if row.kind == 0}
        answers = (plan_record(run, row.cluster, row.asDict()) for row in other_pieces if row.kind == ANSWER)
        done = [[row[name] for name in PLANS.schema.names] for row in answers]
        messages += tuple(sorted(_not_planned(row) for row in other_pieces if row.kind == UNUSABLE))
        groups = pieces.where(F.col("kind") == 1)
        weights: dict[tuple[Any, ...], float] = {
            (row.cluster, row.subject): row.weight for row in groups.select("cluster", "subject", "weight").collect()
        }
        shared = placed(groups, ["cluster", "subject"], weights, _TASKS_PER_CORE * cores)
        # The heaviest of a task first; those of one cluster together, as they share its racks.
        ordered = shared.sortWithinPartitions("cluster", F.desc("weight"), "subject")
        planning = partial(plan_groups, run=run, worlds=worlds, schema=to_arrow_schema(PLANS.schema))
        plans = map_in_arrow(ordered, planning, PLANS.schema)
        if done:
            plans = plans.unionByName(local_relation(spark, done, PLANS.schema))
        tables.append(PLANS, plans, WriterBatch(f"fleet {run}", 0))
    finally:
        pieces.unpersist()
    return _planning(tables, run, messages)


def _not_planned(piece: Any) -> str:
    why = bytes(piece.group_body).decode()
    return f"cluster {piece.cluster} is not planned: its look {piece.look} cannot be rebuilt: {why}"


def records(tables: TableStore, *, run: str, cluster: str) -> Iterator[KeyedRecord]:
    """The proposals of a run about one cluster as its proposals topic has them, in the table's order.

    One partition of the table at a time is in memory.
    """
    rows = tables.read(PLANS).where((F.col("run") == run) & (F.col("cluster") == cluster))
    source = source_of(cluster)
    for row in rows.select(F.explode("proposals").alias("document")).toLocalIterator():
        proposal = proposal_from_json(row.document)
        key = slot(proposal).encode("utf-8", "backslashreplace").decode()  # as the agent writes it
        yield KeyedRecord(key, row.document.encode(), created_headers(proposal, source))


def source_of(cluster: str) -> str:
    """The CloudEvents source that names the fleet job; no agent takes its proposals for its own."""
    return f"/clusters/{quote(cluster, safe='')}/jobs/fleet"


def run_id() -> str:
    """A name for a run; later ones sort behind."""
    return f"{time.time_ns() // 1_000_000:013d}"


# --- input ------------------------------------------------------------------------------------------------------


class _RootLooks(NamedTuple):
    """What the newest days of a root have."""

    looks: list[_Newest]
    """The newest whole look of each cluster."""
    lacking: list[str]
    """What newer ones lack."""
    clusters: set[str]
    """Those with any event of a look."""


def recent_events(tables: TableStore, days: int) -> DataFrame:
    """Events that make up looks, of the newest days that have telemetry."""
    newest = tables.days(TELEMETRY, time.time_ns() // 1_000_000)[-days:]
    rows = tables.read(TELEMETRY).where(F.col("day").isin(*newest) & F.col("kind").isin(list(map(str, KINDS))))
    for name in EventRow._fields:
        rows = rows.where(F.col(name).isNotNull())
    return rows


def _events_of(tables: TableStore, looks: Sequence[_Newest], days: int) -> DataFrame:
    wanted = local_relation(tables.spark, ((one.cluster, one.look) for one in looks), LOOK_IDS)
    events = recent_events(tables, days).join(F.broadcast(wanted), ["cluster", "look"], how="inner")
    return whole_looks(events, tables.read(TELEMETRY)).select(*EventRow._fields)


def _newest_of_all(
    roots: Sequence[TableStore], cluster: str | None, days: int
) -> tuple[list[tuple[TableStore, list[_Newest]]], tuple[str, ...]]:
    """Roots with the looks to plan from, of each cluster one, and what newer ones lack."""
    for root in roots[1:]:
        if not root.exists(TELEMETRY):
            raise BadInput(
                f"{root.root} has no telemetry",
                why=f"there is no {TELEMETRY.name}",
                todo="Name a root that rackwise spark ingest filled, or leave it out.",
            )
    by_root = [_newest(root, cluster, days) for root in roots]
    best = {one.cluster: one for one in sorted(one for root in by_root for one in root.looks)}
    newest: list[tuple[TableStore, list[_Newest]]] = []
    for root, found in zip(roots, by_root, strict=True):
        of_root = [best.pop(one.cluster) for one in found.looks if best.get(one.cluster) == one]
        if of_root:
            newest.append((root, of_root))
    lacking = {message for root in by_root for message in root.lacking}
    known = (clusters_of([root], [LOOKS if root.exists(LOOKS) else TELEMETRY]) for root in roots)
    silent = set[str]().union(*known).difference(*(root.clusters for root in by_root))
    within = f"the newest {counted(days, 'day') if days > 1 else 'day'} of telemetry"
    not_planned = [
        f"cluster {one} is not planned: it has no look in {within}" for one in sorted(silent) if cluster in {None, one}
    ]
    return newest, (*sorted(lacking), *not_planned)


def _newest(tables: TableStore, cluster: str | None, days: int) -> _RootLooks:
    """Of the newest days of one root."""
    events = recent_events(tables, days)
    if cluster is not None:
        events = events.where(F.col("cluster") == cluster)
    event_count = F.when(F.col("kind") == "look", F.get_json_object("data", "$.events").cast("int"))
    is_fragment = F.col("kind") == str(EventKind.FRAGMENT)
    part, parts = (F.when(is_fragment, F.get_json_object("data", f"$.{name}")) for name in ("part", "parts"))
    by_event = events.groupBy("cluster", "look", "n").agg(
        F.max("taken_ms").alias("taken_ms"),
        F.max("base").alias("base"),
        F.max(event_count).alias("told"),
        F.max(F.when(F.col("kind") == str(EventKind.KEPT), F.get_json_object("data", "$.runs"))).alias("runs"),
        (F.max(~is_fragment) | (F.countDistinct(part) == F.max(parts.cast("int")))).alias("is_whole"),
    )
    # Behind the events that make up a look come those that were worked out of it.
    numbers = F.filter("numbers", lambda n: n < F.col("told"))
    runs = F.from_json("runs", "array<struct<n:bigint,events:bigint>>")
    told = F.col("told").cast("bigint")
    kept = F.aggregate(
        F.filter(F.flatten("runs"), lambda run: run["n"].between(0, told) & run["events"].between(0, told)),
        F.lit(0).cast("bigint"),
        lambda sum_, run: sum_ + F.least(run["events"], told - run["n"]),
    )
    looks = (
        by_event.groupBy("cluster", "look")
        .agg(
            F.max("taken_ms").alias("taken_ms"),
            F.max("told").alias("told"),
            F.max("base").alias("base"),
            F.collect_list(F.when(F.col("is_whole"), F.col("n"))).alias("numbers"),
            F.collect_list(runs).alias("runs"),
        )
        .withColumn("there", F.size(numbers) + F.coalesce(kept, F.lit(0)))
        .drop("numbers", "runs")
        .collect()
    )
    in_full = {(row.cluster, row.look) for row in looks if row.base is None and _lacks(row, ()) is None}
    newest: dict[str, _Newest] = {}
    for row in looks:
        if _lacks(row, in_full) is None:
            one = _Newest(row.cluster, row.taken_ms, row.look)
            newest[one.cluster] = max(newest.get(one.cluster, one), one)
    messages = [
        f"look {row.look} of cluster {row.cluster} is newer, but lacks {lacks}"
        for row in looks
        if (lacks := _lacks(row, in_full)) is not None
        and (row.cluster not in newest or row.taken_ms > newest[row.cluster].taken_ms)
    ]
    return _RootLooks(sorted(newest.values()), messages, {row.cluster for row in looks})


def _lacks(row: Any, in_full: Collection[tuple[str, str]]) -> str | None:
    """What the look lacks; None where it is whole, and the full look as well on which it stands."""
    if row.told is None:
        return "its last event"
    if row.there < row.told:
        return f"{row.told - row.there} of its {counted(row.told, 'event')}"
    whole = row.base is None or (row.cluster, row.base) in in_full
    return None if whole else f"look {row.base}, on which it stands"


# --- results ----------------------------------------------------------------------------------------------------


def _planning(tables: TableStore, run: str, messages: Iterable[str]) -> FleetSummary:
    rows = tables.read(PLANS).where(F.col("run") == run)
    total = rows.agg(
        F.countDistinct("cluster").alias("clusters"),
        F.count(F.lit(1)).alias("subjects"),
        F.sum("size").alias("size"),
        F.sum((F.col("optimal_crossing") < F.col("crossing")).cast("int")).alias("improvable"),
        F.sum(F.size("proposals")).alias("proposals"),
        F.sum(F.col("why_not").isNotNull().cast("int")).alias("unplanned"),
        F.sum((~F.col("optimal") & F.col("why_not").isNull()).cast("int")).alias("unproven"),
    ).collect()[0]
    figures = {name: value or 0 for name, value in total.asDict().items()}
    return FleetSummary(run=run, messages=tuple(messages), **figures)
