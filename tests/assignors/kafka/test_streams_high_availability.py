"""The default assignor of Kafka Streams (KIP-441): Kafka's own answers, the KIP's properties and scenarios, and where
repeated assignments lead."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from assignors.cases.registry import AssignorCase
from assignors.cases.streams_input import streams_problem
from assignors.kafka.high_availability import high_availability
from assignors.kafka.streams_problem import (
    UNKNOWN_LAG,
    AssignmentConfigs,
    RackFacts,
    StreamsClient,
    StreamsProblem,
    StreamsResult,
    client_states,
)
from assignors.problem import BadProblem, TaskId, TopicPartition
from tests.assignors.kafka.golden import assert_as_kafka, golden_cases
from tests.assignors.kafka.streams_application import END, Instance, StreamsApplication, process_id, tasks
from tests.assignors.kafka.streams_cases import an_application

SEEDS = range(150)


@pytest.mark.parametrize("case", golden_cases("streams.ha"))
def test_the_answer_is_kafkas(case: AssignorCase) -> None:
    assert_as_kafka(case)


# --- KIP-441: six properties --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed {seed}")
def application(request: pytest.FixtureRequest) -> tuple[StreamsProblem, StreamsResult]:
    problem = streams_problem(an_application(request.param))
    return problem, high_availability(problem)


Application = tuple[StreamsProblem, StreamsResult]


def test_kip_441_property_1_active_tasks_run_where_the_state_is_closest(application: Application) -> None:
    problem, result = application
    acceptable = problem.configs.acceptable_recovery_lag
    clients = client_states(problem)
    for process, active in result.active.items():
        for task in set(active) & set(problem.stateful):
            lags = [client.lag(task) for client in clients.values()]
            # An unknown lag sorts before all others, so Kafka leaves the task there.
            if (lag := clients[process].lag(task)) != UNKNOWN_LAG:
                caught_up = any(client.caught_up(task, acceptable) for client in clients.values())
                assert clients[process].caught_up(task, acceptable) if caught_up else lag == min(lags), task


def test_kip_441_property_2_every_stateful_task_has_its_standbys(application: Application) -> None:
    problem, result = application
    asked = min(problem.configs.num_standby_replicas, len(problem.clients) - 1)
    copies = Counter(task for standby in result.standby.values() for task in standby)
    assert all(copies[task] >= asked for task in problem.stateful)
    assert not copies.keys() - set(problem.stateful)


def test_kip_441_property_3_warm_ups_stay_within_their_limit(application: Application) -> None:
    problem, result = application
    placed = [(process, task) for process, warming in result.warmup.items() for task in warming]
    assert len(placed) <= problem.configs.max_warmup_replicas
    assert all(task in result.standby[process] for process, task in placed)
    copies = Counter(task for standby in result.standby.values() for task in standby)
    asked = problem.configs.num_standby_replicas
    assert sum(max(0, count - asked) for count in copies.values()) <= problem.configs.max_warmup_replicas
    assert result.followup_rebalance or not placed


def test_kip_441_property_4_every_task_runs_once_and_no_process_has_two_copies(application: Application) -> None:
    problem, result = application
    assert sorted(task for active in result.active.values() for task in active) == sorted(problem.tasks)
    assert all(set(result.active[process]).isdisjoint(result.standby[process]) for process in result.active)
    assert list(result.active) == [client.id for client in problem.clients]


def test_kip_441_property_6_the_order_of_the_input_leaves_no_trace(application: Application) -> None:
    problem, result = application
    rng = random.Random(1)
    shuffled = replace(
        problem,
        tasks=tuple(rng.sample(problem.tasks, len(problem.tasks))),
        stateful=tuple(rng.sample(problem.stateful, len(problem.stateful))),
        clients=tuple(rng.sample(problem.clients, len(problem.clients))),
    )
    again = high_availability(shuffled)
    assert (again.active, again.standby, again.followup_rebalance) == (
        result.active,
        result.standby,
        result.followup_rebalance,
    )


@pytest.mark.parametrize("seed", range(40), ids=lambda seed: f"seed {seed}")
def test_no_move_would_bring_loads_closer_together(seed: int) -> None:
    rng = random.Random(seed)
    configs = AssignmentConfigs(acceptable_recovery_lag=2**63 - 1)
    lags = dict.fromkeys(tasks(*(f"{number % 3}_{number}" for number in range(rng.randint(1, 30)))), 5)
    equal = seed % 2 == 0
    clients = tuple(
        StreamsClient(id=process_id(number), capacity=1 if equal else rng.randint(1, 6), lags=lags)
        for number in range(rng.randint(1, 9))
    )
    result = high_availability(
        StreamsProblem(tasks=tuple(lags), stateful=tuple(lags), clients=clients, configs=configs)
    )
    count = [len(result.active[client.id]) for client in clients]
    threads = [client.capacity for client in clients]
    for source in range(len(clients)):
        for destination in range(len(clients)):
            after = (count[source] - 1) / threads[source] - (count[destination] + 1) / threads[destination]
            assert source == destination or after < 0, (count, threads)
    assert not equal or max(count) - min(count) <= 1


# --- KIP-441: where it leads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60), ids=lambda seed: f"seed {seed}")
def test_kip_441_property_5_it_converges_whoever_joins_and_leaves(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(1, 24)
    all_tasks = tasks(*(f"{number % 3}_{number // 3}" for number in range(count)))
    stateful = tuple(task for task in all_tasks if rng.random() < 0.8)
    configs = AssignmentConfigs(
        num_standby_replicas=rng.choice((0, 1, 2)),
        max_warmup_replicas=rng.choice((1, 2, 5)),
        rack_aware_assignment_tags=rng.choice(((), ("zone",))),
    )
    if seed % 2:
        configs = replace(configs, rack_aware_assignment_strategy=rng.choice(("min_traffic", "balance_subtopology")))
    world = StreamsApplication(all_tasks, stateful, configs, _three_racks(rng, all_tasks, stateful))
    for number in range(rng.randint(1, 4)):
        world.instances[number] = _someone(rng)
    for number in range(10, 16):
        if rng.random() < 0.5 and len(world.instances) > 1:
            world.instances.pop(rng.choice(list(world.instances)))
        else:
            world.instances[number] = _someone(rng)
        world.history.append(f"seed {seed}, now with {sorted(world.instances)}")
        if rng.random() < 0.7:
            # Each round brings at least one copy to its place; none needs more rounds than there are copies.
            world.settle(2 + len(stateful) * (1 + configs.num_standby_replicas))
            settled = world.shown()
            assert not world.rebalance().followup_rebalance
            assert world.shown() == settled, world.history
        else:
            world.rebalance()
    world.settle(2 + len(stateful) * (1 + configs.num_standby_replicas))
    assert sorted(task for each in world.instances.values() for task in each.active) == sorted(all_tasks)


def _three_racks(rng: random.Random, all_tasks: tuple[TaskId, ...], stateful: tuple[TaskId, ...]) -> RackFacts:
    return RackFacts(
        consumer_racks={process_id(number): {"consumer": "abc"[number % 3]} for number in range(20)},
        cluster={f"in{task}": ((rng.choice("abc"),),) for task in all_tasks},
        described={f"log{task}": ((rng.choice("abc"),),) for task in stateful},
        task_partitions={task: (TopicPartition(f"in{task}", 0),) for task in all_tasks},
        changelog_partitions={task: (TopicPartition(f"log{task}", 0),) for task in stateful},
    )


def _someone(rng: random.Random) -> Instance:
    return Instance(capacity=rng.choice((1, 1, 2)), tags={"zone": rng.choice("abc")})


ONE_STANDBY = AssignmentConfigs(num_standby_replicas=1)
T1, T2, T3, T4 = tasks("0_1 0_2 0_3 0_4")


def _running(instance: str, in_sync: bool = True) -> Instance:
    """``active | standby``; standbys are in sync or far behind."""
    active, standby = (tasks(part) for part in instance.split("|"))
    lag = dict.fromkeys(active, 0) | dict.fromkeys(standby, 0 if in_sync else 500_000)
    return Instance(active=active, standby=standby, lag=lag)


def test_kip_441_scaling_out() -> None:
    world = StreamsApplication((T1, T2, T3), (T1, T2, T3), ONE_STANDBY)
    world.instances = {1: _running("0_1 0_3 | 0_2"), 2: _running("0_2 | 0_1 0_3"), 3: Instance()}
    first = world.rebalance()
    assert first.followup_rebalance
    running = {task: number for number, each in world.instances.items() for task in each.active}
    assert set(running.values()) == {1, 2}, "the new instance has no state yet, so it runs nothing"
    warming = set(first.warmup[process_id(3)])
    assert warming == set(world.instances[3].standby)
    assert len(warming) == 2, "as many as max.warmup.replicas allows"
    assert all(world.copies(task) == 2 for task in warming), "one standby as asked, and the warm-up"
    world.catch_up()
    world.settle(5)
    assert all(len(each.active) == 1 and len(each.standby) == 1 for each in world.instances.values()), world.shown()


def test_kip_441_scaling_in_with_standbys_in_sync() -> None:
    world = StreamsApplication((T1, T2, T3, T4), (T1, T2, T3, T4), ONE_STANDBY)
    world.instances = {2: _running("0_2 | 0_1 0_4"), 3: _running("0_3 | 0_2")}
    first = world.rebalance()
    assert world.shown() == {2: ("0_1 0_4", "0_2 0_3"), 3: ("0_2 0_3", "0_1 0_4")}, "the tables of the KIP"
    # The KIP needs no further rebalance here. Kafka aims at another, equally good assignment and asks for one.
    assert first.followup_rebalance
    world.catch_up()
    assert world.settle(2) == 1


def test_kip_441_scaling_in_with_standbys_behind() -> None:
    world = StreamsApplication((T1, T2, T3, T4), (T1, T2, T3, T4), ONE_STANDBY)
    world.instances = {2: _running("0_2 | 0_1 0_4", in_sync=False), 3: _running("0_3 | 0_2", in_sync=False)}
    first = world.rebalance()
    assert first.followup_rebalance
    assert world.shown() == {2: ("0_1 0_2 0_4", "0_3"), 3: ("0_3", "0_1 0_2 0_4")}, "the tables of the KIP"
    world.catch_up()
    assert world.settle(2) == 1
    assert {number: len(each.active) for number, each in world.instances.items()} == {2: 2, 3: 2}


def test_kip_441_balance_of_instances_and_subtopologies_once_settled() -> None:
    all_tasks = tasks("0_0 0_1 0_2 1_0 1_1 1_2")
    world = StreamsApplication(all_tasks, all_tasks, AssignmentConfigs())
    world.instances = {1: Instance(), 2: Instance(), 3: Instance()}
    world.settle(9)
    assert [sorted(task.subtopology for task in each.active) for each in world.instances.values()] == [[0, 1]] * 3


# --- situations ---------------------------------------------------------------------------------------------------


def _problem(lags: dict[int, dict[TaskId, int]], **configs: int) -> StreamsProblem:
    clients = tuple(StreamsClient(id=process_id(number), capacity=1, lags=lag) for number, lag in lags.items())
    stateful = tuple(next(iter(lags.values())))
    return StreamsProblem(tasks=stateful, stateful=stateful, clients=clients, configs=AssignmentConfigs(**configs))


def test_a_process_whose_id_has_the_high_bit_set_comes_first() -> None:
    problem = _problem({1: {T1: 0}})
    high = replace(problem.clients[0], id="ffffffff-0000-0000-0000-000000000000")
    result = high_availability(replace(problem, clients=(*problem.clients, high)))
    assert result.active == {process_id(1): (), high.id: (T1,)}


def test_without_a_limit_of_lag_everybody_is_caught_up() -> None:
    result = high_availability(_problem({1: {T1: END}, 2: {T1: 0}}, acceptable_recovery_lag=2**63 - 1))
    assert result.active[process_id(1)] == (T1,)
    assert not result.followup_rebalance


def test_an_unknown_lag_keeps_the_task() -> None:
    result = high_availability(_problem({1: {T1: UNKNOWN_LAG}, 2: {T1: -2}}))
    assert result.active[process_id(1)] == (T1,)
    assert not result.followup_rebalance


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        pytest.param({"clients": ()}, "no process to run them", id="tasks but no process"),
        pytest.param({"stateful": (T1, T1)}, "stateful task 0_1 is listed twice", id="a task is listed twice"),
        pytest.param({"stateful": (T2,)}, "0_2 is not among the tasks", id="a stateful task that does not exist"),
        pytest.param({"capacity": 0}, "has capacity 0", id="a process without threads"),
        pytest.param({"lags": {}}, "no lag for stateful task 0_1", id="a lag is missing"),
        pytest.param({"lags": {T1: 2**70}}, "exceeds 64 bits", id="a lag that no offset can have"),
        pytest.param({"assigned_active": (T1,)}, "starts without assignments", id="a task is assigned already"),
        pytest.param({"id": "one"}, "is not a process UUID", id="an id that is no UUID"),
        pytest.param({"max_warmup_replicas": 0}, "asks for at least 1", id="no warm-ups"),
        pytest.param({"num_standby_replicas": -1}, "num_standby_replicas is -1", id="fewer standbys than none"),
        pytest.param({"rack_aware_assignment_strategy": "min"}, "Kafka knows none", id="a misspelt strategy"),
        pytest.param({"rack_aware_assignment_traffic_cost": -1}, "cost is -1", id="a negative cost"),
        pytest.param({"rack_aware_assignment_non_overlap_cost": 2**31}, "is 2147483648", id="a cost beyond 32 bit"),
    ],
)
def test_a_problem_that_contradicts_itself_is_refused(change: dict[str, object], complaint: str) -> None:
    problem = _problem({1: {T1: 0}})
    for part in (problem.clients[0], problem.configs):
        fields = {name: value for name, value in change.items() if name in part.__dataclass_fields__}
        if fields and isinstance(part, StreamsClient):
            problem = replace(problem, clients=(replace(part, **fields),))  # type: ignore[arg-type]  # by name
        elif fields:
            problem = replace(problem, configs=replace(problem.configs, **fields))  # type: ignore[arg-type]  # by name
    whole = {name: value for name, value in change.items() if name in problem.__dataclass_fields__}
    with pytest.raises(BadProblem, match=complaint):
        high_availability(replace(problem, **whole))  # type: ignore[arg-type]  # by name


def test_two_processes_of_one_id_are_refused() -> None:
    problem = _problem({0xA: {T1: 0}})
    with pytest.raises(BadProblem, match="is listed twice"):
        high_availability(replace(problem, clients=problem.clients * 2))
    loud = replace(problem.clients[0], id=problem.clients[0].id.upper())
    with pytest.raises(BadProblem, match="are one process"):
        high_availability(replace(problem, clients=(*problem.clients, loud)))


def test_a_process_with_two_copies_of_a_task_is_refused() -> None:
    client = StreamsClient(id=process_id(1), capacity=1, assigned_active=(T1,), assigned_standby=(T1,))
    problem = StreamsProblem(tasks=(T1,), stateful=(T1,), clients=(client,))
    with pytest.raises(BadProblem, match="has task 0_1 as active and as standby"):
        client_states(problem)


def test_nothing_to_do_is_an_answer() -> None:
    result = high_availability(_problem({1: {}}))
    assert (result.active, result.standby, result.followup_rebalance, result.flow) == (
        {process_id(1): ()},
        {process_id(1): ()},
        False,
        "not run",
    )
