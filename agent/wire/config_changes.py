"""Calls that read and set replication throttles, and can set nothing else.

Invariants: four keys may be changed, of topics by name and of brokers by id; anything else is a defect of the caller
and raises before a byte is sent. The default of all brokers (a broker without a name) is never changed. What is read
tells the layers apart: our layer is the dynamic config of that one topic or broker, and only it is ever changed, so a
cluster-wide default or a static setting below it is seen and left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

from agent.values.kafka import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from agent.values.observation import Gap, Part, RawTopic
from agent.wire.change import Answered, Fate, answered, unanswered
from agent.wire.connection import Connection
from agent.wire.deadline import Deadline
from agent.wire.failure import CallFailed, check_in_time, from_error_name, passed_on
from agent.wire.fanout import gather
from agent.wire.last_look import describe_on
from agent.wire.pool import Pool
from agent.wire.protocol import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, error_name


class Holder(IntEnum):
    """Kafka's numbers of what can hold a throttle."""

    TOPIC = 2
    BROKER = 4


KEYS: Mapping[Holder, tuple[str, ...]] = {
    Holder.TOPIC: (LEADER_REPLICAS, FOLLOWER_REPLICAS),
    Holder.BROKER: (LEADER_RATE, FOLLOWER_RATE),
}
"""Every key that may be changed."""

_OWN_LAYER = {Holder.TOPIC: 1, Holder.BROKER: 2}
"""Kafka's source numbers: DYNAMIC_TOPIC_CONFIG and DYNAMIC_BROKER_CONFIG."""
_BUILT_IN = 5
"""DEFAULT_CONFIG: it is not set."""


class Operation(IntEnum):
    """Kafka's numbers of what can be done to a key; the last two are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Setting(NamedTuple):
    """One key of one topic or broker."""

    holder: Holder
    name: str
    """Topic name, or the broker's id as text."""
    key: str


class Layers(NamedTuple):
    """What is set for one key, layer by layer."""

    own: str | None
    """In the dynamic config of that very topic or broker; None when nothing is set there."""
    below: str | None
    """What was set elsewhere and holds without it: the default of all brokers, or the broker's own file."""


class ThrottleChange(NamedTuple):
    """One change of one key."""

    setting: Setting
    operation: Operation
    value: str | None


class Throttles(NamedTuple):
    """What was read."""

    layers: Mapping[Setting, Layers]
    """Both keys of every holder that answered."""
    gaps: tuple[Gap, ...]


class _Terms(NamedTuple):
    """When a change must be over, by when it must have begun, and what is left out of it."""

    deadline: Deadline
    begin_by: Deadline
    leave_out: LeaveOut | None


LeaveOut = Callable[[Mapping[Setting, Layers | None], Mapping[str, RawTopic]], AbstractSet[tuple[Holder, str]]]
"""Each key that is to be changed with what is set (None: it could not be read), and the topics by name -> the topics
and brokers that are not, right before the request, what it was decided for: they are left out of it."""
_LEFT_OUT = Answered(Fate.NOT_SENT, None, "not sent: its settings are not, right before the request, as decided for")


class ForbiddenChangeError(ValueError):
    """A change of something else than a throttle was asked for; nothing was sent."""


def describe_throttles(pool: Pool, topics: Iterable[str], brokers: Iterable[int], deadline: Deadline) -> Throttles:
    """Both keys of each topic, from any broker, and of each broker, from itself; what failed is a gap."""
    names = sorted(set(topics))
    jobs: dict[tuple[Holder, str], Callable[[], list[Any]]] = {
        (Holder.BROKER, str(broker)): partial(_read_at, pool, broker, deadline) for broker in set(brokers)
    }
    if names:
        jobs[Holder.TOPIC, ""] = partial(_read_any, pool, names, deadline)
    layers: dict[Setting, Layers] = {}
    gaps: list[Gap] = []
    for (holder, name), answer in gather(jobs, deadline, name="throttles").items():
        part = Part.TOPIC_CONFIGS if holder is Holder.TOPIC else Part.BROKER_CONFIGS
        if isinstance(answer, CallFailed):
            gaps.append(Gap(part, answer.cause, f"broker {name}" if name else "", answer.detail))
            continue
        for row in answer:
            refusal = error_name(row.error_code)
            if refusal is None:
                layers |= _layers(holder, row)
            else:
                failure = from_error_name(refusal, row.error_message)
                gaps.append(Gap(part, failure.cause, row.resource_name, failure.detail))
    return Throttles(layers, tuple(gaps))


def change_throttles(
    pool: Pool,
    changes: Iterable[ThrottleChange],
    deadline: Deadline,
    begin_by: Deadline | None = None,
    leave_out: LeaveOut | None = None,
) -> dict[Setting, Answered]:
    """One answer for each key; the keys of one topic or broker are changed together or not at all.

    A broker's keys are changed at the broker itself, as no other takes them: those of one that is down are not sent.
    After ``begin_by`` nothing is sent, nor what ``leave_out`` names once it was asked, on the same connection, for what
    is set by then. Raises ForbiddenChangeError before anything is sent. Never raises CallFailed.
    """
    wanted = list(changes)
    terms = _Terms(deadline, begin_by or deadline, leave_out)
    for change in wanted:
        _check(change)
    by_holder: dict[Holder, dict[str, list[ThrottleChange]]] = {}
    for change in sorted(wanted):
        by_holder.setdefault(change.setting.holder, {}).setdefault(change.setting.name, []).append(change)
    jobs: dict[tuple[Holder, str], Callable[[], dict[str, Answered]]] = {
        (Holder.BROKER, name): partial(_change_at, pool, int(name), {name: rows}, terms)
        for name, rows in by_holder.get(Holder.BROKER, {}).items()
    }
    topics = by_holder.get(Holder.TOPIC, {})
    if topics:
        jobs[Holder.TOPIC, ""] = partial(_change_any, pool, topics, terms)
    answers: dict[Setting, Answered] = {}
    for (holder, name), told in gather(jobs, deadline, name="throttle changes").items():
        if isinstance(told, CallFailed):
            # Its thread is still at it: the request may have left.
            lost = Answered(Fate.UNKNOWN, None, told.detail)
            fates = dict.fromkeys(topics if holder is Holder.TOPIC else [name], lost)
        else:
            fates = told
        for one, fate in fates.items():
            answers |= {change.setting: fate for change in by_holder[holder][one]}
    return answers


