"""Answers to simulated changes for the page: one question at a time, of bounded size, kept for some minutes.

Invariant: at most one simulation runs in an agent. It runs in a thread of low priority; one that takes too long is
waited for no more, and until it has ended no other begins.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

import structlog

from agent.documents.comparison import simulation_answer
from agent.errors import WHAT_IF, BadInput, PartialAnswer, RackwiseError, thread, unexpected
from agent.simulate.evaluation import StageEvaluation
from agent.simulate.simulate import simulate
from agent.simulate.what_if import SimulatedChange
from agent.values.number_format import counted

MOST_READS = 60_000
"""Partitions and reads of a cluster up to which questions are answered here: some seconds of work."""
MOST_CHANGES = 20
WAITS_S = 2.5
"""How long one request waits for its answer."""
DEADLINE_S = 30.0
"""How long an answer may take; later it is dropped."""
KEPT_S = 300.0
"""How long an answer is shown before the same question is asked of a newer look."""
_KEPT = 16
_NICE = 15


class WhatIfAnswer(NamedTuple):
    """What became of a question."""

    document: Any = None
    """A SimulationAnswer; None where there is none."""
    refused: str = ""
    """Why there is no answer, as a sentence."""
    remedy: str = ""
    status: int = 422
    """HTTP status of a refusal."""
    is_pending: bool = False
    """Whether it is being worked on."""
    taken_ms: int = 0
    """Epoch milliseconds of the look that it was asked of."""
    took_ms: int = 0


class _Question:
    """One that is being answered."""

    def __init__(self, key: Hashable, began_s: float) -> None:
        self.key, self.began_s = key, began_s
        self.done = threading.Event()


class WhatIfAnswers:
    """The questions of one agent."""

    def __init__(
        self, clock_s: Callable[[], float] = time.monotonic, *, waits_s: float = WAITS_S, deadline_s: float = DEADLINE_S
    ) -> None:
        self._clock_s, self._waits_s, self._deadline_s = clock_s, waits_s, deadline_s
        self._lock = threading.Lock()
        self._running: _Question | None = None
        self._answers: OrderedDict[Hashable, tuple[float, WhatIfAnswer]] = OrderedDict()

    def ask(self, look: StageEvaluation, changes: tuple[SimulatedChange, ...]) -> WhatIfAnswer:
        """The answer, or why there is none yet, or none at all."""
        key = tuple(map(repr, changes))
        with self._lock:
            if (found := self._kept(key)) is not None:
                return found
            running = self._running
            if running is None:
                if (refused := refusal(look, changes)) is not None:
                    return refused
                running = self._begin(key, look, changes)
        if running.key != key:
            return WhatIfAnswer(
                refused="Another question is being answered, and an agent answers one at a time.",
                remedy="Ask again in some seconds.",
                status=503,
            )
        running.done.wait(self._waits_s)
        with self._lock:
            found = self._kept(key)
        if found is not None:
            return found
        if self._clock_s() - running.began_s > self._deadline_s:
            return WhatIfAnswer(
                refused=f"The answer takes longer than {self._deadline_s:.0f} s, so it is waited for no more.",
                remedy="Ask for less at once, or on the command line.",
                status=504,
            )
        return WhatIfAnswer(is_pending=True)

    def _kept(self, key: Hashable) -> WhatIfAnswer | None:
        found = self._answers.get(key)
        if found is None:
            return None
        if self._clock_s() >= found[0]:
            del self._answers[key]
            return None
        return found[1]

    def _begin(self, key: Hashable, look: StageEvaluation, changes: tuple[SimulatedChange, ...]) -> _Question:
        self._running = question = _Question(key, self._clock_s())
        thread(WHAT_IF, partial(self._work, question, look, changes)).start()
        return question

    def _work(self, question: _Question, look: StageEvaluation, changes: tuple[SimulatedChange, ...]) -> None:
        _give_way()
        began = time.monotonic_ns()
        try:
            answer = answered(look, changes)
        except Exception as error:  # noqa: BLE001 a defect of a question must end neither the agent nor all questions
            structlog.get_logger("rackwise").exception("what_if_failed", sentence="a simulated change has a defect")
            answer = WhatIfAnswer(refused=unexpected(error), remedy="The agent's log has the details.", status=500)
        answer = answer._replace(took_ms=(time.monotonic_ns() - began) // 1_000_000)
        with self._lock:
            self._answers[question.key] = (self._clock_s() + KEPT_S, answer)
            if len(self._answers) > _KEPT:
                self._answers.popitem(last=False)
            self._running = None
        question.done.set()


def refusal(look: StageEvaluation, changes: tuple[SimulatedChange, ...]) -> WhatIfAnswer | None:
    """Why a question is too large for an agent that has a cluster to watch; None where it is not."""
    if len(changes) > MOST_CHANGES:
        what = counted(len(changes), "change")
        return WhatIfAnswer(
            refused=f"{what} are asked for, and at most {MOST_CHANGES} at once are answered here.",
            remedy="Ask for fewer, or on the command line.",
        )
    size = sum(len(topic.partitions) for topic in look.snapshot.topics.values())
    for one in look.detection.assessments.values():
        size += max((round(of.total) for of in one.current if of.unit == "partitions"), default=0)
    if size <= MOST_READS:
        return None
    return WhatIfAnswer(
        refused=f"The cluster has {size:,} partitions and reads of them, and questions are answered here up to "
        f"{MOST_READS:,}: a longer one would slow the agent's own looks.",
        remedy="Ask on the command line, which works on a machine of its own.",
    )


def answered(look: StageEvaluation, changes: tuple[SimulatedChange, ...]) -> WhatIfAnswer:
    """The outcome of the changes, or why they cannot be."""
    try:
        result = simulate(look.snapshot, look.before, look.limits, changes)
    except (BadInput, PartialAnswer) as error:
        return _refused(error)
    return WhatIfAnswer(simulation_answer(result, look), taken_ms=look.snapshot.taken_ms)


def _refused(error: RackwiseError) -> WhatIfAnswer:
    why = f": {error.why}" if error.why else ""
    status = 503 if isinstance(error, PartialAnswer) else 422
    return WhatIfAnswer(refused=f"{error.what}{why}", remedy=error.todo or "", status=status)


def _give_way() -> None:
    """Lowers the priority of this thread alone, where the system can."""
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
    except (AttributeError, OSError):
        return
