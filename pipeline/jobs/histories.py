"""Histories: warm-ups, restore rates, rebalances and rack drift that began in the hours, or went on in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.jobs.work import Work, Write
from pipeline.schemas import bronze, gold, silver
from pipeline.schemas.table import LONG, STRING, Table, column, columns
from pipeline.tables import Where
from pipeline.transforms.drift import changes_of_racks, with_ends
from pipeline.transforms.rebalances import rebalances, triggers_of
from pipeline.transforms.restores import restore_rates
from pipeline.transforms.spans import CONTEXT_MS, HOUR_MS
from pipeline.transforms.warmups import warmups

DAY_MS = 24 * HOUR_MS
BACK_MS = 6 * HOUR_MS
"""How far back groups and copies are looked at, to know what came before an hour."""
LONGEST_OPEN_MS = 2 * DAY_MS
"""A warm-up that is older than this is no longer followed."""
LEARNED_MS = 14 * DAY_MS
"""Restores from which rates are learned."""
_BEGAN = columns(column("cluster", STRING, "Cluster id."), column("began_ms", LONG, "When it began."))


class _Began(NamedTuple):
    cluster: str
    day: str
    began_ms: int


class _Open(NamedTuple):
    """Rows of a history that may still change."""

    rows: DataFrame
    keys: list[_Began]
    where: Sequence[Where]


def history_writes(work: Work) -> list[Write]:
    """What to write to the tables of histories."""
    return [*_warmups(work), _rebalances(work), _drift(work)]


def _rebalances(work: Work) -> Write:
    triggers = triggers_of(work.tables.read(bronze.JOURNAL))
    turned = rebalances(work.context(silver.GROUPS, BACK_MS), work.context(silver.READS, BACK_MS), triggers)
    return Write(gold.REBALANCES, work.of_hours(turned), work.where_hours())


def _drift(work: Work) -> Write:
    partitions, brokers = work.context(silver.PARTITIONS), work.context(silver.BROKERS)
    began = work.of_hours(changes_of_racks(partitions, brokers, work.context(silver.LOOKS)))
    lasting = _open(work, gold.RACK_DRIFT, F.col("ended_ms").isNull())
    if lasting.keys:
        began = began.unionByName(lasting.rows.select(*began.columns))
    return Write(gold.RACK_DRIFT, with_ends(began, partitions, brokers), (*work.where_hours(), *lasting.where))


def _warmups(work: Work) -> list[Write]:
    if work.hours is None:
        told = work.hold(warmups(work.context(silver.COPIES), work.context(silver.GROUPS)))
        return [Write(gold.WARMUPS, told), Write(gold.RESTORE_RATES, restore_rates(told))]
    first, _ = work.hours_span()
    running = _open(work, gold.WARMUPS, F.col("outcome") == "running", first - LONGEST_OPEN_MS)
    back_ms = max(BACK_MS, first - min((key.began_ms for key in running.keys), default=first) + CONTEXT_MS)
    told = warmups(work.context(silver.COPIES, back_ms), work.context(silver.GROUPS, back_ms))
    mine = work.of_hours(told)
    if running.keys:
        key = [*gold.WARMUPS.key]
        mine = mine.unionByName(told.join(F.broadcast(running.rows.select(*key)), on=key, how="left_semi"))
    # Written first and read back: rates are learned from all of the last days.
    work.write_one(Write(gold.WARMUPS, mine, (*work.where_hours(), *running.where)))
    if gold.WARMUPS.name not in work.rows:
        return []
    lately = work.tables.read(gold.WARMUPS).where(
        F.col("cluster").isin(work.clusters()) & (F.col("last_ms") >= first - LEARNED_MS)
    )
    return [Write(gold.RESTORE_RATES, restore_rates(lately), ({"cluster": work.clusters()},))]


def _open(work: Work, table: Table, is_open: Column, since_ms: int = 0) -> _Open:
    """Rows that began before the hours, not before ``since_ms``, and may go on in them.

    What began at the same look and has ended is among them: rows are replaced by when they began.
    """
    there = work.tables.read(table)
    if work.hours is None or not work.tables.exists(table):
        return _Open(there, [], ())
    mine = F.col("cluster").isin(work.clusters()) & (F.col("began_ms") >= since_ms)
    earlier = work.of_hours(there.where(mine), "left_anti")
    found = earlier.where(is_open).select("cluster", "day", "began_ms").distinct().collect()
    if not found:
        return _Open(there, [], ())
    keys = sorted(_Began(*row) for row in found)
    began = work.spark.createDataFrame([(key.cluster, key.began_ms) for key in keys], _BEGAN)
    rows = work.hold(earlier.join(F.broadcast(began), on=["cluster", "began_ms"], how="left_semi"))
    where: list[Where] = [{"cluster": [key.cluster], "day": [key.day], "began_ms": [key.began_ms]} for key in keys]
    return _Open(rows, keys, where)
