"""What both wire clients read alike, and their one connection pool: of those who watch and of those who act.

A call takes milliseconds and is back by its deadline, connection set-up and name lookup included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from agent.values.observation import RawReassignment
from agent.wire import cluster_calls, config_calls
from agent.wire.deadline import Deadline
from agent.wire.pool import Pool
from agent.wire.settings import wire_settings

DEFAULT_BREAKER_MS = 5_000


class WireReader:
    """Reads a cluster over Kafka's own protocol. Safe to use from many threads; leaves none behind when closed.

    ``arguments`` are kafka-python's keyword arguments (`KafkaClientConfig.kafka_python`). Nothing is connected before
    the first call, which must be `describe_brokers`: it learns the brokers that the other calls ask.
    """

    def __init__(self, arguments: Mapping[str, Any], *, breaker_ms: int = DEFAULT_BREAKER_MS) -> None:
        self._settings = wire_settings(arguments)
        self._pool = Pool(self._settings, breaker_ms=breaker_ms)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Brokers that serve, as the last `describe_brokers` told."""
        return self._pool.broker_ids

    def describe_brokers(self, deadline_ms: int) -> cluster_calls.ClusterAnswer:
        """Cluster id, controller, brokers with racks, and rights on the cluster. Raises CallFailed, NoBrokersYet."""
        return cluster_calls.describe_brokers(self._pool, Deadline.after_ms(deadline_ms))

    def describe_topics(
        self, deadline_ms: int, *, names: Iterable[str] | None = None, avoid: int | None = None
    ) -> cluster_calls.TopicsAnswer:
        """All topics that may be seen, or those named, from a broker other than ``avoid``. Raises CallFailed."""
        return cluster_calls.describe_topics(self._pool, Deadline.after_ms(deadline_ms), names=names, avoid=avoid)

    def list_reassignments(self, deadline_ms: int) -> tuple[RawReassignment, ...]:
        """Every reassignment in flight. Raises CallFailed."""
        return cluster_calls.list_reassignments(self._pool, Deadline.after_ms(deadline_ms))

    def describe_log_dirs(self, deadline_ms: int) -> cluster_calls.LogDirs:
        """Bytes of each replica, and which brokers are cordoned."""
        return cluster_calls.describe_log_dirs(self._pool, Deadline.after_ms(deadline_ms))

    def describe_topic_configs(
        self, topics: Sequence[str], keys: Sequence[str], deadline_ms: int
    ) -> config_calls.Configs:
        """Those configs of each topic."""
        return config_calls.describe_topic_configs(self._pool, topics, keys, Deadline.after_ms(deadline_ms))

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()
