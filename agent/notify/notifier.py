"""The notifier: follows the loop in a thread of its own, and sends what is to be reported to each target.

It only reads the loop's state, so it delays no cycle. Each try of a message runs in a thread of its own: a target that
hangs holds up no other one, and has one try at a time. Targets are those of the settings, with their addresses read
from the settings or from files.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import structlog

from agent.errors import NOTIFICATIONS, ConfigError, RackwiseError, reason, thread
from agent.journal.entries import JournalState, under
from agent.notify.changes import NotificationState, PlanEntry, after_cycle, after_silence, facts_of
from agent.notify.notification import (
    EventNotification,
    NotificationEvent,
    NotifyMessage,
    NotifyTarget,
    OpenMessage,
    OutboxLimits,
    TargetAnswer,
    TargetOutbox,
    accepted,
    composed,
    due,
    queued,
    refused,
)
from agent.values.clock import Clock
from agent.values.cycle import Cycle
from agent.values.finding import FindingSeverity
from agent.values.reassignment import ENDED, PlanState
from config.notify import NotifySettings, NotifyTargetSettings

_LEAST_SECRET = 8
"""Characters of a part of an address that may be a token; a host with dots and a plain word, as of a channel, is none.
"""


ReadLines = Callable[[Path], Sequence[str]]
"""Reads the lines of a file with secrets. Raises OSError, also where other users may read it."""


class TargetAddress(NamedTuple):
    """A target with its address, which is a secret as a whole."""

    target: NotifyTarget
    url: str

    def __repr__(self) -> str:
        return f"TargetAddress({self.target.name})"


def addresses(
    settings: NotifySettings, read: ReadLines, names: Iterable[str] | None = None
) -> tuple[TargetAddress, ...]:
    """The targets of these names, else all that are enabled. Raises ConfigError, also where Apprise is missing."""
    wanted = [name for name, one in settings.targets.items() if one.enabled] if names is None else list(names)
    for name in wanted:
        if name not in settings.targets:
            known = ", ".join(settings.targets) or "none is set"
            raise ConfigError(f"notify.targets has no {name}", why=f"its names are: {known}", todo="Name one of them.")
    if wanted and find_spec("apprise") is None:
        raise ConfigError(
            "notify.targets needs Apprise, which is not installed",
            todo="Install rackwise with its extra: pip install 'rackwise[notify]', or remove the targets.",
        )
    found = [(name, settings.targets[name]) for name in wanted]
    return tuple(TargetAddress(_target(name, one), _url(name, one, read)) for name, one in found)


def outbox_limits(settings: NotifySettings) -> OutboxLimits:
    """The pace of messages."""
    return OutboxLimits(settings.group_for_ms, settings.most_per_hour, settings.give_up_after_ms)


def secrets_of(found: Iterable[TargetAddress]) -> Iterator[str]:
    """The addresses, and their parts that may be tokens: for the log's redaction only."""
    for one in found:
        yield one.url
        scheme, _, rest = one.url.partition("://")
        for part in re.split(r"[/:@?&=,;#]+", rest):
            is_host = "." in part and part in rest.split("/", 1)[0].rpartition("@")[2]
            if (
                len(part) >= _LEAST_SECRET
                and part != scheme
                and not is_host
                and not (part.isalpha() and part.islower())
            ):
                yield part


def _target(name: str, settings: NotifyTargetSettings) -> NotifyTarget:
    return NotifyTarget(
        name=name,
        events=frozenset(map(NotificationEvent, settings.events)),
        severities=frozenset(map(FindingSeverity, settings.severities)),
        topics=settings.topics,
        groups=settings.groups,
    )


def _url(name: str, settings: NotifyTargetSettings, read: ReadLines) -> str:
    if settings.url_file is None:
        return settings.url or ""
    try:
        lines = read(Path(settings.url_file))
    except OSError as error:
        raise _unusable(name, settings.url_file, reason(error)) from error
    if len(lines) != 1:
        raise _unusable(name, settings.url_file, f"it has {len(lines)} lines, and one address is expected")
    if "://" not in lines[0]:
        raise _unusable(name, settings.url_file, "its line is no URL of Apprise, such as slack://... or mailtos://...")
    return lines[0]


