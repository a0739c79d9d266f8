"""Calls that change a cluster: their results, prechecks on the request's own connection, and those about throttles.

Of a precheck topic metadata comes first, as brokers may have it late, then the controller's own list of reassignments,
so that only one round trip lies between that list and the request.

Of configs only replication throttles are read and set (DescribeConfigs, IncrementalAlterConfigs): four keys, of topics
by name and of brokers by id; any other change raises before a byte is sent. Only the dynamic config of that one topic
or broker is changed, never a cluster-wide default or a static setting below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from enum import StrEnum
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from agent.values.kafka import UNKNOWN_SERVER_ERROR
from agent.values.observation import Gap, GapCause, ObservationPart, RawReassignment, RawTopic
from agent.values.throttles import KEYS_OF, OpType, SeenThrottle, ThrottleChange, ThrottleResource
from agent.wire.cluster_calls import raw_topic
from agent.wire.connection import BrokerConnection
from agent.wire.failure import CallFailed, Deadline, check_in_time, from_error_name, gather, passed_on
from agent.wire.pool import Ask, ConnectionPool
from agent.wire.protocol import (
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_PARTITION_REASSIGNMENTS,
    METADATA,
    error_name,
    is_unknown_error,
)
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
    undecided = name in _UNDECIDED or is_unknown_error(code)
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


_TYPES = {"topic": 2, "broker": 4}
"""Kafka's ConfigResource.Type."""
_OWN_LAYER = {"topic": 1, "broker": 2}
"""Kafka's ConfigSource: DYNAMIC_TOPIC_CONFIG and DYNAMIC_BROKER_CONFIG."""
_BUILT_IN = 5
"""DEFAULT_CONFIG: unset."""
_LISTS = (OpType.APPEND, OpType.SUBTRACT)
V = TypeVar("V")
_Described = tuple[ThrottleResource, Any]
"""A resource, and its row of the answer."""
_ALL_TOPICS = ThrottleResource(topic="")
"""Key of the one request about all topics; no topic has this name."""
_Changes = Mapping[ThrottleResource, list[ThrottleChange]]
"""Sorted by resource; of each its changes, by key."""


class DescribedThrottles(NamedTuple):
    """Throttle settings of topics and brokers."""

    settings: Mapping[tuple[ThrottleResource, str], SeenThrottle]
    """Both keys of every topic and broker that answered, also those that are not set."""
    gaps: tuple[Gap, ...]
    differing: tuple[str, ...] = ()
    """Topics whose settings the asked brokers report differently: one of them is behind."""


class _Terms(NamedTuple):
    """Deadline of a change, latest time to begin it, and the filter right before it."""

    deadline: Deadline
    begin_by: Deadline
    leave_out: LeaveOutThrottles | None


LeaveOutThrottles = Callable[
    [Mapping[ThrottleChange, SeenThrottle | None], Mapping[str, RawTopic]], AbstractSet[ThrottleResource]
]
"""Each change with its present setting (None: unreadable), and the topics by name -> the topics and brokers that have
changed since the decision: they are left out of the request."""
_LEFT_OUT = ChangeResult(
    Fate.NOT_SENT, None, "not sent: its settings are not, right before the request, as decided for"
)


class ForbiddenChangeError(ValueError):
    """The change is not of a throttle key; nothing was sent."""


def describe_throttles(
    pool: ConnectionPool, topics: Iterable[str], brokers: Iterable[int], deadline: Deadline
) -> DescribedThrottles:
    """Both keys of each topic and broker; a failure is a gap.

    Each broker reports its own keys and the topics', as it enforces what its own metadata has; without brokers any one
    reports the topics. A broker behind the others shows in ``differing``, and the topic is left out of ``settings``.
    """
    of_topics = [ThrottleResource(topic=name) for name in sorted(set(topics))]
    every = {one: [one, *of_topics] for one in (ThrottleResource(broker=broker) for broker in sorted(set(brokers)))}
    if of_topics and not every:
        every[_ALL_TOPICS] = of_topics
    jobs = {one: partial(_ask, pool, one, partial(_read, of), deadline) for one, of in every.items()}
    gaps: list[Gap] = []
    rows: dict[ThrottleResource, list[Any]] = {}
    for of, answer in gather(jobs, deadline, name="throttles").items():
        if isinstance(answer, CallFailed):
            gaps.append(_gap(of, answer))
            continue
        for resource, row in answer:
            rows.setdefault(resource, []).append(row)
    settings: dict[tuple[ThrottleResource, str], SeenThrottle] = {}
    differing: list[str] = []
    for resource, reported in sorted(rows.items()):
        if any(_reported(row) != _reported(reported[0]) for row in reported):
            differing.append(resource.name)
        elif (refusal := error_name(reported[0].error_code)) is None:
            settings |= _seen(resource, reported[0])
        else:
            gaps.append(_gap(resource, from_error_name(refusal, reported[0].error_message)))
    return DescribedThrottles(settings, tuple(gaps), tuple(differing))


