"""What an assignment costs and how balanced it is, figure by figure."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given

from assignors import (
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
    measure_consumer,
    measure_replicas,
    measure_tasks,
    optimal_consumer,
    optimal_replicas,
    optimal_tasks,
)
from tests.assignors.strategies import consumer_problems, examples, replica_problems, task_problems

A, B, C = (frozenset(rack) for rack in "abc")
T0, T1, T2, T3 = (TopicPartition("t", number) for number in range(4))


def test_a_consumer_group_is_measured_by_load_crossing_weight_and_moves() -> None:
    problem = ConsumerProblem(
        members=(
            ConsumerMember(id="x", rack="a", topics=("t",), owned=(T0, T1, T3)),
            ConsumerMember(id="y", rack="b", topics=("t",), owned=(T2, T3)),
            ConsumerMember(id="z", rack=None, topics=("t",)),
        ),
        racks={"t": (A, B, B, A)},
        weights={T1: 500, T2: 70},
    )
    measure = measure_consumer(problem, {"x": (T0, T1), "y": (T3,), "z": (T2,)})
    assert measure.loads == {"x": 2, "y": 1, "z": 1}
    assert measure.gap == 1
    assert measure.crossing_partitions == 3
    assert measure.crossing == 500 + 70 + 1
    assert (measure.kept, measure.moved) == (2, 1)


def tasks_of(*subtopology_sizes: int) -> tuple[StreamsTask, ...]:
    return tuple(
        StreamsTask(id=TaskId(subtopology, partition), stateful=True, sources=(A,), changelogs=(B, C))
        for subtopology, size in enumerate(subtopology_sizes)
        for partition in range(size)
    )


def ids(names: str) -> tuple[TaskId, ...]:
    return tuple(TaskId(int(subtopology), int(partition)) for subtopology, partition in map(tuple, names.split()))


def test_kip_441_example_of_data_parallel_balance() -> None:
    """Two subtopologies of three partitions on three nodes: mixed is better than in rows."""
    processes = tuple(TaskProcess(id=name, rack="a", capacity=1) for name in "ABC")
    problem = TaskProblem(tasks=tasks_of(3, 3), processes=processes)
    mixed = measure_tasks(problem, {"A": ids("00 10"), "B": ids("01 11"), "C": ids("02 12")})
    rows = measure_tasks(problem, {"A": ids("00 01"), "B": ids("02 10"), "C": ids("11 12")})
    assert (mixed.instances, rows.instances) == ({0: 3, 1: 3}, {0: 2, 1: 2})
    assert (mixed.off_share, rows.off_share) == (0, 0)
    assert (mixed.off_subtopology_share, rows.off_subtopology_share) == (0, 4)


def test_kip_441_balances_of_an_uneven_assignment() -> None:
    processes = tuple(TaskProcess(id=name, rack="a", capacity=1) for name in "ABC")
    problem = TaskProblem(tasks=tasks_of(3, 1), processes=processes)
    measure = measure_tasks(problem, {"A": ids("00 01 02"), "B": ids("10"), "C": ()})
    assert measure.off_share == 2
    assert measure.off_subtopology_share == 2 + 2


def test_tasks_are_measured_by_crossing_moves_standbys_and_cost() -> None:
    processes = (
        TaskProcess(id="x", rack="a", capacity=1, active=ids("00"), standby=ids("01")),
        TaskProcess(id="y", rack="b", capacity=1, active=ids("01")),
        TaskProcess(id="z", rack=None, capacity=1),
    )
    problem = TaskProblem(tasks=tasks_of(3), processes=processes, num_standby_replicas=1)
    measure = measure_tasks(
        problem,
        {"x": ids("00"), "y": ids("02"), "z": ids("01")},
        {"x": ids("01"), "y": ids("00"), "z": ids("02")},
        weights={TaskId(0, 2): 900},
    )
    assert (measure.active, measure.standby) == ({"x": 1, "y": 1, "z": 1}, {"x": 1, "y": 1, "z": 1})
    assert (measure.kept, measure.moved) == (1, 2)
    assert (measure.crossing, measure.crossing_weight) == (2, 901)
    assert measure.standby_crossing == 2 + 1 + 2
    assert (measure.standby_kept, measure.standby_moved) == (1, 2)
    assert measure.cost == 10 * 2 + 2
    assert measure.shared == {"rack": 2}


def test_spread_is_measured_per_tag() -> None:
    processes = tuple(
        TaskProcess(id=name, rack="a", capacity=1, tags=(("zone", zone), ("cluster", cluster)))
        for name, zone, cluster in (("x", "1", "k"), ("y", "1", "l"), ("z", "2", "k"))
    )
    problem = TaskProblem(tasks=tasks_of(1), processes=processes, rack_aware_tags=("zone", "cluster"))
    measure = measure_tasks(problem, {"x": ids("00")}, {"y": ids("00"), "z": ids("00")})
    assert measure.shared == {"zone": 1, "cluster": 1}


def test_replicas_are_measured_by_brokers_leaders_crowding_and_moves() -> None:
    problem = ReplicaProblem(
        brokers=tuple(ReplicaBroker(id=number, rack=rack) for number, rack in enumerate(("a", "a", "b", None))),
        partitions=(
            ReplicaSet(id=T0, replicas=(0, 1), size_bytes=10),
            ReplicaSet(id=T1, replicas=(2, 0)),
            ReplicaSet(id=T2, replicas=(3, 0), size_bytes=5),
        ),
    )
    before = measure_replicas(problem)
    assert before.counts == {0: 3, 1: 1, 2: 1, 3: 1}
    assert before.leaders == {"a": 1, "b": 1}
    assert (before.crowded, before.moved_replicas, before.moved_bytes, before.leaders_changed) == (1, 0, 0, 0)
    after = measure_replicas(problem, {T0: (0, 2), T1: (1, 2)})
    assert (after.crowded, after.moved_replicas, after.moved_bytes, after.leaders_changed) == (0, 2, 11, 1)


@examples(100)
@given(consumer_problems())
def test_consumer_results_state_what_is_measured(problem: ConsumerProblem) -> None:
    result = optimal_consumer(problem)
    measure = measure_consumer(problem, result.assignment)
    assert (result.crossing, result.moved) == (measure.crossing, measure.moved)


@examples(100)
@given(task_problems(standbys=2))
def test_task_results_state_what_is_measured(problem: TaskProblem) -> None:
    result = optimal_tasks(problem)
    measure = measure_tasks(problem, result.active, result.standby)
    assert (result.cost, result.crossing, result.moved) == (measure.cost, measure.crossing, measure.moved)
    assert result.standbys is not None
    standby_cost = problem.traffic_cost * measure.standby_crossing + problem.non_overlap_cost * measure.standby_moved
    assert result.standbys.cost == standby_cost


@examples(100)
@given(replica_problems(balance=True))
def test_replica_results_state_what_is_measured(problem: ReplicaProblem) -> None:
    result = optimal_replicas(problem)
    measure = measure_replicas(problem, result.replicas)
    assert (result.moved_replicas, result.moved_bytes) == (measure.moved_replicas, measure.moved_bytes)


@pytest.mark.parametrize("heavy", ["numpy", "ortools", "networkx"])
def test_problems_measures_and_judges_come_without_the_solvers(heavy: str) -> None:
    check = f"import sys, assignors, assignors.validate; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_the_package_knows_its_names_and_no_others() -> None:
    check = "import assignors; assignors.optimal_consumer; assignors.optimal_everything"
    done = subprocess.run([sys.executable, "-c", check], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "module 'assignors' has no attribute 'optimal_everything'" in done.stderr