def _unusable(name: str, path: str, why: str) -> ConfigError:
    return ConfigError(
        f"notify.targets.{name}.url_file: {path} has no address that can be used",
        why=why,
        todo="Write the address into it as its only line, and let no other user read it: chmod 600 FILE",
    )


TICK_S = 0.5
TRY_S = 30.0
"""A try without an answer by then has failed; the next one begins after the former has ended."""
CLOSE_S = 1.0
"""Time for the last messages when the agent ends."""
OUTCOMES = ("sent", "retried", "given_up", "dropped")
_ENDS: Mapping[str, PlanState] = {state.value: state for state in ENDED}


class LoopView(NamedTuple):
    """The loop at one instant, as far as notifications need it."""

    cycle: Cycle | None
    planned: Cycle | None
    """The newest planning."""
    silent_since_ms: int
    """Monotonic time of the last cycle that succeeded, or of the start."""
    failure: str = ""
    """The sentence of the last failure, while no cycle has succeeded since."""
    journal: Callable[[], JournalState | None] = lambda: None
    """Reads the journal's state; None where this agent does not lead. May raise RackwiseError."""
    stopping: bool = False


class MessageService(Protocol):
    """A target's service."""

    @property
    def most_chars(self) -> int:
        """Characters of a message's body that it takes."""

    def send(self, message: NotifyMessage) -> TargetAnswer:
        """Send a message. Raises nothing."""


class NotifierPace(NamedTuple):
    """Bounds in time, and the page's address."""

    limits: OutboxLimits
    blind_after_ms: int
    page: str | None = None
    tick_s: float = TICK_S
    try_s: float = TRY_S


@dataclass(slots=True)
class TargetLane:
    """A target with its outbox, and the try that is under way."""

    target: NotifyTarget
    service: MessageService
    outbox: TargetOutbox = field(default_factory=TargetOutbox)
    attempt: threading.Thread | None = None
    began: float = 0.0
    answer: TargetAnswer | None = None
    late: bool = False
    """The try that is under way counts as failed already."""
    works: bool | None = None


