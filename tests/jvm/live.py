"""Brokers with the plug-in, groups of the consumer protocol on them, and what the plug-in's beans say."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError
from confluent_kafka.admin import AdminClient, NewTopic

from agent.values.kafka import CONSUMER_GROUP
from agent.wire.client import WireClient
from pipeline.maven import java
from testbed.cluster import ClusterSpec, EmbeddedCluster
from testbed.cluster.jars import JarSet, kafka_jars
from testbed.cluster.spec import DEFAULT_VERSION
from tests.jvm.building import run_maven

CLASS = "rackwise.assignor.RackwiseAssignor"
RACK_OF = {1: "a", 2: "b", 3: "c"}
ORDERS = "orders"
PARTITIONS = 24
REPLICAS = [[1 + n % 3, 1 + (n + 1 + n // 3 % 2) % 3] for n in range(PARTITIONS)]
"""Two of the three racks each, every pair of racks as often as the others."""
SETTLES_WITHIN_S = 60

Held = frozenset[tuple[str, int]]
"""Partitions by topic and number."""


class PollingMember:
    """A consumer that polls in a thread of its own until it is closed; it names no assignor unless one is given."""

    def __init__(
        self, bootstrap_servers: str, group: str, rack: str, topics: Sequence[str] = (ORDERS,), assignor: str = ""
    ) -> None:
        self.rack = rack
        self.errors: list[KafkaError] = []
        self.fatal: list[KafkaError] = []
        """Errors that end a consumer."""
        self.partitions: Held = frozenset()
        self._ends = threading.Event()
        settings = {
            "bootstrap.servers": bootstrap_servers, "group.id": group, "group.protocol": "consumer",
            "client.rack": rack, "auto.offset.reset": "earliest", "error_cb": self._note,
        }  # fmt: skip
        self._consumer = Consumer(settings | ({"group.remote.assignor": assignor} if assignor else {}))
        self._consumer.subscribe(list(topics))
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    @property
    def held(self) -> frozenset[int]:
        return frozenset(number for _, number in self.partitions)

    def _note(self, error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._FATAL:
            self.fatal.append(error)

    def _poll(self) -> None:
        while not self._ends.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and (error := message.error()) is not None:
                self.errors.append(error)
                self._note(error)
            self.partitions = frozenset((each.topic, each.partition) for each in self._consumer.assignment())

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        self._consumer.close()


NEWEST = "4.4.0"
"""Maven Central has the jars of its broker, but not of Streams and the tools, so it is no version of the testbed."""


def jars_of(version: str, directory: Path) -> JarSet:
    """The jars that run a broker of this version."""
    if version != NEWEST:
        return kafka_jars(version, print)
    run_maven("dependency:copy-dependencies", "-Pkafka-4.4", f"-DoutputDirectory={directory}")
    ours = kafka_jars(DEFAULT_VERSION)
    for jar in ours.jars:
        if jar.name.startswith("log4j-"):
            shutil.copy(jar, directory)
    assert (directory / f"kafka_2.13-{NEWEST}.jar").exists()
    return JarSet(directory=directory, java=ours.java)


@contextmanager
def brokers(
    *plugins: Path, jars: tuple[str, JarSet] | None = None, kafka: dict[str, str] | None = None, **settings: str
) -> Iterator[EmbeddedCluster]:
    """Three brokers with these plug-ins and settings of theirs, and the topic ``orders``; ``jars``: of that version."""
    properties = {
        "group.consumer.assignors": f"{CLASS},uniform,range",
        # members learn of a new assignment with a heartbeat, every five seconds by default
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.heartbeat.interval.ms": "500",
    }
    properties |= {f"rackwise.assignor.{name.replace('_', '.')}": value for name, value in settings.items()}
    version, its = jars or (DEFAULT_VERSION, kafka_jars(DEFAULT_VERSION))
    spec = ClusterSpec(version=version, plugins=tuple(map(str, plugins)), broker_properties=properties | (kafka or {}))
    with _started(spec, its) as cluster:
        topic = NewTopic(ORDERS, PARTITIONS, replica_assignment=REPLICAS)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([topic])[ORDERS].result(30)
        yield cluster


def _started(spec: ClusterSpec, jars: JarSet) -> EmbeddedCluster:
    if spec.version == NEWEST:
        return EmbeddedCluster._begin(spec, replace(jars, plugins=spec.plugins), say=print)
    return EmbeddedCluster.start(spec, on_progress=print)


@contextmanager
def group_of(
    cluster: EmbeddedCluster, group: str = "readers", topics: Sequence[str] = (ORDERS,), assignor: str = ""
) -> Iterator[Callable[[str], PollingMember]]:
    """Makes members of one group by their rack; all are closed at the end."""
    members: list[PollingMember] = []

    def join(rack: str) -> PollingMember:
        members.append(PollingMember(cluster.bootstrap_servers, group, rack, topics, assignor))
        return members[-1]

    try:
        yield join
    finally:
        for member in members:
            member.close()


def settled(
    cluster: EmbeddedCluster,
    members: list[PollingMember],
    group: str = "readers",
    *,
    assignor: str = "rackwise",
    partitions: int = PARTITIONS,
) -> None:
    """Return once the coordinator has these members, Stable, and each holds what it is to hold."""
    until = time.monotonic() + SETTLES_WITHIN_S
    with WireClient({"bootstrap_servers": cluster.bootstrap_servers.split(",")}) as wire:
        wire.describe_brokers(10_000)
        while True:
            described = wire.describe_groups([group], 10_000, group_type=CONSUMER_GROUP)
            held = [each for member in members for each in member.partitions]
            states = [(each.state, each.assignor, len(each.members)) for each in described.groups]
            whole = len(held) == len(set(held)) == partitions
            if states == [("Stable", assignor, len(members))] and whole:
                return
            assert time.monotonic() < until, (described, [sorted(member.partitions) for member in members])
            time.sleep(0.2)


def local(members: list[PollingMember]) -> int:
    """Partitions of ``orders`` with a replica in the rack of their reader."""
    return sum(member.rack in {RACK_OF[each] for each in REPLICAS[n]} for member in members for n in member.held)


def errors(members: list[PollingMember]) -> list[KafkaError]:
    return [error for member in members for error in (*member.errors, *member.fatal)]


def dead(members: list[PollingMember]) -> int:
    """Members that an error has ended."""
    return sum(bool(member.fatal) for member in members)


class BeanFigures(NamedTuple):
    """The attributes of one broker's bean."""

    assignments: int
    fallbacks: int
    smaller: int
    cause: str


