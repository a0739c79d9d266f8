"""Reassignment executor: carries out accepted plans in a thread of its own, about once a second while work is open.

The journal holds the state, so the next leader continues from there. `close` only stops: moves continue in the cluster
and nothing is cancelled or cleared. A fence or an unreadable journal ends the thread; `check` raises the reason.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from math import inf
from typing import Any

import structlog

from agent.act.reassign.cluster_view import TrafficReader, no_traffic
from agent.act.reassign.machine_driver import MachineDriver
from agent.errors import EXECUTOR, BadInput, JournalUnavailable, RackwiseError, thread
from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    BatchPermission,
    CancelReassignments,
    ClusterChange,
    ClusterView,
    CommandReceived,
    ElectLeaders,
    FinishPlan,
    MachineEvent,
    NotifyOperator,
    PlanAccepted,
    RequestFate,
    RequestResult,
)
from agent.execute.reassign.throttles import CopyRates, plan_progress
from agent.journal import plan_entries
from agent.journal.entries import JournalPort, JournalState
from agent.values.number_format import counted, lasted, sized
from agent.values.plan import ExecutorStatus, PlanProgress
from agent.values.reassignment import PlanState, ReassignmentPlan, ReassignmentPolicy
from agent.wire.admin_client import WireAdminClient

# Progress is reported every ten seconds at most; a failed look or journal only when its reason is new.

_PROGRESS_S = 10.0
_WHAT: Mapping[type, tuple[str, str]] = {
    AlterReassignments: ("reassignment", "reassignments"),
    CancelReassignments: ("reassignment", "reassignments"),
    AlterThrottles: ("throttle change", "throttle changes"),
    ElectLeaders: ("preferred leader", "preferred leaders"),
}
_REQUEST: Mapping[type, str] = {
    AlterReassignments: "alter",
    CancelReassignments: "cancel",
    AlterThrottles: "configure",
    ElectLeaders: "elect",
}
"""The field ``request`` of the log events."""
_HOW: Mapping[type, str] = {
    AlterReassignments: "begun",
    CancelReassignments: "cancelled",
    AlterThrottles: "applied",
    ElectLeaders: "elected",
}
_FINE = frozenset({RequestFate.OK, RequestFate.NOT_NEEDED})
_MOST_LOGGED = 5
"""Lines of a request that were not simply done and are logged one by one."""


class ExecutorReporter:
    """A listener of the machine driver; every method may be called from any thread."""

    def __init__(self, log: Any = None) -> None:
        self._log = structlog.get_logger("rackwise") if log is None else log
        self._rates = CopyRates()
        self._lock = threading.Lock()
        self._look_failed: str | None = None
        self._journal_gone: str | None = None
        self._left_aside: str | None = None
        self._progress_at = float("-inf")

    def cluster_read(self, cluster: ClusterView) -> None:
        """A look has succeeded."""
        with self._lock:
            self._rates.looked(cluster, time.monotonic())
        if self._look_failed is not None:
            self._look_failed = None
            self._log.info("executor_sees_again", sentence="the cluster can be seen again")

    def look_failed(self, sentence: str) -> None:
        """The look failed; logged when the reason is new."""
        if sentence != self._look_failed:
            self._look_failed = sentence
            self._log.warning("executor_look_failed", sentence=sentence)

    def answered(self, act: ClusterChange, results: tuple[RequestResult, ...]) -> None:
        """Log the results of a request, and each line that was not done."""
        what = _REQUEST[type(act)]
        odd = [one for one in results if one.kind not in _FINE]
        every, not_done = len(results), len(odd)
        if isinstance(act, AlterThrottles):  # the settings of one resource share their fate, and its one answer
            every, missed = len(act.settings), {one.subject for one in odd}
            not_done = sum(setting.resource in missed for setting in act.settings)
        done = f"{every - not_done} of {counted(every, *_WHAT[type(act)])} {_HOW[type(act)]}"
        self._log.info("executor_request", request=what, lines=len(results), not_done=len(odd), sentence=done)
        for one in odd[:_MOST_LOGGED]:
            self._log.warning(
                "executor_refused", request=what, subject=str(one.subject), kind=one.kind.value, sentence=one.sentence
            )

    def noticed(self, notice: NotifyOperator) -> None:
        """The machine notifies the operator."""
        about = {"proposal": notice.proposal_id} if notice.proposal_id else {}
        (self._log.warning if notice.alarm else self._log.info)("executor_says", **about, sentence=notice.sentence)

    def finished(self, finish: FinishPlan) -> None:
        """A plan has ended."""
        self._log.info("plan_ended", proposal=finish.proposal_id, state=finish.state.value, sentence=finish.sentence)

    def progress(self, view: JournalState) -> None:
        """Log the progress of the open plans, at most every `_PROGRESS_S`."""
        now = time.monotonic()
        if now - self._progress_at < _PROGRESS_S:
            return
        self._progress_at = now
        for one in self._plans(view):
            if one.replicas:
                numbers = _numbers(one)
                self._log.info("plan_progress", **numbers, sentence=_sentence(numbers))

    def journal_unavailable(self, error: Exception) -> None:
        """The journal does not answer; logged when the reason is new."""
        if str(error) != self._journal_gone:
            self._journal_gone = str(error)
            self._log.warning("executor_journal_unavailable", sentence=str(error))

    def journal_answers(self) -> None:
        """The journal answers; logged when it did not before."""
        if self._journal_gone is not None:
            self._journal_gone = None
            self._log.info("executor_journal_is_back", sentence="the journal answers again")

    def left_aside(self, error: Exception) -> None:
        """The journal cannot hold a posted plan or command, so it is left out."""
        self._left_aside = str(error)
        self._log.warning("executor_left_aside", sentence=str(error))

    def defect(self, error: Exception) -> None:
        """Log an unexpected error with its traceback."""
        self._log.error("executor_defect", sentence=str(error), exc_info=error)

    def ended(self, error: Exception) -> None:
        """The executor has ended with this error."""
        self._log.error("executor_ended", sentence=str(error))

    def status(
        self, view: JournalState, may: BatchPermission | None, failure: str | None, held_by: Mapping[str, str]
    ) -> ExecutorStatus:
        """Status of the executor; ``held_by`` is the machine's: plan -> reason why it does not go on."""
        plans = self._plans(view)
        open_ = [one.plan for one in plans if not one.plan.ended]
        return ExecutorStatus(
            plans=plans,
            debts=plan_entries.throttle_debts(view),
            look_failed=self._look_failed,
            failure=failure,
            journal_failed=self._journal_gone or self._left_aside,
            holds=tuple(why for plan in open_ if (why := _hold(plan, may, held_by)) is not None),
        )

    def _plans(self, view: JournalState) -> tuple[PlanProgress, ...]:
        batches = plan_entries.batches(view)
        with self._lock:
            return tuple(
                plan_progress(plan, (one for one in batches if one.proposal_id == plan.proposal_id), self._rates)
                for plan in plan_entries.plans(view)
            )


