"""What mode execute tells of itself: what it does now, what keeps it from acting, and what is not as it should be."""

from __future__ import annotations

import structlog

from agent.act.led import Leads, Led
from agent.act.progress import acting_now
from agent.values.progress import ActingNow, Trouble
from agent.values.typed_json import UnreadableError


class Notices:
    """Says each thing once while it lasts, in the log."""

    def __init__(self) -> None:
        self._told: str | None = None
        self._noticed: frozenset[str] = frozenset()
        self._log = structlog.get_logger("rackwise")

    def tell(self, problem: str | None) -> None:
        """Says why nothing is carried out; None when nothing keeps it."""
        if problem is not None and problem != self._told:
            self._log.warning("acting", sentence=problem)
        self._told = problem

    def notice(self, leadership: Leads) -> None:
        """What is not as it should be, and keeps no agent from leading."""
        notices = leadership.notices()
        for one in notices:
            if one not in self._noticed:
                self._log.warning("acting_notice", sentence=one)
        self._noticed = frozenset(notices)


def now_of(leadership: Leads, led: Led | None) -> ActingNow:
    """What the agent is doing, and what fails."""
    if led is None or not leadership.may_act():
        problem = leadership.problem()
        return ActingNow(leads=False, troubles={} if problem is None else {Trouble.LEAD: problem})
    ignored, notices = leadership.ignored(), _notices(leadership)
    try:
        status = led.mover.status()
    except UnreadableError as error:
        journal = {Trouble.JOURNAL: f"the journal cannot be read: {error}"}
        return ActingNow(leads=True, records_ignored=ignored, troubles=journal, notices=notices)
    return acting_now(status, ignored, notices)


def _notices(leadership: Leads) -> tuple[str, ...]:
    """What keeps this agent neither from leading nor from moving."""
    inbox = leadership.inbox()
    unread = inbox.problem() if inbox is not None else None
    return (*leadership.notices(), *([unread] if unread is not None else []))
