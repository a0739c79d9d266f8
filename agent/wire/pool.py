"""Connections to all brokers: reuse, rotation, a pause for a broker that let a deadline pass; requests in batches.

A broker that times out without another answer meanwhile is not asked for ``breaker_ms``, unless no other is left; one
that refuses connections, or only passes a request on to the controller, is asked again at once. Each address has at
most ``LANES`` connections, so that a large answer does not hold up a small one. A call whose idle connection broke
before a byte of the answer is repeated once on a new one; a call that changes something is never repeated, here or at
another broker, once its request may have left (`CallFailed.sent`).

A request about many groups goes in batches, each to the coordinator of its groups. A batch whose answer cannot be read,
or is too large, is sent again in halves, so that one bad row does not hide others. Errors of a moving or loading
coordinator are retried within the deadline, at the coordinator named then.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from agent.values.observation import GapCause
from agent.wire.connection import BrokerConnection, open_connection
from agent.wire.failure import (
    COORDINATOR_MOVING,
    CallFailed,
    Deadline,
    TooLate,
    UnusableAnswer,
    from_error_name,
    gather,
)
from agent.wire.protocol import FIND_COORDINATOR, BrokerAddress, WireSettings, error_name

V = TypeVar("V")
Ask = Callable[[BrokerConnection, Deadline], V]
"""One or more calls on a connection."""

LANES = 4
_TRIES = 3


class _Backoff(NamedTuple):
    """A pause of a broker, and its reason."""

    until: float
    why: str


class ConnectionPool:
    """All connections of one client; every method may be called from any thread."""

    def __init__(self, settings: WireSettings, *, breaker_ms: int) -> None:
        self._settings = settings
        self._breaker_s = breaker_ms / 1000
        self._changed = threading.Condition()
        self._idle: dict[BrokerAddress, list[BrokerConnection]] = {}
        self._lanes: dict[BrokerAddress, int] = {}
        self._backoffs: dict[BrokerAddress, _Backoff] = {}
        self._answered: dict[BrokerAddress, float] = {}
        self._brokers: dict[int, BrokerAddress] = {}
        self._turn = 0
        self._closed = False

    def learn(self, brokers: Mapping[int, BrokerAddress]) -> None:
        """Replace the brokers' addresses; connections to addresses of no broker are closed."""
        with self._changed:
            self._brokers = dict(brokers)
            gone = [address for address in self._idle if not self._known(address)]
            dropped = [connection for address in gone for connection in self._idle.pop(address)]
            for connection in dropped:
                self._lanes[connection.address] -= 1
        for connection in dropped:
            connection.close()

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Ids of the live brokers, sorted."""
        return tuple(sorted(self._brokers))

    def ask(self, broker: int, ask: Ask[V], deadline: Deadline) -> V:
        """The answer of that broker. Raises CallFailed."""
        address = self._brokers.get(broker)
        if address is None:
            raise CallFailed(GapCause.UNREACHABLE, f"broker {broker} is not among the live brokers")
        return self._ask_at(address, ask, deadline)

    def ask_each(self, asks: Mapping[int, Ask[V]], deadline: Deadline, *, name: str) -> dict[int, V | CallFailed]:
        """The answer of each broker, side by side; never raises CallFailed."""
        jobs = {broker: partial(self.ask, broker, ask, deadline) for broker, ask in asks.items()}
        return gather(jobs, deadline, name=name)

    def ask_any(self, ask: Ask[V], deadline: Deadline, *, avoid: int | None = None) -> tuple[int | None, V]:
        """(Broker that answered, None for a bootstrap address; its answer); brokers are asked in turn.

        Raises the gravest CallFailed when no broker answers: a refusal of credentials before a time-out.
        """
        candidates, last_resort = self._candidates(avoid)
        failures: list[CallFailed] = []
        for number, (broker, address) in enumerate(candidates):
            share = 1 / min(_TRIES, len(candidates) - number)
            try:
                return broker, self._ask_at(address, ask, deadline, share=share, last_resort=last_resort)
            except CallFailed as failure:
                failures.append(failure)
                if failure.sent or isinstance(failure, TooLate):
                    raise
                if deadline.over or failure.cause is GapCause.NOT_ALLOWED:
                    break
        if not failures:
            raise CallFailed(GapCause.UNREACHABLE, "there is no other broker to ask")
        raise _gravest(failures)

    def close(self) -> None:
        """Close every connection; running calls fail."""
        with self._changed:
            self._closed = True
            idle = [connection for connections in self._idle.values() for connection in connections]
            self._idle.clear()
            self._changed.notify_all()
        for connection in idle:
            connection.close()

    def _candidates(self, avoid: int | None) -> tuple[list[tuple[int | None, BrokerAddress]], bool]:
        """Brokers in rotation, then bootstrap addresses that are no broker's; and whether all of them are paused."""
        with self._changed:
            self._turn += 1
            ids = [broker for broker in self._brokers if broker != avoid]
            turn = self._turn % len(ids) if ids else 0
            known = [(broker, self._brokers[broker]) for broker in ids[turn:] + ids[:turn]]
            others = [address for address in self._settings.bootstrap if address not in self._brokers.values()]
            every = [*known, *((None, address) for address in others if avoid is None)]
            now = time.monotonic()
            awake = [one for one in every if (backoff := self._backoffs.get(one[1])) is None or backoff.until <= now]
            return (awake, False) if awake else (every, True)

    def _ask_at(
        self, address: BrokerAddress, ask: Ask[V], deadline: Deadline, *, share: float = 1.0, last_resort: bool = False
    ) -> V:
        """The answer at an address; ``share`` of the time left is the limit of the set-up, and then of the call."""
        backoff = self._backoffs.get(address)
        if backoff is not None and backoff.until > time.monotonic() and not last_resort:
            raise CallFailed(GapCause.UNREACHABLE, f"not retried yet: {backoff.why}")
        connection, fresh = self._take(address, deadline.part(share))
        try:
            return self._use(connection, ask, deadline.part(share))
        except CallFailed as failure:
            if not failure.stale or fresh or failure.sent:
                raise
        # The broker had closed the idle connection; a call that only reads may be repeated.
        connection = self._open(address, deadline.part(share))
        return self._use(connection, ask, deadline.part(share))

    def _use(self, connection: BrokerConnection, ask: Ask[V], deadline: Deadline) -> V:
        """Make the calls, then put the connection back, or drop it when it was closed."""
        began = time.monotonic()
        try:
            answer = ask(connection, deadline)
        except CallFailed as failure:
            if not failure.passed_on:
                self._note(connection.address, failure, began)
            raise
        finally:
            self._put_back(connection)
        self._answered[connection.address] = time.monotonic()
        self._backoffs.pop(connection.address, None)
        return answer

    def _note(self, address: BrokerAddress, failure: CallFailed, began: float) -> None:
        if failure.cause is GapCause.TIMED_OUT and self._answered.get(address, 0.0) < began:
            self._backoffs[address] = _Backoff(time.monotonic() + self._breaker_s, failure.detail)

    def _take(self, address: BrokerAddress, deadline: Deadline) -> tuple[BrokerConnection, bool]:
        """A connection for this caller alone, and whether it is new."""
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                idle = self._idle.setdefault(address, [])
                while idle:
                    connection = idle.pop()
                    if connection.usable(now, self._settings.max_idle_ms):
                        return connection, False
                    connection.close()
                    self._lanes[address] -= 1
                if self._lanes.get(address, 0) < LANES:
                    break
                if not self._changed.wait(deadline.left_s):
                    raise CallFailed(GapCause.TIMED_OUT, f"{address} was busy with other calls until the deadline")
        return self._open(address, deadline), True

    def _open(self, address: BrokerAddress, deadline: Deadline) -> BrokerConnection:
        with self._changed:
            if self._closed:
                raise CallFailed(GapCause.UNREACHABLE, "the client is closed")
            self._lanes[address] = self._lanes.get(address, 0) + 1
        began = time.monotonic()
        try:
            return open_connection(address, self._settings, deadline)
        except CallFailed as failure:
            self._note(address, failure, began)
            with self._changed:
                self._lanes[address] -= 1
                self._changed.notify()
            raise

    def _known(self, address: BrokerAddress) -> bool:
        return address in self._settings.bootstrap or address in self._brokers.values()

    def _put_back(self, connection: BrokerConnection) -> None:
        with self._changed:
            if connection.closed or self._closed or not self._known(connection.address):
                connection.close()
                self._lanes[connection.address] -= 1
            else:
                self._idle.setdefault(connection.address, []).append(connection)
            self._changed.notify()


def _gravest(failures: list[CallFailed]) -> CallFailed:
    """A refusal of credentials or TLS, which waiting does not cure; else the last failure, with details of all."""
    refused = [failure for failure in failures if failure.error is not None]
    if refused or len(failures) == 1:
        return (refused or failures)[0]
    details = list(dict.fromkeys(failure.detail for failure in failures))
    return CallFailed(failures[-1].cause, "; ".join(details[:_TRIES]))


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
