"""What stops an executor, and what it goes on with: fences, journals that do not answer, being closed in the middle.

The admin client is a stub whose moves are over at once: here it matters only what is asked of it, and when nothing is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from agent.act.reassign.machine_driver import MachineDriver
from agent.act.reassign.reassignment_executor import ExecutorReporter, ReassignmentExecutor
from agent.errors import BadInput, FencedOut, JournalUnavailable
from agent.execute.reassign.messages import BatchPermission, CommandReceived, PlanAccepted, PlanCommand
from agent.journal import plan_entries
from agent.journal.entries import JournalWrite
from agent.values.limits import ExecuteLimits
from agent.values.reassignment import BatchState, PlanState, ReassignmentPlan, ReassignmentPolicy, ReassignmentTarget
from agent.values.throttles import SeenThrottle
from agent.wire.admin_client import WireAdminClient
from agent.wire.changes import DONE, ChangeResult, Fate
from assignors.problem import TopicPartition
from tests.act.stub_admin_client import StubAdminClient, topic
from tests.act.triggers import MemoryJournal
from tests.observe.live import wait_for

T0 = TopicPartition("t", 0)
PLAN = ReassignmentPlan("p-1", (ReassignmentTarget(T0, "id", (1, 2), (3, 2), 1_000),), approved_by="a test")
POLICY = ReassignmentPolicy(
    ExecuteLimits(throttle=1_000_000, request_timeout_ms=500, max_bytes_in_flight=None), look_ms=1
)
YES = BatchPermission(begin=True)


class Instant(StubAdminClient):
    """Moves end at once, elections succeed at once."""

    def __init__(self) -> None:
        super().__init__(min_isr={"t": "1"})
        self.replicas = (1, 2)
        self._tell()

    def alter_placements(self, targets: Any, deadline_ms: int, begin_by: Any = None, leave_out: Any = None) -> Any:
        answers = super().alter_placements(targets, deadline_ms, begin_by, leave_out)
        if answers[T0].fate is not Fate.NOT_SENT:
            self.replicas = targets[T0] or (1, 2)
            self._tell()
        return answers

    def change_throttles(self, changes: Any, deadline_ms: int, begin_by: Any = None, leave_out: Any = None) -> Any:
        wanted = list(changes)
        throttles = {one[:2]: one for one in self.throttles}
        for change in wanted:
            value = None if change.op.name in ("DELETE", "SUBTRACT") else change.value
            throttles[change[:2]] = SeenThrottle(change.resource, change.key, value)
        self.throttles = tuple(throttles.values())
        self.calls.append(("throttle", wanted))
        return {change.resource: DONE for change in wanted}

    def _tell(self) -> None:
        row = topic("t", self.replicas, leader=self.replicas[0])
        self.witnesses = {1: (row,), 2: (row,)}


def changes(hand: StubAdminClient) -> list[str]:
    return [call[0] for call in hand.calls if call[0] in ("alter", "elect", "throttle")]


@contextmanager
def moving(
    hand: StubAdminClient,
    journal: MemoryJournal,
    may: Callable[[], BatchPermission] = lambda: YES,
    policy: ReassignmentPolicy = POLICY,
) -> Iterator[ReassignmentExecutor]:
    taken = cast("WireAdminClient", cast("Any", hand))
    executor = ReassignmentExecutor(journal=journal, admin=taken, policy=policy, may=may, tick_ms=10)
    executor.start()
    try:
        yield executor
    finally:
        assert executor.close()


def state(journal: MemoryJournal) -> Mapping[str, PlanState]:
    return {plan.proposal_id: plan.state for plan in plan_entries.plans(journal.view())}


def test_a_plan_is_written_down_before_anything_is_asked_and_leaves_nothing_behind() -> None:
    hand, journal = Instant(), MemoryJournal()
    with moving(hand, journal) as executor:
        executor.accept(PLAN)
        wait_for(lambda: state(journal) == {"p-1": PlanState.DONE}, "it is done", 20)
        wait_for(lambda: not executor.busy, "nothing is left", 20)
        status = executor.status()
    assert status.waits == "", "nothing is open"
    assert changes(hand) == ["throttle", "alter", "throttle"]
    assert hand.replicas == (3, 2)
    assert {throttle.own for throttle in hand.throttles} == {None}
    assert [(row.plan.state, row.done, row.ended) for row in status.plans] == [(PlanState.DONE, 1, 1)]
    kinds = [kind for kind in journal.kinds if kind in {one.value for one in BatchState}]
    assert kinds[:2] == ["intent", "sent"]


def test_what_holds_a_plan_names_it() -> None:
    journal = MemoryJournal()
    journal.append(*plan_entries.change_writes(PLAN))
    held = {"p-1": "no new batch: 1 partition moved by another tool, u-7 first"}
    assert (
        ExecutorReporter().status(journal.view(), BatchPermission(begin=True), None, held).waits
        == f"p-1: {held['p-1']}"
    )


def test_a_plan_that_was_accepted_once_is_not_begun_again() -> None:
    hand, journal = Instant(), MemoryJournal()
    with moving(hand, journal) as executor:
        executor.accept(PLAN)
        executor.accept(PLAN)
        wait_for(lambda: state(journal) == {"p-1": PlanState.DONE} and not executor.busy, "it is done", 20)
        executor.accept(PLAN)
        wait_for(lambda: not executor.busy, "it was heard", 20)
    assert changes(hand).count("alter") == 1


def test_nothing_begins_while_the_guard_does_not_let_it() -> None:
    hand, journal = Instant(), MemoryJournal()
    may = [BatchPermission(begin=False, sentence="outside every window")]
    with moving(hand, journal, lambda: may[0]) as executor:
        executor.accept(PLAN)
        wait_for(lambda: len(hand.calls) > 12, "it looked a few times", 20)
        assert changes(hand) == []
        assert executor.status().waits == "p-1: no new batch: outside every window"
        may[0] = YES
        wait_for(lambda: state(journal) == {"p-1": PlanState.DONE}, "it is done", 20)


def test_a_pause_that_comes_after_the_last_look_holds_the_request_all_the_same() -> None:
    """The batch is announced already; what is asked right before the request decides."""
    hand, journal, paused = Instant(), MemoryJournal(), threading.Event()

    def may() -> BatchPermission:
        sent = any(batch.state is BatchState.SENT for batch in plan_entries.batches(journal.view()))
        if sent and not paused.is_set():
            paused.set()
        return BatchPermission(not paused.is_set(), "ann@desk paused acting")

    with moving(hand, journal, may) as executor:
        executor.accept(PLAN)
        wait_for(paused.is_set, "it is announced", 20)
        looks = len(hand.calls)
        wait_for(lambda: len(hand.calls) > looks + 20, "it looked a few times", 20)
        assert "alter" not in changes(hand)
        assert state(journal) == {"p-1": PlanState.OPEN}


def test_a_request_whose_announcement_took_longer_than_it_is_good_for_is_not_sent() -> None:
    """The time is counted from the begin of the append: an agent that was frozen in it finds its time over."""
    hand, announced = Instant(), threading.Semaphore(0)

    class Slow(MemoryJournal):
        def append(self, *writes: JournalWrite) -> None:
            super().append(*writes)
            if any(write.kind == BatchState.SENT.value for write in writes):
                time.sleep(0.3)
                announced.release()

    policy = POLICY._replace(limits=replace(POLICY.limits, request_timeout_ms=100))
    with moving(hand, Slow(), policy=policy) as executor:
        executor.accept(PLAN)
        assert all(announced.acquire(timeout=20) for _ in range(3))
    assert set(changes(hand)) == {"throttle"}


def test_a_fenced_mover_asks_for_nothing_more() -> None:
    hand, journal = Instant(), MemoryJournal()
    with moving(hand, journal) as executor:
        journal.fails = FencedOut("Another agent took over")
        executor.accept(PLAN)
        wait_for(lambda: executor.status().failure is not None, "it noticed", 20)
        with pytest.raises(FencedOut):
            executor.check()
        asked = len(hand.calls)
        executor.send(CommandReceived(PlanCommand.CANCEL, "p-1"))
        assert not executor._thread.is_alive()
        assert (len(hand.calls), changes(hand)) == (asked, [])


@pytest.mark.parametrize("times", [1, 2, 3, 4, 5])
def test_a_journal_that_does_not_answer_for_a_moment_only_delays(times: int) -> None:
    class Flaky(MemoryJournal):
        appends = 0

        def append(self, *writes: Any) -> None:
            self.appends += 1
            if self.appends == times:
                raise JournalUnavailable("No answer in time")
            super().append(*writes)

    hand, journal = Instant(), Flaky()
    with moving(hand, journal) as executor:
        executor.accept(PLAN)
        wait_for(lambda: state(journal) == {"p-1": PlanState.DONE}, "it is done", 20)
        wait_for(lambda: not executor.busy, "nothing is left", 20)
        executor.check()
    assert changes(hand).count("alter") == 1
    assert {throttle.own for throttle in hand.throttles} == {None}


def test_a_journal_that_does_not_answer_is_told_for_as_long_as_it_does_not() -> None:
    class Silent(MemoryJournal):
        silent = True

        def append(self, *writes: Any) -> None:
            if self.silent:
                raise JournalUnavailable("No answer in time")
            super().append(*writes)

    hand, journal = Instant(), Silent()
    with moving(hand, journal) as executor:
        executor.accept(PLAN)
        wait_for(lambda: executor.status().journal_failed is not None, "it is reported", 20)
        assert "No answer in time" in (executor.status().journal_failed or "")
        assert changes(hand) == []
        journal.silent = False
        wait_for(lambda: state(journal) == {"p-1": PlanState.DONE} and not executor.busy, "it is done", 20)
        assert executor.status().journal_failed is None


@pytest.mark.parametrize("stops_at", range(1, 8))
def test_wherever_it_is_closed_another_goes_on_and_does_nothing_twice(stops_at: int) -> None:
    closed: list[ReassignmentExecutor] = []

    class Closing(MemoryJournal):
        appends = 0

        def append(self, *writes: Any) -> None:
            super().append(*writes)
            self.appends += 1
            if self.appends == stops_at:
                closed[0]._driver.stop()

    hand, journal = Instant(), Closing()
    with moving(hand, journal) as executor:
        closed.append(executor)
        executor.accept(PLAN)
        wait_for(lambda: journal.appends >= stops_at or state(journal) == {"p-1": PlanState.DONE}, "it stopped", 20)
    with moving(hand, journal) as executor:
        if not state(journal):
            executor.accept(PLAN)
        wait_for(lambda: state(journal) == {"p-1": PlanState.DONE} and not executor.busy, "it is done", 20)
        executor.check()
    assert changes(hand).count("alter") == 1
    assert hand.replicas == (3, 2)
    assert {throttle.own for throttle in hand.throttles} == {None}


class Timely(Instant):
    """Sends nothing after it must have begun, as the real one does."""

    def alter_placements(self, targets: Any, deadline_ms: int, begin_by: Any = None, leave_out: Any = None) -> Any:
        if begin_by.over:
            self.calls.append(("too late",))
            return dict.fromkeys(targets, ChangeResult(Fate.NOT_SENT))
        return super().alter_placements(targets, deadline_ms, begin_by, leave_out)

    def change_throttles(self, changes: Any, deadline_ms: int, begin_by: Any = None, leave_out: Any = None) -> Any:
        if begin_by.over:
            self.calls.append(("too late",))
            return {change.resource: ChangeResult(Fate.NOT_SENT) for change in changes}
        return super().change_throttles(changes, deadline_ms, begin_by, leave_out)


def test_where_the_journal_answers_slowly_the_request_follows_all_the_same() -> None:
    class Slow(MemoryJournal):
        def append(self, *writes: Any) -> None:
            time.sleep(0.3)
            super().append(*writes)

    hand, journal = Timely(), Slow()
    with moving(hand, journal, policy=POLICY._replace(limits=replace(POLICY.limits, intent_valid_ms=50))) as executor:
        executor.accept(PLAN)
        wait_for(lambda: state(journal) == {"p-1": PlanState.DONE}, "it is done", 20)
    assert changes(hand)[:2] == ["throttle", "alter"]
    assert ("too late",) not in hand.calls


class LateClock:
    """The real one, and as much later as a test wants."""

    def __init__(self) -> None:
        self.late_s = 0.0

    def elapsed_s(self) -> float:
        return time.monotonic() + self.late_s


@pytest.mark.parametrize(("late_s", "sent"), [(30.0, False), (0.0, True)])
def test_a_process_that_was_frozen_while_its_journal_was_written_sends_nothing(
    monkeypatch: pytest.MonkeyPatch, late_s: float, *, sent: bool
) -> None:
    """How long an intent is good for is counted from when its append began, not from when the answer came."""
    clock = LateClock()
    for module in ("agent.act.reassign.machine_driver", "agent.wire.failure"):
        monkeypatch.setattr(f"{module}.elapsed_s", clock.elapsed_s)

    class Frozen(MemoryJournal):
        def append(self, *writes: Any) -> None:
            super().append(*writes)
            if any(write.key.startswith("batch/") for write in writes):
                clock.late_s += late_s

    hand = Timely()
    taken = cast("WireAdminClient", cast("Any", hand))
    driver = MachineDriver(Frozen(), taken, POLICY, ExecutorReporter(), may=lambda: YES)
    driver.resume()
    driver.handle(PlanAccepted(PLAN))
    assert bool(changes(hand)) is sent
    assert (("too late",) in hand.calls) is not sent


def test_nothing_is_sent_by_an_agent_that_is_not_sure_to_lead_however_fresh_its_intent_is() -> None:
    hand, journal, valid_for_s = Timely(), MemoryJournal(), [0.0]
    taken = cast("WireAdminClient", cast("Any", hand))
    executor = ReassignmentExecutor(
        journal=journal, admin=taken, policy=POLICY, may=lambda: YES, leads_for_s=lambda: valid_for_s[0], tick_ms=10
    )
    executor.start()
    try:
        executor.accept(PLAN)
        wait_for(lambda: ("too late",) in hand.calls, "it tried", 20)
        assert changes(hand) == []
        valid_for_s[0] = 8.0
        wait_for(lambda: state(journal) == {"p-1": PlanState.DONE}, "it is done", 20)
    finally:
        assert executor.close()
        assert executor.ended
    assert changes(hand).count("alter") == 1


def test_a_plan_that_no_journal_can_hold_is_left_aside_and_the_next_is_done() -> None:
    class Small(MemoryJournal):
        def append(self, *writes: Any) -> None:
            if any(write.key == "plan/p-0" for write in writes):
                raise BadInput("What is to be written is too big")
            super().append(*writes)

    hand, journal = Instant(), Small()
    with moving(hand, journal) as executor:
        executor.accept(PLAN._replace(proposal_id="p-0"))
        executor.accept(PLAN)
        wait_for(lambda: state(journal) == {"p-1": PlanState.DONE}, "the other one is done", 20)
        executor.check()
        assert executor.status().journal_failed == "What is to be written is too big", "which readyz reports"


def test_a_journal_that_is_not_understood_ends_it_before_anything_is_asked() -> None:
    hand, journal = Instant(), MemoryJournal()
    journal.append(JournalWrite("plan/p-0", "open", {"proposal_id": "p-0", "targets": "of another kind"}))
    with moving(hand, journal) as executor:
        wait_for(lambda: not executor._thread.is_alive(), "it ended", 20)
        with pytest.raises(BadInput, match="The moves in the journal cannot be read"):
            executor.check()
    assert hand.calls == []


def test_a_defect_ends_it_and_is_told() -> None:
    class Broken(Instant):
        def list_reassignments(self, deadline_ms: int) -> Any:
            raise ZeroDivisionError("an unexpected division")

    with moving(Broken(), MemoryJournal()) as executor:
        executor.accept(PLAN)
        wait_for(lambda: executor.status().failure == "an unexpected division", "it ended", 20)
        with pytest.raises(ZeroDivisionError):
            executor.check()
