"""One request about many groups, in batches, each to the coordinator of its groups.

A batch whose answer cannot be read, or is too large, is sent again in halves, so that one bad row does not hide others.
Errors of a moving or loading coordinator are retried within the deadline, at the coordinator named then.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from agent.values.observation import GapCause
from agent.wire.connection import BrokerConnection
from agent.wire.failure import COORDINATOR_MOVING, CallFailed, Deadline, UnusableAnswer, from_error_name, gather
from agent.wire.pool import ConnectionPool
from agent.wire.protocol import FIND_COORDINATOR, error_name

V = TypeVar("V")

GROUPS_PER_CALL = 200
PAUSE_S = 0.1
"""Between two requests to a coordinator that moves or loads."""
_KEY_TYPE_GROUP = 0


class GroupRow(NamedTuple, Generic[V]):
    """The answer about one group: a value, or an error's name with its message."""

    group_id: str
    value: V | None
    error: str | None = None
    message: str | None = None


AskGroups = Callable[[BrokerConnection, Sequence[str], Deadline], list[GroupRow[V]]]


class GroupAnswers(NamedTuple, Generic[V]):
    """Every requested group is in exactly one of the two."""

    values: dict[str, tuple[int, V]]
    """Group -> its coordinator and the value."""
    failures: dict[str, CallFailed]


class _Round(NamedTuple, Generic[V]):
    """One batch at one coordinator."""

    broker: int
    groups: tuple[str, ...]


def ask_groups(
    pool: ConnectionPool,
    groups: Iterable[str],
    coordinators: Mapping[str, int],
    ask: AskGroups[V],
    deadline: Deadline,
    *,
    name: str,
) -> GroupAnswers[V]:
    """The answer of each group's coordinator, all coordinators side by side; never raises CallFailed.

    Groups that are not in ``coordinators`` (a broker lists the groups that it coordinates) are looked up.
    """
    answers: GroupAnswers[V] = GroupAnswers({}, {})
    waiting = list(dict.fromkeys(groups))
    places = {group: coordinators[group] for group in waiting if group in coordinators}
    while waiting:
        again = _locate(pool, [group for group in waiting if group not in places], places, answers, deadline)
        rounds = _batches(waiting, places)
        jobs = {one: partial(_ask_batch, pool, one.broker, one.groups, ask, deadline) for one in rounds}
        for one, rows in gather(jobs, deadline, name=name).items():
            again += _sort_out(answers, one, rows)
        if not again or deadline.left_s <= PAUSE_S:
            break
        for group in again:
            places.pop(group, None)
        waiting = again
        time.sleep(PAUSE_S)
    return answers


def _locate(
    pool: ConnectionPool, groups: Sequence[str], places: dict[str, int], answers: GroupAnswers[V], deadline: Deadline
) -> list[str]:
    """Add the coordinators of the groups to ``places``; returns the groups without one just now."""
    again: list[str] = []
    for at in range(0, len(groups), GROUPS_PER_CALL):
        batch = groups[at : at + GROUPS_PER_CALL]
        try:
            _, rows = pool.ask_any(partial(_find_coordinators, batch), deadline)
        except CallFailed as failure:
            _fail(answers, batch, failure)
            continue
        for row in rows:
            refusal = error_name(row.error_code)
            if refusal is None:
                places[row.key] = row.node_id
                continue
            answers.failures[row.key] = from_error_name(refusal, row.error_message)
            if refusal in COORDINATOR_MOVING:
                again.append(row.key)
    return again


def _find_coordinators(groups: Sequence[str], connection: BrokerConnection, until: Deadline) -> Any:
    message = FIND_COORDINATOR.request(key_type=_KEY_TYPE_GROUP, coordinator_keys=list(groups))
    # v4 takes many keys at once (KIP-699, Kafka 3.0).
    version = connection.version(FIND_COORDINATOR, oldest=4)
    return connection.call(FIND_COORDINATOR, message, until, version=version).coordinators


def _batches(groups: Sequence[str], places: Mapping[str, int]) -> list[_Round[V]]:
    by_broker: dict[int, list[str]] = defaultdict(list)
    for group in groups:
        if group in places:
            by_broker[places[group]].append(group)
    return [
        _Round(broker, tuple(names[at : at + GROUPS_PER_CALL]))
        for broker, names in sorted(by_broker.items())
        for at in range(0, len(names), GROUPS_PER_CALL)
    ]


def _ask_batch(
    pool: ConnectionPool, broker: int, groups: Sequence[str], ask: AskGroups[V], deadline: Deadline
) -> list[GroupRow[V] | tuple[str, CallFailed]]:
    """Rows of all groups, in halves where the whole is unusable; a single unusable group has its failure."""
    try:
        return list(pool.ask(broker, lambda connection, until: ask(connection, groups, until), deadline))
    except UnusableAnswer as failure:
        if len(groups) == 1:
            return [(groups[0], failure)]
    middle = len(groups) // 2
    first = _ask_batch(pool, broker, groups[:middle], ask, deadline)
    return first + _ask_batch(pool, broker, groups[middle:], ask, deadline)


def _sort_out(
    answers: GroupAnswers[V], one: _Round[V], rows: list[GroupRow[V] | tuple[str, CallFailed]] | CallFailed
) -> list[str]:
    """Add the rows to ``answers``; returns the groups to ask about again."""
    if isinstance(rows, CallFailed):
        _fail(answers, one.groups, rows)
        return []
    again: list[str] = []
    answered: set[str] = set()
    for row in rows:
        answered.add(row[0])
        answers.failures.pop(row[0], None)
        if not isinstance(row, GroupRow):
            answers.failures[row[0]] = row[1]
        elif row.error is not None:
            answers.failures[row.group_id] = from_error_name(row.error, row.message)
            again += [row.group_id] if row.error in COORDINATOR_MOVING else []
        elif row.value is not None:
            answers.values[row.group_id] = (one.broker, row.value)
    for group in one.groups:
        if group not in answered:
            answers.failures[group] = CallFailed(GapCause.ERROR, "the coordinator's answer does not contain this group")
    return again


def _fail(answers: GroupAnswers[V], groups: Iterable[str], failure: CallFailed) -> None:
    """Add the failure of the groups; a time-out does not replace an earlier error of a coordinator."""
    for group in groups:
        if failure.cause is not GapCause.TIMED_OUT or group not in answers.failures:
            answers.failures[group] = failure
