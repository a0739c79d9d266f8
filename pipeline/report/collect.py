"""Figures of a report: the gold tables, summed by Spark and collected.

Gold alone makes the figures. Of silver and bronze come the words beside them (findings, and the settings that proposals
name), and counts of what is missing: looks that did not arrive whole, and records that could not be read.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.owner_rules import OwnerRule
from pipeline.report import balance, facts, summaries, topic_sums
from pipeline.report.ledger_sums import ledger_sums
from pipeline.report.period import ReportPeriod, of_clusters, touching, within
from pipeline.report.weeks import latest_days, widened
from pipeline.schemas import bronze, gold, silver
from pipeline.schemas.table import TableSpec
from pipeline.tables import TableStore

MOST_ROWS = 100_000
"""Most rows of one kind that the driver holds; sums are over all of them, however few are shown."""
DEAREST = 12
"""Groups with costs of their own; the others are added up."""
LEAST_LOCAL = 40
"""Groups whose locality is shown."""
_AT_A_TIME = 3
_MAY_LACK = {bronze.QUARANTINE.name, bronze.PROPOSALS.name, silver.FINDINGS.name}
"""Tables that are there only when something went wrong, or whose words a report can do without."""
_Row = TypeVar("_Row", bound=NamedTuple)
_AddUp = Callable[[DataFrame], DataFrame]


def collect(tables: TableStore, period: ReportPeriod, owners: tuple[OwnerRule, ...] = ()) -> facts.ReportFacts:
    """The facts of a report of the period."""
    return _Collecting(tables, period).facts()._replace(owners=owners)


class _Collecting:
    """One pass over the tables; remembers which are absent and what was left out."""

    def __init__(self, tables: TableStore, period: ReportPeriod) -> None:
        self._tables = tables
        self._period = period
        self._absent: set[str] = set()
        self._left_out: dict[str, int] = {}

    def facts(self) -> facts.ReportFacts:
        """Some questions at a time, as none of them keeps a core busy by itself; large tables are read once."""
        period = self._period
        least_local = partial(summaries.near, most=LEAST_LOCAL)
        with ThreadPoolExecutor(_AT_A_TIME) as pool:

            def tell(title: str, kind: type[_Row], table: TableSpec, rows: DataFrame) -> Future[tuple[_Row, ...]]:
                return pool.submit(self._rows, title, kind, table, lambda: rows)

            def ask(
                title: str, kind: type[_Row], table: TableSpec, add_up: _AddUp, *times: str
            ) -> Future[tuple[_Row, ...]]:
                def rows() -> DataFrame:
                    return add_up(_chosen(self._tables.read(table), period, times))

                return pool.submit(self._rows, title, kind, table, rows)

            futures: dict[str, Future[tuple[Any, ...]]] = {
                "balance": ask("conservation", balance.LedgerBalance, gold.CONSERVATION, balance.balances, "hour_ms"),
                "near": ask("locality", facts.ReaderLocality, gold.LOCALITY, least_local, "hour_ms"),
                "warmups": ask("warm-ups", facts.WarmupTimes, gold.WARMUPS, summaries.warmups, "began_ms", "last_ms"),
                "restores": ask("restores", facts.RestoreSpeed, gold.RESTORE_RATES, summaries.restores),
                "rebalances": ask(
                    "rebalances", facts.RebalanceCounts, gold.REBALANCES, summaries.rebalances, "seen_ms"
                ),
                "drifts": ask("drift", facts.RackDrift, gold.RACK_DRIFT, summaries.drifts, "began_ms", "ended_ms"),
                "outcomes": ask("outcomes", facts.MeasuredOutcome, gold.OUTCOMES, summaries.outcomes, "applied_ms"),
                "errors": ask("errors", facts.PredictionErrors, gold.OUTCOMES, summaries.errors, "applied_ms"),
                "texts": ask("texts", facts.ProposalText, bronze.PROPOSALS, self._texts),
                "findings": ask("findings", facts.OpenFinding, silver.FINDINGS, self._findings),
                "looks": ask("looks", facts.CountedInput, silver.LOOKS, summaries.looked, "taken_ms"),
                "unread": pool.submit(
                    self._rows, "quarantine", facts.CountedInput, bronze.QUARANTINE, self._quarantined
                ),
            }
            hours = summaries.covered_hours(self._widened(gold.PARTITION_TRAFFIC)).persist()
            of_period = within(hours, period, "hour_ms")
            coverage = self._rows(
                "coverage", facts.LookCoverage, gold.PARTITION_TRAFFIC, lambda: summaries.coverage(of_period)
            )
            latest = latest_days(coverage)
            ledger = ledger_sums(self._widened(gold.LEDGER), period, latest).persist()
            asked = ledger.where("asked")
            futures |= {
                "costs": tell("cost", facts.DailyCost, gold.LEDGER, summaries.costs(asked, most=DEAREST)),
                "pairs": tell("ledger", facts.RackPairBytes, gold.LEDGER, summaries.pairs(asked)),
                "topics": tell("avoidable", facts.TopicCost, gold.LEDGER, topic_sums.topic_costs(ledger)),
                "standing": ask(
                    "standing", facts.OpenProposal, gold.OUTCOMES, partial(summaries.standing, ledger=asked),
                    "created_ms", "done_ms",
                ),
                "days": tell("days", facts.DayCoverage, gold.PARTITION_TRAFFIC, topic_sums.day_coverage(of_period)),
                "weeks": tell(
                    "weeks", facts.WeekCoverage, gold.PARTITION_TRAFFIC, topic_sums.week_coverage(hours, latest)
                ),
            }  # fmt: skip
        for held in (hours, ledger):
            held.unpersist()
        return facts.ReportFacts(
            coverage=coverage,
            **{name: rows.result() for name, rows in futures.items()},
            left_out=tuple(sorted(self._left_out.items())),
            absent=tuple(sorted(self._absent - _MAY_LACK)),
        )

    def _widened(self, table: TableSpec) -> DataFrame:
        return within(self._tables.read(table), widened(self._period), "hour_ms")

    def _texts(self, proposals: DataFrame) -> DataFrame:
        return topic_sums.proposal_texts(proposals, of_clusters(self._tables.read(gold.OUTCOMES), self._period))

    def _findings(self, findings: DataFrame) -> DataFrame:
        looks = within(self._tables.read(silver.LOOKS), self._period, "taken_ms")
        return topic_sums.newest_findings(findings, looks)

    def _quarantined(self) -> DataFrame:
        """The cluster of such a record is unknown, so the clusters do not choose."""
        records = self._tables.read(bronze.QUARANTINE)
        timed = records.select("reason", F.unix_millis("kafka_time").alias("kafka_ms"))
        return summaries.quarantined(within(timed, self._period._replace(clusters=()), "kafka_ms"))

    def _rows(self, title: str, kind: type[_Row], table: TableSpec, rows: Callable[[], DataFrame]) -> tuple[_Row, ...]:
        """The rows in their order, as values of that kind; what is beyond the most is counted."""
        if not self._tables.exists(table):
            self._absent.add(table.name)
            return ()
        frame = rows()
        found = frame.limit(MOST_ROWS + 1).collect()
        if len(found) > MOST_ROWS:
            self._left_out[title] = frame.count() - MOST_ROWS
        # Arrays as tuples: the values are frozen.
        frozen = ([tuple(cell) if isinstance(cell, list) else cell for cell in row] for row in found[:MOST_ROWS])
        return tuple(map(kind._make, frozen))


def _chosen(rows: DataFrame, period: ReportPeriod, times: tuple[str, ...]) -> DataFrame:
    """Rows of the period: by one moment, by begin and end, or all of them."""
    match times:
        case (moment,):
            return within(rows, period, moment)
        case (begin, end):
            return touching(rows, period, begin, end)
        case _:
            return of_clusters(rows, period)
