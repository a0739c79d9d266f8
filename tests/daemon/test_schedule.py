"""Looks that are asked for sooner come sooner, one at a time, and the ordinary ones go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from agent.daemon.schedule import CycleScheduler

SOON_MS = 200


class Looks:
    """Counts looks; each may be held up."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.skipped = 0
        self.plannings: list[bool] = []
        self.at_once = 0
        self.most_at_once = 0
        self.go_on = threading.Event()
        self.go_on.set()
        self.schedule: CycleScheduler
        self.then: Callable[[], None] = lambda: None

    def __call__(self) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.times.append(time.monotonic())
        self.plannings.append(self.schedule.planning_due())
        self.go_on.wait(10)
        self.then()
        self.at_once -= 1

    def skip(self) -> None:
        self.skipped += 1

    def wait_for(self, count: int, within_s: float = 10.0) -> None:
        end = time.monotonic() + within_s
        while len(self.times) < count:
            assert time.monotonic() < end, f"{len(self.times)} looks of {count}"
            time.sleep(0.01)


@pytest.fixture
def looks() -> Iterator[Looks]:
    made = Looks()
    made.schedule = CycleScheduler(made, made.skip, poll_ms=60_000, plan_ms=3_600_000, plan_cron=None)
    yield made
    made.go_on.set()
    made.schedule.stop()


def test_a_look_that_is_asked_for_sooner_comes_then(looks: Looks) -> None:
    looks.then = lambda: looks.schedule.look_by(SOON_MS) if len(looks.times) == 1 else None
    looks.schedule.start()
    looks.wait_for(2)
    assert looks.times[1] - looks.times[0] >= SOON_MS / 1_000 - 0.05
    assert looks.plannings == [True, False]


def test_the_soonest_of_several_wishes_counts_and_none_adds_a_look(looks: Looks) -> None:
    def ask() -> None:
        if len(looks.times) == 1:
            for delay_ms in (5_000, SOON_MS, 30_000):
                looks.schedule.look_by(delay_ms)

    looks.then = ask
    looks.schedule.start()
    looks.wait_for(2)
    time.sleep(0.5)
    assert len(looks.times) == 2


def test_a_look_can_be_asked_to_plan(looks: Looks) -> None:
    looks.then = lambda: looks.schedule.look_by(SOON_MS, planning=True) if len(looks.times) == 1 else None
    looks.schedule.start()
    looks.wait_for(2)
    assert looks.plannings == [True, True]


def test_a_look_that_falls_due_while_one_is_running_is_skipped_and_never_stacked(looks: Looks) -> None:
    looks.go_on.clear()
    looks.schedule.start()
    looks.wait_for(1)
    looks.schedule.look_now()
    end = time.monotonic() + 10
    while not looks.skipped:
        assert time.monotonic() < end
        time.sleep(0.01)
    looks.go_on.set()
    time.sleep(0.3)
    assert (len(looks.times), looks.most_at_once) == (1, 1)


def test_a_look_that_is_asked_for_during_a_look_follows_it(looks: Looks) -> None:
    looks.go_on.clear()
    looks.schedule.start()
    looks.wait_for(1)
    looks.schedule.look_by(0, planning=True)
    time.sleep(0.3)
    assert len(looks.times) == 1
    looks.go_on.set()
    looks.wait_for(2)
    assert (looks.plannings, looks.skipped, looks.most_at_once) == ([True, True], 0, 1)


def test_a_schedule_that_has_not_begun_or_has_ended_only_notes_the_planning(looks: Looks) -> None:
    looks.schedule.look_by(0, planning=True)
    assert looks.times == []
    assert looks.schedule.planning_due()
    looks.schedule.start()
    looks.wait_for(1)
    looks.schedule.stop()
    looks.schedule.look_by(0)
    time.sleep(0.3)
    assert len(looks.times) == 1
