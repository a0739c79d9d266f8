"""Is the cluster there, and does it let this user in? The first question of a command that goes on with librdkafka.

librdkafka tries again until a deadline, whatever it is that keeps it out; here the cause is named at once.
"""

from __future__ import annotations

import time

from agent.observe.clients import Clients
from agent.observe.refusal import no_answer, wrong_cluster
from agent.wire import CallFailed
from agent.wire.cluster_calls import ClusterAnswer
from config.kafka_client import KafkaClientConfig


def knock(config: KafkaClientConfig, timeout_ms: int, *, expected_cluster: str | None = None) -> str:
    """The id of the cluster. Raises what `agent.observe.observe` raises when nothing answers, and WrongCluster."""
    with Clients.open(config) as clients:
        told = who_answers(clients, timeout_ms).cluster_id
    if expected_cluster is not None and told != expected_cluster:
        raise wrong_cluster(told, expected_cluster)
    return told


def who_answers(clients: Clients, timeout_ms: int) -> ClusterAnswer:
    """The first answer of a cluster. Raises what `agent.observe.observe` raises when nothing answers."""
    began = time.monotonic()
    try:
        return clients.wire.describe_brokers(timeout_ms)
    except CallFailed as failure:
        raise no_answer(failure, timeout_ms, (time.monotonic() - began) * 1000) from failure
