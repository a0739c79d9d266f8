"""Refresh of silver and gold from bronze, for the looks and hours that new records touched.

Invariant: what is written for an hour depends on bronze alone, never on what an earlier refresh wrote there or on how
often it ran. So it may be killed and run again, and a refresh of everything gives what many small ones gave. With
``spark.look_every`` a look that comes late may be the first of its stretch, and is not the one that was computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from agent.values.number_format import counted
from pipeline.jobs.histories import history_writes
from pipeline.jobs.hourly import NEAR_MS, REACH_MS, ChangedLooks, changed_looks, write_hours
from pipeline.jobs.incremental import IncrementalSums, LookId
from pipeline.jobs.outcomes import outcome_writes
from pipeline.jobs.touched_looks import LookKey, computed_looks, standing_on, taken_on, without_kept, without_left_out
from pipeline.jobs.work import ClusterHour, RefreshWork, SparkJobs, TableWrite, between
from pipeline.local_relation import local_relation
from pipeline.price_files import price_rows, producer_rows
from pipeline.schemas import bronze, gold, silver
from pipeline.schemas.table import STRING, column, columns, day_of
from pipeline.session import MANY_ROWS, sized
from pipeline.tables import TableStore, Where, named
from pipeline.transforms.large_looks import PART_BYTES, data_bytes, parts_of
from pipeline.transforms.looks import look_rows, silver_table
from pipeline.transforms.prices import PriceRow, ProducerRow, price_table, producer_table
from pipeline.transforms.spans import by_hour, hour_of, pairs, touched_hours
from pipeline.transforms.spans import day_of as day_of_ms
from pipeline.transforms.whole_looks import full_looks, standing_looks, with_kept

if TYPE_CHECKING:
    from config.settings import Settings

MOST_LOOKS = 2_000
"""More touched looks than this are not named one by one: their whole days are read again."""
_MOST_PROBLEMS = 20
"""Of looks that cannot be read, so many are named in messages; silver.looks has all."""
_CLUSTER_DAYS = columns(column("cluster", STRING, "Cluster id."), column("_day", STRING, "UTC day."))
_OF_HOURS = (silver.PARTITIONS, silver.READS)
"""Of these and looks hours are made; of all others histories and outcomes alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSettings:
    """What is known besides the topics."""

    prices: tuple[PriceRow, ...] = ()
    """What a gigabyte costs from rack to rack; without any, nothing has a price."""
    producers: tuple[ProducerRow, ...] = ()
    """Racks of producers, as far as the settings name them."""
    look_every_ms: int = 0
    """Of looks that come more often, one of each such stretch is computed (`pipeline.jobs.touched_looks`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSummary:
    """What a refresh did."""

    looks: int = 0
    """Looks that were read again."""
    hours: tuple[ClusterHour, ...] = ()
    """Hours that were worked out again, sorted."""
    rows: Mapping[str, int | None] = field(default_factory=dict)
    """Table that was written -> its new rows, None where they were not counted; one that stays as it is is missing."""
    messages: tuple[str, ...] = ()
    """What a person should know: pairs without a price, looks that could not be read. Each once, sorted."""
    seconds: float = 0.0


def refresh(
    tables: TableStore,
    looks: Collection[LookKey] | None = None,
    *,
    settings: RefreshSettings,
    histories: bool = True,
    outcomes: bool = True,
    pending: Collection[ClusterHour] = (),
    incremental: IncrementalSums | None = None,
    look_bytes: Mapping[LookId, int] | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> RefreshSummary:
    """Works out silver and gold again for these looks and the hours that they touch; for all looks when None.

    ``histories``: whether warm-ups, restore rates, rebalances and drift are worked out as well, for the hours touched
    and for the ``pending`` ones; otherwise the caller keeps those touched as pending. ``outcomes``: whether outcomes of
    proposals are worked out. ``incremental``: the sums that one refresh after the other adds to, which
    spares them reading the looks of the refreshes before; it changes nothing that is written. ``look_bytes``: data of
    each look, by which large ones are divided; None: it is counted.
    """
    began = time.monotonic()
    say = on_progress or (lambda _: None)
    every_ms = settings.look_every_ms
    touched = None if looks is None else _computed(tables, looks, every_ms)
    work = RefreshWork(tables)
    events = _events(work, touched, look_bytes, every_ms)
    with sized(work.spark, MANY_ROWS if events.parts else 0), SparkJobs(work.spark) as jobs:
        read, writes = _silver(work, events, jobs)
        say(f"{counted(read, 'look')} read")
        changed, hours = None, list[ClusterHour]()
        if touched is None or touched:
            ids = {LookId(one.cluster, one.look) for one in touched or ()}
            changed = changed_looks(work, ids, writes, _span(touched, NEAR_MS))
            hours = _touched_hours(work, touched, changed)
        if touched is not None:
            work.hours = hours = covered_hours(work, hours)
        late = {*hours, *covered_hours(work, pending)} if histories else set()
        past = work.beside(None if touched is None else late) if late else None
        if past is not None:
            jobs.wait()
        if changed is not None and hours:
            _gold(work, settings, past, incremental, changed)
            say(f"{counted(len(hours), 'hour')} computed")
        elif past is not None:
            _histories(past)
    if outcomes:
        work.write(outcome_writes(work, settings.prices))
    return RefreshSummary(
        looks=read,
        hours=tuple(hours),
        rows=dict(sorted(work.rows.items())),
        messages=tuple(sorted(work.messages)),
        seconds=round(time.monotonic() - began, 3),
    )


def catch_up(tables: TableStore, pending: Collection[ClusterHour], settings: RefreshSettings) -> None:
    """Works out what refreshes left out: the histories of these hours, and outcomes."""
    work = RefreshWork(tables)
    work.hours = covered_hours(work, pending)
    if work.hours:
        _histories(work)
    work.write(outcome_writes(work, settings.prices))


def covered_hours(work: RefreshWork, hours: Iterable[ClusterHour]) -> list[ClusterHour]:
    """These without those of which silver lost looks, sorted: gold saw more of them than silver shows now."""
    cut = work.tables.kept_from("silver")
    every = sorted(hours)
    old = [hour for hour in every if day_of(hour.hour_ms) <= cut]
    if not old:
        return every
    then = work.beside(old)
    looks = then.context(silver.LOOKS, REACH_MS)
    whole = looks.where("complete").select("cluster", hour_of(F.col("taken_ms")).alias("hour_ms"), F.lit(0).alias("ms"))
    seen = by_hour(pairs(looks)).select("cluster", "hour_ms", "ms").unionByName(whole)
    now = then.of_hours(seen).groupBy("cluster", "hour_ms").agg(F.sum("ms").alias("ms"))
    there = work.tables.read(gold.PARTITION_TRAFFIC).where(F.col("day").isin({day_of(hour.hour_ms) for hour in old}))
    seconds = F.max(F.col("seconds") + F.coalesce("gap_seconds", F.lit(0.0))).alias("seconds")
    was = then.of_hours(there).groupBy("cluster", "hour_ms").agg(seconds)
    both = now.join(was, on=["cluster", "hour_ms"], how="left")
    # Parts of pairs are whole milliseconds: what differs by less differs by the rounding of seconds.
    kept = both.where(F.coalesce("seconds", F.lit(0.0)) * 1_000 < F.col("ms") + 0.5)
    found = {ClusterHour(*row) for row in kept.select("cluster", "hour_ms").collect()}
    return [hour for hour in every if day_of(hour.hour_ms) > cut or hour in found]


def refresh_settings(settings: Settings) -> RefreshSettings:
    """The settings, with the files that they name. Raises ConfigError for a file that cannot be used."""
    prices, producers = price_rows(settings.price), producer_rows(settings.price)
    return RefreshSettings(prices=prices, producers=producers, look_every_ms=settings.spark.look_every_ms)


class _LookEvents(NamedTuple):
    """What silver is made of."""

    telemetry: DataFrame | None
    """Events of the looks, with what looks by changes keep; None where there is no look."""
    where: tuple[Where, ...]
    """The place of their rows; empty for all."""
    parts: Mapping[tuple[str, str], int]
    """Large looks, and into how many parts they are divided."""
    standing: bool = False
    """Whether there are looks by changes among them."""


def _computed(tables: TableStore, looks: Collection[LookKey], every_ms: int) -> list[LookKey]:
    """Those to compute, sorted: with those that stand on them, without those that are left out or stay."""
    return without_kept(tables, computed_looks(tables, {*looks, *standing_on(tables, looks)}, every_ms))


def _events(
    work: RefreshWork, touched: list[LookKey] | None, look_bytes: Mapping[LookId, int] | None, every_ms: int
) -> _LookEvents:
    if touched is not None and not touched:
        return _LookEvents(None, (), {})
    telemetry = work.tables.read(bronze.TELEMETRY)
    where: tuple[Where, ...] = ()
    if touched is None:
        telemetry = without_left_out(telemetry, every_ms)
    else:
        # Of days that bronze has no more silver keeps the looks that are not named.
        has_days = min(day_of(one.taken_ms) for one in touched) > work.tables.kept_from("bronze")
        many = len(touched) > MOST_LOOKS
        telemetry, where = _of_looks(telemetry, touched, every_ms, whole_days=many and has_days)
    known = dict(_look_bytes(telemetry) if look_bytes is None else look_bytes)
    standing = standing_looks(telemetry)
    if standing:
        full = full_looks(work.tables.read(bronze.TELEMETRY), standing)
        known |= _bytes_of_full(standing, _look_bytes(full))
        telemetry = with_kept(telemetry, full)
    large: dict[tuple[str, str], int] = {look: parts for look, size in known.items() if (parts := parts_of(size))}
    return _LookEvents(telemetry, where, large, bool(standing))


def _silver(work: RefreshWork, events: _LookEvents, jobs: SparkJobs) -> tuple[int, list[Future[None]]]:
    """Write the looks' silver rows; the number of looks, and the writes of rows of which hours are made.

    Of the tables that of the looks alone is written on return.
    """
    telemetry, where, large = events.telemetry, events.where, events.parts
    if telemetry is None:
        return 0, []
    if events.standing and large:
        telemetry = work.hold(telemetry)  # its parts are read several times
    held = jobs.submit(work.hold, look_rows(telemetry, large, work.hold))
    condition = named(where)
    fresh = condition is not None and work.tables.read(silver.LOOKS).where(condition).isEmpty()
    wide = held.result()
    # The looks themselves first: a look that is not among them has no rows elsewhere, also after a crash.
    looks = TableWrite(silver.LOOKS, silver_table(wide, silver.LOOKS), where, fresh=fresh)
    looks_write = jobs.start(work.write_one, looks)
    names = {table.name.partition(".")[2]: table for table in silver.SILVER}
    counted = [F.count(name).alias(name) for name in names]
    problems = F.slice(F.array_sort(F.collect_set("looks.problem")), 1, _MOST_PROBLEMS)
    (counts,) = wide.agg(*counted, problems.alias("problems")).collect()
    work.messages.update(counts["problems"])
    work.rows_of_look = sum(counts[table.name.partition(".")[2]] for table in _OF_HOURS) // max(1, counts["looks"])
    # A look's rows never become fewer, so a table that it has no rows for needs no change.
    writes = [
        TableWrite(table, silver_table(wide, table), where, counts[name], fresh)
        for name, table in sorted(names.items(), key=lambda one: one[1] not in _OF_HOURS)
        if table is not silver.LOOKS and (counts[name] or (not where and work.tables.exists(table)))
    ]
    looks_write.result()
    if silver.LOOKS.name in work.rows:
        work.rows[silver.LOOKS.name] = counts["looks"]
    started = [(write.table, jobs.start(work.write_one, write)) for write in writes]
    return int(counts["looks"]), [write for table, write in started if table in _OF_HOURS]


def _bytes_of_full(standing: Iterable[Row], full: Mapping[LookId, int]) -> dict[LookId, int]:
    """How large looks by changes are with what they keep, of those whose full look is large."""
    bases = {LookId(row["cluster"], row["look"]): LookId(row["cluster"], row["base"]) for row in standing}
    return {look: full[base] for look, base in bases.items() if base in full}


def _look_bytes(telemetry: DataFrame) -> dict[LookId, int]:
    """Data of each large look."""
    sizes = telemetry.groupBy("cluster", "look").agg(data_bytes()).where(F.col("bytes") > PART_BYTES)
    return {LookId(row["cluster"], row["look"]): row["bytes"] for row in sizes.collect()}


def _of_looks(
    telemetry: DataFrame, touched: list[LookKey], every_ms: int, *, whole_days: bool = False
) -> tuple[DataFrame, tuple[Where, ...]]:
    """The events of the looks, and the place of their rows: exactly these, as others may not be in bronze any more."""
    spark, by_day = telemetry.sparkSession, dict[tuple[str, str], list[str]]()
    for one in touched:
        by_day.setdefault((one.cluster, day_of(one.taken_ms)), []).append(one.look)
    rows = telemetry.where(F.col("cluster").isin(sorted({one.cluster for one in touched})))
    if whole_days:
        days = local_relation(spark, by_day, _CLUSTER_DAYS)
        dated = rows.where(taken_on([day for _, day in by_day])).withColumn("_day", day_of_ms(F.col("taken_ms")))
        of_days = dated.join(F.broadcast(days), on=["cluster", "_day"], how="left_semi").drop("_day")
        places = tuple({"day": [day], "cluster": [cluster]} for cluster, day in by_day)
        return without_left_out(of_days, every_ms), places
    looks, times = sorted({one.look for one in touched}), sorted({one.taken_ms for one in touched})
    near = rows.where(F.col("look").isin(looks) & F.col("taken_ms").between(times[0], times[-1]))
    # No join: each query on these rows would have a job of its own for it.
    exact = [
        F.struct(F.lit(of), F.lit(look), F.lit(ms).cast("bigint")) for of, look, ms in {one[:3] for one in touched}
    ]
    return near.where(F.struct("cluster", "look", "taken_ms").isin(exact)), tuple(
        {"day": [day], "cluster": [cluster], "look": sorted(set(of))} for (cluster, day), of in by_day.items()
    )


def _span(touched: list[LookKey] | None, reach_ms: int) -> tuple[int, int] | None:
    """From so long before these looks to as long after them; None for all looks."""
    times = [one.taken_ms for one in touched or ()]
    return (min(times) - reach_ms, max(times) + reach_ms) if times else None


def _touched_hours(work: RefreshWork, touched: list[LookKey] | None, changed: ChangedLooks) -> list[ClusterHour]:
    span_ms = _span(touched, REACH_MS)
    if span_ms is None:
        rows = changed.near.select("cluster", hour_of(F.col("taken_ms")).alias("hour_ms")).distinct()
    else:
        ids = local_relation(work.spark, sorted(changed.ids), silver.LOOK_IDS)
        rows = touched_hours(between(changed.near, *span_ms), ids, changed.pairs)
    return sorted(ClusterHour(*row) for row in rows.collect())


def _gold(
    work: RefreshWork,
    settings: RefreshSettings,
    past: RefreshWork | None,
    incremental: IncrementalSums | None,
    changed: ChangedLooks,
) -> None:
    """Hours and histories side by side: neither reads what the other writes, and most of both is planning."""
    with SparkJobs(work.spark) as jobs:
        if past is not None:
            jobs.start(_histories, past)
        producers, prices = producer_table(work.spark, settings.producers), price_table(work.spark, settings.prices)
        write_hours(work, producers, prices, incremental, changed)


def _histories(work: RefreshWork) -> None:
    work.write(history_writes(work))
