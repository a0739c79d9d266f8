"""Admin client of the executor: reassignments, elections, throttles, triggers. Only `agent.act` imports it.

A call that changes something is sent at most once, and its result is a `ChangeResult`: done or refused by the broker,
never sent, or unknown, which the caller looks up. Every call returns by its deadline.

A classic group rebalances by JoinGroup and LeaveGroup; transactions that may forbid it are read before.
`CoordinatorConnection` is a connection of its own to a group's coordinator, as the order of its requests counts: it is
no lane of the pool, has one caller, and nothing is sent twice on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple
from zlib import crc32

from agent.values.kafka import (
    CONSUMER_PROTOCOL_TYPE,
    ELECTION_NOT_NEEDED,
    INVALID_REPLICATION_FACTOR,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from agent.values.number_format import counted
from agent.values.observation import RawClassicGroup
from agent.values.throttles import ThrottleChange, ThrottleResource
from agent.wire import cluster_calls
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
from agent.wire.connection import BrokerConnection, open_connection
from agent.wire.failure import CallFailed, Deadline, check_in_time, gather, passed_on
from agent.wire.group_calls import describe_group
from agent.wire.pool import Ask, ConnectionPool
from agent.wire.protocol import (
    ALTER_PARTITION_REASSIGNMENTS,
    DESCRIBE_TRANSACTIONS,
    ELECT_LEADERS,
    FIND_COORDINATOR,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_TRANSACTIONS,
    BrokerAddress,
    WireSettings,
    error_name,
    raise_on_error,
)
from assignors.problem import TopicPartition

_KEY_TYPE_GROUP = 0
_IDS_PER_CALL = 500
_ONGOING = "Ongoing"


class JoinRequest(NamedTuple):
    """The fields of a request to join a group."""

    protocol: str
    metadata: bytes
    session_timeout_ms: int
    rebalance_timeout_ms: int
    reason: str


class JoinResponse(NamedTuple):
    """The coordinator's answer to a join."""

    error: str | None
    """Kafka's name of the error; None when the member joined."""
    member_id: str
    """The id that the coordinator gave; empty without one."""


class RawTransaction(NamedTuple):
    """A transactional id that a broker coordinates."""

    transactional_id: str
    state: str
    """In Kafka's spelling: ``Ongoing``, ``Empty``, ``CompleteCommit``…"""
    coordinator: int


class CoordinatorConnection:
    """A connection to the coordinator of one group; make it with `open_coordinator_connection`.

    Not for two threads at once.
    """

    def __init__(self, group_id: str, connection: BrokerConnection) -> None:
        self.group_id = group_id
        self._connection = connection

    @property
    def fingerprint(self) -> str:
        """A digest of the broker's calls and versions, which identifies its release."""
        return f"api-{crc32(repr(sorted(self._connection.versions.items())).encode()):08x}"

    def describe(self, deadline_ms: int) -> RawClassicGroup:
        """The group by DescribeGroups. Raises CallFailed, of cause VANISHED when it is gone."""
        return describe_group(self._connection, self.group_id, Deadline.after_ms(deadline_ms))

    def join(self, ask: JoinRequest, member_id: str, deadline_ms: int) -> JoinResponse:
        """JoinGroup; with an empty id the coordinator gives one and answers MEMBER_ID_REQUIRED (KIP-394).

        Raises CallFailed; with ``sent`` the coordinator may have received it.
        """
        version = self._connection.version(JOIN_GROUP, oldest=5, newest=9)
        row = JOIN_GROUP.request.JoinGroupRequestProtocol(name=ask.protocol, metadata=ask.metadata)
        message = JOIN_GROUP.request(
            group_id=self.group_id,
            session_timeout_ms=ask.session_timeout_ms,
            rebalance_timeout_ms=ask.rebalance_timeout_ms,
            member_id=member_id,
            group_instance_id=None,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocols=[row],
            reason=ask.reason,
        )
        answer = self._connection.call(JOIN_GROUP, message, Deadline.after_ms(deadline_ms), version=version)
        return JoinResponse(error_name(answer.error_code), answer.member_id or "")

    def leave(self, member_id: str, reason: str, deadline_ms: int) -> str | None:
        """LeaveGroup; the name of the error, None without one. Raises CallFailed.

        A second leave has no effect: the coordinator answers UNKNOWN_MEMBER_ID.
        """
        version = self._connection.version(LEAVE_GROUP, oldest=3, newest=5)
        one = LEAVE_GROUP.request.MemberIdentity(member_id=member_id, group_instance_id=None, reason=reason)
        message = LEAVE_GROUP.request(group_id=self.group_id, members=[one])
        answer = self._connection.call(LEAVE_GROUP, message, Deadline.after_ms(deadline_ms), version=version)
        errors = [answer.error_code, *(row.error_code for row in answer.members)]
        return next((error_name(code) for code in errors if code), None)

    def close(self) -> None:
        """Close the connection; a waiting join stays in the group."""
        self._connection.close()


