"""Gold tables by hour: partition and read traffic, lags, locality and the ledger.

All of them are made of sums over looks. A caller that keeps the sums of the hour from one refresh to the next has
those of a few new looks added; else every look of the hours is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.jobs.incremental import (
    HourlySums,
    IncrementalSums,
    KeptSums,
    LookId,
    Looks,
    contributing,
    looks_of,
    newest_of,
    with_predecessors,
)
from pipeline.jobs.work import ClusterHour, RefreshWork, SparkJobs, TableWrite, between
from pipeline.local_relation import local_relation
from pipeline.schemas import gold, silver
from pipeline.schemas.table import LONG, STRING, TableSpec, column, columns
from pipeline.session import sized
from pipeline.transforms.conservation import conservation, counter_sums
from pipeline.transforms.ledger import copy_sums, ledger, placement_sums
from pipeline.transforms.prices import unpriced
from pipeline.transforms.reads import (
    NEWEST_READERS,
    lag_sums,
    lags,
    locality,
    locality_sums,
    newest_readers,
    read_changes,
    read_routes,
    read_sums,
    read_traffic,
)
from pipeline.transforms.spans import CONTEXT_MS, GAP_MS, HOUR_MS, LEAP_MS, LONGEST_MS, by_hour, pairs, timeline
from pipeline.transforms.traffic import (
    NEWEST_SIZES,
    newest_sizes,
    partition_changes,
    partition_traffic,
    record_sizes,
    traffic_sums,
)

_NEWEST = columns(
    column("cluster", STRING, "Cluster id."),
    column("instance", STRING, "The agent's instance."),
    column("newest_ms", LONG, "Its newest look by its monotonic clock."),
)
REACH_MS = CONTEXT_MS + GAP_MS
"""Greatest distance, in ms, from an hour to a look of which it is made, also beyond a gap."""
NEAR_MS = REACH_MS + HOUR_MS + 2 * LONGEST_MS
"""The same from a look, as far as no gap is near: to those of which the hours that it touches are made."""
_NOTHING: HourlySums[DataFrame | None] = HourlySums(*(None for _ in HourlySums._fields))


class _Rows(NamedTuple):
    """What is to be added up."""

    partitions: DataFrame
    reads: DataFrame
    new: DataFrame | None
    """The looks (cluster, look) to add up; the others' rows are there for comparison. None: all looks."""
    looks: int
    """How many looks the rows are of."""


class ChangedLooks(NamedTuple):
    """Looks whose rows of silver are written anew, and rows of silver.looks near them."""

    ids: Collection[LookId]
    writes: Sequence[Future[None]]
    """Of their partitions and reads; rows of looks are written already."""
    near: DataFrame
    pairs: DataFrame
    """`spans.pairs` of ``near``."""
    span_ms: tuple[int, int] | None
    """From when to when ``near`` has all looks; None: always."""


def changed_looks(
    work: RefreshWork, ids: Collection[LookId], writes: Sequence[Future[None]], span_ms: tuple[int, int] | None
) -> ChangedLooks:
    """These, with all looks of that time and of their clusters; None: with all looks."""
    near = work.tables.read(silver.LOOKS)
    if span_ms is not None:
        near = work.hold(between(near, *span_ms).where(F.col("cluster").isin({one.cluster for one in ids})))
    found = work.hold(pairs(near))
    # Columns anew: to Spark those of held rows are the same as those of the looks, and it does not join the two.
    return ChangedLooks(ids, writes, near, found.toDF(*found.columns), span_ms)


