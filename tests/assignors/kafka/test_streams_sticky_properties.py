"""Properties of Kafka's sticky Streams assignors on random applications: valid, sticky, balanced, settling."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from assignors.kafka.fallback_prior import fallback_prior
from assignors.kafka.sticky_kip924 import sticky_kip924
from assignors.kafka.streams_problem import AssignmentConfigs, RackFacts, StreamsClient, StreamsProblem, StreamsResult
from assignors.problem import TaskId, TopicPartition
from tests.assignors.kafka.sticky_applications import ALL, STICKY, Assignor, a_client, assert_valid, process_id
from tests.assignors.strategies import examples


@st.composite
def applications(draw: st.DrawFn, *, racks: bool = False, standbys: int = 2) -> StreamsProblem:
    tasks = [TaskId(s, p) for s in range(draw(st.integers(1, 3))) for p in range(draw(st.integers(0, 4)))]
    stateful = [task for task in tasks if draw(st.booleans())]
    history = st.lists(st.sampled_from([*tasks, TaskId(9, 9)]), unique=True, max_size=5).map(tuple)
    clients = tuple(
        StreamsClient(
            id=process_id(number),
            capacity=draw(st.integers(1, 3)),
            prev_active=draw(history),
            prev_standby=draw(history),
        )
        for number in draw(st.permutations(range(draw(st.integers(1, 5)))))
    )
    configs = AssignmentConfigs(num_standby_replicas=draw(st.integers(0, standbys)))
    if not racks:
        return StreamsProblem(
            tasks=tuple(draw(st.permutations(tasks))), stateful=tuple(stateful), clients=clients, configs=configs
        )
    somewhere = st.lists(st.sampled_from("abc"), min_size=1, max_size=2).map(tuple)
    return StreamsProblem(
        tasks=tuple(tasks),
        stateful=tuple(stateful),
        clients=clients,
        configs=replace(
            configs,
            rack_aware_assignment_strategy=draw(st.sampled_from(("min_traffic", "balance_subtopology"))),
            rack_aware_assignment_traffic_cost=draw(st.sampled_from((0, 1, 10))),
            rack_aware_assignment_non_overlap_cost=draw(st.sampled_from((0, 1, 10))),
        ),
        racks=RackFacts(
            consumer_racks={client.id: {"consumer": draw(st.sampled_from("abc"))} for client in clients},
            cluster={f"in{task}": (draw(somewhere),) for task in tasks},
            described={f"log{task}": (draw(somewhere),) for task in stateful},
            task_partitions={task: (TopicPartition(f"in{task}", 0),) for task in tasks},
            changelog_partitions={task: (TopicPartition(f"log{task}", 0),) for task in stateful},
        ),
    )


def last_owners(problem: StreamsProblem, result: StreamsResult) -> dict[str, set[TaskId]]:
    """Tasks that each process ran and no other claims: the order of the processes makes no difference to them."""
    claims = Counter(task for client in problem.clients for task in client.prev_active)
    known = set(problem.tasks)
    return {c.id: {task for task in c.prev_active if claims[task] == 1 and task in known} for c in problem.clients}


@ALL
@examples(200)
@given(problem=applications())
def test_every_answer_is_valid_and_the_same_each_time(assign: Assignor, problem: StreamsProblem) -> None:
    result = assign(problem)
    assert_valid(problem, result)
    assert assign(problem) == result


@STICKY
@examples(200)
@given(problem=applications())
def test_what_fits_in_the_share_by_threads_stays(assign: Assignor, problem: StreamsProblem) -> None:
    result = assign(problem)
    per_thread = len(problem.tasks) // sum(client.capacity for client in problem.clients)
    mine = last_owners(problem, result)
    for client in problem.clients:
        if len(set(client.prev_active) & set(problem.tasks)) <= client.capacity * per_thread:
            assert mine[client.id] <= set(result.active[client.id])


@examples(200)
@given(problem=applications())
def test_the_fallback_moves_nothing_that_has_an_owner(problem: StreamsProblem) -> None:
    result = fallback_prior(problem)
    for process, tasks in last_owners(problem, result).items():
        assert tasks <= set(result.active[process])


@STICKY
@examples(200)
@given(problem=applications(standbys=0))
def test_beyond_a_task_per_thread_no_process_is_a_whole_task_above_another(
    assign: Assignor, problem: StreamsProblem
) -> None:
    result = assign(problem)
    capacity = {client.id: client.capacity for client in problem.clients}
    least = min(len(tasks) / capacity[process] for process, tasks in result.active.items())
    for process, tasks in result.active.items():
        if len(tasks) > capacity[process]:
            assert (len(tasks) - 1) / capacity[process] <= least


@STICKY
@examples(150)
@given(problem=applications(racks=True))
def test_the_rack_step_keeps_counts_and_never_costs_more_than_doing_nothing(
    assign: Assignor, problem: StreamsProblem
) -> None:
    without = assign(replace(problem, configs=replace(problem.configs, rack_aware_assignment_strategy="none")))
    result = assign(problem)
    assert_valid(problem, result)
    for process, tasks in without.active.items():
        for kind in (frozenset(problem.stateful), frozenset(problem.tasks) - frozenset(problem.stateful)):
            assert len(kind.intersection(tasks)) == len(kind.intersection(result.active[process]))
    if problem.configs.rack_aware_assignment_strategy == "min_traffic":
        with_changelogs = assign is sticky_kip924
        assert price(problem, result, without, with_changelogs) <= price(problem, without, without, with_changelogs)


def price(problem: StreamsProblem, now: StreamsResult, before: StreamsResult, with_changelogs: bool) -> int:
    """What the stateful active tasks cost, as the rack step reckons."""
    racks, configs = problem.racks, problem.configs
    assert racks is not None
    total = 0
    for process, tasks in now.active.items():
        rack = racks.consumer_racks[process]["consumer"]
        for task in set(tasks) & set(problem.stateful):
            where = [racks.cluster[f"in{task}"][0], *([racks.described[f"log{task}"][0]] if with_changelogs else [])]
            total += (configs.rack_aware_assignment_traffic_cost or 0) * sum(rack not in replicas for replicas in where)
            total += (configs.rack_aware_assignment_non_overlap_cost or 0) * (task not in before.active[process])
    return total


@STICKY
@examples(60)
@given(
    problem=applications(),
    events=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(1, 3)), min_size=1, max_size=6),
)
def test_assignments_settle_over_joins_and_leaves(
    assign: Assignor, problem: StreamsProblem, events: list[tuple[int, int, int]]
) -> None:
    for step, (kind, number, capacity) in enumerate(events):
        clients = list(problem.clients)
        if kind < 2 and len(clients) > 1:
            note(f"{clients.pop(number % len(clients)).id} leaves")
        else:
            clients.append(a_client(100 + step, capacity=capacity))
            note(f"{process_id(100 + step)} joins with {capacity} threads")
        problem = replace(problem, clients=tuple(clients))
        for _ in range(10):
            result = assign(problem)
            assert_valid(problem, result)
            after = next_round(problem, result)
            settled = all(
                set(was.prev_active) == set(is_.prev_active)
                for was, is_ in zip(problem.clients, after.clients, strict=True)
            )
            problem = after
            if settled:
                break
        else:
            pytest.fail(f"tasks still move after ten rounds of {problem}")


def next_round(problem: StreamsProblem, result: StreamsResult) -> StreamsProblem:
    return replace(
        problem,
        clients=tuple(
            replace(client, prev_active=result.active[client.id], prev_standby=result.standby[client.id])
            for client in problem.clients
        ),
    )
