"""One group with an old and a new client in it, as in the middle of a roll."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

from agent.values.finding import FindingReason
from testbed.cluster import EmbeddedCluster
from testbed.demo.workload import ClusterWorkload
from testbed.demo.workload.consumers import LibrdkafkaMember
from testbed.demo.workload.plan import GroupProtocol, LibrdkafkaGroupPlan
from tests.observe.live import delete_groups
from tests.watching_agent import WatchingAgent, cycle_text, findings_of, settings_for
from tests.workload.brokers import admin

pytestmark = pytest.mark.integration

GROUP = "halfway"


@contextmanager
def old_member(bootstrap_servers: str, topic: str) -> Iterator[None]:
    """kafka-python's consumer: its subscription is of version 0, so it can carry neither partitions nor a rack."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap_servers.split(","),
        group_id=GROUP,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            consumer.poll(timeout_ms=200)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield
    finally:
        ended.set()
        reader.join()
        consumer.close()


def test_a_group_in_the_middle_of_a_roll_is_said_to_run_mixed_versions(
    demo_cluster: EmbeddedCluster, work: ClusterWorkload
) -> None:
    where = demo_cluster.bootstrap_servers
    plan = LibrdkafkaGroupPlan(group=GROUP, topic="clicks", racks=("a",), protocol=GroupProtocol.RANGE)
    new = LibrdkafkaMember(where, plan, "halfway-new", "a")
    try:
        with old_member(where, "clicks"), WatchingAgent(settings_for(where)) as eye:
            cycle = eye.until(
                lambda cycle: findings_of(cycle, FindingReason.MIXED_VERSIONS, f"group/{GROUP}"),
                "a group of mixed versions",
            )
    finally:
        new.leave()
        new.join()
        delete_groups(admin(demo_cluster), GROUP)
    (mixed,) = findings_of(cycle, FindingReason.MIXED_VERSIONS)
    assert mixed.sentence.endswith("so part of it cannot send a rack, and no version of kafka-python can")
    (old,) = findings_of(cycle, FindingReason.SUBSCRIPTION_TOO_OLD)
    assert str(old.subject) == f"group/{GROUP}", cycle_text(cycle)
    assert "no version of kafka-python sends a rack" in old.sentence, "an upgrade would not help"
