"""Outcomes of proposals: the prediction, and the traffic measured before and after each act of rackwise."""

from __future__ import annotations

import time

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.jobs.work import RefreshWork, TableWrite, between
from pipeline.schemas import bronze, gold, silver
from pipeline.schemas.table import TableSpec
from pipeline.tables import Where
from pipeline.transforms.ledger import copies, copy_sums, ledger, placement_sums
from pipeline.transforms.outcomes import UNKNOWN, acted, crossing, moved, outcomes, published, windows
from pipeline.transforms.prices import PriceRow, price_table, producer_table
from pipeline.transforms.reads import read_changes, read_routes, read_sums
from pipeline.transforms.spans import CONTEXT_MS, HOUR_MS, by_window, pairs, timeline
from pipeline.transforms.traffic import partition_changes, partition_traffic, record_sizes, traffic_sums

LATELY_MS = 7 * 24 * HOUR_MS
"""In ms: proposals that ended, without a record for this long, are left as they are."""
_OPEN = ("standing", "running", UNKNOWN)


def outcome_writes(work: RefreshWork, prices: tuple[PriceRow, ...]) -> list[TableWrite]:
    """The writes to gold.proposal_outcomes: none where there is no recent and no open proposal."""
    proposals = work.tables.read(bronze.PROPOSALS)
    wall_ms = time.time_ns() // 1_000_000
    newest = _newest(proposals, "time_ms", wall_ms)
    if newest is None:
        return []
    now_ms = max(newest, _newest(work.tables.read(silver.LOOKS), "taken_ms", wall_ms) or 0)
    where: tuple[Where, ...] = ()
    if work.hours is not None:
        ids, since_ms = _open_or_recent(work, proposals, now_ms - LATELY_MS)
        if not ids:
            return []
        proposals = proposals.where((F.col("time_ms") >= since_ms) & _id_of_record().isin(ids))
        # On any day: how early one was first published is not always known.
        where = ({"proposal": ids},)
    documents = work.hold(published(proposals))
    key = ["cluster", "proposal"]
    acts = work.hold(acted(work.tables.read(bronze.JOURNAL)).join(documents.select(*key), on=key, how="left_semi"))
    measured = _measured(work, documents, acts, prices) if _has_ended(acts) else ()
    return [TableWrite(gold.OUTCOMES, outcomes(documents, acts, *measured, now_ms=now_ms), where)]


def _newest(rows: DataFrame, name: str, wall_ms: int) -> int | None:
    """Times of clocks that run ahead of ours do not count."""
    (row,) = rows.where(F.col(name) <= wall_ms).agg(F.max(name).alias("newest")).collect()
    newest: int | None = row["newest"]
    return newest


def _open_or_recent(work: RefreshWork, proposals: DataFrame, lately_ms: int) -> tuple[list[str], int]:
    """Ids of proposals that are open or have a recent record, and the time from which to read their records."""
    recent = proposals.where(F.col("time_ms") >= lately_ms).select(_id_of_record().alias("proposal"))
    ids = {row["proposal"] for row in recent.distinct().collect()} - {None}
    kept = F.col("state").isin(*_OPEN) | F.col("proposal").isin(sorted(ids))
    rows = work.tables.read(gold.OUTCOMES).where(kept).select("proposal", "created_ms").collect()
    since = [row["created_ms"] for row in rows if row["created_ms"] is not None]
    return sorted(ids | {row["proposal"] for row in rows}), min([lately_ms, *since])


def _id_of_record() -> Column:
    return F.get_json_object("data", "$.id")


def _measured(
    work: RefreshWork, documents: DataFrame, acts: DataFrame, prices: tuple[PriceRow, ...]
) -> tuple[DataFrame, DataFrame]:
    """Cross-rack traffic before and after, and what was moved, of the proposals that were carried out."""
    named = work.hold(windows(acts))
    looks, partitions, reads = _around(work, named, silver.LOOKS, silver.PARTITIONS, silver.READS)
    times = work.hold(timeline(looks))
    distinct = named.select("cluster", "hour_ms", "window_from_ms", "window_to_ms").distinct()
    # Of a gap it is not known how much of it was before an act and how much after it.
    spans = work.hold(by_window(pairs(looks).where("seen"), distinct))
    changes = work.hold(partition_changes(partitions, times))
    traffic = work.hold(partition_traffic(traffic_sums(changes, spans)))
    sizes = record_sizes(traffic)
    # What copies of tasks fetch is on the bill, but no proposal predicts it.
    active = reads.where(F.col("role").isin("active", silver.HIDDEN))
    flows = ledger(
        placement_sums(changes, spans),
        copied=copy_sums(changes, spans),
        sizes=sizes,
        routes=read_routes(read_sums(read_changes(active, changes, times), spans), sizes),
        producers=producer_table(work.spark, ()),
        prices=price_table(work.spark, prices),
    )
    subjects = documents.select("cluster", "proposal", "said.subject.kind", "said.subject.name")
    rates = work.hold(crossing(flows, traffic, named, subjects))
    return rates, work.hold(moved(acts, copies(changes), partitions))


def _around(work: RefreshWork, named: DataFrame, *tables: TableSpec) -> list[DataFrame]:
    """Rows of silver from before each act until after it: time between two acts belongs to neither."""
    first, last = F.min("window_from_ms") - CONTEXT_MS, F.max("window_to_ms") + CONTEXT_MS
    reach = named.groupBy("cluster", "proposal").agg(first.alias("first_ms"), last.alias("last_ms"))
    (span,) = reach.agg(F.min("first_ms").alias("first_ms"), F.max("last_ms").alias("last_ms")).collect()
    near = F.col("row.taken_ms").between(F.col("reach.first_ms"), F.col("reach.last_ms"))
    on = (F.col("row.cluster") == F.col("reach.cluster")) & near
    acts = F.broadcast(reach.alias("reach"))
    return [
        between(work.tables.read(table), span["first_ms"] or 0, span["last_ms"] or 0)
        .alias("row")
        .join(acts, on=on, how="left_semi")
        for table in tables
    ]


def _has_ended(acts: DataFrame) -> bool:
    """Whether there is anything to measure: in a dry run nothing is ever carried out."""
    return not acts.where(F.col("applied_ms").isNotNull() & F.col("done_ms").isNotNull()).isEmpty()
