"""Failures and deadlines of calls: `CallFailed` with a gap's cause, and jobs side by side by a deadline.

Public calls turn `CallFailed` into a `Gap`, but for the few that document raising it.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, TypeVar

from agent.errors import CALLS, RackwiseError, thread
from agent.values.clock import elapsed_s
from agent.values.kafka import (
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from agent.values.observation import GapCause


class Deadline(NamedTuple):
    """The end of a call, in seconds of `elapsed_s`, which also counts while the machine sleeps."""

    at: float

    @classmethod
    def after_ms(cls, duration_ms: float) -> Deadline:
        """The deadline in so many milliseconds from now."""
        return cls(elapsed_s() + duration_ms / 1000)

    @property
    def left_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - elapsed_s())

    @property
    def over(self) -> bool:
        """True once no time is left."""
        return elapsed_s() >= self.at

    def part(self, share: float) -> Deadline:
        """An earlier deadline, with this share of the time left."""
        return Deadline(elapsed_s() + self.left_s * share)


_NOT_ALLOWED = {TOPIC_AUTHORIZATION_FAILED, "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"}
_VANISHED = {"GROUP_ID_NOT_FOUND", UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID}
_LONGEST_MESSAGE = 300

COORDINATOR_MOVING = frozenset({"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"})
"""Errors that pass by themselves: ask again, the last two at another broker."""


class CallFailed(Exception):  # noqa: N818 an outcome of a call; the tree of errors is agent.errors
    """A broker did not give a usable answer."""

    def __init__(
        self, cause: GapCause, detail: str, *, error: RackwiseError | None = None, stale: bool = False
    ) -> None:
        super().__init__(detail)
        self.cause = cause
        self.detail = detail
        self.error = error
        """Set when the credentials or TLS were refused; it has the remedy."""
        self.passed_on = False
        """True when the broker only passes the request on to the controller, so that a time-out is not its own."""
        self.stale = stale
        """True when the connection broke before a byte of the answer: the broker may have closed it while idle."""
        self.sent = False
        """True when a request that changes something may have left: its outcome must be looked up."""


class TooLate(CallFailed):
    """The change was not sent: too much time had passed since its decision."""

    def __init__(self) -> None:
        super().__init__(GapCause.TIMED_OUT, "not sent: too much time has passed since the decision")
        self.passed_on = True


class UnusableAnswer(CallFailed):
    """The broker's answer cannot be read or is too large; a smaller request may succeed."""


def check_in_time(begin_by: Deadline | None) -> None:
    """Raises TooLate when a change must not be begun any more; called right before sending."""
    if begin_by is not None and begin_by.over:
        raise TooLate


@contextmanager
def passed_on() -> Iterator[None]:
    """Marks failures inside as `passed_on`: the broker only passes the request on to the controller."""
    try:
        yield
    except CallFailed as failure:
        failure.passed_on = True
        raise


def from_error_name(name: str, message: str | None = None) -> CallFailed:
    """The failure for an error in an answer; ``name`` in Kafka's spelling."""
    if name in _NOT_ALLOWED:
        # Brokers put their own request objects into this message.
        return CallFailed(GapCause.NOT_ALLOWED, name)
    detail = f"{name}: {' '.join(message.split())[:_LONGEST_MESSAGE]}" if message else name
    if name in _VANISHED:
        return CallFailed(GapCause.VANISHED, detail)
    if name == UNSUPPORTED_VERSION:
        return CallFailed(GapCause.UNSUPPORTED, detail)
    return CallFailed(GapCause.ERROR, detail)


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

WIDTH = 32
"""Threads of one fan-out, at most."""
_GRACE_S = 0.25


def gather(
    jobs: Mapping[K, Callable[[], V]], deadline: Deadline, *, name: str, width: int = WIDTH
) -> dict[K, V | CallFailed]:
    """The result of each job, or its failure, in ``width`` threads; a job running shortly after the deadline timed out.

    Jobs must keep the deadline themselves, as a thread cannot be stopped. An error other than CallFailed is raised.
    """
    work: queue.SimpleQueue[tuple[K, Callable[[], V]]] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[K, V | BaseException]] = queue.SimpleQueue()
    for item in jobs.items():
        work.put(item)
    for number in range(min(width, len(jobs))):
        thread(CALLS, partial(_work_off, work, done), f"{name} {number}").start()
    results: dict[K, V | CallFailed] = {}
    while len(results) < len(jobs):
        try:
            key, result = done.get(timeout=deadline.left_s + _GRACE_S)
        except queue.Empty:
            break
        if isinstance(result, BaseException) and not isinstance(result, CallFailed):
            raise result
        results[key] = result
    return {key: results.get(key, CallFailed(GapCause.TIMED_OUT, "no answer in time")) for key in jobs}


def _work_off(
    work: queue.SimpleQueue[tuple[K, Callable[[], V]]], done: queue.SimpleQueue[tuple[K, V | BaseException]]
) -> None:
    while True:
        try:
            key, job = work.get_nowait()
        except queue.Empty:
            return
        try:
            done.put((key, job()))
        except BaseException as error:  # noqa: BLE001 it is raised again in the thread that waits
            done.put((key, error))
