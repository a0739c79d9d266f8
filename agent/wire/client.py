"""The wire client: one connection pool and every call that reads the cluster, each with its own deadline.

A call takes milliseconds and is back by then, connection set-up and name lookup included. What did not answer comes as
gaps; only the calls that have a single answer raise `CallFailed` (and `describe_brokers` also `NoBrokersYet`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.wire import cluster_calls, config_calls, epoch_group_calls, group_calls, offset_calls
from agent.wire.deadline import Deadline
from agent.wire.failure import CallFailed
from agent.wire.reader import WireReader
from assignors.problem import TopicPartition


class WireClient(WireReader):
    """Reads a cluster, its groups and their offsets."""

    def describe_capabilities(self, deadline_ms: int) -> Mapping[int, Mapping[int, tuple[int, int]] | CallFailed]:
        """Broker -> Kafka's number of a call -> the versions it takes."""
        return cluster_calls.describe_capabilities(self._pool, Deadline.after_ms(deadline_ms))

    def list_groups(self, deadline_ms: int) -> group_calls.ListedGroups:
        """Groups of all brokers, with types and states where the brokers tell them."""
        return group_calls.list_groups(self._pool, Deadline.after_ms(deadline_ms))

    def describe_groups(
        self, groups: Iterable[str], deadline_ms: int, *, coordinators: Mapping[str, int] | None = None
    ) -> group_calls.DescribedGroups:
        """Classic groups, member bytes untouched."""
        deadline = Deadline.after_ms(deadline_ms)
        return group_calls.describe_groups(self._pool, groups, coordinators or {}, deadline)

    def consumer_group_describe(
        self, groups: Iterable[str], deadline_ms: int, *, coordinators: Mapping[str, int] | None = None
    ) -> epoch_group_calls.ConsumerGroups:
        """KIP-848 groups."""
        deadline = Deadline.after_ms(deadline_ms)
        return epoch_group_calls.consumer_group_describe(self._pool, groups, coordinators or {}, deadline)

    def streams_group_describe(
        self, groups: Iterable[str], deadline_ms: int, *, coordinators: Mapping[str, int] | None = None
    ) -> epoch_group_calls.StreamsGroups:
        """KIP-1071 groups."""
        deadline = Deadline.after_ms(deadline_ms)
        return epoch_group_calls.streams_group_describe(self._pool, groups, coordinators or {}, deadline)

    def fetch_committed(
        self, groups: Iterable[str], deadline_ms: int, *, coordinators: Mapping[str, int] | None = None
    ) -> offset_calls.CommittedOffsets:
        """Committed offsets of groups of any kind."""
        deadline = Deadline.after_ms(deadline_ms)
        return offset_calls.fetch_committed(self._pool, groups, coordinators or {}, deadline)

    def list_end_offsets(self, leaders: Mapping[TopicPartition, int], deadline_ms: int) -> offset_calls.EndOffsets:
        """End offset of each partition, asked at its leader."""
        return offset_calls.list_end_offsets(self._pool, leaders, Deadline.after_ms(deadline_ms))

    def describe_group_configs(self, groups: Sequence[str], deadline_ms: int) -> config_calls.Configs:
        """All configs of each KIP-848 or KIP-1071 group."""
        return config_calls.describe_group_configs(self._pool, groups, Deadline.after_ms(deadline_ms))

    def describe_broker_configs(self, keys: Sequence[str], deadline_ms: int) -> config_calls.Configs:
        """Those configs of each broker that serves, by broker id as text."""
        return config_calls.describe_broker_configs(self._pool, keys, Deadline.after_ms(deadline_ms))
