"""The executor on real brokers: what it moves, throttles and elects, and that Kafka's own tools tell the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.act.reassign.reassignment_executor import ReassignmentExecutor
from agent.propose.codec import read_reassignment_json
from agent.values.kafka import FOLLOWER_RATE, LEADER_RATE, LEADER_REPLICAS
from agent.values.limits import ExecuteLimits
from agent.values.plan import ExecutorStatus
from agent.values.reassignment import PlanState, ReassignmentPolicy
from agent.values.throttles import ThrottleResource
from agent.wire.admin_client import WireAdminClient
from assignors.problem import TopicPartition
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.act.reassignments import (
    DEADLINE_MS,
    MB,
    REASSIGN,
    Placement,
    executor,
    kafka_tool,
    leaders,
    placement,
    plan_for,
    reassignment_file,
    set_config,
    throttles,
    topic_with,
    until_idle,
)
from tests.observe.live import wait_for

pytestmark = pytest.mark.integration

CLIENT_ID = "moves-under-test"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster.start(ClusterSpec(jmx=True, proxied=True), on_progress=print) as started:
        yield started


@pytest.fixture
def hand(cluster: EmbeddedCluster) -> Iterator[WireAdminClient]:
    servers = cluster.proxied_bootstrap_servers.split(",")
    with WireAdminClient({"bootstrap_servers": servers, "client_id": CLIENT_ID}) as opened:
        yield opened


def test_a_reassignment_runs_under_a_throttle_that_is_gone_afterwards(
    cluster: EmbeddedCluster, hand: WireAdminClient, tmp_path: Path
) -> None:
    servers = cluster.bootstrap_servers
    topic_with(servers, "moved", [[1, 2], [2, 1], [1, 2]], mb=6, min_insync_replicas="1")
    topic_with(servers, "elsewhere", [[1, 2]])
    foreign = {
        (ThrottleResource(broker=1), LEADER_RATE): "7000000",
        (ThrottleResource(topic="elsewhere"), LEADER_REPLICAS): "0:1",
        (ThrottleResource(topic="moved"), LEADER_REPLICAS): "7:1",
    }
    for setting, value in foreign.items():
        set_config(servers, setting, value)
    before = placement(hand, "moved")
    after = {TopicPartition("moved", 0): (3, 2), TopicPartition("moved", 1): (2, 3), TopicPartition("moved", 2): (1, 3)}
    file = reassignment_file(after, tmp_path / "after.json")
    assert read_reassignment_json(Path(file).read_text(encoding="utf-8")) == after
    plan = plan_for(hand, "p-moved", after, throttle_bytes_per_s=MB)
    mark = cluster.proxy.count

    with executor(hand, tmp_path / "journal") as one:
        one.accept(plan)
        wait_for(lambda: len(hand.list_reassignments(DEADLINE_MS)) == 3, "the move has begun", 60)
        set_now = throttles(hand, "moved", "elsewhere")
        assert set_now[ThrottleResource(broker=3), FOLLOWER_RATE] == "1000000"
        assert set_now[ThrottleResource(broker=2), LEADER_RATE] == "1000000"
        assert set_now[ThrottleResource(broker=1), LEADER_RATE] == "7000000", "a rate of others stays"
        assert set_now[ThrottleResource(topic="moved"), LEADER_REPLICAS].split(",")[0] == "7:1"
        wait_for(lambda: _moving(one) == set(after), "the status tells what moves", 30)
        assert _listed(cluster) == set(after)
        assert "is still in progress" in _verified(cluster, file)
        wait_for(lambda: _percent(one.status()) is not None, "the progress is reported", 30)
        until_idle(one)
        status = one.status()

    (done,) = status.plans
    assert (done.plan.state, done.done, status.debts) == (PlanState.DONE, 3, ())
    assert placement(hand, "moved") == after != before
    assert leaders(hand, "moved") == {partition: replicas[0] for partition, replicas in after.items()}
    assert throttles(hand, "moved", "elsewhere") == foreign
    told = _verified(cluster, file)
    assert all(f"Reassignment of partition {partition} is completed." in told for partition in after), told
    assert _listed(cluster) == set()
    asked = [row.api for row in cluster.proxy.records(since=mark, client_id=CLIENT_ID) if row.mutating]
    assert asked.count("AlterPartitionReassignments") == 1
    for setting in foreign:
        set_config(servers, setting, None)


def test_leaders_move_without_a_byte_and_back_again(
    cluster: EmbeddedCluster, hand: WireAdminClient, tmp_path: Path
) -> None:
    topic_with(cluster.bootstrap_servers, "led", [[1, 2], [1, 3], [1, 2], [2, 1]], mb=2)
    before = placement(hand, "led")
    after = {partition: replicas[::-1] for partition, replicas in before.items()}
    wait_for(lambda: leaders(hand, "led") == _first(before), "the preferred replicas lead", 60)
    copied = _replicated(cluster)
    with executor(
        hand, tmp_path / "journal", ReassignmentPolicy(ExecuteLimits(max_bytes_in_flight=None), look_ms=300)
    ) as one:
        plan = plan_for(hand, "p-led", after)
        one.accept(plan)
        until_idle(one)
        assert [row.plan.state for row in one.status().plans] == [PlanState.DONE]
        assert (placement(hand, "led"), leaders(hand, "led")) == (after, _first(after))
        back = plan._replace(proposal_id="p-led-back", targets=tuple(target.back() for target in plan.targets))
        one.accept(back)
        until_idle(one)
    assert (placement(hand, "led"), leaders(hand, "led")) == (before, _first(before))
    assert _replicated(cluster) == copied, "no byte was replicated"
    assert throttles(hand, "led") == {}


def _first(placed: Placement) -> dict[TopicPartition, int]:
    return {partition: replicas[0] for partition, replicas in placed.items()}


def _replicated(cluster: EmbeddedCluster) -> int:
    return sum(broker.jmx_counters().replication_bytes_in for broker in cluster.brokers)


def _moving(one: ReassignmentExecutor) -> set[TopicPartition]:
    return {row.id for plan in one.status().plans for row in plan.replicas}


def _percent(status: ExecutorStatus) -> float | None:
    rows = [row for plan in status.plans for row in plan.replicas]
    told = [row.bytes / row.of_bytes for row in rows if row.bytes is not None and row.of_bytes and row.bytes_per_s]
    return max(told, default=None)


def _listed(cluster: EmbeddedCluster) -> set[TopicPartition]:
    """What ``--list`` tells."""
    lines = kafka_tool(cluster, REASSIGN, "--list").splitlines()
    names = [line.split(":")[0].rpartition("-") for line in lines if "replicas:" in line]
    return {TopicPartition(topic, int(number)) for topic, _, number in names}


def _verified(cluster: EmbeddedCluster, file: str) -> str:
    return kafka_tool(cluster, REASSIGN, "--verify", "--preserve-throttles", "--reassignment-json-file", file)