def open_coordinator_connection(
    pool: ConnectionPool, settings: WireSettings, group_id: str, deadline: Deadline
) -> CoordinatorConnection:
    """A connection to the broker that coordinates the group now. Raises CallFailed."""
    _, address = pool.ask_any(partial(_find_coordinator, group_id), deadline)
    return CoordinatorConnection(group_id, open_connection(address, settings, deadline))


def list_transactions(
    pool: ConnectionPool, deadline: Deadline
) -> tuple[tuple[RawTransaction, ...], dict[int, CallFailed]]:
    """Every visible transactional id, and the brokers that did not answer.

    Kafka silently leaves out ids without the right DESCRIBE: an empty list proves nothing.
    """
    answers = pool.ask_each(dict.fromkeys(pool.broker_ids, _ask_list), deadline, name="list transactions")
    failed = {broker: answer for broker, answer in answers.items() if isinstance(answer, CallFailed)}
    rows = [
        RawTransaction(name, state, broker)
        for broker, answer in answers.items()
        if not isinstance(answer, CallFailed)
        for name, state in answer
    ]
    return tuple(sorted(rows)), failed


def describe_transactions(
    pool: ConnectionPool, transactions: Sequence[RawTransaction], deadline: Deadline
) -> dict[str, tuple[TopicPartition, ...]]:
    """Transactional id -> partitions of its ongoing transaction; one whose partitions are unknown is left out.

    Kafka silently leaves out partitions of topics without the right DESCRIBE: an ongoing transaction without any.
    """
    by_broker: dict[int, list[str]] = {}
    for row in transactions:
        by_broker.setdefault(row.coordinator, []).append(row.transactional_id)
    jobs = {
        (broker, at): partial(pool.ask, broker, partial(_ask_describe, ids[at : at + _IDS_PER_CALL]), deadline)
        for broker, ids in by_broker.items()
        for at in range(0, len(ids), _IDS_PER_CALL)
    }
    partitions_of: dict[str, tuple[TopicPartition, ...]] = {}
    for answer in gather(jobs, deadline, name="describe transactions").values():
        if not isinstance(answer, CallFailed):
            partitions_of.update(answer)
    return partitions_of


def _find_coordinator(group_id: str, connection: BrokerConnection, until: Deadline) -> BrokerAddress:
    version = connection.version(FIND_COORDINATOR, oldest=4)  # as agent.wire.pool
    message = FIND_COORDINATOR.request(key_type=_KEY_TYPE_GROUP, coordinator_keys=[group_id])
    (row,) = connection.call(FIND_COORDINATOR, message, until, version=version).coordinators
    raise_on_error(row.error_code, row.error_message)
    return BrokerAddress(row.host, row.port)


def _ask_list(connection: BrokerConnection, until: Deadline) -> list[tuple[str, str]]:
    version = connection.version(LIST_TRANSACTIONS)
    message = LIST_TRANSACTIONS.request(state_filters=[], producer_id_filters=[])
    answer = connection.call(LIST_TRANSACTIONS, message, until, version=version)
    raise_on_error(answer.error_code)
    return [(row.transactional_id, row.transaction_state) for row in answer.transaction_states]


def _ask_describe(
    ids: Sequence[str], connection: BrokerConnection, until: Deadline
) -> Mapping[str, tuple[TopicPartition, ...]]:
    version = connection.version(DESCRIBE_TRANSACTIONS)
    message = DESCRIBE_TRANSACTIONS.request(transactional_ids=list(ids))
    answer = connection.call(DESCRIBE_TRANSACTIONS, message, until, version=version)
    rows = [row for row in answer.transaction_states if row.error_code == 0]
    states = {row.transactional_id: (row.transaction_state, _partitions(row)) for row in rows}
    return {name: partitions for name, (state, partitions) in states.items() if partitions or state != _ONGOING}


def _partitions(row: Any) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(one.topic, number) for one in row.topics for number in one.partitions))


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

    def group_line(self, group_id: str, deadline_ms: int) -> CoordinatorConnection:
        """A connection of its own to the group's coordinator; the caller closes it. Raises CallFailed."""
        deadline = Deadline.after_ms(deadline_ms)
        return open_coordinator_connection(self._pool, self._settings, group_id, deadline)

    def list_transactions(self, deadline_ms: int) -> tuple[tuple[RawTransaction, ...], dict[int, CallFailed]]:
        """Every visible transactional id, and the brokers that did not answer. Raises as `describe_brokers`.

        Brokers are described first: an unknown broker would seem to have no transactions.
        """
        deadline = Deadline.after_ms(deadline_ms)
        cluster_calls.describe_brokers(self._pool, deadline)
        return list_transactions(self._pool, deadline)

    def describe_transactions(
        self, transactions: Sequence[RawTransaction], deadline_ms: int
    ) -> dict[str, tuple[TopicPartition, ...]]:
        """Transactional id -> partitions of its ongoing transaction."""
        return describe_transactions(self._pool, transactions, Deadline.after_ms(deadline_ms))
