"""The tree of errors with their exit codes, and the agent's kinds of threads with the errors that each expects.

::

    RackwiseError                    exit 1
    ├── RetryableFailure             the same call may succeed without any change
    │   ├── ClusterUnreachable       exit 5   no broker answered
    │   ├── AgentUnreachable         exit 5   the agent that --agent names did not answer
    │   ├── NoBrokersYet             exit 5   a broker answered, but the cluster names no broker
    │   ├── PartialAnswer            exit 5   some of what was asked for is missing
    │   └── JournalUnavailable       exit 5   the journal could not be read or written in time
    ├── GaveUp                       this attempt is over; a person, or a later cycle, may try again
    │   ├── AuthenticationFailed     exit 2   wrong user, password or mechanism
    │   ├── TlsFailed                exit 2   wrong CA, certificate, host name, or no TLS at all
    │   ├── NotAllowed               exit 2   the user is known, and lacks a right
    │   └── GuardRefused             exit 4   it was not safe to act
    └── FatalFailure                 the process must not go on
        ├── ConfigError              exit 2   a setting is unknown, contradictory or out of its limits
        ├── BadInput                 exit 2   a file or an argument cannot be read
        ├── WrongCluster             exit 2   the cluster is not the one that was expected
        ├── FencedOut                exit 6   another agent took over
        └── UnsupportedCluster       exit 1   the brokers are too old for what rackwise needs

An error has the sentences *what* and, where known, *why* and *todo*.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar, NamedTuple

_MOST = 300
"""Characters of a foreign reason that are shown."""


class RackwiseError(Exception):
    """An error with its sentences (only the first is always there) and the exit code of a command that ends with it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, why: str = "", todo: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.todo = todo

    def __str__(self) -> str:
        """All that is known in one line: "what: why. To do."."""
        head = f"{self.what}: {self.why}" if self.why else self.what
        return f"{head.rstrip('.')}. {self.todo}" if self.todo else head


class RetryableFailure(RackwiseError):  # noqa: N818 the name is what may be done next
    """The same call may succeed a moment later."""


class ClusterUnreachable(RetryableFailure):
    """No broker answered: refused, unknown, or silent until the deadline."""

    exit_code = 5


class AgentUnreachable(RetryableFailure):
    """No answer of the agent that ``--agent`` names, or none now."""

    exit_code = 5


class NoBrokersYet(RetryableFailure):
    """A broker answered, but named no broker: the cluster is still forming."""

    exit_code = 5


class PartialAnswer(RetryableFailure):
    """The cluster answered, but not all of what the command needs."""

    exit_code = 5


class JournalUnavailable(RetryableFailure):
    """The journal could not be read or written in time; nothing may be done without it."""

    exit_code = 5


class GaveUp(RackwiseError):  # noqa: N818 the name is what may be done next
    """This attempt is over. The daemon may try again in a later cycle: credentials and certificates get rotated."""


class AuthenticationFailed(GaveUp):
    """The broker refused the credentials or the mechanism."""

    exit_code = 2


class TlsFailed(GaveUp):
    """The TLS handshake failed on either side."""

    exit_code = 2


class NotAllowed(GaveUp):
    """The broker knows the user, who lacks a right."""

    exit_code = 2


class GuardRefused(GaveUp):
    """The guard did not allow what was asked for."""

    exit_code = 4


class FatalFailure(RackwiseError):  # noqa: N818 the name is what may be done next
    """The process ends."""


class ConfigError(FatalFailure):
    """A setting is unknown, contradictory or out of its limits."""

    exit_code = 2


class BadInput(FatalFailure):
    """A file or an argument cannot be read."""

    exit_code = 2


class WrongCluster(FatalFailure):
    """The cluster id is not the expected one."""

    exit_code = 2


class FencedOut(FatalFailure):
    """Another agent took over: this one must not act any more."""

    exit_code = 6


class UnsupportedCluster(FatalFailure):
    """The brokers lack a call that nothing can replace."""


def error_lines(error: RackwiseError, harmless: Callable[[str], str]) -> str:
    """Write an error as up to three lines: what, why, what to do. ``harmless`` makes foreign text fit for a line."""
    lines = [f"rackwise: {harmless(error.what)}"]
    if error.why:
        lines.append(f"  why: {harmless(error.why)}")
    if error.todo:
        lines.append(f"  do:  {harmless(error.todo)}")
    return "\n".join(lines)


def as_rackwise_error(error: BaseException) -> RackwiseError:
    """An error outside of this tree as one of it: GaveUp, for a refusal by the system or a fault of rackwise."""
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename is not None else ""
        return GaveUp(
            f"The operating system refused an operation{where}",
            why=reason(error),
            todo="Correct the cause and try again; --debug shows the traceback.",
        )
    if isinstance(error, MemoryError):
        return GaveUp(
            "There is not enough memory", todo="Give rackwise more memory, or fewer topics and groups to observe."
        )
    return GaveUp(
        "Internal error of rackwise",
        why=f"{type(error).__name__}: {reason(error)}"[:_MOST],
        todo="Run it again with --debug for the traceback, and report it.",
    )


