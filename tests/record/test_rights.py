"""Recording with the rights of its principal alone: what is missing is reported, and the loop goes on."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from agent.daemon.start import agent_of
from agent.record.recorder import RecordingResult
from config.kafka_client import KafkaClientConfig
from config.load import load_settings
from testbed.cluster import ClusterSecurity, ClusterSpec, EmbeddedCluster

LOOK = (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)


def test_each_right_that_is_missing_is_told_until_it_is_there(
    cluster_factory: Callable[[ClusterSpec], EmbeddedCluster],
) -> None:
    users = {"admin": "admin-secret", "rackwise": "rackwise-secret"}
    secured = cluster_factory(ClusterSpec(racks=("a",), security=ClusterSecurity(users=users)))

    def allow(kind: ResourceType, name: str, *operations: AclOperation, prefixed: bool = False) -> None:
        pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
        given = {**secured.client_properties("admin"), "bootstrap.servers": secured.bootstrap_servers}
        admin = AdminClient(KafkaClientConfig.of(given).confluent())
        for operation in operations:
            binding = AclBinding(kind, name, pattern, "User:rackwise", "*", operation, AclPermissionType.ALLOW)
            for future in admin.create_acls([binding]).values():
                future.result(10)

    def recorded() -> tuple[RecordingResult, int]:
        """What became of two cycles of a new agent, and how many looks it remembered at its start."""
        given = {**secured.client_properties("rackwise"), "bootstrap.servers": secured.bootstrap_servers}
        flags = {f"kafka.{name}": value for name, value in given.items()}
        with agent_of(load_settings(flags=flags, environ={}).settings) as agent:
            first = agent.once()
            agent.once()
            agent.close()
            recording = agent.watch.state.recording
            assert recording is not None
            return recording, first.before.cycle

    blind = recorded()[0].problems
    assert [problem.partition(": ")[0] for problem in blind] == ["rackwise.telemetry", "rackwise.proposals"]
    assert all(": whether it exists is unknown, because topics could not be listed: " in one for one in blind), blind

    allow(ResourceType.BROKER, "kafka-cluster", *LOOK)
    allow(ResourceType.TOPIC, "*", *LOOK)
    allow(ResourceType.GROUP, "*", *LOOK)
    recording, _ = recorded()
    assert [problem.rpartition(": ")[0] for problem in recording.problems] == [
        "rackwise.telemetry: it could not be created",
        "rackwise.proposals: it could not be created",
    ]
    assert all("uthorization failed" in problem for problem in recording.problems)

    allow(ResourceType.TOPIC, "rackwise", AclOperation.CREATE, prefixed=True)
    recording, _ = recorded()
    (problem,) = recording.problems
    assert problem.startswith("rackwise.telemetry: ")
    assert problem.endswith("Topic authorization failed")
    assert recording.counts.failed > recording.counts.written == 0

    allow(ResourceType.TOPIC, "rackwise", AclOperation.WRITE, prefixed=True)
    recording, remembered = recorded()
    assert (recording.problems, recording.counts.failed, remembered) == ((), 0, 0)

    assert recorded()[1] == 0, "what may not be read is not remembered"

    allow(ResourceType.TOPIC, "rackwise", AclOperation.READ, prefixed=True)
    recording, remembered = recorded()
    assert (recording.problems, recording.counts.failed) == ((), 0)
    assert remembered > 0
