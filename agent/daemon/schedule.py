"""The schedule of looks and plans by apscheduler, and the daemon's messages to the service manager.

One look at a time: a look that is due during another is skipped (``max_instances=1``) and logged; times missed while
the machine slept come as one (``coalesce``). Looks run in a daemon thread.

Messages (systemd's sd_notify): ready, alive, stopping, and one sentence of status. Readiness is the end of the first
cycle, with any result: settings are accepted, the address is bound and the loop runs. A cluster that is away fails no
start of the service. The watchdog is answered only while ``/livez`` is well.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import structlog
from apscheduler.events import EVENT_JOB_MAX_INSTANCES
from apscheduler.executors.base import BaseExecutor, run_job
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from agent.errors import LOOKS, ConfigError, thread
from agent.values.clock import ClockReading
from agent.values.cycle import sentence
from agent.web.agent_view import HealthStatus, LoopState
from config.foreign_text import safe_text

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_FIELD = 4
_ENDING_MS = 100
"""Within which the library sees that a look has ended."""


class CycleScheduler:
    """Calls ``look`` on schedule, and holds whether a planning is due."""

    def __init__(
        self,
        look: Callable[[], None],
        skipped: Callable[[], None],
        *,
        poll_ms: int,
        plan_ms: int | None,
        plan_cron: str | None,
    ) -> None:
        self._look = look
        self._skipped = skipped
        self._planning = threading.Event()
        self._lock = threading.Lock()
        self._is_looking = False
        self._then_ms: int | None = None
        """What `look_by` was asked during the look that is running."""
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": _DaemonThreads()},
            job_defaults={"max_instances": 1, "coalesce": True, "misfire_grace_time": None},
        )
        self._poll = IntervalTrigger(seconds=poll_ms / 1_000, timezone=UTC)
        self._plan = plan_trigger(plan_ms, plan_cron)

    def start(self) -> None:
        """Look at once, with a planning, and from then on by the schedule."""
        self._planning.set()
        self._scheduler.add_listener(lambda _: self._skipped(), EVENT_JOB_MAX_INSTANCES)
        self._scheduler.add_job(self._planning.set, self._plan, id="plan")
        self._scheduler.add_job(self._run, self._poll, id="look", next_run_time=datetime.now(UTC))
        self._scheduler.start()

    def planning_due(self) -> bool:
        """Whether a planning is due; the call clears it."""
        due = self._planning.is_set()
        self._planning.clear()
        return due

    def plan_again(self) -> None:
        """Make the next look plan: the taken planning failed."""
        self._planning.set()

    def look_now(self) -> None:
        """Look at once: the wall clock, by which the library works, was set back."""
        self._scheduler.modify_job("look", next_run_time=datetime.now(UTC))

    def look_by(self, delay_ms: int, *, planning: bool = False) -> None:
        """Look within that time at the latest, and with ``planning`` plan then; a look that comes sooner suffices.

        During a look it counts from that look's end: one that falls due while another is running would be skipped. The
        look after it comes one poll interval later.
        """
        if planning:
            self._planning.set()
        with self._lock:
            if self._is_looking:
                self._then_ms = delay_ms if self._then_ms is None else min(self._then_ms, delay_ms)
                return
        job = self._scheduler.get_job("look") if self._scheduler.running else None
        if job is None:
            return
        wanted = datetime.now(UTC) + timedelta(milliseconds=max(0, delay_ms))
        if job.next_run_time is None or job.next_run_time > wanted:
            self._scheduler.modify_job("look", next_run_time=wanted)

    def _run(self) -> None:
        with self._lock:
            self._is_looking = True
        try:
            self._look()
        finally:
            with self._lock:
                self._is_looking, then_ms, self._then_ms = False, self._then_ms, None
            if then_ms is not None:
                self.look_by(max(then_ms, _ENDING_MS))

    def stop(self) -> None:
        """Start no further look. A running one goes on."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)


def plan_trigger(plan_ms: int | None, cron: str | None) -> BaseTrigger:
    """The trigger of the planning schedule. Raises ConfigError for a cron that cannot be read."""
    if cron is None:
        return IntervalTrigger(seconds=(plan_ms or 60_000) / 1_000, timezone=UTC)
    fields = cron.split()
    try:
        minute, hour, day, month, day_of_week = (*fields[:_DAY_FIELD], _weekdays(fields[_DAY_FIELD]))
        return CronTrigger(
            minute=minute, hour=hour, day=day, month=month, day_of_week=day_of_week, timezone=UTC, jitter=None
        )
    except (ValueError, IndexError) as error:
        raise ConfigError(
            f"plan.cron {cron!r} cannot be read", why=str(error), todo="Give five cron fields, such as */15 * * * *."
        ) from error