class AgentNotifier:
    """Sends from `start` to `stop`; a context manager."""

    def __init__(
        self,
        targets: Iterable[tuple[NotifyTarget, MessageService]],
        *,
        view: Callable[[], LoopView],
        pace: NotifierPace,
        clock: Clock,
        report: Callable[[Mapping[str, int]], None] = lambda _: None,
    ) -> None:
        """``view`` reads the loop, from the notifier's thread; ``report`` gets the counts by outcome."""
        self._lanes = tuple(TargetLane(target, service) for target, service in targets)
        self._view = view
        self._pace = pace
        self._clock = clock
        self._report = report
        self._state = NotificationState()
        self._cycle: Cycle | None = None
        self._planned: Cycle | None = None
        self._cluster = "an unknown cluster"
        self._counts: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        self._fault = ""
        self._ends = False
        self._stop = threading.Event()
        self._log = structlog.get_logger("rackwise")
        self._thread = thread(NOTIFICATIONS, self._run)
        report(dict(self._counts))

    def start(self) -> Self:
        """Begin to follow the loop."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Send what waits, once, within `CLOSE_S`; then end."""
        self._stop.set()
        self._thread.join(CLOSE_S * 1.5)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._ends and not self._stop.wait(self._pace.tick_s):
            self._guarded(self.step)
        self._guarded(partial(self.step, closing=True))
        until = time.monotonic() + CLOSE_S
        while any(lane.attempt is not None for lane in self._lanes) and time.monotonic() < until:
            time.sleep(min(0.02, self._pace.tick_s))
            self._guarded(self._collect)

    def _guarded(self, step: Callable[[], None]) -> None:
        """A fault is logged when it is new, by its type: its text may hold what a target's address holds."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 notifications must outlast a fault of one step
            fault = type(error).__name__
            if fault != self._fault:
                sentence = f"a step of notifications failed: internal error of rackwise ({fault}); report it"
                self._log.error("notify_failed", error=fault, sentence=sentence)
            self._fault = fault
        else:
            self._fault = ""

    def step(self, *, closing: bool = False) -> None:
        """Read the loop, queue what is new, and begin the tries that are due."""
        self._collect()
        events = self._events()
        now_ms = self._clock().monotonic_ms
        for lane in self._lanes:
            wanted = tuple(one for one in events if lane.target.gets(one))
            lane.outbox, dropped = queued(lane.outbox, wanted, now_ms)
            self._count("dropped", dropped)
            if lane.attempt is None:
                lane.outbox, message = due(lane.outbox, self._pace.limits, now_ms, closing=closing)
                if message is not None:
                    self._begin(lane, message)

    def _events(self) -> tuple[EventNotification, ...]:
        view, now = self._view(), self._clock()
        self._ends = view.stopping  # what waits is sent while the agent closes the rest
        events: tuple[EventNotification, ...] = ()
        cycle = view.cycle
        if cycle is not None and cycle is not self._cycle:
            planning = view.planned if view.planned is not self._planned else None
            self._cycle, self._planned, self._cluster = cycle, view.planned, cycle.snapshot.cluster_id
            facts = facts_of(cycle, plans=_plans(view, cycle), planning=planning)
            self._state, events = after_cycle(self._state, facts, self._pace.blind_after_ms)
        self._state, silent = after_silence(
            self._state,
            silent_ms=now.monotonic_ms - view.silent_since_ms,
            blind_after_ms=self._pace.blind_after_ms,
            why=view.failure,
            at_ms=now.wall_ms,
        )
        return (*events, *silent)

    def _begin(self, lane: TargetLane, message: OpenMessage) -> None:
        written = composed(
            message.notifications,
            cluster=self._cluster,
            page=self._pace.page,
            left_out=message.left_out,
            most_chars=lane.service.most_chars,
        )

        def attempt() -> None:
            lane.answer = lane.service.send(written)

        lane.answer, lane.late, lane.began = None, False, time.monotonic()
        lane.attempt = thread(NOTIFICATIONS, attempt, lane.target.name)
        lane.attempt.start()

    def _collect(self) -> None:
        """The answers of tries that have ended, and those that came too late."""
        for lane in self._lanes:
            if lane.attempt is None:
                continue
            if not lane.attempt.is_alive():
                lane.attempt = None
                answer = lane.answer or TargetAnswer(accepted=False, sentence="not sent: internal error of rackwise")
                if not lane.late or answer.accepted:
                    self._answered(lane, answer)
            elif not lane.late and time.monotonic() - lane.began > self._pace.try_s:
                lane.late = True
                self._answered(lane, TargetAnswer(accepted=False, sentence="not accepted: no answer in time"))

    def _answered(self, lane: TargetLane, answer: TargetAnswer) -> None:
        if answer.accepted:
            lane.outbox = accepted(lane.outbox)
            self._count("sent", 1)
        else:
            lane.outbox, given_up = refused(lane.outbox, self._pace.limits, self._clock().monotonic_ms)
            self._count("given_up" if given_up else "retried", 1)
        self._log_change(lane, answer)

    def _log_change(self, lane: TargetLane, answer: TargetAnswer) -> None:
        """One event when a target stops to accept, and one when it accepts again; not one for each try."""
        if answer.accepted is not lane.works:
            about = f"target {lane.target.name} of notifications"
            if not answer.accepted:
                sentence = f"{about}: {answer.sentence}; messages are tried again"
                self._log.warning("notify_target", target=lane.target.name, accepts=False, sentence=sentence)
            elif lane.works is False:
                self._log.info(
                    "notify_target", target=lane.target.name, accepts=True, sentence=f"{about}: accepts again"
                )
        lane.works = answer.accepted

    def _count(self, outcome: str, number: int) -> None:
        if number:
            self._counts[outcome] += number
            self._report(dict(self._counts))


def _plans(view: LoopView, cycle: Cycle) -> Mapping[str, PlanEntry] | None:
    """The plans of a leader's journal; None while it is in doubt, which the loop reports itself."""
    if cycle.acting is None or not cycle.acting.leads:
        return None
    try:
        journal = view.journal()
    except RackwiseError:
        return None
    return None if journal is None else plans_in(journal)


def plans_in(journal: JournalState) -> Mapping[str, PlanEntry]:
    """The plans of the journal by name, with their ends; their partitions are not read."""
    return {
        entry.key.removeprefix("plan/"): PlanEntry(_ENDS.get(entry.kind), str(entry.value.get("sentence") or ""))
        for entry in under(journal, "plan")
    }