def _check(change: ThrottleChange) -> None:
    holder, name, key = change.setting
    if key not in KEYS[holder]:
        raise ForbiddenChangeError(f"{key} of a {holder.name.lower()} is no replication throttle")
    if not name or (holder is Holder.BROKER and not name.isdecimal()):
        raise ForbiddenChangeError(f"{name!r} is no single {holder.name.lower()}")
    if (change.value is None) != (change.operation is Operation.DELETE):
        raise ForbiddenChangeError(f"{change.operation.name} of {key} with the value {change.value!r}")
    if holder is Holder.BROKER and change.operation in (Operation.APPEND, Operation.SUBTRACT):
        raise ForbiddenChangeError(f"{key} is no list")


def _read_at(pool: Pool, broker: int, deadline: Deadline) -> list[Any]:
    return pool.ask(broker, partial(_read, Holder.BROKER, [str(broker)]), deadline)


def _read_any(pool: Pool, topics: list[str], deadline: Deadline) -> list[Any]:
    return pool.ask_any(partial(_read, Holder.TOPIC, topics), deadline)[1]


def _read(holder: Holder, names: list[str], connection: Connection, until: Deadline) -> list[Any]:
    resource = DESCRIBE_CONFIGS.request.DescribeConfigsResource
    message = DESCRIBE_CONFIGS.request(
        resources=[
            resource(resource_type=int(holder), resource_name=name, configuration_keys=list(KEYS[holder]))
            for name in names
        ],
        include_synonyms=True,
    )
    version = connection.version(DESCRIBE_CONFIGS, oldest=1)
    return list(connection.call(DESCRIBE_CONFIGS, message, until, version=version).results)


def _layers(holder: Holder, row: Any) -> dict[Setting, Layers]:
    """A key that the broker does not name has nothing set anywhere."""
    found = {one.name: one for one in row.configs}
    read: dict[Setting, Layers] = {}
    for key in KEYS[holder]:
        own: str | None = None
        below: str | None = None
        if (entry := found.get(key)) is not None:
            stack = [(one.source, one.value) for one in entry.synonyms or ()] or [(entry.config_source, entry.value)]
            own = next((value for source, value in stack if source == _OWN_LAYER[holder]), None)
            below = next((value for source, value in stack if source not in (_OWN_LAYER[holder], _BUILT_IN)), None)
        read[Setting(holder, row.resource_name, key)] = Layers(own, below)
    return read


def _change_at(
    pool: Pool, broker: int, changes: Mapping[str, list[ThrottleChange]], terms: _Terms
) -> dict[str, Answered]:
    try:
        return pool.ask(broker, partial(_change, Holder.BROKER, changes, terms), terms.deadline)
    except CallFailed as failure:
        return dict.fromkeys(changes, unanswered(failure))


def _change_any(pool: Pool, changes: Mapping[str, list[ThrottleChange]], terms: _Terms) -> dict[str, Answered]:
    try:
        return pool.ask_any(partial(_change, Holder.TOPIC, changes, terms), terms.deadline)[1]
    except CallFailed as failure:
        return dict.fromkeys(changes, unanswered(failure))


def _change(
    holder: Holder,
    changes: Mapping[str, list[ThrottleChange]],
    terms: _Terms,
    connection: Connection,
    _share: Deadline,
) -> dict[str, Answered]:
    left_out: dict[str, Answered] = {}
    if terms.leave_out is not None:
        check_in_time(terms.begin_by)
        soon = min(terms.deadline, terms.begin_by)
        rows = _read(holder, sorted(changes), connection, soon)
        read = {key: value for row in rows if not row.error_code for key, value in _layers(holder, row).items()}
        layers = {change.setting: read.get(change.setting) for of_one in changes.values() for change in of_one}
        topics = describe_on(connection, sorted(changes), soon) if holder is Holder.TOPIC else {}
        others = terms.leave_out(layers, topics)
        left_out = {name: _LEFT_OUT for kind, name in others if kind is holder and name in changes}
        changes = {name: of_one for name, of_one in changes.items() if name not in left_out}
        if not changes:
            return left_out
    api = INCREMENTAL_ALTER_CONFIGS
    resource = api.request.AlterConfigsResource
    config = resource.AlterableConfig
    message = api.request(
        resources=[
            resource(
                resource_type=int(holder),
                resource_name=name,
                configs=[
                    config(name=change.setting.key, config_operation=int(change.operation), value=change.value)
                    for change in rows
                ],
            )
            for name, rows in changes.items()
        ],
        validate_only=False,
    )
    check_in_time(terms.begin_by)
    with passed_on() if holder is Holder.TOPIC else nullcontext():
        answer = connection.call(api, message, terms.deadline, version=connection.version(api))
    told = {row.resource_name: answered(row.error_code, row.error_message) for row in answer.responses}
    silent = Answered(Fate.UNKNOWN, None, f"the broker's answer does not contain this {holder.name.lower()}")
    return left_out | {name: told.get(name, silent) for name in changes}
