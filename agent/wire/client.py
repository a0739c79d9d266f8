"""Wire clients that read a cluster: one connection pool and every reading call, each with its own deadline.

A call takes milliseconds and returns by then, connection set-up and name lookup included. Parts that did not answer are
gaps; only calls with a single answer raise `CallFailed` (and `describe_brokers` also `NoBrokersYet`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from agent.values.kafka import CLASSIC_GROUP
from agent.values.observation import RawReassignment
from agent.wire import cluster_calls, group_calls, offset_calls
from agent.wire.failure import Deadline
from agent.wire.pool import ConnectionPool
from agent.wire.protocol import wire_settings
from assignors.problem import TopicPartition

DEFAULT_BREAKER_MS = 5_000


class WireReadClient:
    """Reads a cluster over Kafka's own protocol. Safe to use from many threads; leaves none behind when closed.

    ``arguments`` are kafka-python's keyword arguments (`KafkaClientConfig.kafka_python`). Nothing is connected before
    the first call, which must be `describe_brokers`: it learns the brokers that the other calls ask.
    """

    def __init__(self, arguments: Mapping[str, Any], *, breaker_ms: int = DEFAULT_BREAKER_MS) -> None:
        self._settings = wire_settings(arguments)
        self._pool = ConnectionPool(self._settings, breaker_ms=breaker_ms)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Live brokers of the last `describe_brokers`."""
        return self._pool.broker_ids

    def describe_brokers(self, deadline_ms: int) -> cluster_calls.ClusterAnswer:
        """Cluster id, controller, brokers with racks, and rights on the cluster. Raises CallFailed, NoBrokersYet."""
        return cluster_calls.describe_brokers(self._pool, Deadline.after_ms(deadline_ms))

    def describe_topics(
        self, deadline_ms: int, *, names: Iterable[str] | None = None, avoid: int | None = None
    ) -> cluster_calls.TopicsAnswer:
        """All topics that may be described, or those named, from a broker other than ``avoid``. Raises CallFailed."""
        return cluster_calls.describe_topics(self._pool, Deadline.after_ms(deadline_ms), names=names, avoid=avoid)

    def list_reassignments(self, deadline_ms: int) -> tuple[RawReassignment, ...]:
        """Every reassignment in flight. Raises CallFailed."""
        return cluster_calls.list_reassignments(self._pool, Deadline.after_ms(deadline_ms))

    def describe_log_dirs(self, deadline_ms: int) -> cluster_calls.LogDirs:
        """Bytes of each replica, and which brokers are cordoned."""
        return cluster_calls.describe_log_dirs(self._pool, Deadline.after_ms(deadline_ms))

    def describe_topic_configs(
        self, topics: Sequence[str], keys: Sequence[str], deadline_ms: int
    ) -> cluster_calls.DescribedConfigs:
        """Those configs of each topic; a topic that failed is a gap."""
        return cluster_calls.describe_topic_configs(self._pool, topics, keys, Deadline.after_ms(deadline_ms))

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class WireClient(WireReadClient):
    """Reads a cluster, its groups and their offsets."""

    def list_groups(self, deadline_ms: int) -> group_calls.ListedGroups:
        """Groups of all brokers, with types and states where brokers report them."""
        return group_calls.list_groups(self._pool, Deadline.after_ms(deadline_ms))

    def describe_groups(
        self,
        groups: Iterable[str],
        deadline_ms: int,
        *,
        group_type: str = CLASSIC_GROUP,
        coordinators: Mapping[str, int] | None = None,
    ) -> group_calls.DescribedGroups:
        """Groups of one type of `DESCRIBE_CALLS`; member bytes of classic groups are untouched."""
        deadline = Deadline.after_ms(deadline_ms)
        return group_calls.describe_groups(self._pool, group_type, groups, coordinators or {}, deadline)

    def fetch_committed(
        self,
        groups: Iterable[str],
        deadline_ms: int,
        *,
        coordinators: Mapping[str, int] | None = None,
        are_shared: bool = False,
    ) -> offset_calls.CommittedOffsets:
        """Committed offsets of groups of any kind; of share groups (``are_shared``) the start offsets."""
        deadline = Deadline.after_ms(deadline_ms)
        places = coordinators or {}
        return offset_calls.fetch_committed(self._pool, groups, places, deadline, are_shared=are_shared)

    def list_end_offsets(self, leaders: Mapping[TopicPartition, int], deadline_ms: int) -> offset_calls.EndOffsets:
        """End offset of each partition, from its leader."""
        return offset_calls.list_end_offsets(self._pool, leaders, Deadline.after_ms(deadline_ms))

    def describe_group_configs(self, groups: Sequence[str], deadline_ms: int) -> cluster_calls.DescribedConfigs:
        """All configs of each KIP-848 or KIP-1071 group."""
        return cluster_calls.describe_group_configs(self._pool, groups, Deadline.after_ms(deadline_ms))

    def describe_broker_configs(self, keys: Sequence[str], deadline_ms: int) -> cluster_calls.DescribedConfigs:
        """Those configs of each broker that serves, by broker id as text."""
        return cluster_calls.describe_broker_configs(self._pool, keys, Deadline.after_ms(deadline_ms))