def _gap(of: ThrottleResource, failure: CallFailed) -> Gap:
    if of.broker is None:
        return Gap(ObservationPart.TOPIC_CONFIGS, failure.cause, of.name, failure.detail)
    return Gap.of_broker(ObservationPart.BROKER_CONFIGS, failure.cause, of.broker, failure.detail)


def _reported(row: Any) -> tuple[int, dict[str, str | None]]:
    """The error code, and the values that are set."""
    return row.error_code, {entry.name: entry.value for entry in row.configs if entry.config_source != _BUILT_IN}


def change_throttles(
    pool: ConnectionPool,
    changes: Iterable[ThrottleChange],
    deadline: Deadline,
    begin_by: Deadline | None = None,
    leave_out: LeaveOutThrottles | None = None,
) -> dict[ThrottleResource, ChangeResult]:
    """One result for each topic or broker: its keys are changed together or not at all, each once, by its last change.

    A broker's keys are changed at the broker itself, as no other takes them. Nothing is sent after ``begin_by``, nor of
    resources that ``leave_out`` returns for the settings on the same connection. Raises ForbiddenChangeError before
    anything is sent. Never raises CallFailed.
    """
    by_key = {(change.resource, change.key): change for change in changes}
    terms = _Terms(deadline, begin_by or deadline, leave_out)
    wanted: dict[ThrottleResource, list[ThrottleChange]] = {}
    for (resource, _), change in sorted(by_key.items()):
        _check(change)
        wanted.setdefault(resource, []).append(change)
    every = {resource: {resource: rows} for resource, rows in wanted.items() if resource.broker is not None}
    topics = {resource: rows for resource, rows in wanted.items() if resource.topic is not None}
    if topics:
        every[_ALL_TOPICS] = topics
    jobs = {one: partial(_change_at, pool, one, changes, terms) for one, changes in every.items()}
    answers: dict[ThrottleResource, ChangeResult] = {}
    for resource, answer in gather(jobs, deadline, name="throttle changes").items():
        if isinstance(answer, CallFailed):  # its thread still runs: the request may have left
            answers |= dict.fromkeys(every[resource], ChangeResult(Fate.UNKNOWN, None, answer.detail))
        else:
            answers |= answer
    return answers


def _check(change: ThrottleChange) -> None:
    resource, key, operation, value, *_ = change
    kind = resource.kind
    if key not in KEYS_OF[kind]:
        raise ForbiddenChangeError(f"{key} of a {kind} is no replication throttle")
    if not (resource.topic if resource.broker is None else resource.topic is None and resource.broker >= 0):
        raise ForbiddenChangeError(f"{resource.name!r} is no single {kind}")
    if (value is None) != (operation is OpType.DELETE):
        raise ForbiddenChangeError(f"{operation.name} of {key} with the value {value!r}")
    if kind == "broker" and operation in _LISTS:
        raise ForbiddenChangeError(f"{key} is no list")


def _ask(pool: ConnectionPool, of: ThrottleResource, ask: Ask[V], deadline: Deadline) -> V:
    """The answer of any broker about topics, and of each broker about itself."""
    return pool.ask_any(ask, deadline)[1] if of.broker is None else pool.ask(of.broker, ask, deadline)


