"""Histories: warm-ups, restore rates, rebalances and rack drift that began in the hours, or continued in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.jobs.work import RefreshWork, TableWrite, between
from pipeline.local_relation import local_relation
from pipeline.schemas import bronze, gold, silver
from pipeline.schemas.table import LONG, STRING, TableSpec, begin_of, column, columns
from pipeline.tables import Where
from pipeline.transforms.drift import OF_TOPIC, changes_of_racks, drifting_topics, with_ends
from pipeline.transforms.rebalances import rebalances, triggers_of
from pipeline.transforms.spans import CONTEXT_MS, HOUR_MS, LONGEST_MS
from pipeline.transforms.warmups import restore_rates, warmups

DAY_MS = 24 * HOUR_MS
BACK_MS = 6 * HOUR_MS
"""How far back groups and copies are looked at, to know what came before an hour."""
LONGEST_OPEN_MS = 2 * DAY_MS
"""A warm-up or a move of replicas that takes longer than this is no longer followed."""
LONGEST_DOWN_MS = 14 * DAY_MS
"""An agent that looks again after longer than this begins anew."""
MOST_TOPICS = 1_000
"""More topics than this are not named one by one."""
_BEGAN = columns(column("cluster", STRING, "Cluster id."), column("began_ms", LONG, "When it began."))


class _Began(NamedTuple):
    cluster: str
    day: str
    began_ms: int


class _Look(NamedTuple):
    cluster: str
    day: str
    look: str


class _Open(NamedTuple):
    """Rows of a history that may still change."""

    rows: DataFrame
    keys: list[_Began]
    where: Sequence[Where]


def history_writes(work: RefreshWork) -> list[TableWrite]:
    """What to write to the tables of histories."""
    return [*_warmups(work), _rebalances(work), drift_write(work)]


def _rebalances(work: RefreshWork) -> TableWrite:
    triggers = triggers_of(work.tables.read(bronze.JOURNAL))
    before = _before(work, BACK_MS)
    groups, reads = (_with(work, table, BACK_MS, before) for table in (silver.GROUPS, silver.READS))
    return TableWrite(gold.REBALANCES, work.of_hours(rebalances(groups, reads, triggers)), work.where_hours())


def drift_write(work: RefreshWork) -> TableWrite:
    """What to write to gold.rack_drift."""
    before = _before(work, CONTEXT_MS)
    looks, partitions = (_with(work, table, CONTEXT_MS, before) for table in (silver.LOOKS, silver.PARTITIONS))
    brokers = _with(work, silver.BROKERS, BACK_MS, before)
    lasting = _open(work, gold.RACK_DRIFT, F.col("ended_ms").isNull())
    drifting = _drifting(work, partitions, looks, lasting)
    began = work.of_hours(changes_of_racks(drifting, brokers, looks))
    if lasting.keys:
        began = began.unionByName(lasting.rows.select(*began.columns))
    rows = with_ends(began, drifting, brokers, partitions)
    return TableWrite(gold.RACK_DRIFT, rows, (*work.where_hours(), *lasting.where))


def _drifting(work: RefreshWork, partitions: DataFrame, looks: DataFrame, lasting: _Open) -> DataFrame:
    """The partitions of topics whose racks change or have changed for a while.

    Those of topics that were moved also as they were before: a move may take days.
    """
    topics = work.hold(drifting_topics(partitions, looks))
    named, moved = topics.select("topic"), topics.where("moved").select("topic")
    if lasting.keys:
        of_topics = lasting.rows.where(F.col("subject").startswith(OF_TOPIC))
        named = named.unionByName(of_topics.select(F.expr(f"substring(subject, {len(OF_TOPIC) + 1})").alias("topic")))
    rows = _of_topics(partitions, named)
    if work.hours is None or moved.isEmpty():
        return rows
    first, _ = work.hours_span()
    earlier = between(work.tables.read(silver.PARTITIONS), first - LONGEST_OPEN_MS, first - CONTEXT_MS - 1)
    return rows.unionByName(_of_topics(earlier.where(F.col("cluster").isin(work.clusters())), moved))


def _of_topics(partitions: DataFrame, topics: DataFrame) -> DataFrame:
    """The partitions of these topics; of all where these are many."""
    names = [row["topic"] for row in topics.distinct().limit(MOST_TOPICS + 1).collect()]
    return partitions.where(F.col("topic").isin(sorted(names))) if len(names) <= MOST_TOPICS else partitions


def _before(work: RefreshWork, back_ms: int) -> list[_Look]:
    """Of each cluster whose agent was down so far back, its last whole look before that."""
    if work.hours is None:
        return []
    first, _ = work.hours_span()
    edge, of = first - back_ms, F.col("cluster")
    looks = work.tables.read(silver.LOOKS).where("complete")
    up = between(looks, edge, edge + LONGEST_MS).where(of.isin(work.clusters())).select(of).distinct().collect()
    down = sorted(set(work.clusters()) - {row["cluster"] for row in up})
    if not down:
        return []
    earlier = between(looks, edge - LONGEST_DOWN_MS, edge - 1).where(of.isin(down)).groupBy(of)
    last = F.max_by(F.struct("day", "look"), F.struct("taken_ms", "look"))
    return [_Look(row["cluster"], *row["last"]) for row in earlier.agg(last.alias("last")).collect()]


def _with(work: RefreshWork, table: TableSpec, back_ms: int, before: Sequence[_Look]) -> DataFrame:
    """The context, and the looks before it. One of them may be there twice, which changes no history."""
    rows = work.context(table, back_ms, to_the_end=True)
    for look in before:
        of_look = (F.col("day") == look.day) & (F.col("cluster") == look.cluster) & (F.col("look") == look.look)
        rows = rows.unionByName(work.tables.read(table).where(of_look))
    return rows


def _warmups(work: RefreshWork) -> list[TableWrite]:
    if work.hours is None:
        episodes = work.hold(warmups(work.context(silver.COPIES), work.context(silver.GROUPS)))
        return [TableWrite(gold.WARMUPS, episodes), TableWrite(gold.RESTORE_RATES, restore_rates(episodes))]
    first, _ = work.hours_span()
    kept_from = work.tables.kept_from("silver")
    # One that began where silver has nothing any more could not be found again.
    since_ms = max(first - LONGEST_OPEN_MS, begin_of(kept_from) if kept_from else 0)
    running = _open(work, gold.WARMUPS, F.col("outcome") == "running", since_ms)
    back_ms = max(BACK_MS, first - min((key.began_ms for key in running.keys), default=first) + CONTEXT_MS)
    copies, groups = (work.context(table, back_ms, to_the_end=True) for table in (silver.COPIES, silver.GROUPS))
    episodes = warmups(copies, groups)
    changed = work.of_hours(episodes)
    if running.keys:
        key = [*gold.WARMUPS.key]
        changed = changed.unionByName(episodes.join(F.broadcast(running.rows.select(*key)), on=key, how="left_semi"))
    # Written first and read back: rates are learned from all that there is.
    work.write_one(TableWrite(gold.WARMUPS, changed, (*work.where_hours(), *running.where)))
    if gold.WARMUPS.name not in work.rows:
        return []
    every = work.tables.read(gold.WARMUPS).where(F.col("cluster").isin(work.clusters()))
    return [TableWrite(gold.RESTORE_RATES, restore_rates(every), ({"cluster": work.clusters()},))]


def _open(work: RefreshWork, table: TableSpec, is_open: Column, since_ms: int = 0) -> _Open:
    """Rows that began before the hours end, not in them and not before ``since_ms``, and may go on in them.

    What began at the same look and has ended is among them: rows are replaced by when they began.
    """
    there = work.tables.read(table)
    if work.hours is None or not work.tables.exists(table):
        return _Open(there, [], ())
    _, last = work.hours_span()
    recent = F.col("cluster").isin(work.clusters()) & (F.col("began_ms") >= since_ms) & (F.col("began_ms") < last)
    earlier = work.of_hours(there.where(recent), "left_anti")
    began_at = earlier.where(is_open).select("cluster", "day", "began_ms").distinct().collect()
    if not began_at:
        return _Open(there, [], ())
    keys = sorted(_Began(*row) for row in began_at)
    began = local_relation(work.spark, ((key.cluster, key.began_ms) for key in keys), _BEGAN)
    rows = work.hold(earlier.join(F.broadcast(began), on=["cluster", "began_ms"], how="left_semi"))
    where: list[Where] = [{"cluster": [key.cluster], "day": [key.day], "began_ms": [key.began_ms]} for key in keys]
    return _Open(rows, keys, where)
