"""The plug-in on three real brokers: every partition is read in its own rack after each join and leave."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError
from confluent_kafka.admin import AdminClient, NewTopic

from agent.values.kafka import CONSUMER_GROUP
from agent.wire.client import WireClient
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.jvm.building import build_jar

pytestmark = pytest.mark.integration

CLASS = "rackwise.assignor.RackwiseAssignor"
RACK_OF = {1: "a", 2: "b", 3: "c"}
PARTITIONS = 24
REPLICAS = [[1 + n % 3, 1 + (n + 1 + n // 3 % 2) % 3] for n in range(PARTITIONS)]
"""Two of the three racks each, every pair of racks as often as the others."""
SETTLES_WITHIN_S = 60


class PollingMember:
    """A consumer that names no assignor and polls in a thread of its own until it is closed."""

    def __init__(self, bootstrap_servers: str, group: str, rack: str, topic: str) -> None:
        self.rack = rack
        self.errors: list[KafkaError] = []
        self.held: frozenset[int] = frozenset()
        self._ends = threading.Event()
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap_servers, "group.id": group, "group.protocol": "consumer",
            "client.rack": rack, "auto.offset.reset": "earliest",
        })  # fmt: skip
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _poll(self) -> None:
        while not self._ends.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and (error := message.error()) is not None:
                self.errors.append(error)
            self.held = frozenset(each.partition for each in self._consumer.assignment())

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        self._consumer.close()


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_jar(tmp_path_factory.mktemp("jar"))


@contextmanager
def brokers(jar: Path, **settings: str) -> Iterator[EmbeddedCluster]:
    properties = {
        "group.consumer.assignors": f"{CLASS},uniform,range",
        # members learn of a new assignment with a heartbeat, every five seconds by default
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.heartbeat.interval.ms": "500",
    }
    properties |= {f"rackwise.assignor.{name.replace('_', '.')}": value for name, value in settings.items()}
    spec = ClusterSpec(plugins=(str(jar),), broker_properties=properties)
    with EmbeddedCluster.start(spec, on_progress=print) as cluster:
        topic = NewTopic("orders", PARTITIONS, replica_assignment=REPLICAS)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([topic])["orders"].result(30)
        yield cluster


@contextmanager
def group_of(cluster: EmbeddedCluster) -> Iterator[Callable[[str], PollingMember]]:
    """Makes members of one group by their rack; all are closed at the end."""
    members: list[PollingMember] = []

    def join(rack: str) -> PollingMember:
        members.append(PollingMember(cluster.bootstrap_servers, "readers", rack, "orders"))
        return members[-1]

    try:
        yield join
    finally:
        for member in members:
            member.close()


def settled(cluster: EmbeddedCluster, members: list[PollingMember]) -> None:
    """Return once the coordinator has these members, Stable, and each holds what it is to hold."""
    until = time.monotonic() + SETTLES_WITHIN_S
    with WireClient({"bootstrap_servers": cluster.bootstrap_servers.split(",")}) as wire:
        wire.describe_brokers(10_000)
        while True:
            described = wire.describe_groups(["readers"], 10_000, group_type=CONSUMER_GROUP)
            held = sorted(number for member in members for number in member.held)
            states = [(each.state, each.assignor, len(each.members)) for each in described.groups]
            if states == [("Stable", "rackwise", len(members))] and held == list(range(PARTITIONS)):
                return
            assert time.monotonic() < until, (described, [sorted(member.held) for member in members])
            time.sleep(0.2)


def local(members: list[PollingMember]) -> int:
    return sum(member.rack in {RACK_OF[each] for each in REPLICAS[n]} for member in members for n in member.held)


def errors(members: list[PollingMember]) -> list[KafkaError]:
    return [error for member in members for error in member.errors]


def test_all_is_read_in_its_rack_after_each_join_and_leave(jar: Path) -> None:
    with brokers(jar) as cluster, group_of(cluster) as join:
        members = [join(rack) for rack in "abcabc"]
        settled(cluster, members)
        assert local(members) == PARTITIONS
        for joins in ("a", "b", None, "c"):
            if joins is None:
                members.pop(0).close()
            else:
                members.append(join(joins))
            settled(cluster, members)
            assert local(members) == PARTITIONS
            loads = [len(member.held) for member in members]
            assert max(loads) - min(loads) <= 1
        assert errors(members) == []


def test_a_group_above_the_limit_goes_on_with_uniform_and_the_broker_logs_why(jar: Path) -> None:
    with brokers(jar, max_pairs="1") as cluster, group_of(cluster) as join:
        members = [join(rack) for rack in "abc"]
        settled(cluster, members)
        members.append(join("a"))
        settled(cluster, members)
        assert errors(members) == []
        logs = "\n".join(path.read_text() for path in cluster.directory.glob("broker-*/server.log"))
    lines = re.findall(r"WARN The assignor rackwise answers as uniform does; .* \(.*\)\n.*", logs)
    assert len(lines) == 1, "once a minute, for several assignments"
    assert re.search(r"GroupTooLargeException: \d+ sets of \w+ times \d+ are more than", lines[0])
    assert lines[0].endswith(" rackwise.assignor.max.pairs = 1")
