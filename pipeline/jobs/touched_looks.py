"""Which looks a refresh computes: those whose events came, those that waited for them, and which of them are left out.

Where looks come more often than ``spark.look_every``, one of each such stretch of time is computed, of each instance of
an agent. Offsets tell as exactly what flowed between two looks that are a minute apart as between those in the middle.
Bronze keeps all of them. Looks that hold nothing but what the agent derived are small, and never left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime
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
from pipeline.schemas import bronze, silver
from pipeline.schemas.table import BOOLEAN, LONG, STRING, column, columns
from pipeline.tables import TableStore
from pipeline.transforms.spans import HOUR_MS, instance_of_look

_DERIVED = [str(kind) for kind in DERIVED_SHAPES]
_HEAD_CHARS = 200
"""Of the data of an event of kind kept, in which its number of parts is."""
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
    """Of the rows of a look: whether those that an agent writes last are among them, as ``ended``."""
    kept = F.col("kind") == EventKind.KEPT.value
    parts = F.regexp_extract(F.substring("data", 1, _HEAD_CHARS), r'"parts":\s*(\d{1,9})', 1).try_cast("long")
    ends = [F.max(F.col("kind") == kind.value) for kind in (EventKind.REPORT, EventKind.LOOK)]
    all_kept = F.size(F.collect_set(F.when(kept, F.col("n")))) >= F.max(F.when(kept, parts))
    whole = ends[1] & F.when(F.max(F.col("base").isNotNull()), F.coalesce(all_kept, F.lit(False))).otherwise(True)  # noqa: FBT003
    return (ends[0] & (whole | ~F.max(_observed()))).alias("ended")


def unseen_looks(tables: TableStore, first_ms: int, last_ms: int) -> tuple[LookKey, ...]:
    """The looks of bronze between these times of which silver has nothing, sorted: a runner put them off, and died."""
    telemetry = tables.read(bronze.TELEMETRY).where(F.col("taken_ms").between(first_ms, last_ms))
    seen = between(tables.read(silver.LOOKS), first_ms, last_ms).select("cluster", "look")
    return _sorted(telemetry.join(seen, on=["cluster", "look"], how="left_anti"))


def looks_of_days(tables: TableStore, days: tuple[str, ...]) -> tuple[LookKey, ...]:
    """Every look that began on one of these UTC days. Raises BadInput for what is no day."""
    for day in days:
        try:
            date.fromisoformat(day)
        except ValueError:
            raise BadInput(f"{day!r} is not a day", why="a day is written as yyyy-mm-dd") from None
    return _sorted(tables.read(bronze.TELEMETRY).where(taken_on(days)))


def kept_looks(tables: TableStore) -> tuple[LookKey, ...] | None:
    """The looks from which everything is computed again; None for all that silver has as well.

    Where bronze no longer reaches as far back as silver, what came of its deleted days stays: its looks are named, from
    its second day on, since the first may lack the beginning of a look.
    """
    first_ms, silver_ms = (
        tables.read(table).agg(F.min("taken_ms")).collect()[0][0] for table in (bronze.TELEMETRY, silver.LOOKS)
    )
    if first_ms is None or silver_ms is None or silver_ms >= first_ms:
        return None
    whole_ms = first_ms - first_ms % (24 * HOUR_MS) + 24 * HOUR_MS
    return _sorted(tables.read(bronze.TELEMETRY).where(F.col("taken_ms") >= whole_ms))


def standing_on(tables: TableStore, looks: Collection[LookKey]) -> list[LookKey]:
    """The looks by changes that stand on these, and may have waited for the events that came."""
    full = [one for one in looks if one.carries]
    if not full:
        return []
    clusters, names = ({getattr(one, name) for one in full} for name in ("cluster", "look"))
    rows = tables.read(bronze.TELEMETRY).where(F.col("cluster").isin(clusters) & F.col("base").isin(names))
    standing = rows.select("cluster", "look", "taken_ms").distinct().collect()
    return [LookKey(row["cluster"], row["look"], row["taken_ms"], carries=False) for row in standing]


def taken_on(days: Collection[str]) -> Column:
    """Looks that began on these UTC days, as spans of ``taken_ms``: files without such a time are not read."""
    begins = [round(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1_000) for day in sorted(set(days))]
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


def _sorted(telemetry: DataFrame) -> tuple[LookKey, ...]:
    return tuple(sorted(LookKey(*row) for row in look_keys(telemetry).collect()))
