"""The raw rows of groups that assign by themselves, and of applications that tell their lags, on the demo's scene."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from agent.observe.context import Clients, Recall
from agent.observe.look import observe
from agent.observe.scope import Scope
from agent.values.clock import system_clock
from agent.values.observation import Observation
from assignors.problem import TaskId
from testbed.cluster import EmbeddedCluster
from testbed.demo.workload import Workload
from tests.observe.live import clients_of, gaps

CLASSIC, STREAMS = "shop", "shop-next"
FIRST_LOOK_CPU_S = 1.5
NEXT_LOOK_CPU_S = 0.25


@pytest.fixture(scope="module")
def clients(demo_cluster: EmbeddedCluster) -> Iterator[Clients]:
    with clients_of(demo_cluster.bootstrap_servers) as both:
        yield both


@pytest.fixture(scope="module")
def seen(clients: Clients, work: Workload) -> Observation:
    urls = tuple(work.lags_url(name) for name in (CLASSIC, STREAMS))
    return observe(clients, system_clock, Scope(application_urls=urls))


def test_a_streams_group_is_listed_and_described_with_topology_racks_tags_and_tasks(
    seen: Observation, work: Workload
) -> None:
    assert {row.group_type for row in seen.listed_groups if row.group_id == STREAMS} == {"streams"}
    (group,) = (group for group in seen.streams_groups if group.group_id == STREAMS)
    assert group.subtopologies is not None
    first, second = group.subtopologies
    assert (first.id, first.source_topics) == ("0", ("orders",))
    assert first.repartition_sink_topics == second.repartition_source_topics == (f"{STREAMS}-regions-repartition",)
    assert first.changelog_topics == (f"{STREAMS}-customers-changelog",)
    assert {member.rack_id for member in group.members} == set(work.plan.streams[1].racks)
    assert all(member.client_tags and member.process_id and member.member_epoch > 0 for member in group.members)
    active = sorted(task for member in group.members for task in member.assignment.active)
    sources = {"0": "orders", "1": f"{STREAMS}-regions-repartition"}
    assert active == sorted(TaskId(id_, one) for id_, topic in sources.items() for one in range(_count(seen, topic)))
    assert "streams.num.standby.replicas" in seen.group_configs[STREAMS]
    assert gaps(seen) == []


def test_lags_of_the_application_itself_are_read_for_every_task_that_has_one(seen: Observation) -> None:
    classic = next(group for group in seen.groups if group.group_id == CLASSIC)
    assert classic.protocol == "stream"
    for application in (CLASSIC, STREAMS):
        lags = [lag for lag in seen.application_lags if lag.group_id == application]
        assert {lag.role for lag in lags} == {"active", "standby"}
        assert {lag.task.subtopology for lag in lags} == {0, 1}
        assert all(abs(lag.observed_ms - seen.taken_ms) < 60_000 for lag in lags)


def test_a_look_at_the_scene_costs_little(clients: Clients, work: Workload) -> None:
    recall = Recall()
    first, *rest = (_cpu_s(clients, recall) for _ in range(5))
    print(f"first look {first * 1000:.0f} ms of processor time, the next {min(rest) * 1000:.0f} ms")
    assert first < FIRST_LOOK_CPU_S
    assert min(rest) < NEXT_LOOK_CPU_S


def _cpu_s(clients: Clients, recall: Recall) -> float:
    began = time.process_time()
    assert observe(clients, system_clock, Scope(), recall).brokers
    return time.process_time() - began


def _count(seen: Observation, topic: str) -> int:
    return next(len(row.partitions) for row in seen.topics if row.name == topic)
