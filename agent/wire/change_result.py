"""Results of changing calls, and prechecks: partitions read right before a request, on the request's own connection.

Topic metadata comes first, as brokers may have it late, then the controller's own list of reassignments, so that only
one round trip lies between that list and the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from agent.values.kafka import UNKNOWN_SERVER_ERROR
from agent.values.observation import GapCause, RawReassignment, RawTopic
from agent.wire.cluster_calls import raw_topic
from agent.wire.connection import BrokerConnection
from agent.wire.failure import CallFailed, Deadline, from_error_name, passed_on
from agent.wire.protocol import LIST_PARTITION_REASSIGNMENTS, METADATA, error_name, is_unknown_error
from assignors.problem import TopicPartition


class Fate(StrEnum):
    """The fate of a requested change."""

    DONE = "done"
    """The broker accepted it."""
    REFUSED = "refused"
    """The broker refused it."""
    NOT_SENT = "not sent"
    """The request never left: nothing changed, and it may be tried again."""
    UNKNOWN = "unknown"
    """It may have been done or may still be done; its state must be read first."""


class ChangeResult(NamedTuple):
    """The result of one change."""

    fate: Fate
    error: str | None = None
    """Kafka's name of the error when it was refused or its fate is unknown; None without one."""
    detail: str = ""
    """The broker's message, or what rackwise saw instead; for operators."""

    @property
    def done(self) -> bool:
        """True when the broker accepted it."""
        return self.fate is Fate.DONE


DONE = ChangeResult(Fate.DONE)

_UNDECIDED = frozenset({"REQUEST_TIMED_OUT", UNKNOWN_SERVER_ERROR, "NETWORK_EXCEPTION", "NOT_CONTROLLER"})
"""Errors of a broker that passed the request on without an answer from the controller.

A controller that is deposed answers NOT_CONTROLLER for a write that it had begun already. An unknown code counts as
UNKNOWN_SERVER_ERROR, as in Kafka's own client.
"""


def answered(code: int, message: str | None) -> ChangeResult:
    """The result for an error code of Kafka; 0 is done."""
    name = error_name(code)
    if name is None:
        return DONE
    failure = from_error_name(name, message)
    undecided = name in _UNDECIDED or is_unknown_error(name)
    return ChangeResult(Fate.UNKNOWN if undecided else Fate.REFUSED, name, failure.detail)


def counted_as_done(one: ChangeResult, *names: str) -> ChangeResult:
    """DONE where the refusal has one of these names: the change was there already."""
    return DONE if one.error in names else one


def unanswered(failure: CallFailed) -> ChangeResult:
    """The result of a call without a readable answer."""
    if failure.sent:
        return ChangeResult(Fate.UNKNOWN, None, failure.detail)
    if failure.cause in (GapCause.NOT_ALLOWED, GapCause.UNSUPPORTED):
        return ChangeResult(Fate.REFUSED, failure.cause.name, failure.detail)
    return ChangeResult(Fate.NOT_SENT, None, failure.detail)


class RequestPrecheck(NamedTuple):
    """Topics and reassignments at the precheck."""

    topics: Mapping[str, RawTopic]
    """By name, unknown topics with their error; a missing topic was not in the answer."""
    running: Mapping[TopicPartition, RawReassignment]
    """The reassignments of these topics."""


LeaveOut = Callable[[RequestPrecheck], AbstractSet[TopicPartition]]
"""Returns the partitions that have changed since the request was decided: they are left out of it."""


def precheck(connection: BrokerConnection, partitions: Iterable[TopicPartition], deadline: Deadline) -> RequestPrecheck:
    """Those partitions' topics and reassignments. Raises CallFailed."""
    wanted = sorted(set(partitions))
    topics = describe_on(connection, sorted({partition.topic for partition in wanted}), deadline)
    return RequestPrecheck(topics, _running(connection, wanted, deadline))


def describe_on(connection: BrokerConnection, names: Iterable[str], deadline: Deadline) -> dict[str, RawTopic]:
    """Those topics by name, from that broker. Raises CallFailed."""
    message = METADATA.request(
        topics=[METADATA.request.MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )
    answer = connection.call(METADATA, message, deadline, version=connection.version(METADATA, oldest=8))
    return {row.name: raw_topic(row) for row in answer.topics}


def _running(
    connection: BrokerConnection, wanted: list[TopicPartition], deadline: Deadline
) -> dict[TopicPartition, RawReassignment]:
    api = LIST_PARTITION_REASSIGNMENTS
    row = api.request.ListPartitionReassignmentsTopics
    topics = [
        row(name=topic, partition_indexes=[one.partition for one in run])
        for topic, run in groupby(wanted, key=lambda one: one.topic)
    ]
    message = api.request(timeout_ms=max(1, int(deadline.left_s * 1000)), topics=topics)
    with passed_on():
        answer = connection.call(api, message, deadline, version=connection.version(api))
    refused = error_name(answer.error_code)
    if refused is not None:
        detail = from_error_name(refused, answer.error_message).detail
        raise CallFailed(GapCause.ERROR, f"the reassignments could not be listed right before the request: {detail}")
    return {
        id_: RawReassignment(
            id_, tuple(one.replicas or ()), tuple(one.adding_replicas or ()), tuple(one.removing_replicas or ())
        )
        for topic in answer.topics
        for one in topic.partitions
        for id_ in (TopicPartition(topic.name, one.partition_index),)
    }