def _hold(plan: ReassignmentPlan, may: BatchPermission | None, held_by: Mapping[str, str]) -> str | None:
    """Reason why an open plan waits: the guard's verdict on new batches, a pause, or the look."""
    why = None if may is None or plan.state is PlanState.CANCELLING else may.of(plan.proposal_id)
    why = f"no new batch: {why or 'the plan is paused'}" if why or plan.paused else held_by.get(plan.proposal_id)
    return None if why is None else f"{plan.proposal_id}: {why}"


def _numbers(progress: PlanProgress) -> dict[str, Any]:
    lefts = [one.seconds_left for one in progress.brokers]
    return {
        "proposal": progress.plan.proposal_id,
        "partitions": progress.plan.partitions,
        "done": progress.done,
        "copies": len(progress.replicas),
        "bytes": _total(one.bytes for one in progress.replicas),
        "of_bytes": _total(one.of_bytes for one in progress.replicas),
        "bytes_per_s": None if (rate := _total(one.bytes_per_s for one in progress.replicas)) is None else round(rate),
        "seconds_left": None if not lefts or None in lefts else round(max(left or 0.0 for left in lefts)),
    }


def _sentence(numbers: Mapping[str, Any]) -> str:
    left = numbers["seconds_left"]
    when = "time left unknown" if left is None else f"about {lasted(1_000 * left)} left"
    return (
        f"{numbers['proposal']}: {numbers['done']:,} of {counted(numbers['partitions'], 'partition')} moved, "
        f"{_sized(numbers['bytes'])} of {_sized(numbers['of_bytes'])} in "
        f"{counted(numbers['copies'], 'copy', 'copies')} in progress; {when}"
    )


def _total(numbers: Iterable[float | None]) -> float | None:
    """Their sum; unknown where one of them is."""
    every = list(numbers)
    known = [one for one in every if one is not None]
    return sum(known) if len(known) == len(every) else None