def write_hours(
    work: RefreshWork,
    producers: DataFrame,
    prices: DataFrame,
    incremental: IncrementalSums | None,
    changed: ChangedLooks,
) -> None:
    """Write the hours of the work to gold."""
    if changed.span_ms is not None:
        first, last = work.hours_span()
        if first - REACH_MS < changed.span_ms[0] or last + REACH_MS > changed.span_ms[1]:
            changed = changed_looks(work, changed.ids, changed.writes, (first - REACH_MS, last + REACH_MS))
    with SparkJobs(work.spark) as jobs:
        # Held before it is joined with itself.
        in_order = jobs.submit(work.hold, timeline(changed.near, changed.pairs))
        parts = work.hold(work.of_hours(by_hour(changed.pairs)))
        times = work.hold(_near(work, in_order.result(), parts))
    write = partial(_write, work, times=times, spans=parts, producers=producers, prices=prices)
    for written in changed.writes:
        written.result()
    if work.hours is None:
        write(_Rows(*_of_both(work.context), None, times.count()), None)
        return
    hours = frozenset(work.hours)
    every = looks_of(times.collect(), parts.collect(), hours)
    before = None if incremental is None else incremental.take(every, hours, changed.ids)
    if before is None:
        sums = write(_all_rows(work, every), None)
    else:
        sums = write(_rows_beyond(work, every, before), _still_needed(work, before, hours))
    if incremental is not None:
        incremental.keep(sums, every, hours)


def _near(work: RefreshWork, times: DataFrame, parts: DataFrame) -> DataFrame:
    """The looks near the hours, and those beyond a gap that reaches into one of them."""
    if work.hours is None:
        return times
    first, last = work.hours_span()
    near = F.col("taken_ms").between(first - CONTEXT_MS, last + CONTEXT_MS)
    ends = [parts.select("cluster", F.col(end).alias("look")) for end in ("look", "previous")]
    far = times.join(F.broadcast(ends[0].unionByName(ends[1]).distinct()), on=["cluster", "look"], how="left_semi")
    # What was known of readers a little before the gap is known after it.
    until = F.broadcast(far.where(~near).select("cluster", F.col("taken_ms").alias("until_ms")).distinct())
    reach = F.col("taken_ms").between(F.col("until_ms") - LONGEST_MS - LEAP_MS, F.col("until_ms"))
    beyond = times.where(~near).join(until, on="cluster", how="inner").where(reach).drop("until_ms").distinct()
    return times.where(near).unionByName(beyond)


def _still_needed(work: RefreshWork, before: KeptSums, hours: frozenset[ClusterHour]) -> HourlySums[DataFrame]:
    """What is of the hours, and the sizes with which new looks may be compared."""
    newest = local_relation(work.spark, ((*of, ms) for of, ms in sorted(newest_of(before.looks).items())), _NEWEST)

    def recent(rows: DataFrame, *at: str) -> DataFrame:
        """Rows with something that new looks may be compared with."""
        last_ms = F.array_max(F.array(*(F.col(f"{name}.monotonic_ms") for name in at)))
        known = rows.join(F.broadcast(newest), on=["cluster", "instance"], how="inner")
        return known.where(last_ms >= F.col("newest_ms") - LONGEST_MS).drop("newest_ms")

    sums = before.sums._replace(
        sizes=recent(before.sums.sizes, *NEWEST_SIZES.by), readers=recent(before.sums.readers, *NEWEST_READERS.by)
    )
    if before.hours == hours:
        return sums
    return HourlySums(*(work.of_hours(one) if "hour_ms" in one.columns else one for one in sums))


def _all_rows(work: RefreshWork, every: Looks) -> _Rows:
    """All looks near the hours, and those on the far side of gaps."""
    first, last = work.hours_span()
    far = [id_ for id_, one in every.items() if not first - CONTEXT_MS <= one.taken_ms <= last + CONTEXT_MS]

    def rows(table: TableSpec) -> DataFrame:
        near = work.context(table)
        return near.unionByName(_rows_of(work, table, far, every)) if far else near

    return _Rows(*_of_both(rows), None, len(every))


def _of_both(rows: Callable[[TableSpec], DataFrame]) -> tuple[DataFrame, DataFrame]:
    return rows(silver.PARTITIONS), rows(silver.READS)


