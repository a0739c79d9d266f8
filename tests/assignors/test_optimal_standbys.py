"""Standbys against trying everything, the KIPs' own examples, and the promises for any number of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import assume, given

from assignors import (
    StandbyQuality,
    StreamsTask,
    TaskId,
    TaskProblem,
    TaskProcess,
    TaskResult,
    measure_tasks,
    optimal_tasks,
    task_defects,
)
from tests.assignors.oracles import best_single_standbys, least_shared, shared_copies, standby_score
from tests.assignors.strategies import examples, task_problems

many = examples(200)
some = examples(100)

A, B, C = (frozenset(rack) for rack in "abc")


def stateful(number: int, changelog: frozenset[str] = A) -> StreamsTask:
    return StreamsTask(id=TaskId(0, number), stateful=True, sources=(), changelogs=(changelog,))


def process(name: str, rack: str | None = None, tags: str = "", active: str = "", standby: str = "") -> TaskProcess:
    """``tags`` reads "zone=x cluster=y"; tasks are partition numbers of subtopology 0."""
    pairs = tuple((each.partition("=")[0], each.partition("=")[2]) for each in tags.split())
    mine, others = (tuple(TaskId(0, int(number)) for number in tasks.split()) for tasks in (active, standby))
    return TaskProcess(id=name, rack=rack, capacity=1, tags=pairs, active=mine, standby=others)


def quality(result: TaskResult) -> StandbyQuality:
    assert result.standbys is not None
    return result.standbys


def holders(problem: TaskProblem, result: TaskResult, task: TaskId) -> list[TaskProcess]:
    """The active's process, then those of the standbys."""
    active = [each for each in problem.processes if task in result.active[each.id]]
    return active + [each for each in problem.processes if task in result.standby[each.id]]


@many
@given(task_problems(fixed=False, standbys=1, processes=(2, 4), subtopologies=2, partitions=3))
def test_one_standby_equals_trying_everything(problem: TaskProblem) -> None:
    assume(any(task.stateful for task in problem.tasks))
    result = optimal_tasks(problem)
    found = quality(result)
    assert task_defects(problem, result) == ()
    assert (found.shared, found.imbalance, found.cost) == best_single_standbys(problem, result)
    assert (found.shared_bound, found.imbalance_bound, found.cost_bound) == (found.shared, found.imbalance, found.cost)
    assert found.missing == 0


@some
@given(task_problems(fixed=False, standbys=3))
def test_several_standbys_are_all_there_and_as_far_apart_as_possible(problem: TaskProblem) -> None:
    result = optimal_tasks(problem)
    found = quality(result)
    assert task_defects(problem, result) == ()
    tasks = [task for task in problem.tasks if task.stateful]
    copies = min(problem.num_standby_replicas, len(problem.processes) - 1)
    assert found.missing == (problem.num_standby_replicas - copies) * len(tasks)
    if not copies:
        return
    shared = 0
    for task in tasks:
        active, *standbys = holders(problem, result, task.id)
        assert shared_copies(problem, [active, *standbys]) == least_shared(problem, active, copies)
        shared += least_shared(problem, active, copies)
    assert (found.shared, found.shared_bound) == (shared, shared)
    given_now = [tuple(holders(problem, result, task.id)[1:]) for task in tasks]
    assert (found.shared, found.imbalance, found.cost) == standby_score(problem, result, given_now)
    assert found.imbalance_bound <= found.imbalance
    assert found.cost_bound <= found.cost


@some
@given(task_problems(fixed=False, standbys=2, processes=(3, 4), subtopologies=1, partitions=3))
def test_no_figure_is_below_its_bound_for_any_placement_of_two_standbys(problem: TaskProblem) -> None:
    tasks = [task for task in problem.tasks if task.stateful]
    assume(problem.num_standby_replicas == 2 and tasks)
    result = optimal_tasks(problem)
    found = quality(result)
    choices = []
    for task in tasks:
        others = [each for each in problem.processes if task.id not in result.active[each.id]]
        choices.append([(one, two) for number, one in enumerate(others) for two in others[number + 1 :]])
    scores = [standby_score(problem, result, list(picks)) for picks in product(*choices)]
    assert min(shared for shared, _, _ in scores) == found.shared
    apart = [score for score in scores if score[0] == found.shared]
    assert found.imbalance_bound <= min(imbalance for _, imbalance, _ in apart)
    assert found.cost_bound <= min(cost for _, imbalance, cost in apart if imbalance <= found.imbalance)
    assert min(scores) <= (found.shared, found.imbalance, found.cost)


@some
@given(task_problems(fixed=False, standbys=3))
def test_standbys_that_are_there_never_get_worse_and_the_best_ones_stay(problem: TaskProblem) -> None:
    first = optimal_tasks(problem)
    running = tuple(
        replace(each, active=first.active[each.id], standby=first.standby[each.id]) for each in problem.processes
    )
    again = optimal_tasks(replace(problem, processes=running))
    assert again.active == first.active
    before, after = quality(first), quality(again)
    assert (after.shared, after.imbalance) <= (before.shared, before.imbalance)
    if problem.num_standby_replicas == 1:
        assert again.standby == first.standby


def test_kip_708_nine_nodes_two_standbys_differ_in_zone_and_cluster() -> None:
    nodes = tuple(
        process(f"n{zone}{cluster}", tags=f"zone={zone} cluster={cluster}") for zone in "123" for cluster in "123"
    )
    problem = TaskProblem(
        tasks=tuple(stateful(number) for number in range(9)),
        processes=nodes,
        num_standby_replicas=2,
        rack_aware_tags=("zone", "cluster"),
    )
    result = optimal_tasks(problem)
    assert (quality(result).shared, quality(result).imbalance) == (0, 0)
    for task in problem.tasks:
        for tag in ("zone", "cluster"):
            values = {dict(each.tags)[tag] for each in holders(problem, result, task.id)}
            assert len(values) == 3, (task.id, tag)


