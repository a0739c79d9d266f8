"""Gold's hours: what partitions took in, what groups read, how far behind and how local they were, the ledger.

All of them are made of sums over looks. A caller that keeps the sums of the hour from one refresh to the next has
those of a few new looks added; else every look of the hours is read.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.few_rows import few_rows
from pipeline.jobs.carried import Carried, Kept, LookId, Looks, Sums, looks_of, newest_of, rows_for, with_a_say
from pipeline.jobs.work import Hour, Together, Work, Write, between
from pipeline.schemas import gold, silver
from pipeline.schemas.table import LONG, STRING, Table, column, columns
from pipeline.session import sized
from pipeline.transforms.lags import behind, lags
from pipeline.transforms.ledger import Grounds, appended, copied, ledger
from pipeline.transforms.locality import locality, near
from pipeline.transforms.prices import unpriced
from pipeline.transforms.reads import read_traffic, reading, routed, taken
from pipeline.transforms.spans import LONGEST_MS, by_hour, pairs, timeline
from pipeline.transforms.traffic import newest_sizes, partition_traffic, record_sizes, seen, taken_in

_NEWEST = columns(
    column("cluster", STRING, "Cluster id."),
    column("instance", STRING, "The agent's instance."),
    column("newest_ms", LONG, "Its newest look by its monotonic clock."),
)
_NOTHING: Sums[DataFrame | None] = Sums(*(None for _ in Sums._fields))


class _Lines(NamedTuple):
    """What few rows tell."""

    times: DataFrame
    """`spans.timeline`."""
    spans: DataFrame
    """`spans.by_hour`, of these hours."""
    producers: DataFrame
    prices: DataFrame


class _Rows(NamedTuple):
    """What is to be added up."""

    partitions: DataFrame
    reads: DataFrame
    new: DataFrame | None
    """The looks (cluster, look) that are; the others' rows stand beside them for comparison. None: all looks are."""
    looks: int
    """How many looks the rows are of."""


def write_hours(
    work: Work, producers: DataFrame, prices: DataFrame, carried: Carried | None, touched: Collection[LookId]
) -> None:
    """Write the hours of the work to gold. ``touched`` are the looks whose rows were written anew."""
    looks = work.context(silver.LOOKS)
    parts = work.of_hours(by_hour(pairs(looks)))
    with Together(work) as together:
        lines, cut = together.hold(timeline(looks)), together.hold(parts)
        given = _Lines(lines.result(), cut.result(), producers, prices)
    if carried is None or work.hours is None:
        _write(work, given, _all_rows(work, given.times.count()), None)
        return
    hours = frozenset(work.hours)
    every = looks_of(given.times.collect(), given.spans.collect(), hours)
    before = carried.take(every, hours, touched)
    if before is None:
        sums = _write(work, given, _all_rows(work, len(every)), None)
    else:
        sums = _write(work, given, _rows_beyond(work, every, before), _still_needed(work, before, hours))
    carried.keep(sums, every, hours)


def _still_needed(work: Work, before: Kept, hours: frozenset[Hour]) -> Sums[DataFrame]:
    """What is of the hours, and the sizes with which new looks may be compared."""
    newest = few_rows(work.spark, ((*of, ms) for of, ms in sorted(newest_of(before.looks).items())), _NEWEST)
    recent = F.col("sized.monotonic_ms") >= F.col("newest_ms") - LONGEST_MS
    sizes = before.sums.sizes.join(F.broadcast(newest), on=["cluster", "instance"], how="inner").where(recent)
    sums = before.sums._replace(sizes=sizes.drop("newest_ms"))
    if before.hours == hours:
        return sums
    return Sums(*(work.of_hours(one) if "hour_ms" in one.columns else one for one in sums))


def _all_rows(work: Work, looks: int) -> _Rows:
    return _Rows(work.context(silver.PARTITIONS), work.context(silver.READS), None, looks)


def _rows_beyond(work: Work, every: Looks, before: Kept) -> _Rows:
    """Those that it takes to add up the looks that were not known before."""
    new = with_a_say(every).keys() - before.looks.keys()
    asked = rows_for(new, every)
    times = [every[id_].taken_ms for id_ in asked]
    named = few_rows(work.spark, asked, silver.LOOK_IDS)

    def rows(table: Table) -> DataFrame:
        near_by = between(work.tables.read(table), min(times, default=0), max(times, default=0))
        return near_by.join(F.broadcast(named), on=["cluster", "look"], how="left_semi")

    return _Rows(
        rows(silver.PARTITIONS), rows(silver.READS), few_rows(work.spark, sorted(new), silver.LOOK_IDS), len(asked)
    )


def _write(work: Work, lines: _Lines, rows: _Rows, before: Sums[DataFrame] | None) -> Sums[DataFrame]:
    """What all looks of the hours come to; the rows of gold that this makes are written."""
    with sized(work.spark, rows.looks * work.rows_of_look), Together(work) as together:
        sums = _added_up(work, together, lines, rows, before)
        where = work.where_hours()
        traffic = work.hold(partition_traffic(sums.taken_in.result()))
        together.write(Write(gold.PARTITION_TRAFFIC, traffic, where))
        sizes = record_sizes(traffic)
        routes = work.hold(routed(sums.taken.result(), sizes))
        together.write(
            Write(gold.READ_TRAFFIC, read_traffic(routes), where),
            Write(gold.LOCALITY, locality(sums.near.result(), routes), where),
            Write(gold.LAGS, lags(sums.behind.result()), where),
        )
        added, moved = sums.appended.result(), sums.copied.result()
        grounds = Grounds(added, moved, sizes, routes, lines.producers, lines.prices)
        flows = work.hold(ledger(grounds))
        together.write(Write(gold.LEDGER, flows, where))
        without = unpriced(flows).collect()
    work.messages.update(
        f"{pair['source_rack']} -> {pair['target_rack']} has no price, so what it costs is unknown: set "
        "price.usd_per_gb, price.between or price.table"
        for pair in without
    )
    return Sums(*(one.result() for one in sums))


def _added_up(
    work: Work, together: Together, lines: _Lines, rows: _Rows, before: Sums[DataFrame] | None
) -> Sums[Future[DataFrame]]:
    """The sums of these rows and of those before."""
    times, spans = lines.times, lines.spans
    old = _NOTHING if before is None else Sums(*before)
    every = seen(rows.partitions, times, old.sizes)
    if rows.new is not None:
        every = every.join(F.broadcast(rows.new), on=["cluster", "look"], how="left_semi")
    changes = work.hold(every)
    told = together.hold(reading(rows.reads, changes, times))
    took = together.hold(taken_in(changes, spans, old.taken_in))
    grew = together.hold(appended(changes, spans, old.appended))
    moved = together.hold(copied(changes, spans, old.copied))
    sizes = together.hold(newest_sizes(changes, old.sizes))
    readings = told.result()
    looked = work.of_hours(readings)
    read = together.hold(taken(readings, spans, old.taken))
    late = together.hold(behind(looked, old.behind))
    local = together.hold(near(looked, old.near))
    return Sums(took, grew, moved, read, late, local, sizes)
