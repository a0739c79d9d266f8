"""Which proposals are looked at again, batch after batch, and which are left as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from agent.values.reassignment import PlanState
from pipeline.jobs.outcomes import outcome_writes
from pipeline.jobs.work import ClusterHour, RefreshWork
from pipeline.schemas.bronze import JOURNAL, PROPOSALS
from pipeline.schemas.gold import OUTCOMES
from pipeline.schemas.silver import LOOKS
from pipeline.tables import TableStore, WriterBatch
from tests.pipeline.silver_rows import CLUSTER, HOUR_MS, Row, at, look, looks
from tests.pipeline.test_outcomes import created, open_frame, plan, void

DAY_S = 86_400


class Told:
    """A root of tables that proposals and looks come to."""

    def __init__(self, tables: TableStore) -> None:
        self.tables = tables
        self.batches = 0

    def proposals(self, *rows: Row) -> Told:
        self.batches += 1
        self.tables.append(PROPOSALS, open_frame(self.tables.spark, PROPOSALS, *rows), WriterBatch("w", self.batches))
        return self

    def acted(self, *rows: Row) -> Told:
        self.batches += 1
        self.tables.append(JOURNAL, open_frame(self.tables.spark, JOURNAL, *rows), WriterBatch("w", self.batches))
        return self

    def looked(self, second: int) -> Told:
        self.batches += 1
        row = look("i", self.batches, second=second)
        self.tables.append(LOOKS, looks(self.tables.spark, row), WriterBatch("w", self.batches))
        return self

    def worked_out(self, *, everything: bool = False) -> dict[str, tuple[str, int]]:
        """State of each proposal, and the second at which it was first published."""
        work = RefreshWork(self.tables)
        work.hours = None if everything else [ClusterHour(CLUSTER, HOUR_MS)]
        work.write(outcome_writes(work, ()))
        rows = self.tables.read(OUTCOMES).collect()
        assert len(rows) == len({row["proposal"] for row in rows})
        return {row["proposal"]: (row["state"], (row["created_ms"] - at(0)) // 1_000) for row in rows}


@pytest.fixture
def told(spark: SparkSession, tmp_path: Path) -> Told:
    return Told(TableStore(spark, str(tmp_path), "parquet"))


def test_where_nothing_was_proposed_for_long_outcomes_stay_as_they_are(told: Told) -> None:
    told.proposals(created("gone", 0), void("gone", 60), created("stands", 0))
    assert told.worked_out() == {"gone": ("void", 0), "stands": ("standing", 0)}
    # The one that stood is looked at once more, however long nothing was said of it.
    told.looked(20 * DAY_S)
    assert told.worked_out() == {"gone": ("void", 0), "stands": ("expired", 0)}
    told.looked(40 * DAY_S)
    work = RefreshWork(told.tables)
    work.hours = [ClusterHour(CLUSTER, HOUR_MS)]
    assert outcome_writes(work, ()) == []


def test_a_second_attempt_is_followed_to_its_end(told: Told) -> None:
    told.proposals(created("p-0123456789ab", 0)).acted(*plan("p-0123456789ab", 10, 1, PlanState.FAILED))
    assert told.worked_out() == {"p-0123456789ab": ("failed", 0)}
    (newer,) = plan("p-0123456789ab", 70, 3, PlanState.OPEN, 1, attempt=2)
    told.acted(*plan("p-0123456789ab", 60, 2, PlanState.OPEN, attempt=2), newer | {"kind": "verifying"})
    assert told.worked_out() == {"p-0123456789ab": ("unknown", 0)}
    # However long nothing is said of the proposal: an act that is not known to have ended may still end.
    told.acted(*plan("p-0123456789ab", 80, 4, PlanState.DONE, 1, attempt=2)).looked(20 * DAY_S)
    assert told.worked_out() == {"p-0123456789ab": ("done", 0)}


@pytest.mark.drill
def test_what_stands_for_weeks_was_first_proposed_when_it_was(told: Told) -> None:
    told.proposals(created("long", 0, expires=9 * DAY_S), created("ends", 0), void("ends", 60)).worked_out()
    told.proposals(created("long", 9 * DAY_S))
    assert told.worked_out() == {"long": ("standing", 0), "ends": ("void", 0)}
    # Back after it had ended: it is the same proposal.
    told.proposals(created("ends", 10 * DAY_S))
    found = told.worked_out()
    assert found == {"long": ("expired", 0), "ends": ("standing", 0)}
    assert told.worked_out(everything=True) == found


@pytest.mark.drill
def test_a_clock_that_runs_ahead_ends_no_proposal(told: Told) -> None:
    told.proposals(created("stands", 0)).looked(60)
    assert told.worked_out() == {"stands": ("standing", 0)}
    told.looked(100 * 365 * DAY_S)
    assert told.worked_out() == {"stands": ("standing", 0)}
    told.proposals(created("ahead", 100 * 365 * DAY_S))
    assert told.worked_out()["stands"] == ("standing", 0)
