"""What is predicted before a rebalance, against what the group then got.

A member leaves, so that everybody who stays keeps the id by which Kafka breaks ties: the prediction is made on the
snapshot without it, while it is still there. Leaders that are not Java's are measured, and the deviation is printed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange

from agent.predict.applications import SHARED_BUCKET
from agent.predict.predict import predict
from agent.values.limits import GroupLimits, Limits
from agent.values.plan import PredictedAssignment, Prediction, PredictionBasis, PredictionCertainty
from agent.values.snapshot import ConsumerGroup, Snapshot, StreamsGroup
from assignors.problem import TaskId, TopicPartition
from testbed.cluster import EmbeddedCluster
from testbed.demo.workload.consumers import LibrdkafkaGroup
from testbed.demo.workload.java import JavaHost
from testbed.demo.workload.placement import spread
from testbed.demo.workload.plan import GroupProtocol, LibrdkafkaGroupPlan, LoadPlan, TopicPlan, TopologyPlan
from testbed.demo.workload.producers import LoadGenerator
from testbed.demo.workload.topics import create_topics
from tests.clients.live import Lab
from tests.watching_agent import WatchingAgent, settings_for

pytestmark = pytest.mark.integration

PARTITIONS = 12
RACKS = ("a", "b", "c", "a")
RECORDS = 120
Reads = Mapping[str, tuple[TopicPartition, ...]]


# --- the scene --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab(demo_cluster: EmbeddedCluster) -> Iterator[Lab]:
    """A topic of twelve partitions in two of three racks each, with a few records."""
    racks = dict(zip(demo_cluster.spec.broker_ids, demo_cluster.spec.racks, strict=True))
    placed = spread(racks, PARTITIONS, 2)
    topic = f"foretold-{time.time_ns()}"
    create_topics(demo_cluster.bootstrap_servers, [TopicPlan(name=topic, replicas=placed)])
    load = LoadPlan(topic=topic, records_per_s=1, value_bytes=50, preload_records=RECORDS)
    LoadGenerator(demo_cluster.bootstrap_servers, [(load, PARTITIONS)]).preload([topic])
    made = Lab(demo_cluster.bootstrap_servers, {topic: placed}, {node: rack for node, rack in racks.items() if rack})
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def java(lab: Lab) -> Iterator[JavaHost]:
    host = JavaHost(lab.bootstrap, "4.3.1", heap="512m")
    try:
        yield host
    finally:
        host.close()


@pytest.fixture
def watching(lab: Lab) -> Iterator[WatchingAgent]:
    with WatchingAgent(settings_for(lab.bootstrap)) as opened:
        yield opened


def topic_of(lab: Lab) -> str:
    (topic,) = lab.topics
    return topic


# --- consumer groups --------------------------------------------------------------------------------------------


def settled_group(eye: WatchingAgent, name: str, members: int) -> tuple[Snapshot, ConsumerGroup]:
    """The group once every partition is read by one of so many members, in two looks one after the other."""
    before: list[Any] = [None]

    def settled(cycle: Any) -> bool:
        group = cycle.snapshot.groups.get(name)
        if not isinstance(group, ConsumerGroup) or group.state != "Stable" or len(group.members) != members:
            return False
        read = [p for member in group.members for p in member.assigned or ()]
        now = group.members
        same, before[0] = before[0] == now, now
        return len(read) == len(set(read)) == PARTITIONS and same

    cycle = eye.until(settled, f"{members} members that read everything", within_s=60)
    group = cycle.snapshot.groups[name]
    assert isinstance(group, ConsumerGroup)
    return cycle.snapshot, group


def after_leaving(snapshot: Snapshot, group: ConsumerGroup, client_id: str, limits: Limits) -> Prediction:
    """What is predicted for the group without that member."""
    stay = tuple(member for member in group.members if member.client_id != client_id)
    assert len(stay) == len(group.members) - 1
    return predict(group._replace(members=stay), snapshot, limits)


def reads_of(group: ConsumerGroup) -> Reads:
    return {member.id: tuple(sorted(member.assigned or ())) for member in group.members}


def crossing(group: ConsumerGroup, reads: Reads, lab: Lab) -> int:
    """Reads across racks by where the members really are: a Python client does not tell it."""
    racks = dict(zip(sorted(member.id for member in group.members), RACKS, strict=False))
    return sum(racks[name] not in lab.topics[p.topic][p.partition] for name, held in reads.items() for p in held)


def loads(reads: Reads) -> list[int]:
    return sorted(map(len, reads.values()))


def elsewhere(predicted: Reads, got: Reads) -> int:
    """Partitions that another member got than was predicted."""
    return sum(len(set(held) - set(predicted.get(name, ()))) for name, held in got.items())


@pytest.mark.parametrize("strategy", [pytest.param("range", marks=pytest.mark.drill), "cooperative-sticky"])
def test_a_java_leader_gives_what_was_predicted(lab: Lab, watching: WatchingAgent, strategy: str) -> None:
    name = lab.name(f"foretold-{strategy}")
    limits = Limits(groups={name: GroupLimits(client_software_name="apache-kafka-java")})
    members = [lab.member("java", name, rack, strategy) for rack in RACKS]
    try:
        for left in (4, 3):
            snapshot, group = settled_group(watching, name, left)
            leaver = members.pop(1)
            predicted = after_leaving(snapshot, group, leaver._name, limits)
            leaver.leave()
            _, got = settled_group(watching, name, left - 1)
            assert predicted.certainty is PredictionCertainty.EXACT, predicted.notes
            assert predicted.basis is PredictionBasis.READ
            assert predicted.settled is not None, predicted.why_not
            assert dict(predicted.settled.reads) == reads_of(got)
    finally:
        for member in members:
            member.leave()


@pytest.mark.parametrize("protocol", [GroupProtocol.RANGE, GroupProtocol.COOPERATIVE_STICKY])
@pytest.mark.drill
def test_a_librdkafka_leader_balances_at_the_cost_that_was_predicted(
    lab: Lab, watching: WatchingAgent, protocol: GroupProtocol
) -> None:
    _balanced_at_the_cost(lab, watching, "librdkafka", protocol.value, "librdkafka")


@pytest.mark.parametrize(("client", "assignor"), [("kafka-python", KafkaPythonRange), ("aiokafka", AiokafkaRange)])
@pytest.mark.drill
def test_a_python_leader_balances_at_the_cost_that_was_predicted(
    lab: Lab, watching: WatchingAgent, client: str, assignor: Any
) -> None:
    _balanced_at_the_cost(lab, watching, client, [assignor], client)


def _balanced_at_the_cost(lab: Lab, eye: WatchingAgent, client: str, strategy: Any, software: str) -> None:
    name = lab.name(f"foretold-{client}")
    limits = Limits(groups={name: GroupLimits(client_software_name=software)})
    plans = [lab.member(client, name, rack, strategy) for rack in RACKS]
    try:
        snapshot, group = settled_group(eye, name, len(RACKS))
        leaver = max(group.members, key=lambda member: member.client_id)
        predicted = after_leaving(snapshot, group, leaver.client_id, limits)
        plans.pop().leave()
        _, got = settled_group(eye, name, len(RACKS) - 1)
    finally:
        for member in plans:
            member.leave()
    assert predicted.certainty is PredictionCertainty.COST_EQUAL
    assert predicted.settled is not None, predicted.why_not
    wanted, real = predicted.settled.reads, reads_of(got)
    costs = crossing(got, wanted, lab), crossing(got, real, lab)
    print(
        f"{client} {group.assignor}: {elsewhere(wanted, real)} of {PARTITIONS} partitions with another member than "
        f"Java's assignor gives; crossing {costs[0]} predicted, {costs[1]} got; loads {loads(real)}"
    )
    assert loads(wanted) == loads(real)
    assert costs[0] == costs[1]


@pytest.mark.drill
def test_a_brokers_uniform_assignor_gives_what_was_predicted(lab: Lab, watching: WatchingAgent) -> None:
    name = lab.name("foretold-uniform")
    plan = LibrdkafkaGroupPlan(group=name, topic=topic_of(lab), racks=RACKS, protocol=GroupProtocol.CONSUMER)
    members = LibrdkafkaGroup(lab.bootstrap, plan)
    try:
        snapshot, group = settled_group(watching, name, len(RACKS))
        assert group.assignor == "uniform"
        # Kafka is deterministic unless two of those who stay share a bucket of its hash map.
        found = {name: after_leaving(snapshot, group, name, Limits()) for name in (m.client_id for m in group.members)}
        leaver = min(found, key=lambda name: (found[name].certainty is not PredictionCertainty.EXACT, name))
        predicted = found[leaver]
        members.remove(leaver)
        _, got = settled_group(watching, name, len(RACKS) - 1)
    finally:
        members.close()
    assert predicted.settled is not None, predicted.why_not
    assert loads(predicted.settled.reads) == loads(reads_of(got))
    if predicted.certainty is PredictionCertainty.EXACT:
        assert dict(predicted.settled.reads) == reads_of(got)
    else:
        assert SHARED_BUCKET in predicted.notes


# --- Streams ----------------------------------------------------------------------------------------------------

Tasks = dict[str, tuple[TaskId, ...]]


@contextmanager
def application(lab: Lab, java: JavaHost, name: str, settings: Mapping[str, str]) -> Iterator[Callable[[str], str]]:
    """Three instances, one in each rack; the function stops one and tells its process id before."""
    topology = TopologyPlan(input=topic_of(lab))
    with ExitStack() as stack:
        for rack in RACKS[:3]:
            instance = f"{name}-{rack}"
            java.start_instance(
                instance, name, topology, rack=rack, tags={"zone": rack},
                settings={"replication.factor": "2", **settings},
            )  # fmt: skip
            stack.callback(_stop_if_there, java, instance)
        yield lambda rack: _process_of(java, name, f"{name}-{rack}")


def _stop_if_there(java: JavaHost, instance: str) -> None:
    if any(one["id"] == instance for one in java.assignment()["instances"]):
        java.stop_instance(instance)


def _process_of(java: JavaHost, name: str, instance: str) -> str:
    return next(one["process_id"] for one in java.lags(name)["instances"] if one["id"] == instance)


def settled_application(eye: WatchingAgent, name: str, processes: int, standbys: int) -> tuple[Snapshot, StreamsGroup]:
    """The application once all tasks run and all standbys are placed, in two looks one after the other."""
    before: list[Any] = [None]

    def settled(cycle: Any) -> bool:
        group = cycle.snapshot.groups.get(name)
        if not isinstance(group, StreamsGroup) or group.state != "Stable" or len(group.processes) != processes:
            return False
        if group.topology is None or not group.topology.tasks:
            return False
        tasks = {task.id for task in group.topology.tasks}
        runs = [task for process in group.processes for task in process.active]
        stateful = [task for task in group.topology.tasks if task.changelogs]
        copies = sum(len(process.standby) + len(process.warmup) for process in group.processes)
        same, before[0] = before[0] == group.processes, group.processes
        return (
            len({task.subtopology for task in tasks}) > 1
            and len(runs) == len(set(runs)) == len(tasks)
            and set(runs) == tasks
            and copies >= standbys * len(stateful)
            and same
        )

    cycle = eye.until(settled, f"{processes} processes that run everything", within_s=90)
    group = cycle.snapshot.groups[name]
    assert isinstance(group, StreamsGroup)
    return cycle.snapshot, group


def without_process(group: StreamsGroup, process_id: str) -> StreamsGroup:
    gone = {member for process in group.processes if process.id == process_id for member in process.member_ids}
    assert gone
    return group._replace(
        processes=tuple(process for process in group.processes if process.id != process_id),
        members=tuple(member for member in group.members if member.id not in gone),
        targets=tuple(target for target in group.targets if target.member_id not in gone),
    )


def copies_of(given: PredictedAssignment) -> Tasks:
    """Standbys and warm-ups: the wire does not tell them apart."""
    return {name: tuple(sorted({*held, *given.warmup.get(name, ())})) for name, held in given.standby.items()}


def assert_got(predicted: Prediction, got: StreamsGroup) -> None:
    given = predicted.settled
    assert given is not None, predicted
    assert {name: tuple(sorted(tasks)) for name, tasks in given.active.items()} == {
        process.id: tuple(sorted(process.active)) for process in got.processes
    }
    assert copies_of(given) == {
        process.id: tuple(sorted({*process.standby, *process.warmup})) for process in got.processes
    }


STRATEGIES = [
    pytest.param("min_traffic", (), marks=pytest.mark.drill, id="min_traffic"),
    pytest.param("balance_subtopology", (), marks=pytest.mark.drill, id="balance_subtopology"),
    pytest.param("none", (), marks=pytest.mark.drill, id="none"),
    pytest.param("none", ("zone",), marks=pytest.mark.drill, id="tags"),
    pytest.param("min_traffic", ("zone",), id="min_traffic and tags"),
    pytest.param("balance_subtopology", ("zone",), marks=pytest.mark.drill, id="balance_subtopology and tags"),
]


@pytest.mark.parametrize(("strategy", "tags"), STRATEGIES)
def test_an_application_gets_what_was_predicted(
    lab: Lab, java: JavaHost, watching: WatchingAgent, strategy: str, tags: tuple[str, ...]
) -> None:
    name = lab.name("app")
    own = GroupLimits(
        num_standby_replicas=1, rack_aware_assignment_strategy=strategy, rack_aware_assignment_tags=tags, known=True
    )
    settings = {"num.standby.replicas": "1", "rack.aware.assignment.strategy": strategy}
    if tags:
        settings["rack.aware.assignment.tags"] = ",".join(tags)
    with application(lab, java, name, settings) as process_of:
        snapshot, group = settled_application(watching, name, 3, standbys=1)
        limits = Limits(groups={name: own})
        kept = predict(group, snapshot, limits)
        predicted = predict(without_process(group, process_of("b")), snapshot, limits)
        java.stop_instance(f"{name}-b")
        _, got = settled_application(watching, name, 2, standbys=1)
    assert kept.why_not is None
    assert predicted.certainty is PredictionCertainty.EXACT, predicted.notes
    assert predicted.basis is PredictionBasis.SET
    assert_got(predicted, got)


@pytest.mark.drill
def test_a_streams_group_gets_what_was_predicted(lab: Lab, java: JavaHost, watching: WatchingAgent) -> None:
    name = lab.name("streams")
    java.set_group_configs(name, {"streams.num.standby.replicas": "1"})
    with application(lab, java, name, {"group.protocol": "streams"}) as process_of:
        snapshot, group = settled_application(watching, name, 3, standbys=1)
        found = {rack: predict(without_process(group, process_of(rack)), snapshot, Limits()) for rack in RACKS[:3]}
        leaver = min(found, key=lambda rack: (found[rack].certainty is not PredictionCertainty.EXACT, rack))
        predicted = found[leaver]
        java.stop_instance(f"{name}-{leaver}")
        after, got = settled_application(watching, name, 2, standbys=1)
    assert predicted.basis is PredictionBasis.READ, predicted.notes
    if predicted.certainty is PredictionCertainty.EXACT:
        assert_got(predicted, got)
    else:
        assert predicted.notes == (SHARED_BUCKET,)
    again = predict(got, after, Limits())
    assert_got(again, got)
