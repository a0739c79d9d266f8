"""Is the cluster there, and does it let this user in? The first question of a command that goes on with librdkafka.

librdkafka tries again until a deadline, whatever it is that keeps it out; here the cause is told at once.
"""

from __future__ import annotations

from agent.observe.clients import Clients
from agent.observe.refusal import no_answer, wrong_cluster
from agent.wire import CallFailed
from config.kafka_client import KafkaClientConfig


def knock(config: KafkaClientConfig, timeout_ms: int, *, expected_cluster: str | None = None) -> str:
    """The id of the cluster. Raises what `agent.observe.observe` raises when nothing answers, and WrongCluster."""
    with Clients.open(config) as clients:
        try:
            told = clients.wire.describe_brokers(timeout_ms).cluster_id
        except CallFailed as failure:
            raise no_answer(failure, timeout_ms) from failure
    if expected_cluster is not None and told != expected_cluster:
        raise wrong_cluster(told, expected_cluster)
    return told
