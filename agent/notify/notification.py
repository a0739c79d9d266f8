"""Notifications as values, their targets, the one message of several, and the outbox of each target. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple

from agent.values.finding import FindingSeverity, SubjectId
from agent.values.number_format import counted
from config.foreign_text import chat_text

MOST_LINES = 20
"""Of one message; the number of further notifications follows."""
_MOST_LINE = 300
_MOST_TITLE = 120
_MOST_BODY = 4_000
_LEAST_BODY = 200
_URGENCY = {None: 0, FindingSeverity.INFO: 1, FindingSeverity.WARNING: 2, FindingSeverity.CRITICAL: 3}


class NotificationEvent(StrEnum):
    """Events that a target may get, by their names in the settings."""

    FINDING = "finding"
    """A finding begins, becomes more severe, or ends."""
    PROPOSAL = "proposal"
    """A proposal waits for approval."""
    PLAN_FAILED = "plan-failed"
    """A plan failed, was cancelled or was rolled back."""
    PLAN_DONE = "plan-done"
    RACK = "rack"
    """All brokers of a rack are absent, or one of them is back."""
    SIGHT = "sight"
    """The agent cannot observe the cluster, or a part of it, and can again."""
    LEADERSHIP = "leadership"
    """This agent leads, or leads no longer."""


_VIEWS = {
    NotificationEvent.FINDING: "findings",
    NotificationEvent.PROPOSAL: "proposals",
    NotificationEvent.PLAN_FAILED: "moves",
    NotificationEvent.PLAN_DONE: "moves",
    NotificationEvent.RACK: "racks",
}
"""Views of the page by their paths; the overview has the others."""


_KIND_WORDS = {
    FindingSeverity.CRITICAL.value: ("critical finding",),
    FindingSeverity.WARNING.value: ("warning",),
    FindingSeverity.INFO.value: ("info finding",),
    NotificationEvent.FINDING.value: ("finding",),
    NotificationEvent.RACK.value: ("rack lost", "racks lost"),
    NotificationEvent.SIGHT.value: ("part not observed", "parts not observed"),
    NotificationEvent.PLAN_FAILED.value: ("plan not carried out", "plans not carried out"),
    NotificationEvent.PROPOSAL.value: ("proposal waiting", "proposals waiting"),
    NotificationEvent.PLAN_DONE.value: ("plan done", "plans done"),
    NotificationEvent.LEADERSHIP.value: ("change of leadership", "changes of leadership"),
    "over": ("ended", "ended"),
}
"""Of a title, in its order: one and several of a kind."""


class EventNotification(NamedTuple):
    """One event, as one line of a message."""

    event: NotificationEvent
    key: str
    """The subject; events of one kind with equal keys are about the same."""
    sentence: str
    severity: FindingSeverity | None
    """None: unknown, as of a finding that ended while no agent ran."""
    over: bool = False
    """It has ended: what an earlier notification reported is past."""
    early: bool = False
    """It is older than this agent's first look: early ones are summed up in one line."""
    about: SubjectId | None = None
    """The subject by whose topic or group targets choose it; of a task its group."""
    at_ms: int = 0
    """Epoch milliseconds."""

    @property
    def urgency(self) -> int:
        """0 to 3; what is over is less urgent than what begins."""
        return 0 if self.over else _URGENCY[self.severity]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyTarget:
    """A target by its name, with what it gets; its address is known to `agent.notify.service` alone."""

    name: str
    events: frozenset[NotificationEvent]
    severities: frozenset[FindingSeverity]
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def gets(self, one: EventNotification) -> bool:
        """Whether it is for this target."""
        if one.event not in self.events:
            return False
        if one.event is NotificationEvent.FINDING and one.severity not in (None, *self.severities):
            return False
        if one.event in (NotificationEvent.FINDING, NotificationEvent.PROPOSAL) and (self.topics or self.groups):
            return self._names(one.about)
        return True

    def _names(self, about: SubjectId | None) -> bool:
        if about is None:
            return False
        patterns = {"group": self.groups, "topic": self.topics}.get(about.kind, ())
        return any(fnmatchcase(about.name, pattern) for pattern in patterns)


