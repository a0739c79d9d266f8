"""Groups on real brokers whose members are of any client, and what their assignments cost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, Protocol, Self

import confluent_kafka
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AiokafkaRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AiokafkaSticky
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor as KafkaPythonCooperativeSticky
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as KafkaPythonRoundRobin
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as KafkaPythonSticky

from assignors.problem import TopicPartition
from testbed.cluster import EmbeddedCluster
from testbed.demo.workload import demo_plan
from testbed.demo.workload.facts import ClusterFacts
from testbed.demo.workload.java import JavaHost
from tests.clients.simulated import make
from tests.cluster.live import admin, produce

RACKS = ("a", "c", "b")
"""Racks of a group's members in the order of their names. Not that of the brokers: which racks the first members are in
is chance, because assignors that know no racks go by names."""
RECORDS = 60
SESSION_MS = 10_000
MAX_POLL_INTERVAL_MS = 12_000
SETTLED_WITHIN_S = 40.0

JAVA = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    "optimal": "rackwise.assignor.RackwiseConsumerAssignor",
}


BUILT_IN: dict[str, list[Any]] = {
    "kafka-python": [KafkaPythonRange, KafkaPythonRoundRobin, KafkaPythonSticky, KafkaPythonCooperativeSticky],
    "aiokafka": [AiokafkaRange, AiokafkaRoundRobin, AiokafkaSticky],
}
DROP_IN = {
    "kafka-python": ["range", "sticky", "cooperative-sticky", "optimal"],
    "aiokafka": ["range", "sticky", "optimal"],
}

BY_NAME = ("kafka-python", "aiokafka")
"""Clients for which there are drop-ins, named by their protocols."""


class Member(Protocol):
    """A consumer in a group."""

    rack: str | None

    @property
    def reads(self) -> frozenset[TopicPartition]:
        """What it reads now."""

    def leave(self) -> None:
        """Leave the group."""


class Plan(NamedTuple):
    """How a member joins."""

    name: str
    """Its client id, with which the broker begins its member id."""
    group: str
    topics: tuple[str, ...]
    rack: str | None
    strategy: Any


class KafkaPythonMember:
    """A consumer of kafka-python on a thread of its own."""

    def __init__(self, bootstrap: str, plan: Plan) -> None:
        self.rack = plan.rack
        self.failure: str | None = None
        self.records = 0
        self.consumer = KafkaConsumer(
            *plan.topics,
            bootstrap_servers=bootstrap.split(","),
            client_id=plan.name,
            group_id=plan.group,
            client_rack=plan.rack or "",
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=300,
            max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
            partition_assignment_strategy=plan.strategy,
        )
        self._followed = hasattr(plan.strategy, "follow")
        if self._followed:
            plan.strategy.follow(self.consumer)
        self.busy = threading.Event()
        """While it is set, it does not poll."""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def leads(self) -> bool:
        return bool(self.consumer._coordinator._is_leader)

    @property
    def protocol(self) -> str | None:
        """What the group agreed on."""
        agreed: str | None = self.consumer._coordinator._generation.protocol
        return agreed

    @property
    def reads(self) -> frozenset[TopicPartition]:
        return frozenset(TopicPartition(*each) for each in self.consumer.assignment() or ())

    def leave(self) -> None:
        self._ending.set()
        self._thread.join(20)
        assert not self._thread.is_alive(), "a consumer of kafka-python did not end"
        assert self.failure is None, self.failure

    def _poll_ms(self) -> int:
        """Long for the library's own assignors at first: a poll that ends while they join may lose the assignment."""
        return 100 if self._followed or self.consumer.assignment() else 2_000

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                if not self.busy.is_set():
                    self.records += sum(map(len, self.consumer.poll(timeout_ms=self._poll_ms()).values()))
                self._ending.wait(0.01)
        except Exception as failed:  # noqa: BLE001 - raised where this member is ended
            self.failure = repr(failed)
        finally:
            self.consumer.close()


