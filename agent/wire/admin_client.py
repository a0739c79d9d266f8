"""Admin client of the executor: reassignments, elections, throttles, triggers. Only `agent.act` imports it.

A call that changes something is sent at most once, and its result is a `ChangeResult`: done or refused by the broker,
never sent, or unknown, which the caller looks up. Every call returns by its deadline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from agent.values.kafka import ELECTION_NOT_NEEDED, INVALID_REPLICATION_FACTOR, UNKNOWN_TOPIC_OR_PARTITION
from agent.values.number_format import counted
from agent.values.throttles import ThrottleChange, ThrottleResource
from agent.wire import cluster_calls, membership_calls
from agent.wire.changes import (
    ChangeResult,
    DescribedThrottles,
    Fate,
    LeaveOut,
    LeaveOutThrottles,
    RequestPrecheck,
    answered,
    change_throttles,
    counted_as_done,
    describe_throttles,
    precheck,
    unanswered,
)
from agent.wire.client import WireReadClient
from agent.wire.connection import BrokerConnection
from agent.wire.failure import CallFailed, Deadline, check_in_time, passed_on
from agent.wire.pool import Ask, ConnectionPool
from agent.wire.protocol import ALTER_PARTITION_REASSIGNMENTS, ELECT_LEADERS
from assignors.problem import TopicPartition

# Calls that change reassignments (AlterPartitionReassignments) and elect preferred leaders (ElectLeaders).
#
# The number of replicas never changes: brokers since Kafka 4.1 refuse that (KIP-860); for older ones it is compared
# here, on the same connection right before the request. Each partition has its own result, as Kafka takes some and
# refuses others of one request. Any broker passes these calls on to the controller.

Targets = Mapping[TopicPartition, tuple[int, ...] | None]
"""Partition -> its target replicas, preferred leader first; None cancels its reassignment."""
Answers = dict[TopicPartition, ChangeResult]

_LANDING_SHARE = 0.5
"""Share of the time after which the controller drops a request that it has not begun."""
_REFUSES_OTHER_NUMBERS = 1
_PREFERRED = 0
_LEFT_OUT = ChangeResult(Fate.NOT_SENT, None, "not sent: it is not, right before the request, as it was decided for")
_SILENT = ChangeResult(Fate.UNKNOWN, None, "the broker's answer does not contain this partition")


def alter_placements(
    pool: ConnectionPool,
    targets: Targets,
    deadline: Deadline,
    begin_by: Deadline | None = None,
    leave_out: LeaveOut | None = None,
) -> Answers:
    """Start or cancel reassignments; one result for each partition. Never raises CallFailed.

    Nothing is sent after ``begin_by``, nor partitions that ``leave_out`` returns. A cancellation is refused with
    NO_REASSIGNMENT_IN_PROGRESS, or with INVALID_REPLICA_ASSIGNMENT where no former replica is in sync.
    """

    def ask(connection: BrokerConnection, _share: Deadline) -> Answers:
        # The request goes to one broker alone, so it may take all the time left.
        version = connection.version(ALTER_PARTITION_REASSIGNMENTS)
        refused: Answers = {}
        if leave_out is not None or version < _REFUSES_OTHER_NUMBERS:
            check_in_time(begin_by)  # a precheck without time would only time out
            state = precheck(connection, targets, min(deadline, begin_by or deadline))
            if version < _REFUSES_OTHER_NUMBERS:
                refused = _other_numbers(state, targets)
            if leave_out is not None:
                refused |= dict.fromkeys(leave_out(state), _LEFT_OUT)
        wanted = {partition: target for partition, target in targets.items() if partition not in refused}
        check_in_time(begin_by)
        with passed_on():
            return refused | (_alter(connection, wanted, version, deadline) if wanted else {})

    return _ask(pool, ask, targets, deadline)


def elect_preferred(
    pool: ConnectionPool, partitions: Iterable[TopicPartition], deadline: Deadline, begin_by: Deadline | None = None
) -> Answers:
    """Elect the first replica of each partition; DONE also with ELECTION_NOT_NEEDED.

    Refused with PREFERRED_LEADER_NOT_AVAILABLE where that replica is not in sync. Never raises CallFailed.
    """
    wanted = sorted(partitions)

    def ask(connection: BrokerConnection, _share: Deadline) -> Answers:
        # v0 cannot ask for a preferred election.
        version = connection.version(ELECT_LEADERS, oldest=1)
        row = ELECT_LEADERS.request.TopicPartitions
        message = ELECT_LEADERS.request(
            election_type=_PREFERRED,
            topic_partitions=[row(topic=topic, partitions=numbers) for topic, numbers in _by_topic(wanted)],
            timeout_ms=_left_ms(deadline.part(_LANDING_SHARE)),
        )
        check_in_time(begin_by)
        with passed_on():
            answer = connection.call(ELECT_LEADERS, message, deadline, version=version)
        whole = answered(answer.error_code, None)
        answers = {
            TopicPartition(topic.topic, row.partition_id): counted_as_done(
                answered(row.error_code, row.error_message), ELECTION_NOT_NEEDED
            )
            for topic in answer.replica_election_results
            for row in topic.partition_result
        }
        return {partition: answers.get(partition, _SILENT if whole.done else whole) for partition in wanted}

    return _ask(pool, ask, wanted, deadline)


def _alter(connection: BrokerConnection, targets: Targets, version: int, deadline: Deadline) -> Answers:
    api = ALTER_PARTITION_REASSIGNMENTS
    topic_row = api.request.ReassignableTopic
    row = topic_row.ReassignablePartition
    topics = [
        topic_row(
            name=topic,
            partitions=[
                row(partition_index=number, replicas=None if target is None else list(target))
                for number in numbers
                for target in (targets[TopicPartition(topic, number)],)
            ],
        )
        for topic, numbers in _by_topic(sorted(targets))
    ]
    landing_ms = _left_ms(deadline.part(_LANDING_SHARE))
    message = api.request(timeout_ms=landing_ms, allow_replication_factor_change=False, topics=topics)
    answer = connection.call(api, message, deadline, version=version)
    whole = answered(answer.error_code, answer.error_message)
    if not whole.done:
        return dict.fromkeys(targets, whole)
    answers = {
        TopicPartition(topic.name, row.partition_index): answered(row.error_code, row.error_message)
        for topic in answer.responses
        for row in topic.partitions
    }
    return {partition: answers.get(partition, _SILENT) for partition in targets}


def _other_numbers(state: RequestPrecheck, targets: Targets) -> Answers:
    """Refusals of those targets whose number of replicas is not the partition's own."""
    numbers = {
        id_: len(set(row.replicas) - set(state.running[id_].adding if id_ in state.running else ()))
        for topic in state.topics.values()
        for row in topic.partitions
        for id_ in (TopicPartition(topic.name, row.partition),)
    }
    return {
        partition: _refused_number(len(target), numbers.get(partition))
        for partition, target in targets.items()
        if target is not None and len(target) != numbers.get(partition)
    }


