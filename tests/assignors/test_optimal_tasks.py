"""The optimum of Streams tasks against Kafka's own graph on networkx, and in named situations."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TypeVar

import networkx as nx
import pytest
from hypothesis import given

from assignors import (
    BadProblem,
    StreamsTask,
    TaskId,
    TaskProblem,
    TaskProcess,
    TaskResult,
    optimal_mapping,
    optimal_tasks,
    task_defects,
)
from assignors.optimal import kinds
from tests.assignors.kafka_graph import least_cost, task_graph
from tests.assignors.strategies import examples, task_problems

T = TypeVar("T")
many = examples(300)
some = examples(100)

A, B, C = (frozenset(rack) for rack in "abc")


def task(name: str, *sources: frozenset[str], stateful: bool = True) -> StreamsTask:
    subtopology, partition = map(int, name.split("_"))
    return StreamsTask(id=TaskId(subtopology, partition), stateful=stateful, sources=sources)


def process(name: str, rack: str | None, active: str = "", capacity: int = 1) -> TaskProcess:
    tasks = (each.split("_") for each in active.split())
    return TaskProcess(id=name, rack=rack, capacity=capacity, active=tuple(TaskId(int(s), int(p)) for s, p in tasks))


def shown(result: TaskResult) -> dict[str, str]:
    return {name: " ".join(map(str, tasks)) for name, tasks in result.active.items()}


FOUR = (task("0_0", A), task("0_1", A), task("0_2", B), task("0_3", B))

SITUATIONS = {
    "local and balanced tasks stay": (
        TaskProblem(tasks=FOUR, processes=(process("x", "a", "0_0 0_1"), process("y", "b", "0_2 0_3"))),
        {"x": "0_0 0_1", "y": "0_2 0_3"},
        (0, 0, 0),
    ),
    "tasks in the wrong rack swap, though each move costs": (
        TaskProblem(tasks=FOUR, processes=(process("x", "a", "0_0 0_2"), process("y", "b", "0_1 0_3"))),
        {"x": "0_0 0_1", "y": "0_2 0_3"},
        (2, 0, 2),
    ),
    "a move that costs more than it saves is not made": (
        TaskProblem(
            tasks=FOUR,
            processes=(process("x", "a", "0_0 0_2"), process("y", "b", "0_1 0_3")),
            traffic_cost=1,
            non_overlap_cost=10,
        ),
        {"x": "0_0 0_2", "y": "0_1 0_3"},
        (2, 2, 0),
    ),
    "a move that saves exactly what it costs is not made either": (
        TaskProblem(
            tasks=FOUR,
            processes=(process("x", "a", "0_0 0_2"), process("y", "b", "0_1 0_3")),
            traffic_cost=1,
            non_overlap_cost=1,
        ),
        {"x": "0_0 0_2", "y": "0_1 0_3"},
        (2, 2, 0),
    ),
    "moves that cost nothing are still not made without need": (
        TaskProblem(
            tasks=FOUR,
            processes=(process("x", "a", "0_1 0_0"), process("y", "a", "0_2 0_3")),
            traffic_cost=1,
            non_overlap_cost=0,
        ),
        {"x": "0_0 0_1", "y": "0_2 0_3"},
        (2, 2, 0),
    ),
    "a new process gets its share and costs one move per task": (
        TaskProblem(tasks=FOUR, processes=(process("x", "a", "0_0 0_1 0_2 0_3"), process("y", "b"))),
        {"x": "0_0 0_1", "y": "0_2 0_3"},
        (2, 0, 2),
    ),
    "a process that left gives its tasks to the others and they count as moved": (
        TaskProblem(tasks=FOUR, processes=(process("x", "a", "0_0"), process("y", "b", "0_2 0_3"))),
        {"x": "0_0 0_1", "y": "0_2 0_3"},
        (1, 0, 1),
    ),
    "shares follow the number of threads": (
        TaskProblem(tasks=FOUR, processes=(process("x", "a", capacity=3), process("y", "b"))),
        {"x": "0_0 0_1 0_3", "y": "0_2"},
        (14, 1, 4),
    ),
    "fixed counts keep an uneven distribution": (
        TaskProblem(
            tasks=FOUR, processes=(process("x", "b", "0_0 0_1 0_2"), process("y", "a", "0_3")), counts="fixed",
            balance="none",
        ),
        {"x": "0_0 0_2 0_3", "y": "0_1"},
        (12, 1, 2),
    ),
    "a task that no longer exists is forgotten, also by fixed counts": (
        TaskProblem(
            tasks=FOUR[:2], processes=(process("x", "a", "0_0 0_9"), process("y", "a", "0_1")), counts="fixed"
        ),
        {"x": "0_0", "y": "0_1"},
        (0, 0, 0),
    ),
    "a process without rack is local nowhere": (
        TaskProblem(tasks=FOUR[:2], processes=(process("x", None), process("y", "a"))),
        {"x": "0_1", "y": "0_0"},
        (12, 1, 2),
    ),
    "stateless tasks are placed by the same costs": (
        TaskProblem(
            tasks=(task("0_0", A, stateful=False), task("0_1", B, stateful=False)),
            processes=(process("x", "b"), process("y", "a")),
        ),
        {"x": "0_1", "y": "0_0"},
        (2, 0, 2),
    ),
    "no tasks is a valid problem": (
        TaskProblem(tasks=(), processes=(process("x", "a"),)),
        {"x": ""},
        (0, 0, 0),
    ),
    "no tasks and no processes is a valid problem": (TaskProblem(tasks=(), processes=()), {}, (0, 0, 0)),
    "a task claimed by two processes has no owner": (
        TaskProblem(tasks=FOUR[:2], processes=(process("x", "a", "0_0"), process("y", "a", "0_0 0_1"))),
        {"x": "0_0", "y": "0_1"},
        (1, 0, 1),
    ),
    "subtopologies named by strings as under KIP-1071": (
        TaskProblem(
            tasks=(StreamsTask(id=TaskId("clicks", 0), stateful=True, sources=(A,)),), processes=(process("x", "a"),)
        ),
        {"x": "clicks_0"},
        (1, 0, 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("problem", "expected", "figures"), SITUATIONS.values(), ids=SITUATIONS.keys())
def test_situation(problem: TaskProblem, expected: dict[str, str], figures: tuple[int, int, int]) -> None:
    result = optimal_tasks(problem)
    assert task_defects(problem, result) == ()
    assert (result.cost, result.crossing, result.moved) == figures
    assert (result.lower_bound, result.optimal) == (result.cost, True)
    assert shown(result) == expected


@examples(900)
@given(task_problems())
def test_cost_equals_networkx_on_kafkas_graph(problem: TaskProblem) -> None:
    result = optimal_tasks(problem)
    assert task_defects(problem, result) == ()
    assert result.cost == result.lower_bound == least_cost(task_graph(problem))
    assert result.optimal


@some
@given(task_problems())
def test_the_answer_to_the_answer_is_the_same_answer(problem: TaskProblem) -> None:
    first = optimal_tasks(problem)
    running = tuple(replace(each, active=first.active[each.id]) for each in problem.processes)
    again = optimal_tasks(replace(problem, processes=running))
    assert again.active == first.active
    assert again.moved == 0


@some
@given(task_problems())
def test_a_mapping_says_the_same_as_the_result(problem: TaskProblem) -> None:
    result, mapping = optimal_tasks(problem), optimal_mapping(problem)
    assert mapping.process == {task: name for name, tasks in result.active.items() for task in tasks}
    assert mapping[1:] == (result.cost, result.crossing, result.moved, result.lower_bound)
    assert mapping.optimal


@some
@given(task_problems(standbys=2))
def test_the_order_of_the_input_leaves_no_trace(problem: TaskProblem) -> None:
    assert repr(optimal_tasks(mixed(problem))) == repr(optimal_tasks(problem))


@some
@given(task_problems())
def test_nor_does_it_where_there_are_too_many_kinds_to_compare(problem: TaskProblem) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinds, "_MERGE_BELOW", 0)
        assert repr(optimal_tasks(mixed(problem))) == repr(optimal_tasks(problem))
        assert optimal_tasks(problem).cost == least_cost(task_graph(problem))


def mixed(problem: TaskProblem) -> TaskProblem:
    rng = random.Random(11)
    return replace(
        problem,
        tasks=shuffled(rng, problem.tasks),
        processes=tuple(
            replace(each, active=shuffled(rng, each.active), standby=shuffled(rng, each.standby))
            for each in shuffled(rng, problem.processes)
        ),
    )


def shuffled(rng: random.Random, values: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(rng.sample(values, len(values)))


BAD = {
    "a task that occurs twice": (
        TaskProblem(tasks=(task("0_0"), task("0_0")), processes=(process("x", "a"),)),
        "task 0_0 occurs twice",
    ),
    "a process that occurs twice": (
        TaskProblem(tasks=(), processes=(process("x", "a"), process("x", "b"))),
        "process x occurs twice",
    ),
    "a process without threads": (
        TaskProblem(tasks=(), processes=(process("x", "a", capacity=0),)),
        "process x has capacity 0",
    ),
    "tasks without any process": (TaskProblem(tasks=(task("0_0"),), processes=()), "no process to run them"),
    "a negative traffic cost": (
        TaskProblem(tasks=(), processes=(), traffic_cost=-1),
        "traffic_cost is -1; costs lie between 0 and 2147483647",
    ),
    "a non-overlap cost beyond 32 bit": (
        TaskProblem(tasks=(), processes=(), non_overlap_cost=1 << 31),
        "non_overlap_cost is 2147483648",
    ),
    "a negative number of standbys": (
        TaskProblem(tasks=(), processes=(), num_standby_replicas=-1),
        "num_standby_replicas is -1",
    ),
    "fixed counts though a task runs nowhere": (
        TaskProblem(tasks=(task("0_0"),), processes=(process("x", "a"),), counts="fixed"),
        "task 0_0 runs on no single process, so counts cannot be fixed",
    ),
}


@pytest.mark.parametrize(("problem", "sentence"), BAD.values(), ids=BAD.keys())
def test_bad_problem(problem: TaskProblem, sentence: str) -> None:
    with pytest.raises(BadProblem, match=sentence):
        optimal_tasks(problem)


def test_costs_at_the_limit_of_32_bit_are_exact() -> None:
    tasks = tuple(task(f"0_{number}", A if number % 2 else B) for number in range(40))
    processes = tuple(process(f"p{number}", "ab"[number % 2]) for number in range(8))
    most = (1 << 31) - 1
    problem = TaskProblem(tasks=tasks, processes=processes, traffic_cost=most, non_overlap_cost=most)
    result = optimal_tasks(problem)
    assert (result.cost, result.crossing, result.optimal) == (40 * most, 0, True)


def test_an_owner_gone_with_fixed_counts_has_no_graph_either() -> None:
    problem = TaskProblem(tasks=(task("0_0"),), processes=(process("x", "a"),), counts="fixed")
    with pytest.raises(nx.NetworkXUnfeasible):
        least_cost(task_graph(problem))
