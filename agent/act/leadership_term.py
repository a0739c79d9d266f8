"""One term of leadership: its journal, the writers that use it, and its events."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from agent.act.inbox import CommandInbox
from agent.act.reassign.reassignment_executor import ReassignmentExecutor
from agent.act.trigger import RebalanceTrigger
from agent.errors import FatalFailure, RackwiseError, unexpected
from agent.execute.commands.command_context import ExecutorInput
from agent.execute.reassign.messages import PlanAccepted
from agent.execute.reassign.throttles import acting_now
from agent.journal.entries import JournalPort, JournalState
from agent.values.observation import Observation
from agent.values.plan import ExecuteFault, ExecuteState
from agent.values.typed_json import UnreadableError
from agent.wire.admin_client import WireAdminClient

ANSWER_WITHIN_S = 30.0
"""A topic of commands without a leader is waited for so long."""
_FIRST = "operators' commands that wait are answered first"


class LeadershipPort(Protocol):
    """Source of whether this agent leads (`agent.act.leadership.JournalLeadership`)."""

    def start(self) -> None:
        """Join the election."""

    def observed(self, observation: Observation) -> None:
        """Take the observation of a finished look."""

    def journal(self) -> JournalPort | None:
        """The open journal while this agent leads, else None. Raises what ends the agent."""

    def inbox(self) -> CommandInbox | None:
        """Source of operators' commands; None while this agent does not lead."""

    def may_act(self) -> bool:
        """Whether this agent surely leads now."""

    def leads_for_s(self) -> float:
        """Seconds for which this agent surely leads; 0 while it does not."""

    def problem(self) -> str | None:
        """Why this agent cannot lead; None when it can."""

    def notices(self) -> tuple[str, ...]:
        """Sentences about faults that keep no agent from leading."""

    def ignored(self) -> int | None:
        """Records of the journal's topic that are ignored; None where that is not known."""

    def close(self) -> None:
        """Leave the election."""


class CommandBacklog:
    """Has this leadership read what operators requested before it? Until then nothing new begins.

    A pause that waited while no agent led comes before all that it is to hold. What cannot be read does not hold; what
    was read, and is to stop something, holds until it is answered, however long that takes: what is about no plan in
    the journal waits for the first planning, and holds no batch meanwhile.
    """

    def __init__(self) -> None:
        self._until = time.monotonic() + ANSWER_WITHIN_S
        self._done = False
        self._unanswered = self._holds_plans = False
        self.for_planning = False
        """What is not answered waits for the first planning."""

    def reads(self, inbox: CommandInbox, *, some: bool, unanswered: bool) -> None:
        """Some commands were read, or none; ``unanswered``: some of them are to stop something, and wait."""
        if some or (inbox.problem() is not None and inbox.unread() is None):
            self._until = time.monotonic() + ANSWER_WITHIN_S
        self._unanswered = self._holds_plans = unanswered

    def answered(self, inbox: CommandInbox, *, unanswered: bool, holds_plans: bool, full: bool) -> None:
        """They were answered, but for what waits for the first planning; ``full``: more may wait behind them."""
        self._unanswered = self.for_planning = unanswered
        self._holds_plans = holds_plans
        self._done = self._done or (inbox.caught_up() and not full)

    def why_not(self, inbox: CommandInbox | None, *, batch: bool = False) -> str | None:
        """Why nothing may begin yet, or with ``batch`` no batch of a plan in the journal; None when it may."""
        if self._holds_plans if batch else self._unanswered:
            return _FIRST
        unread = inbox is not None and inbox.unread() is not None
        return None if self._done or unread or time.monotonic() > self._until else _FIRST


@dataclass(slots=True)
class LeadershipTerm:
    """Journal, admin client, trigger and executor of one epoch of leadership."""

    journal: JournalPort
    admin: WireAdminClient
    trigger: RebalanceTrigger
    executor: ReassignmentExecutor
    backlog: CommandBacklog
    passed_on: JournalState | None = None
    """The view whose commands the reassignment executor has received."""

    def check(self) -> None:
        """Raises what ended the executor; a fault ends the agent too: without an executor it must not keep leading."""
        try:
            self.executor.check()
        except RackwiseError:
            raise
        except Exception as error:
            raise defect(error) from error

    def pass_on(self, commands: Sequence[ExecutorInput]) -> None:
        """Pass operators' commands on to the executor."""
        for command in commands:
            if isinstance(command, PlanAccepted):
                self.executor.accept(command.plan)
            else:
                self.executor.send(command)

    def close(self) -> None:
        """Begin nothing more."""
        self.executor.close()
        self.admin.close()


def defect(error: Exception) -> FatalFailure:
    """The FatalFailure for an unexpected error, which ends the agent."""
    return FatalFailure(
        "Mode execute ended",
        why=unexpected(error),
        todo="Start the agent again: plans that have begun are in the journal.",
    )


class NoticeLog:
    """Logs each notice once while it lasts."""

    def __init__(self) -> None:
        self._problem: str | None = None
        self._noticed: frozenset[str] = frozenset()
        self._log = structlog.get_logger("rackwise")

    def log_problem(self, problem: str | None) -> None:
        """Logs why nothing is carried out; None when nothing prevents it."""
        if problem is not None and problem != self._problem:
            self._log.warning("acting", sentence=problem)
        self._problem = problem

    def notice(self, leadership: LeadershipPort) -> None:
        """Log the leadership's notices that are new."""
        notices = leadership.notices()
        for one in notices:
            if one not in self._noticed:
                self._log.warning("acting_notice", sentence=one)
        self._noticed = frozenset(notices)


def now_of(leadership: LeadershipPort, term: LeadershipTerm | None) -> ExecuteState:
    """State of mode execute now: leadership, open plans, faults and notices."""
    if term is None or not leadership.may_act():
        problem = leadership.problem()
        return ExecuteState(leads=False, troubles={} if problem is None else {ExecuteFault.LEAD: problem})
    ignored, notices = leadership.ignored(), _notices(leadership)
    try:
        status = term.executor.status()
    except UnreadableError as error:
        journal = {ExecuteFault.JOURNAL: f"the journal cannot be read: {error}"}
        return ExecuteState(leads=True, records_ignored=ignored, troubles=journal, notices=notices)
    return acting_now(status, ignored, notices)


def _notices(leadership: LeadershipPort) -> tuple[str, ...]:
    """What keeps this agent neither from leading nor from moving."""
    inbox = leadership.inbox()
    unread = inbox.problem() if inbox is not None else None
    return (*leadership.notices(), *([unread] if unread is not None else []))
