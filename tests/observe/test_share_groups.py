"""Start offsets of share groups (KIP-932): what a group has read and acknowledged, on a real broker."""

from __future__ import annotations

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from agent.observe.context import ObserverState, ObserveScope
from agent.observe.observe_cluster import observe
from agent.values.clock import system_clock
from agent.values.observation import ObservationPart
from assignors.problem import TopicPartition
from testbed.cluster import EmbeddedCluster
from tests.act.reassignments import kafka_tool
from tests.observe.live import clients_of, topics, wait_for

GROUP, TOPIC, RECORDS = "shared-work", "shared-tasks", 60
CONFIGS = "kafka.admin.ConfigCommand"
DESCRIBE = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
CONSUME = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"


def test_what_a_share_group_has_read_is_among_the_committed_offsets(embedded_cluster: EmbeddedCluster) -> None:
    servers = embedded_cluster.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers})
    with topics(AdminClient({"bootstrap.servers": servers}), shared_tasks=2), clients_of(servers) as clients:
        earliest = ("--alter", "--add-config", "share.auto.offset.reset=earliest", "--entity-type", "groups")
        kafka_tool(embedded_cluster, CONFIGS, *earliest, "--entity-name", GROUP)
        wanted = ("--topic", TOPIC, "--group", GROUP, "--max-messages", str(RECORDS), "--timeout-ms", "60000")
        # Brokers write a start offset with the acknowledgement that comes after it.
        for _ in range(2):
            for number in range(RECORDS):
                producer.produce(TOPIC, b"x", partition=number % 2)
            assert producer.flush(30) == 0
            kafka_tool(embedded_cluster, CONSUME, *wanted)
        recall = ObserverState()

        def read() -> dict[TopicPartition, int]:
            seen = observe(clients, system_clock, ObserveScope(), recall)
            assert [gap for gap in seen.gaps if gap.part is ObservationPart.COMMITTED_OFFSETS] == []
            return dict(seen.committed_offsets.get(GROUP, {}))

        wait_for(lambda: sum(read().values()) > 0, "records are acknowledged")
        told = kafka_tool(embedded_cluster, DESCRIBE, "--describe", "--offsets", "--group", GROUP)
        rows = [line.split() for line in told.splitlines() if line.startswith(GROUP)]
        assert read() == {TopicPartition(row[1], int(row[2])): int(row[3]) for row in rows}
