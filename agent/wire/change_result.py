"""What became of a call that changes something: an answer is a value, and "unknown" is one of them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from agent.values.kafka import UNKNOWN_SERVER_ERROR
from agent.values.observation import GapCause
from agent.wire.failure import CallFailed, from_error_name
from agent.wire.protocol import error_name, is_unknown_error


class Fate(StrEnum):
    """What is known of a change that was asked for."""

    DONE = "done"
    """The broker said that it took it."""
    REFUSED = "refused"
    """The broker said that it did not."""
    NOT_SENT = "not sent"
    """The request never left: nothing changed, and it may be tried again."""
    UNKNOWN = "unknown"
    """It may have been done or may still be done; look before anything else."""


class ChangeResult(NamedTuple):
    """What became of one change."""

    fate: Fate
    error: str | None = None
    """Kafka's name of the error when it was refused or its fate is unknown; None without one."""
    detail: str = ""
    """For people."""

    @property
    def done(self) -> bool:
        """True when the broker took it."""
        return self.fate is Fate.DONE


DONE = ChangeResult(Fate.DONE)

_UNDECIDED = frozenset({"REQUEST_TIMED_OUT", UNKNOWN_SERVER_ERROR, "NETWORK_EXCEPTION", "NOT_CONTROLLER"})
"""What a broker says that passed the request on and did not hear what became of it.

NOT_CONTROLLER among them: the controller that loses its office says so of a write that it had begun already. A code
that is not known here says as little as UNKNOWN_SERVER_ERROR, for which Kafka's own client takes it.
"""


def answered(code: int, message: str | None) -> ChangeResult:
    """The answer that an error code of Kafka stands for; 0 is done."""
    name = error_name(code)
    if name is None:
        return DONE
    failure = from_error_name(name, message)
    undecided = name in _UNDECIDED or is_unknown_error(name)
    return ChangeResult(Fate.UNKNOWN if undecided else Fate.REFUSED, name, failure.detail)


def counted_as_done(one: ChangeResult, *names: str) -> ChangeResult:
    """DONE where the refusal only says that it is so already."""
    return DONE if one.error in names else one


def unanswered(failure: CallFailed) -> ChangeResult:
    """The answer when none came, or none that could be read."""
    if failure.sent:
        return ChangeResult(Fate.UNKNOWN, None, failure.detail)
    if failure.cause in (GapCause.NOT_ALLOWED, GapCause.UNSUPPORTED):
        return ChangeResult(Fate.REFUSED, failure.cause.name, failure.detail)
    return ChangeResult(Fate.NOT_SENT, None, failure.detail)