def _read(every: Iterable[ThrottleResource], connection: BrokerConnection, until: Deadline) -> list[_Described]:
    by_name = {one.name: one for one in every}
    row = DESCRIBE_CONFIGS.request.DescribeConfigsResource
    message = DESCRIBE_CONFIGS.request(
        resources=[
            row(resource_type=_TYPES[one.kind], resource_name=name, configuration_keys=list(KEYS_OF[one.kind]))
            for name, one in by_name.items()
        ],
        include_synonyms=True,
    )
    version = connection.version(DESCRIBE_CONFIGS, oldest=1)
    rows = connection.call(DESCRIBE_CONFIGS, message, until, version=version).results
    return [(by_name[row.resource_name], row) for row in rows if row.resource_name in by_name]


def _seen(resource: ThrottleResource, row: Any) -> dict[tuple[ThrottleResource, str], SeenThrottle]:
    """Both keys of a resource; a key that the answer lacks is unset in every layer."""
    entries, kind = {one.name: one for one in row.configs}, resource.kind
    read: dict[tuple[ThrottleResource, str], SeenThrottle] = {}
    for key in KEYS_OF[kind]:
        own: str | None = None
        default: str | None = None
        if (entry := entries.get(key)) is not None:
            stack = [(one.source, one.value) for one in entry.synonyms or ()] or [(entry.config_source, entry.value)]
            own = next((value for source, value in stack if source == _OWN_LAYER[kind]), None)
            default = next((value for source, value in stack if source not in (_OWN_LAYER[kind], _BUILT_IN)), None)
        read[resource, key] = SeenThrottle(resource, key, own, default)
    return read


def _change_at(
    pool: ConnectionPool, of: ThrottleResource, changes: _Changes, terms: _Terms
) -> dict[ThrottleResource, ChangeResult]:
    try:
        return _ask(pool, of, partial(_change, of.kind, changes, terms), terms.deadline)
    except CallFailed as failure:
        return dict.fromkeys(changes, unanswered(failure))


def _change(
    kind: str, changes: _Changes, terms: _Terms, connection: BrokerConnection, _share: Deadline
) -> dict[ThrottleResource, ChangeResult]:
    """The answers for topics, or for one broker, on a connection to a broker that takes their changes."""
    left_out: dict[ThrottleResource, ChangeResult] = {}
    if terms.leave_out is not None:
        others = _no_longer_wanted(kind, changes, terms, terms.leave_out, connection)
        left_out = dict.fromkeys(others & changes.keys(), _LEFT_OUT)
        changes = {resource: of_one for resource, of_one in changes.items() if resource not in left_out}
        if not changes:
            return left_out
    api = INCREMENTAL_ALTER_CONFIGS
    row = api.request.AlterConfigsResource
    config = row.AlterableConfig
    message = api.request(
        resources=[
            row(
                resource_type=_TYPES[kind],
                resource_name=resource.name,
                configs=[config(name=one.key, config_operation=int(one.op), value=one.value) for one in of_one],
            )
            for resource, of_one in changes.items()
        ],
        validate_only=False,
    )
    check_in_time(terms.begin_by)
    with passed_on() if kind == "topic" else nullcontext():
        answer = connection.call(api, message, terms.deadline, version=connection.version(api))
    answers = {row.resource_name: answered(row.error_code, row.error_message) for row in answer.responses}
    silent = ChangeResult(Fate.UNKNOWN, None, f"the broker's answer does not contain this {kind}")
    return left_out | {resource: answers.get(resource.name, silent) for resource in changes}


def _no_longer_wanted(
    kind: str, changes: _Changes, terms: _Terms, leave_out: LeaveOutThrottles, connection: BrokerConnection
) -> AbstractSet[ThrottleResource]:
    """The resources that ``leave_out`` returns for the present settings."""
    check_in_time(terms.begin_by)
    soon = min(terms.deadline, terms.begin_by)
    rows = _read(changes, connection, soon)
    settings = {key: value for one, row in rows if not row.error_code for key, value in _seen(one, row).items()}
    topics = describe_on(connection, [resource.name for resource in changes], soon) if kind == "topic" else {}
    every = (change for of_one in changes.values() for change in of_one)
    return leave_out({change: settings.get((change.resource, change.key)) for change in every}, topics)