class NotifyMessage(NamedTuple):
    """A message in plain text, without markup of any service."""

    title: str
    body: str
    severity: FindingSeverity | None
    """The worst of what begins; None where all of it is over or unknown."""
    notifications: int


class TargetAnswer(NamedTuple):
    """What a target answered to one message."""

    accepted: bool
    sentence: str
    """Never a part of its address."""


def composed(
    notifications: Sequence[EventNotification], *, cluster: str, page: str | None, left_out: int, most_chars: int
) -> NotifyMessage:
    """One message of all of them, worst first.

    ``most_chars`` is the length of a body that the target takes, ``left_out`` the number that was lost before.
    """
    worst_first = sorted(notifications, key=lambda one: (-one.urgency, one.at_ms))
    lines = [_line(one) for one in worst_first if not one.early]
    early = [one for one in worst_first if one.early]
    lines = [*([_early_line(early)] if early else []), *lines]
    lost = f"{counted(left_out, 'earlier notification')} could not be delivered" if left_out else ""
    room = max(_LEAST_BODY, min(most_chars, _MOST_BODY))
    begun = [one.severity for one in worst_first if not one.over]
    severity = max(begun, key=_URGENCY.__getitem__, default=None)
    return NotifyMessage(
        title=chat_text(f"rackwise on {cluster}: {_headline(worst_first)}", _MOST_TITLE),
        body=_body(lines, [line for line in (lost, _link(page, worst_first)) if line], room),
        severity=severity,
        notifications=len(notifications),
    )


def _link(page: str | None, worst_first: Sequence[EventNotification]) -> str:
    """The page's view of the most urgent event; empty without an address of the page."""
    return f"{page.rstrip('/')}/{_VIEWS.get(worst_first[0].event, '')}" if page else ""


def _body(lines: Sequence[str], tail: Sequence[str], room: int) -> str:
    """As many lines as there is room for; the tail (which may hold the page's address) is kept whole."""
    end = "\n".join(tail)
    shown = 0
    used = len(end) + len("and 1000 more: rackwise status\n") + 1
    for line in lines[:MOST_LINES]:
        used += len(line) + 1
        if used > room and shown:
            break
        shown += 1
    more = len(lines) - shown
    kept = [*lines[:shown], *([f"and {counted(more, 'more line')}: rackwise status"] if more else []), *tail]
    return "\n".join(kept)


def _headline(worst_first: Sequence[EventNotification]) -> str:
    if len(worst_first) == 1:
        return f"{'ended: ' if worst_first[0].over else ''}{worst_first[0].sentence}"
    kinds = Counter("over" if one.over else _kind(one) for one in worst_first)
    return ", ".join(counted(kinds[kind], *_KIND_WORDS[kind]) for kind in _KIND_WORDS if kinds[kind])


def _kind(one: EventNotification) -> str:
    """A finding by its severity, what else begins by its event."""
    return one.severity.value if one.event is NotificationEvent.FINDING and one.severity else one.event.value


def _line(one: EventNotification) -> str:
    mark = "ended" if one.over else one.severity.value if one.severity else "event"
    return f"{mark}: {chat_text(one.sentence, _MOST_LINE)}"


def _early_line(early: Sequence[EventNotification]) -> str:
    """All that is older than the agent's first look, in one line with its worst."""
    first = early[0]
    if len(early) == 1:
        return _line(first)
    over = sum(one.over for one in early)
    parts = [f"{len(early) - over} present" if len(early) > over else "", f"{over} ended" if over else ""]
    summed = " and ".join(part for part in parts if part)
    return f"older than the agent's first look: {summed}; the first: {_line(first)}"


