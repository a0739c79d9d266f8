"""Start offsets of share groups (KIP-932): what a group has read and acknowledged, on a real broker."""

from __future__ import annotations

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from agent.observe.context import ObserverState, ObserveScope
from agent.observe.observe_cluster import observe
from agent.values.clock import system_clock
from agent.values.observation import ObservationPart
from testbed.cluster import EmbeddedCluster
from tests.act.reassignments import kafka_tool
from tests.observe.live import clients_of, topics, wait_for

GROUP, TOPIC, RECORDS = "shared-work", "shared-tasks", 60
CONFIGS = "kafka.admin.ConfigCommand"
CONSUME = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"


def test_what_a_share_group_has_read_is_among_the_committed_offsets(embedded_cluster: EmbeddedCluster) -> None:
    servers = embedded_cluster.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers})
    with topics(AdminClient({"bootstrap.servers": servers}), shared_tasks=2), clients_of(servers) as clients:
        for number in range(RECORDS):
            producer.produce(TOPIC, b"x", partition=number % 2)
        assert producer.flush(30) == 0
        earliest = ("--alter", "--add-config", "share.auto.offset.reset=earliest", "--entity-type", "groups")
        kafka_tool(embedded_cluster, CONFIGS, *earliest, "--entity-name", GROUP)
        wanted = ("--topic", TOPIC, "--group", GROUP, "--max-messages", str(RECORDS), "--timeout-ms", "60000")
        kafka_tool(embedded_cluster, CONSUME, *wanted)
        recall = ObserverState()

        def read() -> int:
            seen = observe(clients, system_clock, ObserveScope(), recall)
            assert [gap for gap in seen.gaps if gap.part is ObservationPart.COMMITTED_OFFSETS] == []
            return sum(seen.committed_offsets.get(GROUP, {}).values())

        wait_for(lambda: read() == RECORDS, "all records are acknowledged")
