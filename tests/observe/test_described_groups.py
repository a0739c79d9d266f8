"""The raw rows of groups that assign by themselves, and of applications that tell their lags, on the demo's scene."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent.observe.context import ObserverClients, ObserveScope
from agent.observe.observe_cluster import observe
from agent.values.clock import system_clock
from agent.values.kafka import STABLE
from agent.values.observation import Observation, RawClassicGroup, RawStreamsGroup
from assignors.problem import TaskId
from testbed.cluster import EmbeddedCluster
from testbed.demo.workload import ClusterWorkload
from tests.observe.live import clients_of, gaps, wait_for

CLASSIC, STREAMS = "shop", "shop-next"


@pytest.fixture(scope="module")
def clients(demo_cluster: EmbeddedCluster) -> Iterator[ObserverClients]:
    with clients_of(demo_cluster.bootstrap_servers) as both:
        yield both


@pytest.fixture(scope="module")
def seen(clients: ObserverClients, work: ClusterWorkload) -> Observation:
    """A look between two rebalances: in the middle of one, a classic group has no protocol."""
    scope = ObserveScope(application_urls=tuple(work.lags_url(name) for name in (CLASSIC, STREAMS)))

    def between_rebalances() -> Observation | None:
        observation = observe(clients, system_clock, scope)
        states = {group.group_id: group.state for group in observation.groups}
        return observation if states.get(CLASSIC) == states.get(STREAMS) == STABLE else None

    work.wait_settled()
    observation: Observation = wait_for(between_rebalances, "all groups are stable", within_s=90)
    return observation


def test_a_streams_group_is_listed_and_described_with_topology_racks_tags_and_tasks(
    seen: Observation, work: ClusterWorkload
) -> None:
    assert {row.group_type for row in seen.listed_groups if row.group_id == STREAMS} == {"streams"}
    (group,) = (group for group in seen.described(RawStreamsGroup) if group.group_id == STREAMS)
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
    classic = next(group for group in seen.described(RawClassicGroup) if group.group_id == CLASSIC)
    assert classic.protocol == "stream"
    for application in (CLASSIC, STREAMS):
        lags = [lag for lag in seen.application_lags if lag.group_id == application]
        assert {lag.role for lag in lags} == {"active", "standby"}
        assert {lag.task.subtopology for lag in lags} == {0, 1}
        assert all(abs(lag.observed_ms - seen.taken_ms) < 60_000 for lag in lags)


def _count(seen: Observation, topic: str) -> int:
    return next(len(row.partitions) for row in seen.topics if row.name == topic)