_ATTRIBUTES = ("Assignments", "Fallbacks", "SmallerAssignments", "LastFallbackCause")
_READER = """
import com.sun.tools.attach.VirtualMachine;
import javax.management.ObjectName;
import javax.management.remote.*;

class Reader {
    public static void main(String[] arguments) throws Exception {
        VirtualMachine broker = VirtualMachine.attach(arguments[0]);
        JMXServiceURL url = new JMXServiceURL(broker.startLocalManagementAgent());
        try (JMXConnector connector = JMXConnectorFactory.connect(url)) {
            for (int each = 2; each < arguments.length; each++) {
                System.out.println(connector.getMBeanServerConnection()
                    .getAttribute(new ObjectName(arguments[1]), arguments[each]));
            }
        }
    }
}
"""


def bean(cluster: EmbeddedCluster, broker_id: int, directory: Path) -> BeanFigures:
    """What JMX says of the plug-in on one broker, as an operator's tool reads it."""
    source = directory / "Reader.java"
    source.write_text(_READER, "utf-8")
    name = f'rackwise:type=RackwiseAssignor,node="{broker_id}"'
    command = (str(java()), str(source), str(cluster.broker(broker_id).pid), name, *_ATTRIBUTES)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assignments, fallbacks, smaller, cause = done.stdout.removesuffix("\n").split("\n", 3)
    return BeanFigures(int(assignments), int(fallbacks), int(smaller), cause)


def beans(cluster: EmbeddedCluster, directory: Path) -> list[BeanFigures]:
    return [bean(cluster, broker_id, directory) for broker_id in RACK_OF]
