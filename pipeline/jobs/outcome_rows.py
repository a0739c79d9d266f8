"""Outcomes: what was predicted of proposals and what came of them, measured around each act of rackwise."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.jobs.work import Work, Write, between
from pipeline.schemas import bronze, gold, silver
from pipeline.tables import Where
from pipeline.transforms.ledger import Grounds, copies, ledger
from pipeline.transforms.outcomes import crossing, moved, outcomes, windows
from pipeline.transforms.prices import PriceRow, price_table
from pipeline.transforms.producers import producer_table
from pipeline.transforms.proposals import acted, published
from pipeline.transforms.reads import reading, routed
from pipeline.transforms.spans import CONTEXT_MS, HOUR_MS, by_window, pairs, timeline
from pipeline.transforms.traffic import partition_traffic, record_sizes, seen

LATELY_MS = 7 * 24 * HOUR_MS
"""Proposals that were last published longer ago are left as they are."""
_KEY = "cluster string, proposal string"
_RATES = f"{_KEY}, " + ", ".join(
    f"{phase}_{name} double" for phase in ("before", "after") for name in ("bytes_per_s", "usd_per_day")
)
_MOVES = f"{_KEY}, measured_moves int, measured_move_bytes double"


def outcome_writes(work: Work, prices: tuple[PriceRow, ...]) -> list[Write]:
    """What to write to gold.proposal_outcomes: nothing where nothing was proposed lately."""
    proposals = work.tables.read(bronze.PROPOSALS)
    newest = _newest(proposals, "time_ms")
    if newest is None:
        return []
    now_ms = max(newest, _newest(work.tables.read(silver.LOOKS), "taken_ms") or 0)
    if work.hours is not None:
        proposals = proposals.where(F.col("time_ms") >= now_ms - LATELY_MS)
    told = work.hold(published(proposals))
    key = ["cluster", "proposal"]
    lives = work.hold(acted(work.tables.read(bronze.JOURNAL)).join(told.select(*key), on=key, how="left_semi"))
    rates, moves = _measured(work, told, lives, prices) if _has_ended(lives) else _nothing(work)
    rows = outcomes(told, lives, rates, moves, now_ms)
    return [Write(gold.OUTCOMES, rows, () if work.hours is None else _where(told))]


def _newest(rows: DataFrame, name: str) -> int | None:
    (row,) = rows.agg(F.max(name).alias("newest")).collect()
    newest: int | None = row["newest"]
    return newest


def _where(told: DataFrame) -> tuple[Where, ...]:
    """Their rows, on whatever day they stand: how early one was first published is not always known."""
    return ({"proposal": sorted(row["proposal"] for row in told.select("proposal").distinct().collect())},)


def _has_ended(lives: DataFrame) -> bool:
    """Whether there is anything to measure: in a dry run nothing is ever carried out."""
    return not lives.where(F.col("applied_ms").isNotNull() & F.col("done_ms").isNotNull()).isEmpty()


def _nothing(work: Work) -> tuple[DataFrame, DataFrame]:
    """As `_measured` where nothing was."""
    return work.spark.createDataFrame([], _RATES), work.spark.createDataFrame([], _MOVES)


def _measured(
    work: Work, told: DataFrame, lives: DataFrame, prices: tuple[PriceRow, ...]
) -> tuple[DataFrame, DataFrame]:
    """Cross-rack traffic before and after, and what was moved, of the proposals that were carried out."""
    named = work.hold(windows(lives))
    reach = named.agg(F.min("window_from_ms").alias("first_ms"), F.max("window_to_ms").alias("last_ms"))
    (span,) = reach.collect()
    first, last = span["first_ms"] or 0, span["last_ms"] or 0
    looks, partitions, reads = (
        between(work.tables.read(table), first - CONTEXT_MS, last + CONTEXT_MS)
        for table in (silver.LOOKS, silver.PARTITIONS, silver.READS)
    )
    times = work.hold(timeline(looks))
    distinct = named.select("cluster", "hour_ms", "window_from_ms", "window_to_ms").distinct()
    spans = work.hold(by_window(pairs(looks), distinct))
    changes = work.hold(seen(partitions, times))
    traffic = work.hold(partition_traffic(changes, spans))
    sizes = record_sizes(traffic)
    routes = routed(reading(reads, changes, times), spans, sizes)
    grounds = Grounds(changes, spans, sizes, routes, producer_table(work.spark, ()), price_table(work.spark, prices))
    subjects = told.select("cluster", "proposal", "said.subject.kind", "said.subject.name")
    rates = work.hold(crossing(ledger(grounds), traffic, named, subjects))
    return rates, work.hold(moved(lives, copies(changes), partitions))
