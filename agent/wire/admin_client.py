"""The wire client that may change a cluster, with the executor's own credentials; only `agent.act` imports it.

A call that changes something is sent at most once, and its result is a `ChangeResult`: done or refused by the broker,
never sent, or unknown, which the caller looks up. Every call returns by its deadline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.values.throttles import ThrottleChange, ThrottleResource
from agent.wire import cluster_calls, config_changes, membership_calls, placement_changes
from agent.wire.change_result import ChangeResult
from agent.wire.client import WireReadClient
from agent.wire.failure import CallFailed, Deadline
from agent.wire.precheck import LeaveOut
from assignors.problem import TopicPartition


class WireAdminClient(WireReadClient):
    """Reads and changes a cluster; its ``arguments`` are those of the executor's connection."""

    def alter_placements(
        self,
        targets: placement_changes.Targets,
        deadline_ms: int,
        begin_by: Deadline | None = None,
        leave_out: LeaveOut | None = None,
    ) -> placement_changes.Answers:
        """Start or cancel reassignments; one result for each partition.

        Nothing is sent after ``begin_by``, nor partitions that ``leave_out`` returns for the precheck.
        """
        deadline = Deadline.after_ms(deadline_ms)
        return placement_changes.alter_placements(self._pool, targets, deadline, begin_by, leave_out)

    def elect_preferred(
        self, partitions: Iterable[TopicPartition], deadline_ms: int, begin_by: Deadline | None = None
    ) -> placement_changes.Answers:
        """Elect the preferred leader of each partition; one result for each."""
        return placement_changes.elect_preferred(self._pool, partitions, Deadline.after_ms(deadline_ms), begin_by)

    def replica_sizes(self, replicas: Mapping[int, Iterable[TopicPartition]], deadline_ms: int) -> cluster_calls.Sizes:
        """Bytes of those replicas (broker -> partitions); replicas without an answer are absent."""
        return cluster_calls.replica_sizes(self._pool, replicas, Deadline.after_ms(deadline_ms))

    def describe_throttles(
        self, topics: Iterable[str], brokers: Iterable[int], deadline_ms: int
    ) -> config_changes.DescribedThrottles:
        """The four throttle keys of topics and brokers, layer by layer."""
        return config_changes.describe_throttles(self._pool, topics, brokers, Deadline.after_ms(deadline_ms))

    def change_throttles(
        self,
        changes: Iterable[ThrottleChange],
        deadline_ms: int,
        begin_by: Deadline | None = None,
        leave_out: config_changes.LeaveOut | None = None,
    ) -> dict[ThrottleResource, ChangeResult]:
        """One result for each topic or broker. Raises ForbiddenChangeError for any other key than the four.

        Nothing is sent of resources that ``leave_out`` returns for the settings right before the request.
        """
        deadline = Deadline.after_ms(deadline_ms)
        return config_changes.change_throttles(self._pool, changes, deadline, begin_by, leave_out)

    def group_line(self, group_id: str, deadline_ms: int) -> membership_calls.CoordinatorConnection:
        """A connection of its own to the group's coordinator; the caller closes it. Raises CallFailed."""
        deadline = Deadline.after_ms(deadline_ms)
        return membership_calls.open_coordinator_connection(self._pool, self._settings, group_id, deadline)

    def list_transactions(
        self, deadline_ms: int
    ) -> tuple[tuple[membership_calls.RawTransaction, ...], dict[int, CallFailed]]:
        """Every visible transactional id, and the brokers that did not answer. Raises as `describe_brokers`.

        Brokers are described first: an unknown broker would seem to have no transactions.
        """
        deadline = Deadline.after_ms(deadline_ms)
        cluster_calls.describe_brokers(self._pool, deadline)
        return membership_calls.list_transactions(self._pool, deadline)

    def describe_transactions(
        self, transactions: Sequence[membership_calls.RawTransaction], deadline_ms: int
    ) -> dict[str, tuple[TopicPartition, ...]]:
        """Transactional id -> partitions of its ongoing transaction."""
        return membership_calls.describe_transactions(self._pool, transactions, Deadline.after_ms(deadline_ms))
