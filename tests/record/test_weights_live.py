"""Weights on real brokers: read beside the looks, followed while they change, and told in the proposals."""

from __future__ import annotations

import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from agent.daemon.daemon import AgentDaemon
from agent.telemetry.topic_records import to_records
from agent.values.cycle import Cycle, sentence
from agent.values.finding import FindingReason
from agent.values.proposal import Proposal, ProposalReason
from agent.values.weights import GroupWeights, PartitionWeight, ReadWeight, TopicWeights, Weights
from config.kafka_client import KafkaClientConfig
from pipeline.topic_writer import KeyedRecord, write
from pipeline.weights_topic import make_topic, standing
from testbed.cluster import EmbeddedCluster
from tests.observe.live import delete_groups, wait_for
from tests.record.live import agent, described

TOPIC = "weights-orders"
GROUP = "weights-readers"
RATES = (4_000.0, 30.0, 2_000.0, 10.0)


@pytest.fixture
def prefix() -> str:
    """Topics of its own for each test: the cluster is shared."""
    return f"rackwise-{uuid4().hex[:8]}"


@pytest.fixture
def swapped(embedded_cluster: EmbeddedCluster) -> Iterator[EmbeddedCluster]:
    """Two readers whose assignor does not look at racks: each reads what lies in the other's rack."""
    servers = embedded_cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    in_rack = {broker.rack: broker.id for broker in embedded_cluster.brokers}
    replicas = [[in_rack["b"]], [in_rack["a"]]] * 2
    admin.create_topics([NewTopic(TOPIC, 4, replica_assignment=replicas)])[TOPIC].result(30)
    readers = [_reader(servers, client_id, rack) for client_id, rack in (("m-1", "a"), ("m-2", "b"))]
    try:
        wait_for(
            lambda: ([one.poll(0.1) for one in readers], all(len(one.assignment()) == 2 for one in readers))[1],
            "each reader has two partitions",
        )
        yield embedded_cluster
    finally:
        for one in readers:
            one.close()
        delete_groups(admin, GROUP)
        admin.delete_topics([TOPIC])[TOPIC].result(30)


def _reader(servers: str, client_id: str, rack: str) -> Consumer:
    one = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": GROUP,
            "client.id": client_id,
            "client.rack": rack,
            "partition.assignment.strategy": "roundrobin",
            "enable.auto.commit": False,
            "session.timeout.ms": 10_000,
            "topic.metadata.refresh.interval.ms": 1_000,
        }
    )
    one.subscribe([TOPIC])
    return one


def weights(cluster: str, age_s: float) -> list[Weights]:
    """What the pipeline would tell of the topic and the group, of looks that ended so long ago."""
    until_ms = round((time.time() - age_s) * 1_000)
    times = (until_ms, until_ms - 86_400_000, until_ms)
    rows = tuple(PartitionWeight(number, rate, 1.0, rate, "measured") for number, rate in enumerate(RATES))
    return [
        TopicWeights(cluster, TOPIC, *times, rows),
        GroupWeights(cluster, GROUP, *times, (ReadWeight(TOPIC, 1, 20.0),), ()),
    ]


def publish(kafka: KafkaClientConfig, topic: str, told: list[Weights]) -> None:
    changes = [KeyedRecord(key, value) for one in told for key, value in to_records(one)]
    assert write(kafka, topic, changes) == len(changes)


def planned(one: AgentDaemon) -> tuple[Cycle, Proposal]:
    cycle = one.once()
    (proposal,) = [
        found
        for found in cycle.proposals
        if found.reason is ProposalReason.CHANGE_ASSIGNOR and found.subject.name == GROUP
    ]
    return cycle, proposal


@pytest.mark.integration
def test_proposals_go_by_weights_as_long_as_they_are_fresh(swapped: EmbeddedCluster, prefix: str) -> None:
    servers, topic = swapped.bootstrap_servers, f"{prefix}.weights"
    kafka = KafkaClientConfig({"bootstrap.servers": servers})
    admin = AdminClient({"bootstrap.servers": servers})  # kept: a dropped client fails the calls in flight
    mark = swapped.proxy.count

    # No pipeline publishes weights: partitions are counted, nothing is created, and nothing is wrong.
    with agent(swapped.proxied_bootstrap_servers, prefix, "mode=observe", "metrics.top_groups=0") as one:
        cycle, proposal = planned(one)
    assert "4 of its 4 reads cross racks by Kafka's measure" in proposal.sentence
    assert sentence(cycle).count("figures") == 1
    assert f"; figures: partitions are counted (no weights: there is no topic {topic})" in sentence(cycle)
    assert [gap for gap in cycle.snapshot.gaps if "weights" in gap.part] == []
    assert [one for one in swapped.proxy.records(since=mark) if one.mutating] == []
    assert topic not in admin.list_topics(timeout=10).topics

    make_topic(kafka, topic, replicas=3, min_insync=2)
    make_topic(kafka, topic, replicas=3, min_insync=2)  # another client was faster
    placed, configs = described(servers, topic)
    assert (sorted(placed[0]), configs["cleanup.policy"]) == ([broker.id for broker in swapped.brokers], "compact")

    try:
        publish(kafka, topic, weights(cycle.snapshot.cluster_id, age_s=600))
        write(kafka, topic, [KeyedRecord("junk", b"\xff\x00")])
        with agent(servers, prefix, "mode=observe", "weights.max_age=1h") as one:
            cycle, proposal = planned(one)
            assert "6.0 kB/s of the 6.0 kB/s that it reads cross racks by Kafka's measure" in proposal.sentence
            assert "weights of the pipeline, 10 min old" in sentence(cycle)
            assert dict(proposal.evidence)["basis"] == "weights of the pipeline"
            assert proposal.predicted.cross_rack_bytes_per_s_before == 6_030.0
            assert proposal.predicted.cross_rack_bytes_per_s_after == 0.0
            (finding,) = [f for f in cycle.detection.findings if f.reason is FindingReason.WEIGHTS_UNUSED]
            assert "used in part: 1 record cannot be read, such as: 'junk' cannot be read" in finding.sentence

            # The same agent reads on: what comes now is two hours old.
            publish(kafka, topic, weights(cycle.snapshot.cluster_id, age_s=7_200))
            wait_for(lambda: "are 2 h old" in str(planned(one)[0].snapshot.weights), "the agent reads on")
            cycle, proposal = planned(one)
        assert "4 of its 4 reads cross racks by Kafka's measure" in proposal.sentence
        assert "; figures: partitions are counted (no weights: they are 2 h old, 60 min more than" in sentence(cycle)
        stale = [f for f in cycle.detection.findings if f.reason is FindingReason.WEIGHTS_UNUSED]
        assert len(stale) == 1

        stands = standing(kafka, topic, [0], group=f"{prefix}-reader")
        cluster = cycle.snapshot.cluster_id
        assert set(stands) == {f"{cluster}/group/{GROUP}", f"{cluster}/topic/{TOPIC}", "junk"}
    finally:
        admin.delete_topics([topic])[topic].result(30)
