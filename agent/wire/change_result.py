"""Results of calls that change a cluster: done, refused, not sent, or unknown."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from agent.values.kafka import UNKNOWN_SERVER_ERROR
from agent.values.observation import GapCause
from agent.wire.failure import CallFailed, from_error_name
from agent.wire.protocol import error_name, is_unknown_error


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