def _rows_of(work: RefreshWork, table: TableSpec, ids: list[LookId], every: Looks) -> DataFrame:
    """The rows of these looks."""
    times = [every[id_].taken_ms for id_ in ids]
    near_by = between(work.tables.read(table), min(times, default=0), max(times, default=0))
    named = local_relation(work.spark, ids, silver.LOOK_IDS)
    return near_by.join(F.broadcast(named), on=["cluster", "look"], how="left_semi")


def _rows_beyond(work: RefreshWork, every: Looks, before: KeptSums) -> _Rows:
    """Those that it takes to add up the looks that were not known before."""
    new = contributing(every).keys() - before.looks.keys()
    needed = with_predecessors(new, every)
    return _Rows(
        *_of_both(lambda table: _rows_of(work, table, needed, every)),
        local_relation(work.spark, sorted(new), silver.LOOK_IDS),
        len(needed),
    )


def _write(
    work: RefreshWork,
    rows: _Rows,
    before: HourlySums[DataFrame] | None,
    *,
    times: DataFrame,
    spans: DataFrame,
    producers: DataFrame,
    prices: DataFrame,
) -> HourlySums[DataFrame]:
    """What all looks of the hours come to; the rows of gold that this makes are written.

    Jobs are in the order in which they are to begin: what needs partitions alone goes on while reads are compared.
    """
    hold, where = work.held, work.where_hours()
    old = _NOTHING if before is None else HourlySums(*before)
    every = partition_changes(rows.partitions, times, old.sizes)
    if rows.new is not None:
        every = every.join(F.broadcast(rows.new), on=["cluster", "look"], how="left_semi")
    with sized(work.spark, rows.looks * work.rows_of_look), SparkJobs(work.spark) as jobs:

        def write(table: TableSpec, made: Future[DataFrame]) -> None:
            jobs.start(lambda of: work.write_one(TableWrite(table, of, where)), made)

        changes = jobs.submit(work.hold, every)
        readings = jobs.submit(hold(read_changes), rows.reads, changes, times, old.readers)
        took = jobs.submit(hold(traffic_sums), changes, spans, old.traffic)
        traffic = jobs.submit(hold(partition_traffic), took)
        write(gold.PARTITION_TRAFFIC, traffic)
        grew = jobs.submit(hold(placement_sums), changes, spans, old.placements)
        moved = jobs.submit(hold(copy_sums), changes, spans, old.copies)
        newest = jobs.submit(hold(newest_sizes), changes, old.sizes)
        sizes = jobs.submit(record_sizes, traffic)
        read = jobs.submit(hold(read_sums), readings, spans, old.reads)
        looked = jobs.submit(work.of_hours, readings)
        local = jobs.submit(hold(locality_sums), looked, old.locality)
        counters = jobs.submit(hold(counter_sums), changes, readings, spans, old.counters)
        routes = jobs.submit(hold(read_routes), read, sizes)
        known = {"routes": routes, "copied": moved, "sizes": sizes}
        flows = jobs.submit(hold(ledger), grew, **known, producers=producers, prices=prices)
        late = jobs.submit(hold(lag_sums), looked, old.lags)
        write(gold.LAGS, jobs.submit(lags, late))
        write(gold.READ_TRAFFIC, jobs.submit(read_traffic, routes))
        write(gold.LOCALITY, jobs.submit(locality, local, routes))
        write(gold.LEDGER, flows)
        write(gold.CONSERVATION, jobs.submit(conservation, flows, **known, counters=counters))
        readers = jobs.submit(hold(newest_readers), readings, old.readers)
        without = jobs.submit(lambda of: unpriced(of).collect(), flows).result()
    work.messages.update(
        f"{pair['source_rack']} -> {pair['target_rack']} has no price, so what it costs is unknown: set "
        "price.usd_per_gb, price.between or price.table"
        for pair in without
    )
    kept = (took, grew, moved, read, late, local, newest, counters, readers)
    return HourlySums(*(one.result() for one in kept))
