"""Which looks a refresh computes: those whose events came, those that waited for them, and which of them are left out.

Where looks come more often than ``spark.look_every``, one of each such stretch of time is computed, of each instance of
an agent. Offsets tell as exactly what flowed between two looks that are a minute apart as between those in the middle.
Bronze keeps all of them. Looks that hold nothing but what the agent derived are small, and never left out.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import reduce
from operator import or_
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from agent.errors import BadInput
from agent.telemetry.derived import DERIVED_SHAPES
from agent.telemetry.events import EventKind
from pipeline.jobs.incremental import LookId
from pipeline.jobs.work import between
from pipeline.local_relation import local_relation
from pipeline.schemas import bronze, gold, silver
from pipeline.schemas.table import BOOLEAN, LONG, STRING, begin_of, column, columns, day_of
from pipeline.tables import TableStore
from pipeline.transforms.spans import HOUR_MS, instance_of_look
from pipeline.transforms.spans import day_of as day_of_ms

_DERIVED = [str(kind) for kind in DERIVED_SHAPES]
_HEAD_CHARS = 200
"""Of the data of a fragment, in which its number and theirs are."""
_CANDIDATES = columns(
    column("cluster", STRING, "Cluster id."),
    column("look", STRING, "Id of the look."),
    column("taken_ms", LONG, "When the look began."),
    column("computed", BOOLEAN, "Whether silver has it already."),
)


class LookKey(NamedTuple):
    """A look of which telemetry events came."""

    cluster: str
    look: str
    taken_ms: int
    carries: bool = True
    """Whether looks by changes may stand on it: events of a full look came, or that is not known."""
    observed: bool = True
    """Whether it holds more than what the agent derived, or that is not known."""


def look_keys(telemetry: DataFrame, *others: Column) -> DataFrame:
    """The looks of these rows of bronze.telemetry, each with the fields of a `LookKey` and the ``others``."""
    in_full = F.col("base").isNull() & ~F.col("kind").isin(_DERIVED)
    return telemetry.groupBy("cluster", "look", "taken_ms").agg(
        F.max(in_full).alias("carries"), F.max(_observed()).alias("observed"), *others
    )


def has_ended() -> Column:
    """Of the rows of a look: whether all of its events are among them, as ``ended``.

    Its own are numbered through, the report last; those that it keeps of a full look are counted in its runs. What is
    written last may come first, from another partition.
    """
    kind, head = F.col("kind"), F.substring("data", 1, _HEAD_CHARS)

    def of_fragment(name: str, otherwise: int) -> Column:
        found = F.regexp_extract(head, rf'"{name}":\s*(\d{{1,9}})', 1).try_cast("long")
        return F.coalesce(F.when(kind == EventKind.FRAGMENT.value, found), F.lit(otherwise))

    kept = kind == EventKind.KEPT.value
    own = F.collect_set(F.when(~kept, F.struct("n", of_fragment("part", 0))))
    in_runs = _total(F.regexp_extract_all("data", F.lit(r'"events":\s*(\d{1,9})'), F.lit(1)))
    # Of an event in pieces all but one are too many.
    others = F.collect_set(F.struct("n", F.when(kept, in_runs).otherwise(1 - of_fragment("parts", 1)).alias("number")))
    whole = F.size(own) + _total(others["number"]) > F.max(F.when(~kept, F.col("n")))
    return (F.max(kind == EventKind.REPORT.value) & whole).alias("ended")


def _total(numbers: Column) -> Column:
    return F.aggregate(numbers, F.lit(0).cast("long"), lambda total, one: total + one.cast("long"))


def looks_of_days(tables: TableStore, days: tuple[str, ...]) -> tuple[LookKey, ...]:
    """The looks that began on these UTC days, as far as bronze has them whole. Raises BadInput for what is no day."""
    for day in days:
        try:
            date.fromisoformat(day)
        except ValueError:
            raise BadInput(f"{day!r} is not a day", why="a day is written as yyyy-mm-dd") from None
    # A day before these decides nothing, but the one right before.
    reach = bronze_reach(tables, day_of(max(0, begin_of(min(days)) - 24 * HOUR_MS)))
    return tuple(look for look in _sorted(tables.read(bronze.TELEMETRY).where(taken_on(days))) if reach.has(look))


def kept_looks(tables: TableStore) -> tuple[LookKey, ...] | None:
    """The looks from which everything is computed again; None for all, where bronze has all that silver and gold have.

    Else what came of the days that bronze lost stays: only the looks of which it has every event are named.
    """
    reach = bronze_reach(tables)
    if reach.is_whole:
        return None
    telemetry = tables.read(bronze.TELEMETRY)
    since = telemetry.where(F.col("taken_ms") >= begin_of(reach.begin)) if reach.begin else telemetry
    return tuple(look for look in _sorted(since) if reach.has(look))


class BronzeReach(NamedTuple):
    """The days of which bronze has every event. Days are UTC, yyyy-mm-dd."""

    is_whole: bool
    """Whether bronze has all that silver and gold were computed from."""
    begin: str
    """The first of these days; empty where no vacuum deleted rows."""
    of_cluster: Mapping[str, str]
    """The same for clusters of which bronze lost more than a vacuum deleted."""

    def has(self, look: LookKey) -> bool:
        """Whether the look began on one of these days."""
        return day_of(look.taken_ms) >= self.of_cluster.get(look.cluster, self.begin)


def bronze_reach(tables: TableStore, since: str = "1970-01-01") -> BronzeReach:
    """The days of which bronze has every event: by what vacuums deleted, and by days that silver or gold has alone.

    Days before ``since`` are not looked at.
    The first day that is left may lack the beginning of a look. Times of events are foreign: one of long ago
    does not make earlier days whole, and one of the future does not end the days that are.
    """
    cut = tables.kept_from("bronze")
    begin = _day_after(cut, 1) if cut else ""
    days = _days_there(tables).where(F.col("day") >= since)
    there = {(row["cluster"], row["day"]): row["whole"] for row in days.collect()}
    telemetry = tables.read(bronze.TELEMETRY).where(F.col("taken_ms") >= begin_of(since))
    taken = telemetry.select("cluster", day_of_ms(F.col("taken_ms")).alias("day"))
    lost = there.keys() - {(row["cluster"], row["day"]) for row in taken.distinct().collect()}
    today = day_of(time.time_ns() // 1_000_000)
    of_cluster = dict[str, str]()
    for cluster, day in lost:
        if there[cluster, day] and day <= today:
            of_cluster[cluster] = max(of_cluster.get(cluster, begin), _day_after(day, 2))
    return BronzeReach(not lost and all(day > cut for _, day in there), begin, of_cluster)


def _days_there(tables: TableStore) -> DataFrame:
    """Days of silver and gold: cluster, day, whole (whether whole looks show it); once each."""
    of_looks = tables.read(silver.LOOKS).select("cluster", "day", F.col("complete").alias("whole"))
    of_gold = [
        # Proposals may be of a day without looks.
        tables.read(table).select("cluster", "day", F.lit(table is not gold.OUTCOMES).alias("whole"))
        for table in gold.GOLD
        if "day" in table.schema.names
    ]
    every = reduce(DataFrame.unionByName, of_gold, of_looks)
    return every.groupBy("cluster", "day").agg(F.max("whole").alias("whole"))


def without_kept(tables: TableStore, looks: Sequence[LookKey]) -> list[LookKey]:
    """These without those of days that bronze lost and that silver has whole: they stay as they are."""
    cut = tables.kept_from("bronze")
    old = [one for one in looks if day_of(one.taken_ms) <= cut]
    if not old:
        return list(looks)
    times = [one.taken_ms for one in old]
    whole = between(tables.read(silver.LOOKS), min(times), max(times)).where("complete")
    ids = local_relation(tables.spark, {(one.cluster, one.look) for one in old}, silver.LOOK_IDS)
    rows = whole.join(F.broadcast(ids), on=["cluster", "look"], how="left_semi").select("cluster", "look").collect()
    kept = {LookId(*row) for row in rows}
    return [one for one in looks if day_of(one.taken_ms) > cut or LookId(one.cluster, one.look) not in kept]


def standing_on(tables: TableStore, looks: Collection[LookKey]) -> list[LookKey]:
    """The looks by changes that stand on these, and may have waited for the events that came."""
    full = [one for one in looks if one.carries]
    if not full:
        return []
    clusters, names = ({getattr(one, name) for one in full} for name in ("cluster", "look"))
    # A look by changes is later than its full look, but for a clock that was set back.
    since = F.col("taken_ms") >= min(one.taken_ms for one in full) - 24 * HOUR_MS
    rows = tables.read(bronze.TELEMETRY).where(since & F.col("cluster").isin(clusters) & F.col("base").isin(names))
    standing = rows.select("cluster", "look", "taken_ms").distinct().collect()
    return [LookKey(row["cluster"], row["look"], row["taken_ms"], carries=False) for row in standing]


def taken_on(days: Collection[str]) -> Column:
    """Looks that began on these UTC days, as spans of ``taken_ms``: files without such a time are not read."""
    begins = [begin_of(day) for day in sorted(set(days))]
    spans = [(F.col("taken_ms") >= begin) & (F.col("taken_ms") < begin + 24 * HOUR_MS) for begin in begins]
    return reduce(or_, spans)


def computed_looks(tables: TableStore, touched: Iterable[LookKey], every_ms: int) -> list[LookKey]:
    """These without those that are left out, sorted. What silver has whole stays, whichever it is of its stretch."""
    looks = sorted(touched)
    times = [one.taken_ms - one.taken_ms % every_ms for one in looks if one.observed] if every_ms else []
    if not times:
        return looks
    there = between(tables.read(silver.LOOKS), min(times), max(times) + every_ms).where("complete")
    new = ((one.cluster, one.look, one.taken_ms, False) for one in looks if one.observed)
    both = local_relation(tables.spark, new, _CANDIDATES).unionByName(
        there.select("cluster", "look", "taken_ms", F.lit(True).alias("computed"))  # noqa: FBT003 a literal of SQL
    )
    out = {LookId(*row) for row in left_out(both, every_ms).collect()}
    return [one for one in looks if LookId(one.cluster, one.look) not in out]


def without_left_out(telemetry: DataFrame, every_ms: int) -> DataFrame:
    """The rows of bronze.telemetry without looks that are left out, whichever of them silver has."""
    if not every_ms:
        return telemetry
    looks = telemetry.where(_observed()).select("cluster", "look", "taken_ms").distinct()
    out = left_out(looks.withColumn("computed", F.lit(False)), every_ms)  # noqa: FBT003 as above
    return telemetry.join(out, on=["cluster", "look"], how="left_anti")


def left_out(candidates: DataFrame, every_ms: int) -> DataFrame:
    """Cluster and look of the candidates that are not the one of their stretch of ``every_ms``.

    That is the first one, or one that silver has already; the row of one that is there twice is its ``computed`` one.
    """
    once = candidates.groupBy("cluster", "look").agg(
        F.min("taken_ms").alias("taken_ms"), F.max("computed").alias("computed")
    )
    stretch = F.floor(F.col("taken_ms") / every_ms)
    in_order = Window.partitionBy("cluster", instance_of_look(), stretch).orderBy(
        F.desc("computed"), "taken_ms", "look"
    )
    numbered = once.withColumn("turn", F.row_number().over(in_order))
    return numbered.where("turn > 1 AND NOT computed").select("cluster", "look")


def _observed() -> Column:
    # Fragments may be of both; a look has other events as well.
    return F.col("base").isNotNull() | ~F.col("kind").isin([*_DERIVED, str(EventKind.FRAGMENT)])


def _day_after(day: str, days: int) -> str:
    return f"{date.fromisoformat(day) + timedelta(days)}"


def _sorted(telemetry: DataFrame) -> tuple[LookKey, ...]:
    return tuple(sorted(LookKey(*row) for row in look_keys(telemetry).collect()))
