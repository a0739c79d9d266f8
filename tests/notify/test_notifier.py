"""The notifier beside a loop, with real requests: a slow, broken or absent target delays nothing and loses nothing."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from agent.errors import JournalUnavailable
from agent.journal.entries import JournalState
from agent.loop import CycleStages, run_cycle
from agent.notify.notification import NotificationEvent, NotifyTarget, OutboxLimits
from agent.notify.notifier import AgentNotifier, LoopView, NotifierPace
from agent.notify.service import NotifyService
from agent.values.clock import ClockReading
from agent.values.cycle import Cycle
from agent.values.finding import FindingSeverity
from agent.values.last_known import last_known
from agent.values.limits import AgentMode, Limits
from agent.values.memory import Memory
from agent.values.plan import ExecuteState
from tests.notify.receivers import receiver
from tests.synthetic_cluster import synthetic_cluster

WORLD = synthetic_cluster(6, improvable=1.0)
FIRST = run_cycle(CycleStages(Limits()), lambda: WORLD, WORLD, Memory(), number=1, name="l-1", planning=False)
HEALTHY = replace(FIRST, detection=replace(FIRST.detection, findings=()))
HEALTHY = replace(HEALTHY, known=last_known(None, HEALTHY))
LIMITS = OutboxLimits(group_for_ms=0, most_per_hour=1_000, give_up_after_ms=600_000)
EVERYTHING = {"events": frozenset(NotificationEvent), "severities": frozenset(FindingSeverity)}
STALL_MS = 120_000


@dataclass
class Loop:
    """A loop as the notifier reads it, and a clock of its own that tests move."""

    view: LoopView = field(default_factory=lambda: LoopView(None, None, silent_since_ms=0))
    now_ms: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def clock(self) -> ClockReading:
        return ClockReading(self.now_ms, self.now_ms)

    def report(self, counts: Mapping[str, int]) -> None:
        self.counts = counts

    def cycle(self, cycle: Cycle) -> None:
        self.view = LoopView(replace(cycle), None, silent_since_ms=self.now_ms)

    def wait(self, true: Callable[[], bool], within_s: float = 10) -> None:
        until = time.monotonic() + within_s
        while not true():
            assert time.monotonic() < until, self.counts
            time.sleep(0.01)


@contextmanager
def notifying(
    *urls: str, limits: OutboxLimits = LIMITS, try_s: float = 30.0, start: bool = True
) -> Iterator[tuple[Loop, AgentNotifier]]:
    loop = Loop()
    targets = [
        (NotifyTarget(name=f"t{number}", **EVERYTHING), NotifyService(f"t{number}", url))  # type: ignore[arg-type] # as above
        for number, url in enumerate(urls)
    ]
    pace = NotifierPace(limits, STALL_MS, page="https://page.example.org", tick_s=0.01, try_s=try_s)
    notifier = AgentNotifier(targets, view=lambda: loop.view, pace=pace, clock=loop.clock, report=loop.report)
    if start:
        notifier.start()
    try:
        yield loop, notifier
    finally:
        if start:
            notifier.stop()


def test_what_begins_and_what_ends_is_sent_with_the_page() -> None:
    with receiver() as held, notifying(f"json://{held.address}/x") as (loop, _):
        loop.cycle(HEALTHY)
        loop.cycle(FIRST)
        held.wait(1)
        loop.cycle(HEALTHY)
        held.wait(2)
        begun, ended = held.documents
    assert begun["message"].splitlines()[-1] == "https://page.example.org/findings"
    assert ended["title"].endswith("ended") or "ended:" in ended["title"]
    loop.wait(lambda: loop.counts["sent"] == 2)


def test_the_first_look_at_a_cluster_with_faults_is_one_message_with_one_line() -> None:
    with receiver() as held, notifying(f"json://{held.address}/x") as (loop, _):
        loop.cycle(FIRST)
        held.wait(1)
        [document] = held.documents
    assert len(FIRST.detection.findings) > 2
    assert "older than the agent's first look" in document["message"]
    assert len(document["message"].splitlines()) == 2


def test_a_target_that_fails_gets_its_message_when_it_is_back_and_the_log_says_each_change_once(
    logged: io.StringIO,
) -> None:
    limits = LIMITS._replace(give_up_after_ms=86_400_000)
    with receiver(500) as held, notifying(f"json://{held.address}/CANARY", limits=limits) as (loop, _):
        loop.cycle(FIRST)
        for number in range(1, 4):
            held.wait(number)
            loop.wait(lambda n=number: loop.counts["retried"] == n)  # type: ignore[misc] # bound at once
            loop.now_ms += 300_000 if number < 3 else 0
            loop.view = loop.view._replace(silent_since_ms=loop.now_ms)
        held.answer = 200
        loop.now_ms += 100_000
        loop.view = loop.view._replace(silent_since_ms=loop.now_ms)
        loop.wait(lambda: loop.counts["sent"] == 1)
        assert len({body for _, body in held.requests}) == 1
    changes = [line for line in logged.getvalue().splitlines() if '"event": "notify_target"' in line]
    assert len(changes) == 2
    assert "HTTP 500" in changes[0]
    assert "accepts again" in changes[1]
    assert "CANARY" not in logged.getvalue()


def test_a_target_that_never_accepts_is_given_up_and_counted() -> None:
    limits = LIMITS._replace(give_up_after_ms=60_000)
    with receiver(500) as held, notifying(f"json://{held.address}/x", limits=limits) as (loop, _):
        loop.cycle(FIRST)
        for _ in range(8):
            loop.now_ms += 20_000
            loop.view = loop.view._replace(silent_since_ms=loop.now_ms)
            time.sleep(0.05)
        loop.wait(lambda: loop.counts["given_up"] == 1)
        assert loop.counts["sent"] == 0
        held.answer = 200
        loop.cycle(HEALTHY)
        loop.wait(lambda: loop.counts["sent"] == 1)
        last = held.documents[-1]
    assert "could not be delivered" in last["message"]


@pytest.mark.parametrize("told", ["hang", "drip"])
def test_a_target_that_hangs_holds_up_no_other_and_no_end(told: str) -> None:
    with receiver(told) as stuck, receiver() as held:
        urls = f"json://{stuck.address}/x?rto=60", f"json://{held.address}/x"
        with notifying(*urls, try_s=0.2) as (loop, notifier):
            loop.cycle(FIRST)
            held.wait(1)
            loop.wait(lambda: loop.counts["retried"] >= 1)
            loop.cycle(HEALTHY)
            held.wait(2)
            assert len(stuck.requests) == 1  # one try at a time
            began = time.monotonic()
            notifier.stop()
            assert time.monotonic() - began < 2
        stuck.released.set()


def test_the_last_events_are_sent_when_the_agent_ends() -> None:
    limits = LIMITS._replace(group_for_ms=600_000)
    with receiver() as held, notifying(f"json://{held.address}/x", limits=limits) as (loop, notifier):
        loop.cycle(FIRST)
        time.sleep(0.1)
        assert held.requests == []
        notifier.stop()
        assert len(held.requests) == 1


def test_silence_of_the_loop_is_reported_without_a_cycle() -> None:
    with receiver() as held, notifying(f"json://{held.address}/x") as (loop, _):
        loop.view = LoopView(None, None, silent_since_ms=0, failure="cycle 1 failed: no broker answered")
        loop.now_ms = STALL_MS
        held.wait(1)
        [document] = held.documents
    assert "has not observed the cluster for 2 min: cycle 1 failed: no broker answered" in document["message"]
    assert document["type"] == "failure"


def test_a_fault_is_logged_by_its_type_alone_and_notifications_go_on(logged: io.StringIO) -> None:
    views = iter(range(100_000))

    def view() -> LoopView:
        if next(views) < 3:
            raise RuntimeError("CANARY")
        return LoopView(FIRST, None, silent_since_ms=0)

    loop = Loop()
    with receiver() as held:
        service = NotifyService("t", f"json://{held.address}/x")
        pace = NotifierPace(LIMITS, STALL_MS, tick_s=0.01)
        target = NotifyTarget(name="t", **EVERYTHING)  # type: ignore[arg-type] # as above
        with AgentNotifier([(target, service)], view=view, pace=pace, clock=loop.clock, report=loop.report):
            held.wait(1)
    assert logged.getvalue().count('"event": "notify_failed"') == 1
    assert "CANARY" not in logged.getvalue()


def test_a_journal_in_doubt_hides_no_event_of_the_cluster(logged: io.StringIO) -> None:
    def unavailable() -> JournalState | None:
        raise JournalUnavailable("the journal did not answer")

    leading = replace(FIRST, acting=ExecuteState(leads=True), limits=Limits(mode=AgentMode.EXECUTE))
    with receiver() as held, notifying(f"json://{held.address}/x") as (loop, _):
        loop.view = LoopView(leading, None, silent_since_ms=0, journal=unavailable)
        held.wait(1)
    assert "notify_failed" not in logged.getvalue()


def test_counts_are_there_before_the_first_message() -> None:
    with notifying("json://127.0.0.1/x", start=False) as (loop, _):
        assert loop.counts == {"sent": 0, "retried": 0, "given_up": 0, "dropped": 0}


def test_the_threads_are_of_the_rule() -> None:
    with receiver("hang") as held, notifying(f"json://{held.address}/x") as (loop, _):
        loop.cycle(FIRST)
        held.wait(1)
        names = {one.name for one in threading.enumerate()}
        assert {"rackwise-notify", "rackwise-notify t0"} <= names
        held.released.set()
