"""Looks at a cluster of which brokers hang: what can be had is there in time, and the rest is named."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaPythonPartition

from agent.errors import ClusterUnreachable
from agent.observe.context import ObserverState, ObserveScope
from agent.observe.observe_cluster import observe
from agent.values.clock import system_clock
from agent.values.observation import GapCause, Observation, ObservationPart, RawReassignment
from assignors.problem import TopicPartition
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.broken_bytes import GOOD, HELD
from tests.observe.live import clients_of, gaps, produce, wait_for
from tests.raw_member import RawMember

pytestmark = [pytest.mark.harm, pytest.mark.integration]

CALL_MS = 1_500
SCOPE = ObserveScope(call_timeout_ms=CALL_MS, refresh_ms={})
LATEST_S = 3 * (CALL_MS / 1000) + 2.5
"""Three waves, and what a loaded machine may add."""


@pytest.fixture(scope="module")
def fragile() -> Iterator[EmbeddedCluster]:
    """A cluster of this file's own; brokers keep their session long enough for a frozen one to be listed still."""
    spec = ClusterSpec(broker_properties={"broker.session.timeout.ms": "15000"})
    with EmbeddedCluster.start(spec, on_progress=print) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap_servers})
        placed = NewTopic("placed", num_partitions=3, replica_assignment=[[1, 2], [2, 3], [3, 1]])
        for future in admin.create_topics([placed]).values():
            future.result(30)
        produce(started.bootstrap_servers, "placed", 30)
        yield started


@pytest.mark.parametrize("leads", [pytest.param(False, id="a follower"), pytest.param(True, id="the controller")])
def test_one_frozen_broker_costs_its_own_answers_only(fragile: EmbeddedCluster, leads: bool) -> None:
    where = fragile.bootstrap_servers
    recall = ObserverState()
    with ExitStack() as stack:
        for number in range(9):
            stack.enter_context(RawMember(where, f"frozen-{number}", metadata=GOOD, assignment=HELD))
        clients = stack.enter_context(clients_of(where))
        whole = wait_for(lambda: _whole(observe(clients, system_clock, SCOPE, recall)), "all is well")
        victim = next(broker for broker in (3, 2, 1) if (broker == _controller(fragile)) is leads)
        fragile.broker(victim).freeze()
        try:
            began = time.monotonic()
            partial = observe(clients, system_clock, SCOPE, recall)
            took_s = time.monotonic() - began
        finally:
            fragile.broker(victim).thaw()
        healed = wait_for(lambda: _whole(observe(clients, system_clock, SCOPE, recall)), "all is well again")
    assert took_s < LATEST_S
    assert [topic.name for topic in partial.topics] == [topic.name for topic in whole.topics]
    led = {tp for tp in whole.end_offsets if _leader(whole, tp) == victim}
    assert led
    assert set(whole.end_offsets) - set(partial.end_offsets) == led
    assert {group.group_id for group in partial.groups} == {
        group.group_id for group in whole.groups if group.coordinator != victim
    }
    assert {broker for broker, _ in partial.replica_bytes} == {1, 2, 3} - {victim}
    assert set(partial.broker_configs) == {1, 2, 3} - {victim}
    name = f"broker {victim}"
    assert {(gap.part, gap.subject) for gap in gaps(partial)} >= {
        (ObservationPart.GROUPS, name),
        (ObservationPart.LOG_DIRS, name),
        (ObservationPart.BROKER_CONFIGS, name),
        (ObservationPart.END_OFFSETS, name),
    }
    assert {gap.cause for gap in gaps(partial)} <= {GapCause.TIMED_OUT, GapCause.UNREACHABLE, GapCause.DOUBTED}
    hidden = sum(group.coordinator == victim for group in whole.groups)
    assert partial.rights.groups_hidden == hidden
    assert partial.vanished_groups == ()
    assert healed.rights.groups_hidden == 0
    assert {group.group_id for group in healed.groups} == {group.group_id for group in whole.groups}


def test_all_brokers_frozen_is_unreachable_in_time(fragile: EmbeddedCluster) -> None:
    with clients_of(fragile.bootstrap_servers) as clients:
        assert observe(clients, system_clock, SCOPE).brokers
        for broker in fragile.brokers:
            broker.freeze()
        try:
            began = time.monotonic()
            with pytest.raises(ClusterUnreachable) as caught:
                observe(clients, system_clock, SCOPE)
            assert time.monotonic() - began < CALL_MS / 1000 + 1
        finally:
            for broker in fragile.brokers:
                broker.thaw()
        assert caught.value.what == "No broker answered within 1.5 s"
        assert "did not answer to" in caught.value.why
        wait_for(lambda: _answers(fragile), "the brokers run on")


def test_a_broker_that_is_down_shows_as_offline_replicas_and_what_waits_for_it_as_reassignments(
    fragile: EmbeddedCluster,
) -> None:
    waits = KafkaPythonPartition("placed", 2)
    fragile.broker(2).stop()
    mover = KafkaAdminClient(bootstrap_servers=fragile.broker(1).address)
    try:
        mover.alter_partition_reassignments({waits: [2, 3]})
        with clients_of(fragile.bootstrap_servers) as clients:
            seen = wait_for(lambda: _whole_with_offline(observe(clients, system_clock, SCOPE)), "it is noticed")
        mover.alter_partition_reassignments({waits: None})
    finally:
        mover.close()
        fragile.broker(2).start()
    assert [(broker.id, broker.rack, broker.fenced) for broker in seen.brokers if broker.id == 2] == [(2, "b", True)]
    placed = next(topic for topic in seen.topics if topic.name == "placed")
    assert [row.offline for row in placed.partitions] == [(2,), (2,), (2,)]
    assert [row.leader for row in placed.partitions] == [1, 3, 3]
    assert set(seen.broker_configs) == {1, 3}
    assert seen.reassignments == (RawReassignment(TopicPartition("placed", 2), (2, 3, 1), (2,), (1,)),)


def _controller(cluster: EmbeddedCluster) -> int:
    """The active one: a DescribeCluster answer under KRaft names any broker."""
    asker = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers.split(","))
    quorum = asker.describe_metadata_quorum()
    asker.close()
    return int(quorum["topics"][0]["partitions"][0]["leader_id"])


def _whole(seen: Observation) -> Observation | None:
    return None if gaps(seen) else seen


def _leader(seen: Observation, tp: TopicPartition) -> int | None:
    return next(topic.partitions[tp.partition].leader for topic in seen.topics if topic.name == tp.topic)


def _whole_with_offline(seen: Observation) -> Observation | None:
    offline = all(row.offline for topic in seen.topics if topic.name == "placed" for row in topic.partitions)
    return seen if offline and seen.reassignments else None


def _answers(cluster: EmbeddedCluster) -> bool:
    with clients_of(cluster.bootstrap_servers) as clients:
        try:
            return not gaps(observe(clients, system_clock, SCOPE))
        except ClusterUnreachable:
            return False
