"""The rack-aware step of Kafka Streams (KIP-925): Kafka's own answers, the KIP's examples, and when it is off."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from assignors.cases.registry import AssignorCase
from assignors.cases.streams_input import streams_problem
from assignors.kafka.high_availability import high_availability
from assignors.kafka.rack_aware import RackAwareness, rack_awareness, rack_misses
from assignors.kafka.rack_optimize import (
    active_cost,
    optimize_active,
    optimize_standby,
    standby_cost,
)
from assignors.kafka.streams_problem import (
    AssignmentConfigs,
    ClientState,
    RackFacts,
    RackStrategy,
    StreamsClient,
    StreamsProblem,
    client_states,
)
from assignors.kafka.subtopology_flow import room_by_subtopology
from assignors.problem import BadProblem, TaskId, TopicPartition
from tests.assignors.kafka.golden import assert_as_kafka, golden_cases
from tests.assignors.kafka.streams_application import process_id, tasks
from tests.assignors.kafka.streams_cases import an_application, an_optimization

STRATEGIES: tuple[RackStrategy, ...] = ("min_traffic", "balance_subtopology")


@pytest.mark.parametrize("case", golden_cases("streams.rack_optimize"))
def test_the_answer_is_kafkas(case: AssignorCase) -> None:
    assert_as_kafka(case)


def a_problem(
    sources: dict[str, tuple[str, ...]],
    clients: dict[str, str],
    *,
    capacities: tuple[int, ...] = (),
    strategy: RackStrategy = "min_traffic",
) -> StreamsProblem:
    """Tasks with the racks of their one source, clients as ``rack -> assigned tasks`` (``a``, ``a2``: rack a twice)."""
    ids = tasks(*sources)
    return StreamsProblem(
        tasks=ids,
        stateful=ids,
        clients=tuple(
            StreamsClient(
                id=process_id(number + 1),
                capacity=capacities[number] if capacities else 1,
                lags=dict.fromkeys(ids, 0),
                assigned_active=tasks(clients[name]),
            )
            for number, name in enumerate(clients)
        ),
        configs=AssignmentConfigs(rack_aware_assignment_strategy=strategy),
        racks=RackFacts(
            consumer_racks={process_id(number + 1): {"c": name[0]} for number, name in enumerate(clients)},
            cluster={f"in{task}": (racks,) for task, racks in zip(ids, sources.values(), strict=True)},
            described={},
            task_partitions={task: (TopicPartition(f"in{task}", 0),) for task in ids},
            changelog_partitions={},
        ),
    )


def optimized(problem: StreamsProblem, costs: tuple[int, int] = (10, 1)) -> tuple[list[str], int, int]:
    """Active tasks by client, the cost before and the cost returned."""
    clients = list(client_states(problem).values())
    awareness = rack_awareness(problem)
    before = active_cost(problem, awareness, clients, problem.tasks, costs)
    cost = optimize_active(problem, awareness, clients, problem.tasks, costs).cost
    return [" ".join(map(str, sorted(client.active))) for client in clients], before, cost


def test_kip_925_two_tasks_on_the_wrong_clients_swap_at_the_cost_of_two_moves() -> None:
    problem = a_problem({"0_1": ("b",), "0_2": ("a",)}, {"a": "0_1", "b": "0_2"})
    assert optimized(problem) == (["0_2", "0_1"], 20, 2)


def test_kip_925_a_task_costs_for_traffic_and_for_not_overlapping() -> None:
    problem = a_problem({"0_1": ("a", "b"), "0_2": ("c",)}, {"a": "0_1", "b": "0_2"})
    misses = rack_misses(
        rack_awareness(problem),
        problem.tasks,
        [client.id for client in problem.clients],
        problem.racks.task_partitions if problem.racks else {},
        (10, 1),
    )
    assert misses.costs(10).tolist() == [[0, 0], [10, 10]]


def test_kip_925_with_a_non_overlap_cost_of_zero_only_traffic_counts() -> None:
    problem = a_problem({"0_1": ("b",), "0_2": ("a",)}, {"a": "0_1", "b": "0_2"})
    assert optimized(problem, (1, 1))[0] == ["0_1", "0_2"], "two moves cost what they save"
    assert optimized(problem, (1, 0))[0] == ["0_2", "0_1"]


def test_kip_925_three_clients_of_one_two_and_three_threads_bound_two_subtopologies() -> None:
    room = room_by_subtopology(np.array([1, 2, 3]), np.array([3, 3]))
    assert room.tolist() == [[1, 1, 2], [1, 1, 2]]
    everywhere = {f"{s}_{p}": ("a", "b") for s in (1, 2) for p in (1, 2, 3)}
    problem = a_problem(everywhere, {"a": "", "b": "", "a2": ""}, capacities=(1, 2, 3), strategy="balance_subtopology")
    active = list(high_availability(problem).active.values())
    assert [len(each) for each in active] == [1, 2, 3]
    most = [max(sum(task.subtopology == s for task in each) for s in (1, 2)) for each in active]
    assert most == [1, 1, 2]


def test_kip_925_no_subtopology_crowds_a_client_where_min_traffic_lets_it() -> None:
    sources = {"0_0": ("a",), "0_1": ("a",), "1_0": ("b",), "1_1": ("b",)}
    clients = {"a": "0_0 1_0", "b": "0_1 1_1"}
    assert optimized(a_problem(sources, clients)) == (["0_0 0_1", "1_0 1_1"], 20, 2)
    balanced, _, _ = optimized(a_problem(sources, clients, strategy="balance_subtopology"))
    assert [{task.split("_")[0] for task in active.split()} for active in balanced] == [{"0", "1"}, {"0", "1"}]


# --- when it is off ---------------------------------------------------------------------------------------------------

PROBLEM = a_problem({"0_1": ("a",), "0_2": ("b",)}, {"a": "0_1", "b": "0_2"})
FACTS = PROBLEM.racks or RackFacts(
    consumer_racks={}, cluster={}, described={}, task_partitions={}, changelog_partitions={}
)
ONE, TWO = process_id(1), process_id(2)
WITH_CHANGELOG: dict[str, Any] = {"changelog_partitions": {TaskId(0, 1): (TopicPartition("log", 0),)}}


@pytest.mark.parametrize(
    ("facts", "valid", "reason"),
    [
        pytest.param(
            {"consumer_racks": {ONE: {"c": "a"}, TWO: {}}},
            False,
            f"process {TWO} has no consumer, so no rack; it must join with client.rack set",
            id="a process without consumers",
        ),
        pytest.param(
            {"consumer_racks": {ONE: {"c": "a"}, TWO: {"c": "b", "d": None}}},
            False,
            f"consumer d of process {TWO} has no rack; set client.rack",
            id="a consumer without a rack",
        ),
        pytest.param(
            {"consumer_racks": {ONE: {"c": "a", "d": "b"}, TWO: {"c": "b"}}},
            False,
            f"consumers of process {ONE} have two racks, a and b; set one client.rack",
            id="a process in two racks",
        ),
        pytest.param(
            {"cluster": {"in0_1": (("a",),)}},
            True,
            "partition in0_2-0 is not in the leader's metadata; does the topic exist?",
            id="a source that the metadata does not know",
        ),
        pytest.param(
            {"cluster": {"in0_1": (("a", None),), "in0_2": (("b",),)}},
            True,
            "a replica of partition in0_1-0 is on a broker without a rack: "
            "it is down or removed, or has no broker.rack",
            id="a source on a broker without a rack",
        ),
        pytest.param(
            {"cluster": {"in0_1": ((),), "in0_2": (("b",),)}},
            True,
            "topic in0_1 could not be described; does it exist, and may the application describe it?",
            id="a source of unknown replicas that cannot be described",
        ),
        pytest.param(
            {"cluster": {"in0_1": ((),), "in0_2": (("b",),)}, "described": {"in0_1": ((),)}},
            True,
            "the replicas of partition in0_1-0 are unknown",
            id="a source without replicas even when described",
        ),
        pytest.param(
            WITH_CHANGELOG,
            True,
            "topic log could not be described; does it exist, and may the application describe it?",
            id="a changelog that cannot be described",
        ),
        pytest.param(
            {**WITH_CHANGELOG, "described": {"log": ((None,),)}},
            True,
            "a replica of partition log-0 is on a broker without a rack: it is down or removed, or has no broker.rack",
            id="a changelog on a broker without a rack",
        ),
    ],
)
def test_kip_925_what_switches_racks_off_is_said(facts: dict[str, Any], valid: bool, reason: str) -> None:
    configs = replace(PROBLEM.configs, num_standby_replicas=1)
    problem = replace(PROBLEM, racks=replace(FACTS, **facts), configs=configs)
    awareness = rack_awareness(problem)
    assert (awareness.valid_client_rack, awareness.enabled, awareness.reason) == (valid, False, reason)
    clients = tuple(replace(client, assigned_active=()) for client in problem.clients)
    result = high_availability(replace(problem, clients=clients))
    assert f"tasks are assigned without racks: {reason}" in result.warnings
    assert result.flow == "not run"


def test_kip_925_a_changelog_is_not_looked_at_without_standbys() -> None:
    assert rack_awareness(replace(PROBLEM, racks=replace(FACTS, **WITH_CHANGELOG))).enabled


def test_kip_925_sources_of_unknown_replicas_are_described() -> None:
    facts = replace(FACTS, cluster={"in0_1": ((),), "in0_2": (("b",),)}, described={"in0_1": (("c",),)})
    awareness = rack_awareness(replace(PROBLEM, racks=facts))
    assert awareness.enabled
    assert awareness.partition_racks[TopicPartition("in0_1", 0)] == {"c"}


def test_kip_925_none_is_no_failure() -> None:
    awareness = rack_awareness(replace(PROBLEM, configs=AssignmentConfigs()))
    assert (awareness.enabled, awareness.unexpected) == (False, False)


def test_nothing_known_about_racks_is_a_failure_where_they_are_asked_for() -> None:
    awareness = rack_awareness(replace(PROBLEM, racks=None))
    assert (awareness.valid_client_rack, awareness.enabled, awareness.unexpected) == (False, False, True)


@pytest.mark.parametrize(
    ("change", "costs", "complaint"),
    [
        pytest.param({}, (2**31 - 1, 1), "exceed 32 bits", id="costs beyond 32 bit together"),
        pytest.param({"task_partitions": {}}, (10, 1), "0_1 has no partitions", id="a task without partitions"),
        pytest.param(
            {"consumer_racks": {ONE: {"c": "a"}}}, (10, 1), "no consumer with a rack", id="an unknown process"
        ),
    ],
)
def test_what_cannot_be_priced_is_refused(change: dict[str, Any], costs: tuple[int, int], complaint: str) -> None:
    problem = replace(PROBLEM, racks=replace(FACTS, **change))
    with pytest.raises(BadProblem, match=complaint):
        optimized(problem, costs)


@pytest.mark.parametrize(
    ("clients", "complaint"),
    [
        pytest.param({"a": "0_1", "b": "0_1 0_2"}, "0_1 is active on", id="a task runs twice"),
        pytest.param({"a": "0_1", "b": ""}, "0_2 is active on no process", id="a task runs nowhere"),
    ],
)
def test_only_a_valid_assignment_is_optimized(clients: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadProblem, match=complaint):
        optimized(a_problem({"0_1": ("a",), "0_2": ("b",)}, clients))


# --- properties -------------------------------------------------------------------------------------------------------


def _dealt(seed: int, strategy: RackStrategy) -> tuple[StreamsProblem, RackAwareness, list[ClientState]]:
    """A random application whose racks are all known, with tasks and standbys dealt at random."""
    rng = random.Random(seed)
    problem = streams_problem(an_application(seed, most_clients=6, most_tasks=18))
    configs = replace(problem.configs, rack_aware_assignment_strategy=strategy, num_standby_replicas=1)
    problem = replace(problem, configs=configs)
    clients = sorted(client_states(problem).values(), key=lambda client: client.key)
    for task in problem.tasks:
        order = rng.sample(clients, len(clients))
        order[0].active.add(task)
        if task in problem.stateful:
            for client in order[1 : 1 + rng.randint(0, 2)]:
                client.standby.add(task)
    return problem, rack_awareness(problem), clients


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(80), ids=lambda seed: f"seed {seed}")
def test_active_tasks_never_cost_more_than_before_and_numbers_stay(seed: int, strategy: RackStrategy) -> None:
    problem, awareness, clients = _dealt(seed, strategy)
    before = [len(client.active) for client in clients]
    if awareness.enabled:
        cost = active_cost(problem, awareness, clients, problem.tasks, (10, 1))
        optimum = replace(problem, max_literal_size=0)
        states = [set(client.active) for client in clients]
        exact = optimize_active(optimum, awareness, clients, problem.tasks, (10, 1))
        for client, active in zip(clients, states, strict=True):
            client.active = active
        found = optimize_active(problem, awareness, clients, problem.tasks, (10, 1))
        # Bounds by subtopology may rule out what was there before.
        assert found.cost <= cost or strategy == "balance_subtopology"
        assert (found.flow, exact.flow) == ("as Kafka", "cost-equal optimum")
        assert found.cost == exact.cost
        again = optimize_active(problem, awareness, clients, problem.tasks, (10, 1))
        assert again.cost <= found.cost
    assert [len(client.active) for client in clients] == before
    assert sorted(task for client in clients for task in client.active) == sorted(problem.tasks)


@pytest.mark.parametrize("seed", range(80), ids=lambda seed: f"seed {seed}")
def test_swapped_standbys_never_cost_more_than_before_and_numbers_stay(seed: int) -> None:
    problem, awareness, clients = _dealt(seed, "min_traffic")
    before = [len(client.standby) for client in clients]
    copies = sorted(task for client in clients for task in client.standby)
    if awareness.enabled:
        cost = standby_cost(problem, awareness, clients, 10)
        assert optimize_standby(problem, awareness, clients, (10, 1)).cost <= cost
    assert [len(client.standby) for client in clients] == before
    assert sorted(task for client in clients for task in client.standby) == copies
    assert not any(client.standby & client.active for client in clients)


def test_past_the_size_setting_the_answer_says_that_it_is_another() -> None:
    problem = streams_problem(an_optimization(1, 60, 6, strategy="min_traffic"))
    clients = tuple(
        replace(client, assigned_active=(), lags=dict.fromkeys(problem.tasks, 0)) for client in problem.clients
    )
    problem = replace(problem, clients=clients)
    literal = high_availability(problem)
    optimum = high_availability(replace(problem, max_literal_size=359))
    assert high_availability(replace(problem, max_literal_size=360)) == literal
    assert (literal.flow, optimum.flow) == ("as Kafka", "cost-equal optimum")
