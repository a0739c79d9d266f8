"""What the clients' own classes make of bytes and answers, the same way for both clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.cluster import ClusterMetadata as AiokafkaCluster
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.protocol.metadata import MetadataResponse_v5
from kafka.cluster import ClusterMetadata as KafkaPythonCluster
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.protocol.metadata import MetadataResponse

from assignors.clients import kafka_python
from assignors.clients.user_data import by_topic
from assignors.problem import TopicPartition


@dataclass(frozen=True)
class Plugged:
    assignor: Any

    def subscription(self, topics: set[str]) -> bytes:
        """The bytes that the client puts into JoinGroup."""
        sent = self.assignor.metadata(topics)
        return sent if isinstance(sent, bytes) else sent.encode()


def give(assignor: Any, partitions: Iterable[TopicPartition], generation: int) -> Plugged:
    """Let the assignor hear of an assignment through its client's own classes, as bytes that came from a broker."""
    if isinstance(assignor, kafka_python.KafkaPythonAssignor):
        sent = ConsumerProtocolAssignment(0, by_topic(partitions), b"").encode()
        assignor.on_assignment(ConsumerProtocolAssignment.decode(sent), generation)
    else:
        sent = ConsumerProtocolMemberAssignment(0, by_topic(partitions), b"").encode()
        assignor.on_assignment(ConsumerProtocolMemberAssignment.decode(sent))
    return Plugged(assignor)


def kafka_python_cluster(racks: Mapping[int, str | None], topics: Mapping[str, Sequence[Sequence[int]]]) -> Any:
    """kafka-python's metadata after an answer with these brokers and replicas."""
    of = MetadataResponse
    partition = of.MetadataResponseTopic.MetadataResponsePartition
    answer = of(
        version=9,
        throttle_time_ms=0,
        cluster_id="c",
        controller_id=min(racks),
        brokers=[of.MetadataResponseBroker(node, "h", 9092, rack, version=9) for node, rack in racks.items()],
        topics=[
            of.MetadataResponseTopic(
                version=9,
                error_code=0,
                name=topic,
                is_internal=False,
                partitions=[
                    partition(
                        version=9,
                        error_code=0,
                        partition_index=number,
                        leader_id=replicas[0],
                        leader_epoch=0,
                        replica_nodes=list(replicas),
                        isr_nodes=list(replicas[:1]),
                        offline_replicas=[],
                    )
                    for number, replicas in enumerate(placed)
                ],
            )
            for topic, placed in topics.items()
        ],
    )
    cluster = KafkaPythonCluster(bootstrap_servers="h:9092")
    cluster.update_metadata(answer)
    return cluster


def aiokafka_cluster(racks: Mapping[int, str | None], topics: Mapping[str, Sequence[Sequence[int]]]) -> Any:
    """aiokafka's metadata after an answer with these brokers and replicas."""
    answer = MetadataResponse_v5(
        0,
        [(node, "h", 9092, rack) for node, rack in racks.items()],
        "c",
        min(racks),
        [
            (0, topic, False, [(0, number, its[0], list(its), list(its[:1]), []) for number, its in enumerate(placed)])
            for topic, placed in topics.items()
        ],
    )
    cluster = AiokafkaCluster(bootstrap_servers="h:9092")
    cluster.update_metadata(answer)
    return cluster