def _refused_number(wanted: int, present: int | None) -> ChangeResult:
    if present is None:
        return ChangeResult(Fate.REFUSED, UNKNOWN_TOPIC_OR_PARTITION, "the broker does not know this partition")
    return ChangeResult(
        Fate.REFUSED, INVALID_REPLICATION_FACTOR, f"it has {counted(present, 'replica')}, and the target has {wanted}"
    )


def _ask(pool: ConnectionPool, ask: Ask[Answers], partitions: Iterable[TopicPartition], deadline: Deadline) -> Answers:
    try:
        return pool.ask_any(ask, deadline)[1]
    except CallFailed as failure:
        return dict.fromkeys(partitions, unanswered(failure))


def _by_topic(partitions: Iterable[TopicPartition]) -> Iterator[tuple[str, list[int]]]:
    for topic, rows in groupby(partitions, key=lambda partition: partition.topic):
        yield topic, [row.partition for row in rows]


def _left_ms(deadline: Deadline) -> int:
    return max(1, int(deadline.left_s * 1000))


class WireAdminClient(WireReadClient):
    """Reads and changes a cluster; its ``arguments`` are those of the executor's connection."""

    def alter_placements(
        self,
        targets: Targets,
        deadline_ms: int,
        begin_by: Deadline | None = None,
        leave_out: LeaveOut | None = None,
    ) -> Answers:
        """Start or cancel reassignments; one result for each partition.

        Nothing is sent after ``begin_by``, nor partitions that ``leave_out`` returns for the precheck.
        """
        deadline = Deadline.after_ms(deadline_ms)
        return alter_placements(self._pool, targets, deadline, begin_by, leave_out)

    def elect_preferred(
        self, partitions: Iterable[TopicPartition], deadline_ms: int, begin_by: Deadline | None = None
    ) -> Answers:
        """Elect the preferred leader of each partition; one result for each."""
        return elect_preferred(self._pool, partitions, Deadline.after_ms(deadline_ms), begin_by)

    def replica_sizes(self, replicas: Mapping[int, Iterable[TopicPartition]], deadline_ms: int) -> cluster_calls.Sizes:
        """Bytes of those replicas (broker -> partitions); replicas without an answer are absent."""
        return cluster_calls.replica_sizes(self._pool, replicas, Deadline.after_ms(deadline_ms))

    def describe_throttles(self, topics: Iterable[str], brokers: Iterable[int], deadline_ms: int) -> DescribedThrottles:
        """The four throttle keys of topics and brokers, layer by layer."""
        return describe_throttles(self._pool, topics, brokers, Deadline.after_ms(deadline_ms))

    def change_throttles(
        self,
        changes: Iterable[ThrottleChange],
        deadline_ms: int,
        begin_by: Deadline | None = None,
        leave_out: LeaveOutThrottles | None = None,
    ) -> dict[ThrottleResource, ChangeResult]:
        """One result for each topic or broker. Raises ForbiddenChangeError for any other key than the four.

        Nothing is sent of resources that ``leave_out`` returns for the settings right before the request.
        """
        deadline = Deadline.after_ms(deadline_ms)
        return change_throttles(self._pool, changes, deadline, begin_by, leave_out)

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