def _weekdays(field: str) -> str:
    """Cron counts days from Sunday, the library from Monday: numbers become names."""
    if not any(sign.isdigit() for sign in field):
        return field
    days: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        low, high = (0, 6) if span == "*" else (int(first), int(last) if dash else int(first))
        if not 0 <= low <= high <= len(_DAYS) - 1:
            raise ValueError(f"{part} is no range of days from 0 (Sunday) to 7")
        days |= set(range(low, high + 1, int(step or 1)))
    return ",".join(dict.fromkeys(_DAYS[day] for day in sorted(days)))


class _DaemonThreads(BaseExecutor):  # type: ignore[misc] # the library has no types
    """A thread per run that the interpreter does not wait for: a look that hangs must not keep the process."""

    def _do_submit_job(self, job: Any, run_times: Any) -> None:
        thread(LOOKS, partial(self._run, job, run_times)).start()

    def _run(self, job: Any, run_times: Any) -> None:
        events = run_job(job, job._jobstore_alias, run_times, self._logger.name)  # noqa: SLF001 as the library's own executors do
        self._run_job_success(job.id, events)


_ADDRESS = "NOTIFY_SOCKET"
_WATCHDOG_US = "WATCHDOG_USEC"
_WATCHDOG_PID = "WATCHDOG_PID"
_PINGS_PER_TIMEOUT = 3
_MOST_STATUS = 400


class ServiceManager:
    """The notification socket; without an address every message is dropped. One thread calls it."""

    def __init__(self, address: str = "", watchdog_ms: int | None = None) -> None:
        self._address = address
        self._watchdog_ms = watchdog_ms
        self._is_ready = False
        self._is_well = True
        self._is_reached = True
        self._status = ""
        self._last_ping_ms: int | None = None
        self._log = structlog.get_logger("rackwise")

    @classmethod
    def of(cls, environ: MutableMapping[str, str]) -> ServiceManager:
        """By the variables of sd_notify, which are removed: commands that the agent starts must not speak for it."""
        address = environ.pop(_ADDRESS, "")
        timeout, process = environ.pop(_WATCHDOG_US, ""), environ.pop(_WATCHDOG_PID, "")
        is_ours = not process or process == str(os.getpid())
        watchdog_ms = int(timeout) // 1_000 if is_ours and timeout.isdecimal() else 0
        return cls(address, watchdog_ms or None)

    def report(self, state: LoopState, health: HealthStatus, now: ClockReading) -> None:
        """Send what is new; an unsent message is sent again with the next call."""
        if not self._address:
            return
        becomes_ready = not self._is_ready and state.last_end is not None
        status = _status(state, health)
        pings = health.well and self._is_ping_due(now)
        messages = ["READY=1"] * becomes_ready + ["WATCHDOG=1"] * pings
        if status != self._status:
            messages.append(f"STATUS={status}")
        if messages and self._sent("\n".join(messages)):
            self._is_ready, self._status = self._is_ready or becomes_ready, status
            self._last_ping_ms = now.monotonic_ms if pings else self._last_ping_ms
        self._note(health)

    def stopping(self) -> None:
        """Say that the process is about to end."""
        if self._address:
            self._sent("STOPPING=1\nSTATUS=stopping")

    def _is_ping_due(self, now: ClockReading) -> bool:
        if self._watchdog_ms is None:
            return False
        return (
            self._last_ping_ms is None
            or now.monotonic_ms - self._last_ping_ms >= self._watchdog_ms / _PINGS_PER_TIMEOUT
        )

    def _note(self, health: HealthStatus) -> None:
        """Log that the watchdog is left unanswered, once."""
        if self._watchdog_ms is not None and self._is_well and not health.well:
            why = f"the watchdog of the service manager is not answered: {', '.join(health.reasons)}"
            self._log.error("watchdog_unanswered", sentence=why)
        self._is_well = health.well

    def _sent(self, message: str) -> bool:
        """Whether the socket took the message; it is never waited for."""
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.sendto(message.encode(), socket.MSG_DONTWAIT, address)
        except OSError as error:
            if self._is_reached:
                why = f"the service manager cannot be notified: {error.strerror or error}"
                self._log.warning("service_manager_unreachable", sentence=why)
            self._is_reached = False
            return False
        self._is_reached = True
        return True


def _status(state: LoopState, health: HealthStatus) -> str:
    """One line for ``systemctl status``. Names in it are foreign text: a line of its own would be another message."""
    if not health.well:
        return safe_text(f"not live: {', '.join(health.reasons)}", _MOST_STATUS)
    if state.failure is not None:
        return safe_text(f"not ready: {state.failure.sentence}", _MOST_STATUS)
    return "starting" if state.cycle is None else safe_text(sentence(state.cycle), _MOST_STATUS)
