"""What tests of the executor share: topics with data, plans by hand, a journal file, and Kafka's own tools."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from agent.act.journal.file_journal import FileJournal
from agent.act.reassign.reassignment_executor import ReassignmentExecutor
from agent.execute.reassign.messages import BatchPermission
from agent.journal.record_trust import LeaderEntry
from agent.values.limits import ExecuteLimits
from agent.values.reassignment import ReassignmentPlan, ReassignmentPolicy, ReassignmentTarget
from agent.values.throttles import ThrottleResource
from agent.wire.admin_client import WireAdminClient
from assignors.problem import TopicPartition
from testbed.cluster import EmbeddedCluster
from tests.observe.live import wait_for

DEADLINE_MS = 10_000
MB = 1_000_000
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"

Placement = dict[TopicPartition, tuple[int, ...]]


def topic_with(servers: str, name: str, placed: Sequence[Sequence[int]], *, mb: int = 0, **config: str) -> None:
    """A new topic with these replicas, and so many megabytes in each partition."""
    admin = AdminClient({"bootstrap.servers": servers})
    made = NewTopic(
        name,
        len(placed),
        replica_assignment=[list(row) for row in placed],
        config={key.replace("_", "."): value for key, value in config.items()},
    )
    admin.create_topics([made])[name].result(60)
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 20, "batch.size": 900_000})
    chunk = os.urandom(100_000)
    for partition in range(len(placed)):
        for _ in range(mb * 10):
            producer.produce(name, chunk, partition=partition)
        assert producer.flush(60) == 0


def plan_for(admin_client: WireAdminClient, proposal_id: str, after: Placement, **options: object) -> ReassignmentPlan:
    """A plan to that placement, from the one there is."""
    admin_client.describe_brokers(DEADLINE_MS)
    wanted = sorted({partition.topic for partition in after})

    def known() -> dict[TopicPartition, tuple[str, tuple[int, ...]]]:
        """Topic id and replicas; empty while the broker that is asked does not know all of them yet."""
        found = {
            TopicPartition(topic.name, row.partition): (topic.topic_id or "", row.replicas)
            for topic in admin_client.describe_topics(DEADLINE_MS, names=wanted).topics
            for row in topic.partitions
        }
        return found if found.keys() >= after.keys() else {}

    seen = wait_for(known, "a broker knows all partitions")
    sizes = dict[TopicPartition, int]()
    for (_, partition), size in admin_client.describe_log_dirs(DEADLINE_MS).replica_bytes.items():
        sizes[partition] = max(size, sizes.get(partition, 0))
    targets = [
        ReassignmentTarget(partition, topic_id, before, replicas, sizes.get(partition, 0))
        for partition, replicas in sorted(after.items())
        for topic_id, before in [seen[partition]]
    ]
    return ReassignmentPlan(proposal_id, tuple(targets), approved_by="a test", **options)  # type: ignore[arg-type]


def placement(admin_client: WireAdminClient, *topics: str) -> Placement:
    """Replicas of those topics by now."""
    admin_client.describe_brokers(DEADLINE_MS)
    return {
        TopicPartition(topic.name, row.partition): row.replicas
        for topic in admin_client.describe_topics(DEADLINE_MS, names=topics).topics
        for row in topic.partitions
    }


def leaders(admin_client: WireAdminClient, *topics: str) -> dict[TopicPartition, int | None]:
    """Leaders of those topics by now."""
    return {
        TopicPartition(topic.name, row.partition): row.leader
        for topic in admin_client.describe_topics(DEADLINE_MS, names=topics).topics
        for row in topic.partitions
    }


def throttles(admin_client: WireAdminClient, *topics: str) -> dict[tuple[ThrottleResource, str], str]:
    """Every throttle that is set, of those topics and of all brokers that are up."""
    admin_client.describe_brokers(DEADLINE_MS)
    read = admin_client.describe_throttles(topics, admin_client.broker_ids, DEADLINE_MS)
    assert read.gaps == ()
    return {key: throttle.own for key, throttle in read.settings.items() if throttle.own is not None}


def set_config(servers: str, setting: tuple[ThrottleResource, str], value: str | None) -> None:
    """Set or delete any config, as another tool does."""
    owner, key = setting
    kind = ConfigResource.Type.TOPIC if owner.kind == "topic" else ConfigResource.Type.BROKER
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    resource = ConfigResource(kind, owner.name)
    resource.add_incremental_config(ConfigEntry(key, value, incremental_operation=operation))
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


def kafka_tool(cluster: EmbeddedCluster, tool: str, *arguments: str) -> str:
    """What a tool of Kafka's prints."""
    java = [str(cluster.jars.java), "-XX:TieredStopAtLevel=1", "-cp", cluster.jars.classpath, tool]
    command = [*java, "--bootstrap-server", cluster.bootstrap_servers, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def reassignment_file(targets: Mapping[TopicPartition, Sequence[int]], file: Path) -> str:
    """A file as Kafka's tool reads it."""
    rows = [
        {"topic": partition.topic, "partition": partition.partition, "replicas": list(replicas)}
        for partition, replicas in targets.items()
    ]
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    return str(file)


@contextmanager
def journal_file(path: Path, agent: str = "tested") -> Iterator[FileJournal]:
    """The journal of that file, as an agent of that name."""
    leader = LeaderEntry(agent=agent, host="here", pid=os.getpid(), cluster="test", since_ms=0)
    journal = FileJournal.open(path, leader)
    try:
        yield journal
    finally:
        journal.close()


@contextmanager
def executor(
    admin_client: WireAdminClient, path: Path, policy: ReassignmentPolicy | None = None
) -> Iterator[ReassignmentExecutor]:
    """An executor that goes on with the journal of that file."""
    with journal_file(path) as journal:
        one = ReassignmentExecutor(
            journal=journal,
            admin=admin_client,
            policy=policy or ReassignmentPolicy(ExecuteLimits(max_bytes_in_flight=None), look_ms=500),
            may=lambda: BatchPermission(begin=True),
            tick_ms=200,
        )
        one.start()
        try:
            yield one
            one.check()
        finally:
            assert one.close(30_000)


def until_idle(one: ReassignmentExecutor, within_s: float = 60) -> None:
    """Wait until nothing is left to do."""
    wait_for(lambda: _idle(one), "the executor has nothing left to do", within_s)


def _idle(one: ReassignmentExecutor) -> bool:
    one.check()
    return not one.busy
