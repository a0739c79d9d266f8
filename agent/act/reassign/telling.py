"""What the executor does, told: events of the log, and a status for those who ask.

Few events, each a sentence with its numbers. Progress is reported every ten seconds at most; a look that fails, and a
journal that does not answer, only when the reason is a new one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import structlog

from agent.act.reassign.progress import Rates, plan_progress
from agent.execute.reassign.messages import (
    Act,
    Alter,
    Cancel,
    Configure,
    Elect,
    Finish,
    Kind,
    May,
    Result,
    Say,
    Seen,
    name,
)
from agent.journal import moves
from agent.values.journal import View
from agent.values.progress import PlanProgress, Status
from agent.values.reassignment import Plan, PlanState
from agent.values.words import counted, lasted, sized

_PROGRESS_S = 10.0
_WHAT: Mapping[type, tuple[str, str]] = {
    Alter: ("reassignment", "reassignments"),
    Cancel: ("reassignment", "reassignments"),
    Configure: ("throttle change", "throttle changes"),
    Elect: ("preferred leader", "preferred leaders"),
}
_HOW: Mapping[type, str] = {Alter: "begun", Cancel: "cancelled", Configure: "applied", Elect: "elected"}
_FINE = frozenset({Kind.OK, Kind.NOT_NEEDED})
_TOLD = 5
"""So many lines of a request that were not simply done are named."""


class Telling:
    """A listener of the runner; every method may be called from any thread."""

    def __init__(self, log: Any = None) -> None:
        self._log = structlog.get_logger("rackwise") if log is None else log
        self._rates = Rates()
        self._lock = threading.Lock()
        self._look_failed: str | None = None
        self._journal_gone: str | None = None
        self._left_aside: str | None = None
        self._progress_at = float("-inf")

    def seen(self, seen: Seen) -> None:
        """The cluster was looked at."""
        with self._lock:
            self._rates.looked(seen, time.monotonic())
        if self._look_failed is not None:
            self._look_failed = None
            self._log.info("executor_sees_again", sentence="the cluster can be seen again")

    def look_failed(self, sentence: str) -> None:
        """It could not be seen well enough."""
        if sentence != self._look_failed:
            self._look_failed = sentence
            self._log.warning("executor_look_failed", sentence=sentence)

    def answered(self, act: Act, results: tuple[Result, ...]) -> None:
        """A request was answered, or was not."""
        what = type(act).__name__.lower()
        odd = [one for one in results if one.kind not in _FINE]
        every, not_done = len(results), len(odd)
        if isinstance(act, Configure):  # the settings of one resource share their fate, and its one answer
            every, missed = len(act.settings), {one.subject for one in odd}
            not_done = sum(setting.resource in missed for setting in act.settings)
        done = f"{every - not_done} of {counted(every, *_WHAT[type(act)])} {_HOW[type(act)]}"
        self._log.info("executor_request", request=what, lines=len(results), not_done=len(odd), sentence=done)
        for one in odd[:_TOLD]:
            self._log.warning(
                "executor_refused", request=what, subject=name(one.subject), kind=one.kind.value, sentence=one.sentence
            )

    def said(self, say: Say) -> None:
        """The machine has something to say."""
        about = {"proposal": say.proposal_id} if say.proposal_id else {}
        (self._log.warning if say.alarm else self._log.info)("executor_says", **about, sentence=say.sentence)

    def finished(self, finish: Finish) -> None:
        """A plan has ended."""
        self._log.info("plan_ended", proposal=finish.proposal_id, state=finish.state.value, sentence=finish.sentence)

    def progress(self, view: View) -> None:
        """How far the open plans are, now and then."""
        now = time.monotonic()
        if now - self._progress_at < _PROGRESS_S:
            return
        self._progress_at = now
        for one in self._plans(view):
            if one.replicas:
                numbers = _numbers(one)
                self._log.info("plan_progress", **numbers, sentence=_sentence(numbers))

    def journal_unavailable(self, error: Exception) -> None:
        """Nothing may be done until it is back."""
        if str(error) != self._journal_gone:
            self._journal_gone = str(error)
            self._log.warning("executor_journal_unavailable", sentence=str(error))

    def journal_answers(self) -> None:
        """It is back, or was never gone."""
        if self._journal_gone is not None:
            self._journal_gone = None
            self._log.info("executor_journal_is_back", sentence="the journal answers again")

    def left_aside(self, error: Exception) -> None:
        """What was posted could not be written down, so it is not done."""
        self._left_aside = str(error)
        self._log.warning("executor_left_aside", sentence=str(error))

    def defect(self, error: Exception) -> None:
        """Something unexpected was raised."""
        self._log.error("executor_defect", sentence=str(error), exc_info=error)

    def ended(self, error: Exception) -> None:
        """Nothing more is carried out."""
        self._log.error("executor_ended", sentence=str(error))

    def status(self, view: View, may: May | None, failure: str | None, held_by: Mapping[str, str]) -> Status:
        """All of it at once; ``held_by`` is what the machine found: plan -> what keeps it from going on."""
        plans = self._plans(view)
        open_ = [one.plan for one in plans if not one.plan.ended]
        may_not = _may_not(open_, may)
        return Status(
            plans=plans,
            debts=moves.debts(view),
            may_begin=may_not is None,
            may_not=may_not or "",
            look_failed=self._look_failed,
            failure=failure,
            journal_failed=self._journal_gone or self._left_aside,
            holds=tuple(why for plan in open_ if (why := _hold(plan, may, held_by)) is not None),
        )

    def _plans(self, view: View) -> tuple[PlanProgress, ...]:
        batches = moves.batches(view)
        with self._lock:
            return tuple(
                plan_progress(plan, (one for one in batches if one.proposal_id == plan.proposal_id), self._rates)
                for plan in moves.plans(view)
            )


def _may_not(open_: Sequence[Plan], may: May | None) -> str | None:
    """Why no plan may begin a batch, empty while that is unknown; None when one may."""
    if may is None:
        return ""
    held = [why for plan in open_ if (why := may.of(plan.proposal_id)) is not None]
    if may.begin and (not held or len(held) < len(open_)):
        return None
    return held[0] if held else may.sentence


def _hold(plan: Plan, may: May | None, held_by: Mapping[str, str]) -> str | None:
    """What keeps an open plan from going on: what the guard says of new batches, a pause, or what the look showed."""
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
