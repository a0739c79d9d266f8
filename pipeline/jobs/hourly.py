"""Gold tables by hour: partition and read traffic, lags, locality and the ledger.

All of them are made of sums over looks. A caller that keeps the sums of the hour from one refresh to the next has
those of a few new looks added; else every look of the hours is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
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
from pipeline.transforms.ledger import LedgerInput, copy_sums, ledger, placement_sums
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
from pipeline.transforms.spans import CONTEXT_MS, GAP_MS, LEAP_MS, LONGEST_MS, by_hour, pairs, timeline
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
_NOTHING: HourlySums[DataFrame | None] = HourlySums(*(None for _ in HourlySums._fields))


class _Lines(NamedTuple):
    """The small inputs of an hour: times, spans, producers and prices."""

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
    """The looks (cluster, look) to add up; the others' rows are there for comparison. None: all looks."""
    looks: int
    """How many looks the rows are of."""


def write_hours(
    work: RefreshWork,
    producers: DataFrame,
    prices: DataFrame,
    incremental: IncrementalSums | None,
    touched: Collection[LookId],
) -> None:
    """Write the hours of the work to gold. ``touched`` are the looks whose rows were written anew."""
    looks = work.context(silver.LOOKS, CONTEXT_MS + GAP_MS)
    parts = work.hold(work.of_hours(by_hour(pairs(looks))))
    # Held before it is joined with itself.
    times = work.hold(_near(work, work.hold(timeline(looks)), parts))
    inputs = _Lines(times, parts, producers, prices)
    if work.hours is None:
        _write(work, inputs, _Rows(*_of_both(work.context), None, times.count()), None)
        return
    hours = frozenset(work.hours)
    every = looks_of(times.collect(), parts.collect(), hours)
    before = None if incremental is None else incremental.take(every, hours, touched)
    if before is None:
        sums = _write(work, inputs, _all_rows(work, every), None)
    else:
        sums = _write(work, inputs, _rows_beyond(work, every, before), _still_needed(work, before, hours))
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
        sizes=recent(before.sums.sizes, *NEWEST_SIZES.by),
        readers=recent(before.sums.readers, *NEWEST_READERS.by),
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
    work: RefreshWork, lines: _Lines, rows: _Rows, before: HourlySums[DataFrame] | None
) -> HourlySums[DataFrame]:
    """What all looks of the hours come to; the rows of gold that this makes are written."""
    with sized(work.spark, rows.looks * work.rows_of_look), SparkJobs(work.spark) as jobs:
        sums = _added_up(work, jobs, lines, rows, before)
        where = work.where_hours()
        traffic = work.hold(partition_traffic(sums.traffic.result()))
        jobs.start(work.write_one, TableWrite(gold.PARTITION_TRAFFIC, traffic, where))
        sizes = record_sizes(traffic)
        routes = work.hold(read_routes(sums.reads.result(), sizes))
        jobs.start(work.write_one, TableWrite(gold.READ_TRAFFIC, read_traffic(routes), where))
        jobs.start(work.write_one, TableWrite(gold.LOCALITY, locality(sums.locality.result(), routes), where))
        jobs.start(work.write_one, TableWrite(gold.LAGS, lags(sums.lags.result()), where))
        added, moved = sums.placements.result(), sums.copies.result()
        inputs = LedgerInput(added, moved, sizes, routes, lines.producers, lines.prices)
        flows = work.hold(ledger(inputs))
        jobs.start(work.write_one, TableWrite(gold.LEDGER, flows, where))
        counters = sums.counters.result()
        beside = conservation(flows, counters=counters, routes=routes, copied=moved, sizes=sizes)
        jobs.start(work.write_one, TableWrite(gold.CONSERVATION, beside, where))
        without = unpriced(flows).collect()
    work.messages.update(
        f"{pair['source_rack']} -> {pair['target_rack']} has no price, so what it costs is unknown: set "
        "price.usd_per_gb, price.between or price.table"
        for pair in without
    )
    return HourlySums(*(one.result() for one in sums))


def _added_up(
    work: RefreshWork, jobs: SparkJobs, lines: _Lines, rows: _Rows, before: HourlySums[DataFrame] | None
) -> HourlySums[Future[DataFrame]]:
    """The sums of these rows and of those before."""
    times, spans = lines.times, lines.spans
    old = _NOTHING if before is None else HourlySums(*before)
    every = partition_changes(rows.partitions, times, old.sizes)
    if rows.new is not None:
        every = every.join(F.broadcast(rows.new), on=["cluster", "look"], how="left_semi")
    changes = work.hold(every)
    changed_reads = jobs.submit(work.hold, read_changes(rows.reads, changes, times, old.readers))
    took = jobs.submit(work.hold, traffic_sums(changes, spans, old.traffic))
    grew = jobs.submit(work.hold, placement_sums(changes, spans, old.placements))
    moved = jobs.submit(work.hold, copy_sums(changes, spans, old.copies))
    sizes = jobs.submit(work.hold, newest_sizes(changes, old.sizes))
    readings = changed_reads.result()
    looked = work.of_hours(readings)
    read = jobs.submit(work.hold, read_sums(readings, spans, old.reads))
    late = jobs.submit(work.hold, lag_sums(looked, old.lags))
    local = jobs.submit(work.hold, locality_sums(looked, old.locality))
    readers = jobs.submit(work.hold, newest_readers(readings, old.readers))
    counters = jobs.submit(work.hold, counter_sums(changes, readings, spans, old.counters))
    return HourlySums(took, grew, moved, read, late, local, sizes, counters, readers)
