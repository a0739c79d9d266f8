"""``rackwise simulate`` against what then really happens: a member joins, a member leaves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from agent.values.snapshot import ConsumerGroup
from testbed.cluster import EmbeddedCluster
from testbed.demo.workload.consumers import LibrdkafkaGroup
from testbed.demo.workload.placement import spread
from testbed.demo.workload.plan import GroupProtocol, LibrdkafkaGroupPlan, TopicPlan
from testbed.demo.workload.topics import create_topics
from tests.command import rackwise
from tests.watching_agent import WatchingAgent, settings_for

PARTITIONS = 12
RACKS = ("a", "b", "c")

Reads = dict[str, set[int]]


@pytest.fixture
def topic(demo_cluster: EmbeddedCluster) -> str:
    """Twelve partitions in two of three racks each."""
    racks = dict(zip(demo_cluster.spec.broker_ids, demo_cluster.spec.racks, strict=True))
    name = f"simulated-{time.time_ns()}"
    create_topics(demo_cluster.bootstrap_servers, [TopicPlan(name=name, replicas=spread(racks, PARTITIONS, 2))])
    return name


@pytest.fixture
def group(demo_cluster: EmbeddedCluster, topic: str) -> Iterator[LibrdkafkaGroup]:
    """Three members under KIP-848, whose broker-side assignor goes by the group's present assignment."""
    plan = LibrdkafkaGroupPlan(group=f"{topic}-readers", topic=topic, racks=RACKS, protocol=GroupProtocol.CONSUMER)
    made = LibrdkafkaGroup(demo_cluster.bootstrap_servers, plan)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.drill
def test_what_is_simulated_is_what_then_happens(demo_cluster: EmbeddedCluster, group: LibrdkafkaGroup) -> None:
    servers, name = demo_cluster.bootstrap_servers, group.plan.group
    with WatchingAgent(settings_for(servers)) as eye:
        three = settled(eye, name, 3)
        row = simulated(servers, name, "--add-member", f"{name}=a")
        group.add("a")
        four = settled(eye, name, 4)
        assert row["waiting"] == 0
        assert (row["now"]["reads"], row["own_assignor"]["reads"]) == (PARTITIONS, PARTITIONS)
        assert row["own_assignor"]["moved"] == moved(three, four) == 3, "each of three gives one of its four"

        leaver = f"{name}-2"
        row = simulated(servers, name, "--remove-member", f"{name}={leaver}")
        group.remove(leaver)
        again = settled(eye, name, 3)
        assert row["waiting"] == len(four[leaver]) == 3
        assert row["own_assignor"]["moved"] == moved({who: four[who] for who in again}, again) == 0
        assert row["own_assignor"]["reads"] == sum(map(len, again.values()))


def simulated(servers: str, name: str, *changes: str) -> Any:
    done = rackwise("simulate", "-b", servers, *changes, "-o", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    return next(row for row in done.json["groups"] if row["group"] == name)


def settled(eye: WatchingAgent, name: str, members: int) -> Reads:
    """Who reads which partition once everything is read, by client id."""
    found: Reads = {}

    def whole(cycle: Any) -> bool:
        group = cycle.snapshot.groups.get(name)
        if not isinstance(group, ConsumerGroup) or group.state != "Stable" or len(group.members) != members:
            return False
        found.clear()
        found.update({one.client_id: {p.partition for p in one.assigned or ()} for one in group.members})
        return sum(map(len, found.values())) == PARTITIONS == len(set[int]().union(*found.values()))

    eye.until(whole, f"{members} members that read everything", within_s=60)
    return dict(found)


def moved(before: Reads, after: Reads) -> int:
    """Partitions that a staying member gave to another one."""
    owner = {partition: who for who, held in before.items() for partition in held}
    return sum(owner.get(partition, who) != who for who, held in after.items() for partition in held)
