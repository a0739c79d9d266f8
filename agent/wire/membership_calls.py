"""Calls that make a classic group rebalance (JoinGroup, LeaveGroup), and reads of transactions that may forbid it.

`CoordinatorConnection` is a connection of its own to a group's coordinator, as the order of its requests counts: it is
no lane of the pool, has one caller, and nothing is sent twice on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

from agent.values.kafka import CONSUMER_PROTOCOL_TYPE
from agent.values.observation import RawClassicGroup
from agent.wire.connection import BrokerConnection, open_connection
from agent.wire.failure import CallFailed, Deadline, gather
from agent.wire.group_calls import describe_group
from agent.wire.pool import ConnectionPool
from agent.wire.protocol import (
    DESCRIBE_TRANSACTIONS,
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
    version = connection.version(FIND_COORDINATOR, oldest=4)  # as agent.wire.batches
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
