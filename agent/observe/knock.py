"""Is the cluster there, and does it let this user in? The first question of a command that goes on with librdkafka.

librdkafka tries again until a deadline, whatever it is that keeps it out; here the cause is named at once.
"""

from __future__ import annotations

import time

from agent.errors import ClusterUnreachable, RackwiseError, UnsupportedCluster, WrongCluster
from agent.observe.context import Clients
from agent.values.observation import GapCause
from agent.wire.cluster_calls import ClusterAnswer
from agent.wire.failure import CallFailed
from config.kafka_client import KafkaClientConfig


def no_answer(failure: CallFailed, timeout_ms: int, passed_ms: float) -> RackwiseError:
    """The error for a cluster that did not even report its id, after ``passed_ms``.

    A time is named only when it has passed: refused connections and unknown hosts end a call long before its deadline.
    """
    if failure.error is not None:
        return failure.error
    if failure.cause is GapCause.UNSUPPORTED:
        return UnsupportedCluster(
            "The brokers are too old", why=failure.detail, todo="rackwise needs Apache Kafka 3.0 or newer."
        )
    waited = f" within {timeout_ms / 1000:g} s" if round(passed_ms) >= timeout_ms else ""
    return ClusterUnreachable(
        f"No broker answered{waited}",
        why=failure.detail,
        todo="Check bootstrap.servers and that the brokers run.",
    )


def wrong_cluster(told: str, expected: str) -> WrongCluster:
    """The error for a cluster that is not the one that was meant."""
    return WrongCluster(
        f"The brokers belong to cluster {told}",
        why=f"cluster {expected} is expected",
        todo="Check bootstrap.servers, or cluster.id.",
    )


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
