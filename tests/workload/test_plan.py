"""Plans: where replicas go, what is left out, how load is skewed. No broker needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from testbed.demo.workload import ClusterFacts, WorkloadPlan, demo_plan, parts_plan, small_plan
from testbed.demo.workload.placement import crowded, leaders_in_rack, spread
from testbed.demo.workload.plan import WorkloadFaultKind, fitted
from testbed.demo.workload.producers import partition_weights
from testbed.demo.workload.readiness import unready, unsettled

FOUR: Mapping[int, str | None] = {1: "a", 2: "b", 3: "c", 4: "a"}
THREE: Mapping[int, str | None] = {1: "a", 2: "b", 3: "c"}
MODERN = {"group.version": 1, "streams.version": 1}


def facts(racks: Mapping[int, str | None] = FOUR, features: Mapping[str, int] | None = None) -> ClusterFacts:
    return ClusterFacts(
        cluster_id="c", racks=racks, features=MODERN if features is None else features, client_version="4.3.1"
    )


SPREADS = [
    pytest.param(THREE, 3, 2, ((1, 2), (2, 3), (3, 1)), id="two replicas over three racks"),
    pytest.param(FOUR, 3, 3, ((1, 2, 3), (2, 3, 1), (3, 1, 2)), id="three replicas, one per rack, over four brokers"),
    pytest.param(FOUR, 4, 1, ((1,), (2,), (3,), (4,)), id="both brokers of a full rack take their turn"),
    pytest.param({1: "a", 2: "a"}, 2, 2, ((1, 2), (2, 1)), id="one rack only, so they share it"),
    pytest.param({1: None, 2: None}, 2, 2, ((1, 2), (2, 1)), id="brokers without a rack count one by one"),
    pytest.param({1: "a"}, 1, 3, ((1,),), id="fewer brokers than replicas asked for"),
]


@pytest.mark.parametrize(("racks", "partitions", "replication_factor", "expected"), SPREADS)
def test_spread(
    racks: Mapping[int, str | None], partitions: int, replication_factor: int, expected: tuple[tuple[int, ...], ...]
) -> None:
    assert spread(racks, partitions, replication_factor) == expected


CROWDS = [
    pytest.param(FOUR, ((1, 4), (4, 1)), id="the rack with two brokers gets both replicas"),
    pytest.param(THREE, None, id="no rack has two brokers"),
    pytest.param({1: "a", 2: "a"}, None, id="no other rack is free"),
    pytest.param({1: None, 2: None, 3: "a"}, None, id="unknown racks are not a shared rack"),
]


@pytest.mark.parametrize(("racks", "expected"), CROWDS)
def test_crowded(racks: Mapping[int, str | None], expected: tuple[tuple[int, ...], ...] | None) -> None:
    assert crowded(racks, 2) == expected


def test_led_from_keeps_the_other_replicas_apart() -> None:
    for replicas in leaders_in_rack(FOUR, "a", 6, 3):
        assert FOUR[replicas[0]] == "a"
        assert {FOUR[broker] for broker in replicas} == {"a", "b", "c"}


def test_four_brokers_get_one_fault_of_each_kind() -> None:
    plan = fitted(demo_plan(facts()), facts())
    assert {fault.kind for fault in plan.faults} == set(WorkloadFaultKind)
    assert plan.left_out == ()


LEFT_OUT = [
    pytest.param(facts(THREE), ["Topic payments"], id="three brokers in three racks"),
    pytest.param(facts({1: None, 2: None}), ["Topic payments", "Topic views"], id="brokers without racks"),
    pytest.param(
        facts(features={"metadata.version": 14}), ["Group search", "Application shop-next"], id="an old Kafka"
    ),
]


@pytest.mark.parametrize(("cluster", "begins"), LEFT_OUT)
def test_what_a_cluster_cannot_have_is_left_out_and_named(cluster: ClusterFacts, begins: list[str]) -> None:
    plan = fitted(demo_plan(cluster), cluster)
    assert [" ".join(sentence.split()[:2]) for sentence in plan.left_out] == begins
    gone = {sentence.split()[1] for sentence in plan.left_out}
    assert not gone & {fault.subject for fault in plan.faults}
    assert not gone & {group.group for group in plan.librdkafka_groups}
    assert not gone & {app.application for app in plan.streams}


@pytest.mark.parametrize("plan", [demo_plan(facts()), small_plan(facts()), parts_plan(facts())])
def test_every_part_of_a_plan_has_its_topic(plan: WorkloadPlan) -> None:
    topics = {topic.name for topic in plan.topics}
    read = {group.topic for group in (*plan.librdkafka_groups, *plan.java_groups)}
    optional = {
        name
        for app in plan.streams
        for name in (app.topology.stateless_input, app.topology.table_input, app.topology.unlogged_input)
        if name is not None
    }
    assert (
        read | optional | {app.topology.input for app in plan.streams} | {load.topic for load in plan.loads} <= topics
    )


SKEWS = [
    pytest.param(0.0, (1.0, 2.0, 3.0, 4.0), id="no skew is even"),
    pytest.param(1.0, (1.0, 1.5, 1.5 + 1 / 3, 1.75 + 1 / 3), id="the second partition has half of the first"),
]


@pytest.mark.parametrize(("skew", "expected"), SKEWS)
def test_partition_weights(skew: float, expected: tuple[float, ...]) -> None:
    assert partition_weights(4, skew) == pytest.approx(expected)


def instance(name: str, state: str, active: list[str], standby: list[str]) -> dict[str, Any]:
    return {"id": name, "application": "shop", "state": state, "active": active, "standby": standby}


TASKS = [f"0_{partition}" for partition in range(6)] + [f"1_{partition}" for partition in range(3)]
READY = [
    pytest.param({"audit": 6}, [instance("shop-1", "RUNNING", TASKS, [])], (), id="all have their part"),
    pytest.param(
        {"audit": 5},
        [instance("shop-1", "RUNNING", TASKS, [])],
        ("group audit holds 5 of 6 partitions",),
        id="a partition has no owner",
    ),
    pytest.param(
        {"audit": 6},
        [instance("shop-1", "RUNNING", TASKS, []), instance("shop-2", "REBALANCING", [], [])],
        ("instances shop-2 are not running",),
        id="an instance has just come",
    ),
    pytest.param(
        {"audit": 6},
        [instance("shop-1", "RUNNING", TASKS[1:], TASKS[:1])],
        ("application shop runs 8 of at least 9 tasks",),
        id="a standby is no running task",
    ),
]


@pytest.mark.parametrize(("held", "instances", "expected"), READY)
def test_unready(held: dict[str, int], instances: list[dict[str, Any]], expected: tuple[str, ...]) -> None:
    assert unready(small_plan(facts()), held, {"instances": instances, "consumers": []}) == expected


def row(role: str, lag: int | None, end: int | None) -> dict[str, Any]:
    return {"task": "0_0", "role": role, "lag": lag, "stores": {"customers": {"current": None, "end": end}}}


SETTLED = [
    pytest.param([row("active", 0, 100), row("standby", 900, 100)], (), id="all stored, the standby is close"),
    pytest.param([row("active", 0, 99)], ("application shop has stored 99 of 100 records",), id="one is missing"),
    pytest.param([row("active", None, None)], ("application shop has stored 0 of 100 records",), id="no answer yet"),
    pytest.param(
        [row("active", 0, 100), row("standby", 1_001, 100)],
        ("standby 0_0 of shop is 1,001 records behind",),
        id="the standby is far behind",
    ),
]


@pytest.mark.parametrize(("tasks", "expected"), SETTLED)
def test_unsettled(tasks: list[dict[str, Any]], expected: tuple[str, ...]) -> None:
    plan = small_plan(facts(), preload_records=100)
    assert unsettled(plan, {"shop": {"instances": [{"tasks": tasks}]}}) == expected


def test_plans_are_the_same_for_the_same_cluster() -> None:
    turned = dict(reversed(FOUR.items()))
    assert demo_plan(facts()) == demo_plan(facts(turned))
