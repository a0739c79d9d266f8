"""Fleet planning: work shared out, plans of whole clusters, proposals as records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from agent.errors import BadInput
from agent.propose.codec import proposal_from_json
from agent.simulate.evaluation import replay_look
from agent.telemetry import events as telemetry_events
from agent.telemetry.topic_records import created_headers, slot
from pipeline.bin_packing import packed
from pipeline.jobs.fleet import plan_looks, records, source_of
from pipeline.schemas.fleet import PLANS
from pipeline.tables import Format, TableStore
from tests.pipeline.histories import bronze_rows, events_of, recorded, shop, strategy_limits, with_tasks, without
from tests.pipeline.test_backtest_job import ingest

# --- sharing out ------------------------------------------------------------------------------------------------


def test_a_huge_piece_has_the_first_task_for_itself() -> None:
    weights = {"huge": 100.0, **{f"small-{number}": 1.0 for number in range(90)}}
    of = packed(weights, 8)
    assert [piece for piece, task in of.items() if task == of["huge"]] == ["huge"]
    assert of["huge"] == 0
    loads = [sum(weights[piece] for piece, task in of.items() if task == number) for number in range(1, 8)]
    assert max(loads) - min(loads) <= 1


@given(st.dictionaries(st.integers(), st.floats(0.1, 1000), min_size=1, max_size=60), st.integers(1, 9))
def test_no_task_has_more_than_its_share_and_one_piece(weights: dict[int, float], tasks: int) -> None:
    of = packed(weights, tasks)
    assert of.keys() == weights.keys()
    used = min(tasks, len(weights))
    assert set(of.values()) == set(range(used))
    loads = [sum(weights[piece] for piece, task in of.items() if task == number) for number in range(used)]
    assert loads == sorted(loads, reverse=True)
    assert loads[0] <= sum(weights.values()) / used + max(weights.values()) + 1e-6
    assert packed(dict(reversed(weights.items())), tasks).keys() == of.keys()


# --- on Spark ---------------------------------------------------------------------------------------------------


@pytest.fixture
def own_tables(spark: SparkSession, tmp_path: Path) -> TableStore:
    return TableStore(spark, str(tmp_path), "parquet")


def by_cluster(tables: TableStore) -> list[Any]:
    rows = tables.read(PLANS).groupBy("cluster")
    return rows.agg(F.sort_array(F.collect_list("subject")).alias("subjects")).collect()


def test_clusters_are_planned_from_their_newest_whole_looks(own_tables: TableStore) -> None:
    limits = strategy_limits(rack_aware_assignment_strategy="min_traffic")
    looks = recorded(lambda _: with_tasks(shop()), 3, limits)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(telemetry_events, "MAX_RECORD_CHARS", 600)
        rows = bronze_rows(without(events_of(looks), "0000abcd-2", 4))
    # One event is missing, and of another one fragment while others of it are there.
    fragments = [number for number, row in enumerate(rows) if row[6] == "fragment" and row[9] == "0000abcd-2"]
    broken = [row for number, row in enumerate(rows) if number != fragments[0]]
    assert rows[fragments[0]][10] == rows[fragments[1]][10]
    other = [(*row[:8], "b-cluster", *row[9:]) for row in bronze_rows(events_of(looks[:1]))]
    newer = [(*row[:5], 2, *row[6:8], "c-cluster", *row[9:]) for row in bronze_rows(events_of(looks[:1]))]
    before = [(*row[:8], "d-cluster", *row[9:-1], "2020-01-01") for row in bronze_rows(events_of(looks[:1]))]
    ingest(own_tables, [*broken, *other, *newer, *before])
    done = plan_looks(own_tables, run="r", days=1)
    events = len({event.n for event in events_of(looks[2:])})
    why = f"look 0000abcd-2 of cluster test-cluster is newer, but lacks 2 of its {events} events"
    assert done.messages[0] == why
    silent, unusable = done.messages[1:]
    assert silent == "cluster d-cluster is not planned: it has no look in the newest day of telemetry"
    assert unusable.startswith("cluster c-cluster is not planned: its look 0000abcd-0 cannot be rebuilt: an event of ")
    assert "version 2 needs a newer rackwise" in unusable
    assert done.clusters == 2
    found = own_tables.read(PLANS).where(F.col("cluster") == "test-cluster").collect()
    said = {proposal_from_json(one).id for row in found for one in row.proposals}
    live = {one.id for one in replay_look(looks[1]).proposals if one.kind.value in ("reassign", "trigger")}
    assert live <= said
    readers = next(row for row in found if row.subject == "readers")
    assert (readers.look, readers.crossing, readers.optimal_crossing, readers.optimal) == ("0000abcd-1", 2, 0, True)
    app = next(row for row in found if row.subject == "app")
    assert (app.kind, app.size, app.crossing, app.optimal_crossing, app.optimal) == ("tasks", 2, 2, 0, True)

    written_records = list(records(own_tables, run="r", cluster="test-cluster"))
    assert {row.key for row in written_records} >= {"group/readers#trigger/rebalance_improves"}
    documents = {one for row in found for one in row.proposals}
    assert {(row.value or b"").decode() for row in written_records} == documents
    for row in written_records:
        proposal = proposal_from_json(row.value or b"")
        assert row.key == slot(proposal)
        assert row.headers == created_headers(proposal, "/clusters/test-cluster/jobs/fleet")
    assert source_of("test-cluster") == "/clusters/test-cluster/jobs/fleet"


def test_clusters_with_roots_of_their_own_are_planned_in_one_job(
    own_tables: TableStore, make_tables: Callable[[str, Format], TableStore]
) -> None:
    looks = recorded(lambda _: with_tasks(shop()), 3)
    here, there = make_tables("here", own_tables.format), make_tables("there", own_tables.format)
    ingest(own_tables, bronze_rows(events_of(looks[:1])))
    ingest(here, [(*row[:8], "b-cluster", *row[9:]) for row in bronze_rows(events_of(looks[:1]))])
    ingest(there, bronze_rows(events_of(looks[:2])))
    done = plan_looks(own_tables, run="r", others=[here, there, there])
    assert (done.clusters, done.messages) == (2, ()), "a look in any root is enough"
    found = own_tables.read(PLANS).select("cluster", "look").distinct().collect()
    assert sorted(map(tuple, found)) == [("b-cluster", "0000abcd-0"), ("test-cluster", "0000abcd-1")]
    subjects = {row.cluster: row.subjects for row in by_cluster(own_tables)}
    assert subjects["b-cluster"] == subjects["test-cluster"] != []
    assert not here.exists(PLANS)
    with pytest.raises(BadInput, match="nowhere has no telemetry"):
        plan_looks(own_tables, run="r", others=[make_tables("nowhere", own_tables.format)])


def test_without_anything_to_plan_that_is_told(own_tables: TableStore) -> None:
    with pytest.raises(BadInput, match="There is no whole look"):
        plan_looks(own_tables, run="r")
