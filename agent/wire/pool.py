"""Connections to all brokers: reuse, rotation over brokers, and a pause for a broker that let a deadline pass.

A broker that times out without another answer meanwhile is not asked for ``breaker_ms``, unless no other is left; one
that refuses connections, or only passes a request on to the controller, is asked again at once. Each address has at
most ``LANES`` connections, so that a large answer does not hold up a small one. A call whose idle connection broke
before a byte of the answer is repeated once on a new one; a call that changes something is never repeated, here or at
another broker, once its request may have left (`CallFailed.sent`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from agent.values.observation import GapCause
from agent.wire.connection import BrokerConnection, open_connection
from agent.wire.failure import CallFailed, Deadline, TooLate, gather
from agent.wire.protocol import BrokerAddress, WireSettings

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
