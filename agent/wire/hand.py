"""The wire client that may change a cluster: the calls of those who act, with the executor's own credentials.

Invariants: only `agent.act` imports this. A call that changes something is sent once at most, and its answer says which
of three became of it: done or refused as the broker told, never sent, or unknown (`agent.wire.change.Answered`); what
is unknown is looked up by the caller, never sent again blindly. Every call is back by its deadline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from agent.observation import RawReassignment
from agent.wire import cluster_calls, config_calls, config_changes, membership_calls, placement_changes, size_calls
from agent.wire.change import Answered
from agent.wire.deadline import Deadline
from agent.wire.failure import CallFailed
from agent.wire.pool import Pool
from agent.wire.settings import wire_settings
from assignors.problem import TopicPartition

DEFAULT_BREAKER_MS = 5_000


class WireHand:
    """Reads and changes a cluster over Kafka's own protocol. Safe to use from many threads.

    ``arguments`` are kafka-python's keyword arguments of the executor's connection. Nothing is connected before the
    first call, which must be `describe_brokers`: it learns the brokers that the other calls ask.
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

    def alter_placements(
        self, targets: placement_changes.Targets, deadline_ms: int, begin_by: Deadline | None = None
    ) -> placement_changes.Answers:
        """Start or cancel reassignments; one answer for each partition. After ``begin_by`` it is not sent."""
        return placement_changes.alter_placements(self._pool, targets, Deadline.after_ms(deadline_ms), begin_by)

    def elect_preferred(
        self, partitions: Iterable[TopicPartition], deadline_ms: int, begin_by: Deadline | None = None
    ) -> placement_changes.Answers:
        """Let the first replica of each partition lead it; one answer for each partition."""
        return placement_changes.elect_preferred(self._pool, partitions, Deadline.after_ms(deadline_ms), begin_by)

    def describe_topic_configs(
        self, topics: Sequence[str], keys: Sequence[str], deadline_ms: int
    ) -> config_calls.Configs:
        """Those configs of each topic."""
        return config_calls.describe_topic_configs(self._pool, topics, keys, Deadline.after_ms(deadline_ms))

    def replica_sizes(self, replicas: Mapping[int, Iterable[TopicPartition]], deadline_ms: int) -> size_calls.Sizes:
        """Bytes of those replicas (broker -> partitions); what did not answer is absent."""
        return size_calls.replica_sizes(self._pool, replicas, Deadline.after_ms(deadline_ms))

    def describe_throttles(
        self, topics: Iterable[str], brokers: Iterable[int], deadline_ms: int
    ) -> config_changes.Throttles:
        """What is set of the four throttle keys, layer by layer."""
        return config_changes.describe_throttles(self._pool, topics, brokers, Deadline.after_ms(deadline_ms))

    def change_throttles(
        self,
        changes: Iterable[config_changes.ThrottleChange],
        deadline_ms: int,
        begin_by: Deadline | None = None,
    ) -> dict[config_changes.Setting, Answered]:
        """One answer for each key. Raises ForbiddenChangeError for any other key than the four."""
        return config_changes.change_throttles(self._pool, changes, Deadline.after_ms(deadline_ms), begin_by)

    def group_line(self, group_id: str, deadline_ms: int) -> membership_calls.GroupLine:
        """A connection of its own to the group's coordinator; the caller closes it. Raises CallFailed."""
        deadline = Deadline.after_ms(deadline_ms)
        return membership_calls.open_group_line(self._pool, self._settings, group_id, deadline)

    def list_transactions(
        self, deadline_ms: int
    ) -> tuple[tuple[membership_calls.RawTransaction, ...], dict[int, CallFailed]]:
        """Every transactional id that may be seen, and the brokers that did not answer. Raises as `describe_brokers`.

        Brokers are learned anew: one that nobody has told of would be asked nothing, and so seem to have none.
        """
        deadline = Deadline.after_ms(deadline_ms)
        cluster_calls.describe_brokers(self._pool, deadline)
        return membership_calls.list_transactions(self._pool, deadline)

    def describe_transactions(
        self, transactions: Sequence[membership_calls.RawTransaction], deadline_ms: int
    ) -> dict[str, tuple[TopicPartition, ...]]:
        """Transactional id -> partitions of its ongoing transaction."""
        return membership_calls.describe_transactions(self._pool, transactions, Deadline.after_ms(deadline_ms))

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()
