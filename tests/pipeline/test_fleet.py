"""Fleet planning: problems there and back, exact answers as proposals, work shared out, plans of whole clusters."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from agent.errors import BadInput
from agent.propose.codec import proposal_from_json, proposal_to_bytes
from agent.simulate.evaluation import replay_look
from agent.telemetry import events as telemetry_events
from agent.values.typed_json import UnreadableError
from assignors.optimal import optimal_consumer, optimal_tasks
from assignors.problem import (
    ConsumerMember,
    ConsumerProblem,
    ReplicaBroker,
    ReplicaProblem,
    ReplicaSet,
    StreamsTask,
    TaskId,
    TaskProblem,
    TaskProcess,
    TopicPartition,
)
from assignors.validate import consumer_defects
from pipeline.bin_packing import packed
from pipeline.fleet.compact import Problem, kind_of, read, size_of, written
from pipeline.fleet.solving import planned
from pipeline.jobs.fleet import plan_looks, plan_problems, records, source_of
from pipeline.schemas.fleet import PLANS, PROBLEMS
from pipeline.tables import Format, TableStore
from tests.bench.bench_optimal import application, cluster, consumer_group
from tests.pipeline.histories import bronze_rows, events_of, recorded, shop, strategy_limits, with_tasks, without
from tests.pipeline.test_backtest_job import ingest

AB, BC = frozenset("ab"), frozenset("bc")


def a_consumer_problem() -> ConsumerProblem:
    return ConsumerProblem(
        members=(
            ConsumerMember(id="m-1", rack="a", topics=("t",), owned=(TopicPartition("t", 1),)),
            ConsumerMember(id="m-2", rack="b", topics=("t",), owned=(TopicPartition("t", 0),)),
            ConsumerMember(id="m-3", rack=None, topics=("t", "u")),
        ),
        racks={"t": (frozenset("a"), frozenset("b")), "u": (AB, frozenset())},
        weights={TopicPartition("t", 0): 5},
        prices={("a", "b"): 3},
        copartitioned=True,
    )


def a_task_problem() -> TaskProblem:
    return TaskProblem(
        tasks=(
            StreamsTask(id=TaskId(0, 0), stateful=True, sources=(AB, BC), changelogs=(AB,), weights=(7, 8)),
            StreamsTask(id=TaskId("other", 1), stateful=False, sources=(BC,)),
        ),
        processes=(
            TaskProcess(
                id="p",
                rack="a",
                capacity=2,
                tags=(("zone", "x"),),
                active=(TaskId(0, 0),),
                standby=(TaskId("other", 1),),
            ),
            TaskProcess(id="q", rack=None, capacity=1),
        ),
        counts="fixed",
        balance="none",
        traffic_cost=3,
        non_overlap_cost=2,
        num_standby_replicas=1,
        rack_aware_tags=("zone",),
    )  # fmt: skip


def a_replica_problem() -> ReplicaProblem:
    return ReplicaProblem(
        brokers=(
            ReplicaBroker(id=1, rack="a"),
            ReplicaBroker(id=2, rack="b"),
            ReplicaBroker(id=3, rack="a", accepts=False),
        ),
        partitions=(
            ReplicaSet(id=TopicPartition("t", 0), replicas=(1, 3), size_bytes=100),
            ReplicaSet(id=TopicPartition("t", 1), replicas=(1, 2)),
        ),
        balance=False,
    )


PROBLEM_KINDS = [
    pytest.param(a_consumer_problem(), id="a consumer group"),
    pytest.param(a_task_problem(), id="an application"),
    pytest.param(a_replica_problem(), id="replicas"),
]


# --- problems ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEM_KINDS)
def test_a_problem_reads_as_it_was_written(problem: Problem) -> None:
    assert read(kind_of(problem), written(problem)) == problem


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        pytest.param("tasks", b"{}", "'v'", id="an empty object"),
        pytest.param("tasks", b'{"v":1}', "sets", id="nothing but a version"),
        pytest.param("tasks", b'{"v":2}', "needs a newer rackwise", id="a newer version"),
        pytest.param("tasks", b"\xff", "not a problem of kind tasks", id="no text"),
        pytest.param("tusks", b'{"v":1}', "'tusks'", id="another kind"),
        pytest.param(
            "consumer", b'{"v":1,"sets":[],"topics":{"t":[3]}}', "not a problem of kind", id="a set not there"
        ),
    ],
)
def test_bytes_that_are_no_problem_are_told(kind: str, body: bytes, told: str) -> None:
    with pytest.raises(UnreadableError, match=told):
        read(kind, body)


# --- answers ----------------------------------------------------------------------------------------------------


def test_a_consumer_group_is_answered_with_the_exact_optimum() -> None:
    problem = consumer_group(random.Random(3), topics=2, partitions=30, members=6, wrong=True)
    answer = planned("c", "readers", problem, 1_000)
    exact = optimal_consumer(problem)
    (proposal,) = answer.proposals
    after = {member.id: tuple(sorted(member.owned)) for member in problem.members} | {
        row.key: tuple(_partition(str(name)) for name in row.value) for row in proposal.after
    }
    assert not consumer_defects(problem, replace(exact, assignment=after))
    assert (answer.optimal, answer.optimal_crossing, answer.moved) == (True, exact.crossing, exact.moved)
    assert len(proposal.moves) == exact.moved
    assert proposal_from_json(proposal_to_bytes(proposal)) == proposal
    assert proposal.expires_ms > proposal.created_ms == 1_000


def test_an_application_is_answered_with_the_exact_optimum() -> None:
    problem = application(300, new=True)
    answer = planned("c", "app", problem, 1)
    exact = optimal_tasks(problem)
    assert (answer.size, answer.optimal, answer.optimal_crossing) == (300, True, exact.crossing)
    (proposal,) = answer.proposals
    assert proposal.sentence.startswith("Rebalance app once: at best ")


def test_replicas_are_answered_topic_by_topic() -> None:
    answer = planned("c", "replicas", a_replica_problem(), 1)
    (proposal,) = answer.proposals
    assert (str(proposal.subject), proposal.predicted.bytes_to_move) == ("topic/t", 100)
    assert [(row.key, row.value) for row in proposal.after] == [("t-0", (1, 2))]


def test_what_is_best_already_is_left_alone() -> None:
    problem = consumer_group(random.Random(3), topics=1, partitions=12, members=6, wrong=False)
    answer = planned("c", "readers", problem, 1)
    assert (answer.proposals, answer.crossing, answer.optimal) == ((), 0, True)


def test_a_problem_that_contradicts_itself_is_told() -> None:
    twice = ConsumerMember(id="m", rack="a", topics=("t",))
    answer = planned("c", "readers", ConsumerProblem(members=(twice, twice), racks={"t": (AB,)}), 1)
    assert answer.why_not is not None
    assert not answer.optimal


def _partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


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


def rows_of(tables: TableStore, run: str) -> dict[tuple[str, str], Any]:
    return {(row.subject, row.kind): row for row in tables.read(PLANS).where(F.col("run") == run).collect()}


def by_cluster(tables: TableStore) -> list[Any]:
    rows = tables.read(PLANS).groupBy("cluster")
    return rows.agg(F.sort_array(F.collect_list("subject")).alias("subjects")).collect()


def test_a_table_of_problems_is_solved(own_tables: TableStore) -> None:
    problems = [
        ("c1", "app-1", application(1_000, new=True)),
        ("c1", "app-2", application(200, new=True, standbys=1)),
        ("c2", "readers", consumer_group(random.Random(1), topics=2, partitions=30, members=6, wrong=True)),
        ("c2", "replicas", cluster(300)[0]),
    ]
    rows = [(name, subject, kind_of(one), size_of(one), 5, written(one)) for name, subject, one in problems]
    frame = own_tables.spark.createDataFrame([*rows, ("c3", "bad", "tasks", 1, 5, b"{}")], PROBLEMS.schema)
    own_tables.replace_where(PROBLEMS, frame)
    done = plan_problems(own_tables, run="r")
    found = rows_of(own_tables, "r")
    assert len(found) == 5
    assert "not a problem of kind tasks" in found["bad", "tasks"].why_not
    for name, subject, problem in problems:
        answer = planned(name, subject, problem, 5)
        row = found[subject, kind_of(problem)]
        assert (row.crossing, row.optimal_crossing, row.moved, row.optimal) == (
            answer.crossing, answer.optimal_crossing, answer.moved, answer.optimal,
        )  # fmt: skip
        assert row.proposals == [proposal_to_bytes(one).decode() for one in answer.proposals]
    assert (done.clusters, done.subjects, done.unplanned, done.unproven) == (3, 5, 1, 0)
    assert "planned 5 groups and topics of 3 clusters" in done.sentence


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

    written_records = records(own_tables, run="r", cluster="test-cluster").collect()
    assert {row.key for row in written_records} >= {"group/readers#trigger/rebalance_improves"}
    for row in written_records:
        headers = {one.key: bytes(one.value).decode() for one in row.headers}
        assert headers["ce_source"] == source_of("test-cluster") == "/clusters/test-cluster/jobs/fleet"
        assert headers["ce_id"] == json.loads(row.value)["id"]


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
    with pytest.raises(BadInput, match="There is no problem"):
        plan_problems(own_tables, run="r")
