"""Reads the gold tables, has Spark add them up, and collects what came out.

Gold alone makes the figures. One table of silver and one of bronze are counted as well, for what is missing from them:
looks that did not arrive whole, and records that could not be read.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.report import facts, summaries
from pipeline.report.facts import Problem
from pipeline.report.period import Period, of_clusters, touching, within
from pipeline.schemas import bronze, gold, silver
from pipeline.schemas.table import Table
from pipeline.tables import Tables

MOST_ROWS = 1_000
"""Most rows of one table in a report."""
DEAREST_GROUPS = 12
LEAST_LOCAL_GROUPS = 40
_Row = TypeVar("_Row", bound=NamedTuple)


def collect(tables: Tables, period: Period) -> facts.Facts:
    """Everything that a report of the period says."""
    return _Collecting(tables, period).facts()


class _Collecting:
    """One pass over the tables; remembers which are absent and what was left out."""

    def __init__(self, tables: Tables, period: Period) -> None:
        self._tables = tables
        self._period = period
        self._absent: set[str] = set()
        self._left_out: dict[str, int] = {}

    def facts(self) -> facts.Facts:
        traffic = self._within(gold.PARTITION_TRAFFIC, "hour_ms")
        ledger = self._within(gold.LEDGER, "hour_ms")
        locality = self._within(gold.LOCALITY, "hour_ms")
        ended = self._within(gold.OUTCOMES, "applied_ms")
        rates = self._of_clusters(gold.RESTORE_RATES)
        looks = self._within(silver.LOOKS, "taken_ms")
        return facts.Facts(
            from_ms=self._period.from_ms,
            to_ms=self._period.to_ms,
            coverage=self._rows("coverage", facts.Coverage, summaries.coverage(traffic)),
            costs=self._rows("cost", facts.Cost, summaries.costs(ledger, DEAREST_GROUPS)),
            pairs=self._rows("ledger", facts.Pair, summaries.pairs(ledger)),
            near=self._rows("locality", facts.Near, summaries.near(locality, LEAST_LOCAL_GROUPS)),
            warmups=self._rows(
                "warm-ups", facts.Warmups, summaries.warmups(self._touching(gold.WARMUPS, "began_ms", "last_ms"))
            ),
            restores=self._rows("restores", facts.Restore, summaries.restores(rates)),
            rebalances=self._rows(
                "rebalances", facts.Rebalances, summaries.rebalances(self._within(gold.REBALANCES, "seen_ms"))
            ),
            drifts=self._rows(
                "drift", facts.Drift, summaries.drifts(self._touching(gold.RACK_DRIFT, "began_ms", "ended_ms"))
            ),
            outcomes=self._rows("outcomes", facts.Outcome, summaries.outcomes(ended)),
            errors=self._rows("errors", facts.Errors, summaries.errors(ended)),
            standing=self._rows(
                "standing",
                facts.Standing,
                summaries.standing(self._touching(gold.OUTCOMES, "created_ms", "done_ms"), ledger),
            ),
            problems=(*self._problems("look", summaries.incomplete(looks)), *self._quarantined()),
            looks=None if silver.LOOKS.name in self._absent else looks.where("complete").count(),
            left_out=tuple(sorted(self._left_out.items())),
            absent=tuple(sorted(self._absent)),
        )

    def _quarantined(self) -> tuple[Problem, ...]:
        """Whose cluster such a record is of nobody can tell, so the clusters do not choose."""
        records = self._table(bronze.QUARANTINE)
        moment = F.unix_millis("kafka_time").alias("kafka_ms")
        timed = records.select("reason", moment)
        return self._problems(
            "record", summaries.quarantined(within(timed, self._period._replace(clusters=()), "kafka_ms"))
        )

    def _problems(self, what: str, frame: DataFrame) -> tuple[Problem, ...]:
        found = frame.limit(MOST_ROWS).collect()
        return tuple(Problem(what, row["why"], row["number"]) for row in found)

    def _rows(self, title: str, kind: type[_Row], frame: DataFrame) -> tuple[_Row, ...]:
        """The rows in their order, as values of that kind; what is beyond the most is counted."""
        found = frame.limit(MOST_ROWS + 1).collect()
        if len(found) > MOST_ROWS:
            self._left_out[title] = frame.count() - MOST_ROWS
        return tuple(kind(*map(_plain, row)) for row in found[:MOST_ROWS])

    def _within(self, table: Table, moment: str) -> DataFrame:
        return within(self._table(table), self._period, moment)

    def _touching(self, table: Table, begin: str, end: str) -> DataFrame:
        return touching(self._table(table), self._period, begin, end)

    def _of_clusters(self, table: Table) -> DataFrame:
        return of_clusters(self._table(table), self._period)

    def _table(self, table: Table) -> DataFrame:
        if not self._tables.exists(table):
            self._absent.add(table.name)
        return self._tables.read(table)


def _plain(value: Any) -> Any:
    """Arrays as tuples: the values are frozen."""
    return tuple(value) if isinstance(value, list) else value
