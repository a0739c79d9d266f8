"""On Kafka 3.6.2: the same workload, without what that release does not have, and it says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from testbed.cluster import ClusterSpec, EmbeddedCluster
from testbed.demo.workload import ClusterFacts, ClusterWorkload, WorkloadPlan, demo_plan
from tests.workload import brokers

pytestmark = pytest.mark.integration

VERSION = "3.6.2"


def lean_plan(facts: ClusterFacts) -> WorkloadPlan:
    """The demo's, with less written ahead."""
    plan = demo_plan(facts)
    return replace(plan, loads=tuple(replace(load, preload_records=load.preload_records // 3) for load in plan.loads))


@pytest.fixture(scope="module")
def older() -> Iterator[tuple[EmbeddedCluster, ClusterWorkload]]:
    spec = ClusterSpec(version=VERSION)
    with (
        EmbeddedCluster.start(spec, on_progress=print) as cluster,
        ClusterWorkload.start(cluster.bootstrap_servers, VERSION, lean_plan, on_progress=print) as workload,
    ):
        workload.wait_settled()
        yield cluster, workload


def test_what_it_cannot_do_is_named(older: tuple[EmbeddedCluster, ClusterWorkload]) -> None:
    _cluster, workload = older
    assert workload.facts.client_version == VERSION
    assert [sentence.split(":")[0] for sentence in workload.left_out] == [
        "Topic payments has no replicas that share a rack",
        "Group search is left out",
        "Application shop-next is left out",
    ]


@pytest.mark.parametrize(
    ("group", "protocol", "racks"),
    [
        pytest.param("billing", "range", {"a", "b", "c"}, id="librdkafka range"),
        pytest.param("ledger", "cooperative-sticky", {"a", "b", "c"}, id="Java cooperative-sticky"),
        pytest.param("shop", "stream", {"a", "b"}, id="Kafka Streams"),
    ],
)
def test_groups_are_stable_and_send_their_racks(
    older: tuple[EmbeddedCluster, ClusterWorkload], group: str, protocol: str, racks: set[str | None]
) -> None:
    found = brokers.classic_group(older[0], group)
    assert found.protocol == protocol
    assert {brokers.rack_sent(member.metadata) for member in found.members} == racks


def test_newcomer_is_behind_and_a_closed_instance_is_missed_when_its_session_ends(
    older: tuple[EmbeddedCluster, ClusterWorkload],
) -> None:
    _cluster, workload = older
    name = workload.scale_out("shop", "c", restore_records_per_s=1_000)

    def standby_lags() -> list[int | None]:
        answer = next(one for one in workload.lags("shop")["instances"] if one["id"] == name)
        return [task["lag"] for task in answer["tasks"] if task["role"] == "standby"]

    def is_behind() -> bool:
        return any(lag is not None and lag > 1_000 for lag in standby_lags())

    def caught_up() -> bool:
        return all(lag is not None and lag <= 1_000 for lag in standby_lags())

    brokers.eventually(is_behind, "the newcomer has nothing to warm up")
    brokers.eventually(caught_up, "the newcomer did not catch up", within_s=60)
    workload.scale_in(name)
    # This client does not leave: the group learns of it after session.timeout.ms of 10 s.
    brokers.eventually(lambda: not workload.unready(), "the tasks did not come back", within_s=60)