class AiokafkaMember:
    """A consumer of aiokafka on an event loop and a thread of its own."""

    def __init__(self, bootstrap: str, plan: Plan) -> None:
        self.rack = plan.rack
        self.failure: str | None = None
        self.records = 0
        self.generation = 0
        self._reads: frozenset[TopicPartition] = frozenset()
        self._ending = threading.Event()
        settings = {
            "bootstrap_servers": bootstrap.split(","),
            "client_id": plan.name,
            "group_id": plan.group,
            "client_rack": plan.rack,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": 300,
            "partition_assignment_strategy": plan.strategy,
        }
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(plan.topics, settings)), daemon=True)
        self._thread.start()

    @property
    def reads(self) -> frozenset[TopicPartition]:
        return self._reads

    def leave(self) -> None:
        self._ending.set()
        self._thread.join(20)
        assert not self._thread.is_alive(), "a consumer of aiokafka did not end"
        assert self.failure is None, self.failure

    async def _run(self, topics: Sequence[str], settings: Mapping[str, Any]) -> None:
        consumer = AIOKafkaConsumer(*topics, **settings)
        try:
            await consumer.start()
            while not self._ending.is_set():
                self.records += sum(map(len, (await consumer.getmany(timeout_ms=100)).values()))
                self._reads = frozenset(TopicPartition(*each) for each in consumer.assignment())
                self.generation = consumer._coordinator.generation
        except Exception as failed:  # noqa: BLE001 - raised where this member is ended
            self.failure = repr(failed)
        finally:
            await consumer.stop()


class LibrdkafkaMember:
    """A consumer of librdkafka on a thread of its own."""

    def __init__(self, bootstrap: str, plan: Plan) -> None:
        self.rack = plan.rack
        self.failure: str | None = None
        self._held: frozenset[TopicPartition] = frozenset()
        self._ending = threading.Event()
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": plan.name,
                "group.id": plan.group,
                "client.rack": plan.rack or "",
                "auto.offset.reset": "earliest",
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 300,
                "partition.assignment.strategy": plan.strategy,
            }
        )
        self._topics = list(plan.topics)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def reads(self) -> frozenset[TopicPartition]:
        return self._held

    def leave(self) -> None:
        self._ending.set()
        self._thread.join(20)
        assert not self._thread.is_alive(), "a consumer of librdkafka did not end"
        assert self.failure is None, self.failure

    def _run(self) -> None:
        def gained(_: Any, partitions: Iterable[Any]) -> None:
            self._held |= {TopicPartition(each.topic, each.partition) for each in partitions}

        def lost(_: Any, partitions: Iterable[Any]) -> None:
            self._held -= {TopicPartition(each.topic, each.partition) for each in partitions}

        self._consumer.subscribe(self._topics, on_assign=gained, on_revoke=lost, on_lost=lost)
        try:
            while not self._ending.is_set():
                self._consumer.poll(0.1)
        except Exception as failed:  # noqa: BLE001 - raised where this member is ended
            self.failure = repr(failed)
        finally:
            self._consumer.close()


class JavaMember:
    """A consumer of the demo's JVM."""

    def __init__(self, host: JavaHost, plan: Plan) -> None:
        (topic,) = plan.topics
        self.rack = plan.rack
        self._host = host
        self._name = plan.name
        settings = {"partition.assignment.strategy": JAVA[plan.strategy], "heartbeat.interval.ms": "300"}
        host.start_consumer(plan.name, plan.group, topic, rack=plan.rack, settings=settings)

    @property
    def reads(self) -> frozenset[TopicPartition]:
        (mine,) = (each for each in self._host.assignment()["consumers"] if each["id"] == self._name)
        assert mine["error"] is None, mine["error"]
        split = (each.rpartition("-") for each in mine["partitions"])
        return frozenset(TopicPartition(topic, int(number)) for topic, _, number in split)

    def leave(self) -> None:
        self._host.stop_consumer(self._name)