def _sized(size_bytes: float | None) -> str:
    return "an unknown number of bytes" if size_bytes is None else sized(size_bytes)


SWEEP_S = 60.0
"""Interval of reading the journal while no plan is open."""


class ReassignmentExecutor:
    """The executor of one agent. Every method may be called from any thread."""

    def __init__(
        self,
        *,
        journal: JournalPort,
        admin: WireAdminClient,
        policy: ReassignmentPolicy,
        may: Callable[[], BatchPermission],
        traffic: TrafficReader = no_traffic,
        leads_for_s: Callable[[], float] = lambda: inf,
        tick_ms: int = 1_000,
    ) -> None:
        """``may``: whether a new batch may begin now; it is called before each look, so it must be quick.

        ``leads_for_s``: seconds for which this agent surely leads; nothing is sent after that.
        ``admin`` and ``journal`` stay the caller's: close them after this executor.
        """
        self._journal = journal
        self._tick_s = tick_ms / 1000
        self._reporter = ExecutorReporter()
        self._driver = MachineDriver(
            journal, admin, policy, self._reporter, may=may, traffic=traffic, leads_for_s=leads_for_s
        )
        self._inbox: deque[MachineEvent] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._resumed = False
        self._failure: Exception | None = None
        self._view: JournalState = {}
        self._thread = thread(EXECUTOR, self._run)

    def start(self) -> None:
        """Go on from the journal's state, and clear our throttles that no open plan needs."""
        self._thread.start()

    def accept(self, plan: ReassignmentPlan) -> None:
        """Carry this plan out, after those that were accepted before. One that was accepted once is left aside."""
        self._post(PlanAccepted(plan))

    def send(self, command: CommandReceived) -> None:
        """Post an operator's command about a plan, with its id."""
        self._post(command)

    def status(self) -> ExecutorStatus:
        """Every plan that the journal knows, how far it is, and what holds it."""
        failure, driver = self._failure, self._driver
        sentence = None if failure is None else str(failure)
        return self._reporter.status(self._known(), driver.last_may, sentence, driver.held)

    @property
    def busy(self) -> bool:
        """True while a plan is open, a throttle of ours is set, or something was posted and not begun."""
        return not self._resumed or bool(self._inbox) or not self._driver.idle

    @property
    def ended(self) -> bool:
        """True once nothing of it runs any more, and no request of its is under way."""
        return not self._thread.is_alive()

    def check(self) -> None:
        """Raises what ended the executor: FencedOut, or whatever else it cannot continue with."""
        if self._failure is not None:
            raise self._failure

    def close(self, deadline_ms: int = 3_000) -> bool:
        """Begin nothing more; True when the call under way ended in time. What is open stays in the journal."""
        self._driver.stop()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(deadline_ms / 1000)
        return not self._thread.is_alive()

    def _post(self, event: MachineEvent) -> None:
        with self._changed:
            self._inbox.append(event)
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            while not self._closing:
                self._turn()
                self._wait()
        except RackwiseError as error:
            self._ended(error)
        except Exception as error:  # noqa: BLE001 raised by `check`, in the thread that can end the agent
            self._reporter.defect(error)
            self._ended(error)

    def _turn(self) -> None:
        """One step: what was posted, else the mere passing of time."""
        event: MachineEvent | None = None
        try:
            if not self._resumed:
                self._driver.resume()
                self._resumed = True
            while self._inbox:
                event = self._inbox.popleft()
                self._driver.handle(event)
            event = None
            self._driver.handle()
            self._reporter.journal_answers()
            self._reporter.progress(self._known())
        except BadInput as error:
            if event is None:
                raise
            # A plan that no journal can hold is not begun; the others go on.
            self._reporter.left_aside(error)
            self._resumed = False
        except JournalUnavailable as error:
            self._reporter.journal_unavailable(error)
            # Repeated it does no harm: a plan is accepted once, and a command has its effect once.
            if event is not None:
                self._inbox.appendleft(event)
            self._resumed = False

    def _known(self) -> JournalState:
        """The journal's state, or its last one: one that ended has none, and status is requested all the same."""
        with suppress(RackwiseError):
            self._view = self._journal.view()
        return self._view

    def _wait(self) -> None:
        pause_s = self._tick_s if self.busy else SWEEP_S
        with self._changed:
            if not self._inbox and not self._closing:
                self._changed.wait(pause_s)

    def _ended(self, error: Exception) -> None:
        self._failure = error
        self._driver.stop()
        self._reporter.ended(error)
