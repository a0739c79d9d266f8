"""Explanations on Kafka's own graph: what it would take to run a task elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from assignors import Process, Task, TaskId, TaskProblem, optimal_tasks
from assignors.flow import explain_task, least_cost, task_graph, task_price
from tests.assignors.strategies import examples, task_problems

A, B = frozenset("a"), frozenset("b")


def problem(balance: str = "none") -> TaskProblem:
    return TaskProblem(
        tasks=tuple(
            Task(id=TaskId(0, number), stateful=True, sources=(racks,)) for number, racks in enumerate((A, A, B, B))
        ),
        processes=(
            Process(id="x", rack="a", capacity=1, active=(TaskId(0, 0), TaskId(0, 1))),
            Process(id="y", rack="b", capacity=1, active=(TaskId(0, 2), TaskId(0, 3))),
        ),
        counts="fixed",
        balance="subtopology" if balance == "subtopology" else "none",
    )


def test_a_task_elsewhere_pushes_another_one_back() -> None:
    case = problem()
    explanation = explain_task(case, optimal_tasks(case), TaskId(0, 0), "y")
    assert explanation.extra_cost == 22
    assert explanation.moves[0] == (TaskId(0, 0), "x", "y")
    assert [(source, target) for _, source, target in explanation.moves] == [("x", "y"), ("y", "x")]
    assert str(explanation).startswith("the total cost would rise by 22: 0_0 from x to y, 0_")


def test_a_task_where_it_is_costs_nothing_more() -> None:
    case = problem()
    assert explain_task(case, optimal_tasks(case), TaskId(0, 0), "x") == (0, ())


def test_a_process_that_may_hold_nothing_cannot_take_the_task() -> None:
    case = problem()
    case = replace(case, processes=(*case.processes, Process(id="z", rack="a", capacity=1)))
    explanation = explain_task(case, optimal_tasks(case), TaskId(0, 0), "z")
    assert explanation.extra_cost is None
    assert str(explanation) == "the task cannot be placed there by any allowed assignment"


def test_an_unknown_process_is_an_error() -> None:
    case = problem()
    with pytest.raises(KeyError, match="nobody"):
        explain_task(case, optimal_tasks(case), TaskId(0, 0), "nobody")


@examples(150)
@given(task_problems(processes=(2, 4), subtopologies=2, partitions=3))
def test_the_extra_cost_is_that_of_the_best_assignment_with_the_task_there(case: TaskProblem) -> None:
    result = optimal_tasks(case)
    owner = {task: process.id for process in case.processes for task in process.active}
    for process in case.processes:
        task = case.tasks[0]
        explanation = explain_task(case, result, task.id, process.id)
        forced = task_graph(case)
        # Every other way of the task costs more than any assignment.
        for _, end, data in forced.out_edges(("task", task.id), data=True):
            data["weight"] += 0 if end == ("share", task.id.subtopology, process.id) else 10**9
        cost = least_cost(forced)
        if explanation.extra_cost is None:
            assert cost >= 10**9
        else:
            assert result.cost + explanation.extra_cost == cost
            total = {each: name for name, given in result.active.items() for each in given}
            total.update({each: target for each, _, target in explanation.moves})
            prices = {each.id: each for each in case.tasks}
            homes = {each.id: each for each in case.processes}
            assert cost == sum(
                task_price(case, prices[each], homes[name], owner.get(each)) for each, name in total.items()
            )
