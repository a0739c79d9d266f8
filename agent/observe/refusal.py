"""Turns "no broker answered" into the error that names the cause."""

from __future__ import annotations

from agent.errors import ClusterUnreachable, RackwiseError, UnsupportedCluster, WrongCluster
from agent.values.observation import GapCause
from agent.wire.failure import CallFailed


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
