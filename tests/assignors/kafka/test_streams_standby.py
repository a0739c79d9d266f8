"""Standbys of Kafka Streams (KIP-708): Kafka's own answers, and the examples and limits of the KIP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from assignors.cases.registry import AssignorCase
from assignors.cases.streams_input import streams_problem
from assignors.kafka.high_availability import high_availability
from assignors.kafka.standby import standby_assignor
from assignors.kafka.streams_problem import (
    AssignmentConfigs,
    RackFacts,
    StreamsClient,
    StreamsProblem,
    check_streams_problem,
    client_states,
)
from assignors.problem import BadProblem, TaskId, TopicPartition
from tests.assignors.kafka.golden import assert_as_kafka, golden_cases
from tests.assignors.kafka.streams_application import process_id
from tests.assignors.kafka.streams_cases import an_application

TASK = TaskId(0, 0)
ZONES = ("eu-central-1a", "eu-central-1b", "eu-central-1c")
BOTH = ("zone", "cluster")


@pytest.mark.parametrize("case", golden_cases("streams.standby"))
def test_the_answer_is_kafkas(case: AssignorCase) -> None:
    assert_as_kafka(case)


def nodes(clusters: int, zones: int) -> dict[int, Mapping[str, str]]:
    """Node-1 on: all zones of the first cluster, then those of the next."""
    return {
        cluster * zones + zone + 1: {"cluster": f"K8s_Cluster{cluster + 1}", "zone": ZONES[zone]}
        for cluster in range(clusters)
        for zone in range(zones)
    }


def placed(tags: Mapping[int, Mapping[str, str]], active: int, replicas: int, by: tuple[str, ...] = BOTH) -> set[int]:
    """Nodes that get a standby of the one task, and no warnings."""
    nodes_with, warnings = placed_with_warnings(tags, active, replicas, by)
    assert not warnings
    return nodes_with


def placed_with_warnings(
    tags: Mapping[int, Mapping[str, str]], active: int, replicas: int, by: tuple[str, ...] = BOTH
) -> tuple[set[int], list[str]]:
    problem = StreamsProblem(
        tasks=(TASK,),
        stateful=(TASK,),
        clients=tuple(
            StreamsClient(
                id=process_id(number), capacity=1, tags=own, assigned_active=(TASK,) if number == active else ()
            )
            for number, own in tags.items()
        ),
        configs=AssignmentConfigs(num_standby_replicas=replicas, rack_aware_assignment_tags=by),
    )
    clients = list(client_states(problem).values())
    warnings = standby_assignor(problem).assign(clients, problem.stateful, replicas)
    return {number for number, client in zip(tags, clients, strict=True) if client.standby}, warnings


NINE = nodes(clusters=3, zones=3)
NINE_NODE_TABLE = {
    1: ({5, 9}, {6, 8}),
    2: ({4, 9}, {6, 7}),
    3: ({4, 8}, {5, 7}),
    4: ({2, 9}, {3, 8}),
    5: ({1, 9}, {3, 7}),
    6: ({1, 8}, {2, 7}),
    7: ({2, 6}, {3, 5}),
    8: ({1, 6}, {3, 4}),
    9: ({1, 5}, {2, 4}),
}
"""Where the active task is, and the two pairs of nodes with other clusters and other zones. The KIP shows the first."""


@pytest.mark.parametrize("active", NINE, ids=lambda number: f"active on Node-{number}")
def test_kip_708_nine_nodes_in_three_clusters_and_zones_give_the_ideal_distribution(active: int) -> None:
    assert placed(NINE, active, replicas=2) in NINE_NODE_TABLE[active]


SIX = nodes(clusters=2, zones=3)


@pytest.mark.parametrize(
    ("active", "apart"), [(1, {5, 6}), (2, {4, 6}), (3, {4, 5}), (4, {2, 3}), (5, {1, 3}), (6, {1, 2})]
)
def test_kip_708_six_nodes_put_the_standby_in_another_cluster_and_zone(active: int, apart: set[int]) -> None:
    standby = placed(SIX, active, replicas=1)
    assert len(standby) == 1
    assert standby < apart


@pytest.mark.parametrize("active", SIX)
def test_kip_708_six_nodes_with_two_standbys_use_both_clusters_and_all_zones(active: int) -> None:
    standby = placed(SIX, active, replicas=2)
    assert {SIX[number]["zone"] for number in (active, *standby)} == set(ZONES)
    assert {SIX[number]["cluster"] for number in (active, *standby)} == {"K8s_Cluster1", "K8s_Cluster2"}


@pytest.mark.parametrize(("active", "opposite"), [(1, 4), (2, 3), (3, 2), (4, 1)])
def test_kip_708_four_nodes_of_the_first_example_put_the_standby_opposite(active: int, opposite: int) -> None:
    assert placed(nodes(clusters=2, zones=2), active, replicas=1) == {opposite}


def test_kip_708_without_an_ideal_place_standbys_are_placed_all_the_same() -> None:
    alike = {number: {"zone": "a", "cluster": "one"} for number in (1, 2, 3)}
    assert placed(alike, 1, replicas=2) == {2, 3}  # one value only: the tag tells nothing apart
    lopsided = {1: {"zone": "a"}, 2: {"zone": "a"}, 3: {"zone": "b"}, 4: {"zone": "c"}}
    lopsided |= {number: {"zone": "a"} for number in (5, 6)}
    standby, warnings = placed_with_warnings(lopsided, 3, replicas=4, by=("zone",))
    assert len(standby) == 4
    assert 4 in standby
    assert warnings == []


def test_kip_708_what_is_not_apart_is_said() -> None:
    tags = {1: {"zone": "a"}, 2: {"zone": "a"}, 3: {"cluster": "b"}}
    standby, warnings = placed_with_warnings(tags | {4: {"zone": "b"}}, 1, replicas=3, by=BOTH)
    assert standby == {2, 3, 4}
    listed = "rack.aware.assignment.tags (zone, cluster)"
    assert warnings == [
        f"process {process_id(3)} has no client.tag.zone of {listed}",
        f"process {process_id(1)} and 2 more have no client.tag.cluster of {listed}",
    ]


def test_kip_708_too_few_processes_leave_a_task_short() -> None:
    standby, warnings = placed_with_warnings({1: {}}, 1, replicas=1, by=())
    why = "1 of 1 standby of task 0_0 cannot be placed: every process has a copy of it"
    assert (standby, warnings) == (set(), [f"{why}; start more instances or lower num.standby.replicas"])


@pytest.mark.parametrize(
    ("tags", "listed", "complaint"),
    [
        pytest.param({f"t{n}": "v" for n in range(6)}, (), "6 client tags; Kafka allows at most 5", id="six tags"),
        pytest.param({"k" * 21: "v"}, (), "longer than 20 characters", id="a key of 21 characters"),
        pytest.param({"k": "v" * 31}, (), "longer than 30 characters", id="a value of 31 characters"),
        pytest.param({}, tuple("abcdef"), "lists 6 tags; Kafka allows at most 5", id="six tags to spread over"),
    ],
)
def test_kip_708_limits_of_tags(tags: Mapping[str, str], listed: tuple[str, ...], complaint: str) -> None:
    client = StreamsClient(id=process_id(1), capacity=1, tags=tags)
    configs = AssignmentConfigs(rack_aware_assignment_tags=listed)
    with pytest.raises(BadProblem, match=complaint):
        check_streams_problem(StreamsProblem(tasks=(), stateful=(), clients=(client,), configs=configs))


def test_kip_708_tags_at_their_limits_are_fine() -> None:
    tags = {f"{n}" * 20: "v" * 30 for n in range(5)}
    client = StreamsClient(id=process_id(1), capacity=1, tags=tags)
    configs = AssignmentConfigs(rack_aware_assignment_tags=tuple(tags))
    check_streams_problem(StreamsProblem(tasks=(), stateful=(), clients=(client,), configs=configs))


# --- KIP-925: racks and tags ----------------------------------------------------------------------------------------


def _two_zones(tag: str, listed: str) -> StreamsProblem:
    """Client racks say one thing, tags the other."""
    racks = {1: "a", 2: "a", 3: "b"}
    partition = TopicPartition("in", 0)
    return StreamsProblem(
        tasks=(TASK,),
        stateful=(TASK,),
        clients=tuple(
            StreamsClient(id=process_id(number), capacity=1, tags={tag: "b" if number == 2 else "a"}, lags={TASK: 0})
            for number in racks
        ),
        configs=AssignmentConfigs(
            num_standby_replicas=1,
            rack_aware_assignment_tags=(listed,),
            rack_aware_assignment_strategy="min_traffic",
        ),
        racks=RackFacts(
            consumer_racks={process_id(number): {"consumer": rack} for number, rack in racks.items()},
            cluster={"in": (("a", "b"),)},
            described={"log": (("a", "b"),)},
            task_partitions={TASK: (partition,)},
            changelog_partitions={TASK: (TopicPartition("log", 0),)},
        ),
    )


def test_kip_925_with_racks_and_tags_both_set_standbys_follow_the_tags_and_it_is_said() -> None:
    result = high_availability(_two_zones("zone", "zone"))
    assert result.standby[process_id(2)] == (TASK,), "apart by tag, though in the same rack"
    assert result.warnings == (
        "rack.aware.assignment.tags (zone) and client.rack are both set; standbys follow the tags",
    )


def test_kip_925_a_rack_tag_that_differs_from_the_rack_is_said() -> None:
    result = high_availability(_two_zones("rack", "rack"))
    assert result.standby[process_id(2)] == (TASK,)
    differ = f"process {process_id(2)} has client.rack a and client.tag.rack b"
    assert result.warnings == (
        f"rack.aware.assignment.tags and client.rack are both set, but {differ}; standbys follow the tags",
    )


def test_kip_925_a_rack_tag_that_equals_the_rack_needs_no_word() -> None:
    problem = _two_zones("rack", "rack")
    assert problem.racks is not None
    agreeing = {client.id: {"consumer": client.tags["rack"]} for client in problem.clients}
    problem = replace(problem, racks=replace(problem.racks, consumer_racks=agreeing))
    assert high_availability(problem).warnings == ()


def test_kip_925_a_process_without_a_rack_cannot_be_kept_apart_by_rack() -> None:
    problem = replace(_two_zones("zone", "zone"), configs=AssignmentConfigs(num_standby_replicas=1))
    with pytest.raises(BadProblem, match="no consumer with a rack"):
        standby_assignor(problem, {process_id(1): "a"})


# --- properties -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(100), ids=lambda seed: f"seed {seed}")
def test_standbys_are_as_many_as_fit_and_never_with_another_copy(seed: int) -> None:
    problem = streams_problem(an_application(seed))
    replicas = 1 + seed % 3
    clients = list(client_states(problem).values())
    for index, task in enumerate(problem.stateful):
        clients[index % len(clients)].active.add(task)
    warnings = standby_assignor(problem).assign(clients, problem.stateful, replicas)
    fit = min(replicas, len(clients) - 1)
    for task in problem.stateful:
        holders = [client for client in clients if task in client.standby]
        assert len(holders) == fit
        assert not any(task in client.active for client in holders)
    short = [warning for warning in warnings if "cannot be placed" in warning]
    assert len(short) == (len(problem.stateful) if fit < replicas else 0)