def worst(notifications: Iterable[EventNotification], most: int) -> tuple[EventNotification, ...]:
    """The most urgent ones, in their order of time."""
    every = list(notifications)
    if len(every) <= most:
        return tuple(every)
    kept = sorted(range(len(every)), key=lambda place: (-every[place].urgency, -place))[:most]
    return tuple(every[place] for place in sorted(kept))


def urgency_of(severity: FindingSeverity | None) -> int:
    """The order of severities; unknown is the least."""
    return _URGENCY[severity]


MOST_WAITING = 1_000
"""Notifications that wait for one target; of more, the most urgent are kept and the others are counted."""
FIRST_PAUSE_MS = 5_000
LONGEST_PAUSE_MS = 300_000
_HOUR_MS = 3_600_000


class OutboxLimits(NamedTuple):
    """The pace of messages to one target."""

    group_for_ms: int
    most_per_hour: int
    give_up_after_ms: int


class OpenMessage(NamedTuple):
    """A message that its target has not accepted yet."""

    notifications: tuple[EventNotification, ...]
    left_out: int
    """Notifications before it that were lost."""
    since_ms: int
    tries: int = 0
    next_ms: int = 0
    """Time of the next try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetOutbox:
    """The outbox at one instant."""

    waiting: tuple[EventNotification, ...] = ()
    since_ms: int = 0
    """Time of the first of them; its group is open until ``group_for`` later."""
    lost: int = 0
    """Notifications that were dropped or given up since the last accepted message: the next one reports their number.
    """
    message: OpenMessage | None = None
    begun: tuple[int, ...] = ()
    """Times of the messages of the last hour."""


def queued(outbox: TargetOutbox, notifications: tuple[EventNotification, ...], now_ms: int) -> tuple[TargetOutbox, int]:
    """The outbox with these, and how many of all that wait were dropped."""
    if not notifications:
        return outbox, 0
    every = (*outbox.waiting, *notifications)
    kept = worst(every, MOST_WAITING)
    dropped = len(every) - len(kept)
    since_ms = outbox.since_ms if outbox.waiting else now_ms
    return replace(outbox, waiting=kept, since_ms=since_ms, lost=outbox.lost + dropped), dropped


def due(
    outbox: TargetOutbox, limits: OutboxLimits, now_ms: int, *, closing: bool = False
) -> tuple[TargetOutbox, OpenMessage | None]:
    """The message to be sent now, if any: a try that is due, or a group whose time is over (``closing``: at once)."""
    if outbox.message is not None:
        return outbox, outbox.message if now_ms >= outbox.message.next_ms else None
    begun = tuple(at for at in outbox.begun if at > now_ms - _HOUR_MS)
    is_open = now_ms < outbox.since_ms + limits.group_for_ms and not closing
    if not outbox.waiting or is_open or len(begun) >= limits.most_per_hour:
        return outbox, None
    message = OpenMessage(outbox.waiting, outbox.lost, since_ms=now_ms, next_ms=now_ms)
    return replace(outbox, waiting=(), lost=0, message=message, begun=(*begun, now_ms)), message


def accepted(outbox: TargetOutbox) -> TargetOutbox:
    """After the target accepted the message."""
    return replace(outbox, message=None)


def refused(outbox: TargetOutbox, limits: OutboxLimits, now_ms: int) -> tuple[TargetOutbox, bool]:
    """After a try that failed: tried again after a pause that doubles, or given up (True) once it is too old."""
    message = outbox.message
    if message is None:
        return outbox, False
    pause_ms = min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** min(message.tries, 10))
    next_ms = now_ms + pause_ms
    if next_ms > message.since_ms + limits.give_up_after_ms:
        lost = outbox.lost + message.left_out + len(message.notifications)
        return replace(outbox, message=None, lost=lost), True
    return replace(outbox, message=message._replace(tries=message.tries + 1, next_ms=next_ms)), False