def test_kip_708_two_clusters_in_three_zones_spread_one_standby_over_both_tags() -> None:
    nodes = tuple(
        process(f"n{zone}{cluster}", tags=f"zone={zone} cluster={cluster}") for zone in "123" for cluster in "12"
    )
    problem = TaskProblem(
        tasks=tuple(stateful(number) for number in range(6)),
        processes=nodes,
        num_standby_replicas=1,
        rack_aware_tags=("zone", "cluster"),
    )
    result = optimal_tasks(problem)
    assert (quality(result).shared, quality(result).imbalance) == (0, 0)


def test_kip_708_more_standbys_than_values_reuses_a_value_only_then() -> None:
    nodes = tuple(process(f"n{number}", tags=f"zone={'xxyy'[number]}") for number in range(4))
    problem = TaskProblem(
        tasks=(stateful(0), stateful(1)), processes=nodes, num_standby_replicas=2, rack_aware_tags=("zone",)
    )
    result = optimal_tasks(problem)
    assert (quality(result).shared, quality(result).shared_bound) == (2, 2)
    for task in problem.tasks:
        assert {dict(each.tags)["zone"] for each in holders(problem, result, task.id)} == {"x", "y"}


SITUATIONS = {
    "a standby goes to another rack than its active": (
        TaskProblem(
            tasks=(stateful(0),),
            processes=(process("x", "a", active="0"), process("y", "a"), process("z", "b")),
            num_standby_replicas=1,
            counts="fixed",
        ),
        {"x": (), "y": (), "z": (0,)},
    ),
    "tags come before racks when both are set": (
        TaskProblem(
            tasks=(stateful(0),),
            processes=(
                process("x", "a", "host=1", active="0"),
                process("y", "b", "host=1"),
                process("z", "a", "host=2"),
            ),
            num_standby_replicas=1,
            counts="fixed",
            rack_aware_tags=("host",),
        ),
        {"x": (), "y": (), "z": (0,)},
    ),
    "a standby in the wrong rack moves though the move costs": (
        TaskProblem(
            tasks=(stateful(0),),
            processes=(process("x", "a", active="0"), process("y", "a", standby="0"), process("z", "b")),
            num_standby_replicas=1,
            counts="fixed",
        ),
        {"x": (), "y": (), "z": (0,)},
    ),
    "a standby that is as good as any other stays": (
        TaskProblem(
            tasks=(stateful(0),),
            processes=(process("x", "a", active="0"), process("y", "b"), process("z", "b", standby="0")),
            num_standby_replicas=1,
            counts="fixed",
        ),
        {"x": (), "y": (), "z": (0,)},
    ),
    "a process that gives its active away keeps the state as a standby": (
        TaskProblem(
            tasks=(stateful(0), stateful(1)),
            processes=(process("x", "a", active="0 1"), process("y", "b"), process("z", "c")),
            num_standby_replicas=1,
            balance="none",
        ),
        None,
    ),
    "a process whose rack is not known is taken only when no other is left": (
        TaskProblem(
            tasks=(stateful(0),),
            processes=(process("x", "a", active="0"), process("y", None), process("z", "b")),
            num_standby_replicas=1,
            counts="fixed",
        ),
        {"x": (), "y": (), "z": (0,)},
    ),
    "a single process can hold no standby and says how many are missing": (
        TaskProblem(tasks=(stateful(0),), processes=(process("x", "a", active="0"),), num_standby_replicas=2),
        {"x": ()},
    ),
}


@pytest.mark.parametrize(("problem", "expected"), SITUATIONS.values(), ids=SITUATIONS.keys())
def test_situation(problem: TaskProblem, expected: dict[str, tuple[int, ...]] | None) -> None:
    result = optimal_tasks(problem)
    assert task_defects(problem, result) == ()
    if expected is None:
        moved = result.active["y"] + result.active["z"]
        assert moved
        assert all(task in result.standby["x"] for task in moved)
    else:
        assert {name: tuple(task.partition for task in given) for name, given in result.standby.items()} == expected


def test_missing_standbys_are_counted() -> None:
    problem = TaskProblem(tasks=(stateful(0), stateful(1)), processes=(process("x", "a"),), num_standby_replicas=2)
    assert quality(optimal_tasks(problem)) == StandbyQuality(missing=4)


def test_no_standbys_asked_for_leaves_the_quality_open() -> None:
    problem = TaskProblem(tasks=(stateful(0),), processes=(process("x", "a"), process("y", "b")))
    assert optimal_tasks(problem).standbys is None


@pytest.mark.parametrize("racks", [1, 3], ids=["one rack: any process but the active's", "three racks"])
def test_hundreds_of_tasks_are_balanced_and_apart(racks: int) -> None:
    processes = tuple(
        TaskProcess(id=f"p{number:02}", rack="abc"[number % racks], capacity=1 + number % 2) for number in range(30)
    )
    problem = TaskProblem(
        tasks=tuple(stateful(number, (A, B, C)[number % racks]) for number in range(600)),
        processes=processes,
        num_standby_replicas=1,
    )
    result = optimal_tasks(problem)
    assert task_defects(problem, result) == ()
    measured = measure_tasks(problem, result.active, result.standby)
    assert quality(result).imbalance == quality(result).imbalance_bound == 0
    assert measured.shared["rack"] == quality(result).shared == (600 if racks == 1 else 0)
