"""Tasks whose source partitions weigh differently: the least weight crosses racks, judged by networkx."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import BadProblem, StreamsTask, TaskId, TaskProblem, TaskProcess, optimal_tasks, task_defects
from assignors.measure import measure_tasks
from tests.assignors.kafka_graph import least_cost, task_graph
from tests.assignors.strategies import examples, task_problems

A, B = frozenset("a"), frozenset("b")


@examples(200)
@given(task_problems(), st.data())
def test_the_weight_that_crosses_equals_networkx_on_kafkas_graph(problem: TaskProblem, data: st.DataObject) -> None:
    weight = st.sampled_from((0, 1, 1, 5, 70, 1_000_000))
    tasks = tuple(replace(task, weights=tuple(data.draw(weight) for _ in task.sources)) for task in problem.tasks)
    weighed = replace(problem, tasks=tasks)
    result = optimal_tasks(weighed)
    assert task_defects(weighed, result) == ()
    assert (
        result.cost
        == result.lower_bound
        == least_cost(task_graph(weighed))
        == measure_tasks(weighed, result.active).cost
    )
    assert result.optimal


@examples(50)
@given(task_problems())
def test_weights_of_one_are_no_weights(problem: TaskProblem) -> None:
    ones = tuple(replace(task, weights=(1,) * len(task.sources)) for task in problem.tasks)
    assert optimal_tasks(replace(problem, tasks=ones)) == optimal_tasks(problem)


def _tasks(*weights: tuple[int, ...] | None) -> TaskProblem:
    """Tasks that are all near in rack a only, for two processes of equal capacity."""
    tasks = tuple(
        StreamsTask(id=TaskId(0, number), stateful=True, sources=(A,), weights=weight)
        for number, weight in enumerate(weights)
    )
    processes = (TaskProcess(id="p-a", rack="a", capacity=1), TaskProcess(id="p-b", rack="b", capacity=1))
    return TaskProblem(tasks=tasks, processes=processes, balance="none", traffic_cost=1, non_overlap_cost=0)


def test_the_heaviest_tasks_stay_at_home() -> None:
    result = optimal_tasks(_tasks((1,), (100,), (2,), (50,)))
    assert result.active["p-a"] == (TaskId(0, 1), TaskId(0, 3))
    assert (result.crossing, result.optimal) == (3, True)


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        pytest.param(((1, 2),), "one weight for each source", id="more weights than sources"),
        pytest.param(((-1,),), "none below 0", id="a weight below 0"),
        pytest.param(((2**60,), (1,)), "in larger units", id="more than the solver can add up"),
    ],
)
def test_impossible_weights_are_refused(weights: tuple[tuple[int, ...], ...], why: str) -> None:
    with pytest.raises(BadProblem, match=why):
        optimal_tasks(_tasks(*weights))