def reason(error: BaseException) -> str:
    """The reason of an error outside of this tree: one line, without the bytes that it failed on."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not {error.encoding.upper()} text at byte {error.start}"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return " ".join(str(error).split())[:_MOST]


def unexpected(error: BaseException) -> str:
    """An error outside of this tree as a clause, for a log record, a gap or an answer."""
    return f"internal error of rackwise ({type(error).__name__}: {reason(error)}); report it"


class ThreadRule(NamedTuple):
    """One kind of thread: its work, the errors that it expects, and the effect of any other error."""

    name: str
    work: str
    expected: str
    other: str


LOOKS = ThreadRule(
    "rackwise-look",
    "runs a cycle at each `poll.interval`",
    "`RackwiseError` ends the cycle (`cycle_failed`), `FatalFailure` ends the agent",
    "ends the cycle, with the traceback in the log",
)
ACTING = ThreadRule(
    "rackwise-acting",
    "follows the leadership, answers operators' commands",
    "`RackwiseError` is logged once and tried again, `FatalFailure` ends the agent",
    "ends the agent; in a single command, that command alone is answered with it",
)
LEADERSHIP = ThreadRule(
    "rackwise-leadership",
    "opens and ends the journal as the lease comes and goes",
    "`JournalUnavailable` and Kafka's errors are tried again, after 30 s by another agent; `FencedOut` ends the agent",
    "ends the leadership; `/readyz` and `status` report it",
)
LEASE = ThreadRule(
    "rackwise-lease",
    "is the member of the leader group",
    "Kafka's errors: a new membership after a pause",
    "the same; `/readyz` and `status` report it",
)
EXECUTOR = ThreadRule(
    "rackwise-executor",
    "carries out plans, one step of the machine at a time",
    "`JournalUnavailable` is tried again, a plan too large for the journal is left out; others end the agent",
    "ends the agent, with the traceback in the log; the journal keeps the plans",
)
WEIGHTS = ThreadRule(
    "rackwise-weights",
    "reads the weights topic beside the looks",
    "Kafka's errors become a gap, and the topic is read again",
    "becomes a gap, and the topic is read again",
)
WEB = ThreadRule(
    "rackwise-web",
    "runs the web server: receives requests, answers `/livez` and static files, sends the API's events",
    "`AccessRefused` is the answer; for another error the server answers that request with 500",
    "ends the server; probes fail and the supervisor restarts the agent",
)
NOTIFICATIONS = ThreadRule(
    "rackwise-notify",
    "finds what is to be reported, or sends it to one target of notifications",
    "a target that does not accept a message gets it again later",
    "ends that step, which is logged; notifications go on with the next one",
)
CLOSING = ThreadRule(
    "rackwise-closing",
    "hands the leadership over while the agent ends",
    "none",
    "ends the thread; the lease runs out by itself",
)
CALLS = ThreadRule(
    "rackwise-wire",
    "makes the calls of one part of a look, or resolves one host",
    "`CallFailed` becomes a gap",
    "is raised in the thread that waits for the calls",
)
WHAT_IF = ThreadRule(
    "rackwise-what-if",
    "simulates the changes that a page asks for, one question at a time",
    "`BadInput` and `PartialAnswer` are the answer",
    "is logged, and the answer is that there is none",
)
PROBE_JOIN = ThreadRule(
    "rackwise-join",
    "waits for the coordinator's answer to the second JoinGroup of a probe",
    "`CallFailed` counts as no answer",
    "counts as no answer, with the traceback on stderr; the probe sends LeaveGroup all the same",
)
LAG_DEADLINE = ThreadRule(
    "rackwise-deadline",
    "shuts the connection to an application's lags down at its deadline",
    "`OSError`: the connection is closed already",
    "ends the thread; the time-out of the socket remains",
)
THREADS = (
    LOOKS,
    ACTING,
    LEADERSHIP,
    LEASE,
    EXECUTOR,
    WEIGHTS,
    WEB,
    NOTIFICATIONS,
    CLOSING,
    CALLS,
    WHAT_IF,
    PROBE_JOIN,
    LAG_DEADLINE,
)
"""Every kind of thread that the agent makes; the main thread waits for signals and for the memory ceiling."""

SCHEDULER = ThreadRule(
    "APScheduler",
    "APScheduler's: starts a `rackwise-look` at each time of the schedule",
    "none",
    "is logged by APScheduler; the next look comes at its time",
)
ANSWERS = ThreadRule(
    "AnyIO worker thread",
    "Starlette's: makes the answers of pages, API, `/readyz` and `/metrics`, and identifies the person of a request",
    "`RackwiseError` and `AccessRefused` are the answer",
    "that request is answered with 500; of an event stream that event is left out, which is logged",
)
LIBRARY_THREADS = (SCHEDULER, ANSWERS)
"""Threads of libraries that run code of the agent; those of librdkafka run none."""


def thread(rule: ThreadRule, work: Callable[[], object], detail: str = "") -> threading.Thread:
    """A thread of that kind, not started. The interpreter does not wait for it: a call that hangs keeps no process."""
    return threading.Thread(target=work, name=f"{rule.name} {detail}".rstrip(), daemon=True)