class Lab:
    """Topics placed as the demo places them, and groups that read them."""

    def __init__(self, bootstrap: str, topics: Mapping[str, Sequence[Sequence[int]]], racks: Mapping[int, str]) -> None:
        self.bootstrap = bootstrap
        self.topics = {
            topic: tuple(frozenset(racks[node] for node in placed) for placed in its) for topic, its in topics.items()
        }
        self.java: JavaHost | None = None
        self.plugins: tuple[str, ...] = ()
        """Jars that Java members load beside Kafka's own."""
        self._stack = ExitStack()
        self._groups = 0
        self._members = 0

    def name(self, about: str) -> str:
        """An unused group id."""
        self._groups += 1
        return f"drop-in-{about}-{time.time_ns()}-{self._groups}"

    def member(self, client: str, group: str, rack: str | None, strategy: Any, topics: Sequence[str] = ()) -> Any:
        """A member of that client; ``strategy`` is the drop-in's names, or what the client takes itself."""
        self._members += 1
        if client in BY_NAME and all(isinstance(each, str) for each in strategy):
            strategy = make(client, strategy, rack)
        plan = Plan(f"m{self._members:05}", group, tuple(topics or self.topics), rack, strategy)
        if client == "java":
            self.java = self.java or self._stack.enter_context(_java(self.bootstrap, self.plugins))
            return JavaMember(self.java, plan)
        if client == "librdkafka":
            return LibrdkafkaMember(self.bootstrap, plan)
        return {"kafka-python": KafkaPythonMember, "aiokafka": AiokafkaMember}[client](self.bootstrap, plan)

    def records(self, topic: str) -> int:
        """Records in one of the topics."""
        assert topic in self.topics
        return RECORDS

    def crossing(self, members: Iterable[Any]) -> int:
        """Partitions that are read from another rack."""
        return sum(m.rack not in self.topics[each.topic][each.partition] for m in members for each in m.reads)

    def is_settled(self, members: Sequence[Any], topics: Sequence[str] = ()) -> bool:
        """Whether every partition has one reader and loads are even, of each topic by itself or of all together."""
        wanted = {TopicPartition(t, n) for t in topics or self.topics for n in range(len(self.topics[t]))}
        read = [each for member in members for each in member.reads]
        loads = [len(member.reads) for member in members]
        return len(read) == len(wanted) and set(read) == wanted and max(loads) - min(loads) <= 1

    def settle(self, members: Sequence[Any], topics: Sequence[str] = (), *, calm_s: float = 0.7) -> None:
        """Wait until the group is settled and nothing has changed for a while."""
        until = time.monotonic() + SETTLED_WITHIN_S
        since, last = time.monotonic(), None
        while time.monotonic() < until:
            now = tuple(member.reads for member in members)
            if now != last or not self.is_settled(members, topics):
                since, last = time.monotonic(), now
            elif time.monotonic() - since > calm_s:
                return
            time.sleep(0.05)
        reads = {f"{type(m).__name__} in {m.rack}": sorted(map(str, m.reads)) for m in members}
        failures = [getattr(m, "failure", None) for m in members]
        raise AssertionError(f"not settled within {SETTLED_WITHIN_S:.0f} s: {reads} {failures}")

    @contextmanager
    def group(self) -> Iterator[list[Any]]:
        """A list of members that all leave in the end."""
        members: list[Any] = []
        try:
            yield members
        finally:
            for member in members:
                member.leave()

    def close(self) -> None:
        self._stack.close()


class Overlaps:
    """Looks again and again whether a partition has two readers."""

    def __init__(self, members: Callable[[], Sequence[Any]]) -> None:
        self.found: set[TopicPartition] = set()
        self.looks = 0
        self._members = members
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._ending.wait(0.005):
            self.looks += 1
            # Losers before gainers: a partition that moves between two looks must not be seen twice.
            first = [member.reads for member in self._members()]
            again = [member.reads for member in self._members()]
            if first == again:
                read = [each for reads in first for each in reads]
                self.found |= {each for each in read if read.count(each) > 1}


@contextmanager
def _java(bootstrap: str, plugins: tuple[str, ...]) -> Iterator[JavaHost]:
    host = JavaHost(bootstrap, "4.3.1", plugins=plugins)
    try:
        yield host
    finally:
        host.close()


def demo_topics(cluster: EmbeddedCluster, prefix: str) -> Lab:
    """The demo's four topics as this cluster has room for them, under names of their own, with a few records each."""
    racks, placed = _demo_placement(cluster)
    topics = {f"{prefix}-{topic}": replicas for topic, replicas in placed.items()}
    client = admin(cluster.bootstrap_servers)
    new = [
        NewTopic(topic, num_partitions=len(replicas), replica_assignment=[list(its) for its in replicas])
        for topic, replicas in topics.items()
    ]
    for done in client.create_topics(new, operation_timeout=20.0).values():
        done.result(20)
    for topic in topics:
        produce(cluster.bootstrap_servers, topic, RECORDS)
    return Lab(cluster.bootstrap_servers, topics, racks)


def demo_topics_as_they_are(cluster: EmbeddedCluster) -> Lab:
    """The topics of the demo's workload, which runs on this cluster."""
    racks, placed = _demo_placement(cluster)
    return Lab(cluster.bootstrap_servers, placed, racks)


def _demo_placement(cluster: EmbeddedCluster) -> tuple[dict[int, str], dict[str, tuple[tuple[int, ...], ...]]]:
    racks = dict(zip(cluster.spec.broker_ids, cluster.spec.racks, strict=True))
    facts = ClusterFacts(cluster_id="", racks=racks, features={}, client_version="")
    placed = {plan.name: plan.replicas for plan in demo_plan(facts).topics}
    return {node: rack for node, rack in racks.items() if rack}, placed
