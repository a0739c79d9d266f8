"""An executor in a process of its own, which can be made to die at a named step: `python -m tests.drill.executor FILE`.

The steps are hooked in from here, around the journal and the hand of the product; the product knows nothing of them.
Says a word a line: `looked` after its first look, `idle` when nothing is left to do, `busy` when there is again.
Hears a word a line: `pause`, `resume`, `cancel` or `rollback`, then the name of a plan. SIGTERM makes it leave.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

import structlog

from agent.act.journal import Journal
from agent.act.leadership import Leadership
from agent.act.mover import Mover
from agent.errors import FencedOut
from agent.execute.messages import May, Word
from agent.execute.values import Plan, Policy
from agent.journal.entry import View, Write
from agent.observation import RawReassignment
from agent.stopping import Stop
from agent.typed_json import from_json
from agent.wire import connection
from agent.wire.config_changes import Operation
from agent.wire.hand import WireHand
from agent.wire.protocol import ALTER_PARTITION_REASSIGNMENTS
from tests.act.journals import CLUSTER, leadership_plan
from tests.act.moving import journal_file

_REMOVING = (Operation.DELETE, Operation.SUBTRACT)


class Death:
    """Kills this process as SIGKILL does, the n-th time that a step is reached."""

    def __init__(self, step: str | None, times: int) -> None:
        self._step = step
        self._left = times

    def at(self, step: str) -> None:
        if step == self._step:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class DyingJournal:
    """The journal, with steps to die at."""

    def __init__(self, inner: Journal, death: Death) -> None:
        self._inner = inner
        self._death = death

    @property
    def epoch(self) -> int:
        return self._inner.epoch

    def view(self) -> View:
        return self._inner.view()

    def append(self, *writes: Write) -> None:
        self._inner.append(*writes)
        self._death.at("append")
        for write in writes:
            self._death.at(f"after {write.kind}")


class DyingHand(WireHand):
    """The hand, with steps to die at."""

    def __init__(self, arguments: dict[str, Any], death: Death) -> None:
        super().__init__(arguments)
        self._death = death
        self._looked = False

    def list_reassignments(self, deadline_ms: int) -> tuple[RawReassignment, ...]:
        moves = super().list_reassignments(deadline_ms)
        if not self._looked:
            self._looked = True
            say("looked")
        self._death.at("look")
        if moves:
            self._death.at("mid-progress")
        return moves

    def alter_placements(self, targets: Any, deadline_ms: int, begin_by: Any = None, leave_out: Any = None) -> Any:
        self._death.at("before the request")
        answers = super().alter_placements(targets, deadline_ms, begin_by, leave_out)
        self._death.at("request acknowledged")
        return answers

    def change_throttles(
        self, changes: Iterable[Any], deadline_ms: int, begin_by: Any = None, leave_out: Any = None
    ) -> Any:
        wanted = list(changes)
        clearing = any(change.operation in _REMOVING for change in wanted)
        if clearing:
            self._death.at("before throttle clear")
        answers = super().change_throttles(wanted, deadline_ms, begin_by, leave_out)
        self._death.at("after throttle clear" if clearing else "throttle set")
        return answers


def die_when_sent(death: Death) -> None:
    """Before the answer to a reassignment is read."""
    answer = connection.Connection._answer

    def dying(self: Any, api: Any, version: int, deadline: Any) -> Any:
        if api is ALTER_PARTITION_REASSIGNMENTS:
            death.at("request sent")
        return answer(self, api, version, deadline)

    connection.Connection._answer = dying  # type: ignore[method-assign]


def say(word: str) -> None:
    print(word, flush=True)


def main() -> int:
    faulthandler.enable()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    config = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    death = Death(config["die"], config["times"])
    die_when_sent(death)
    leave = Stop()
    signal.signal(signal.SIGTERM, lambda _number, _frame: leave.set())
    arguments = {"bootstrap_servers": config["servers"].split(","), "client_id": config["client_id"]}
    with DyingHand(arguments, death) as hand:
        if config.get("prefix") is None:
            with journal_file(Path(config["journal"])) as journal, moving(config, journal, hand, death) as mover:
                work(mover, leave)
            return 0
        return lead(config, hand, death, leave)


@contextmanager
def moving(
    config: dict[str, Any],
    journal: Journal,
    hand: WireHand,
    death: Death,
    leads_for_s: Callable[[], float] = lambda: inf,
) -> Iterator[Mover]:
    """A mover that was given the plan; giving it again does nothing."""
    mover = Mover(
        journal=DyingJournal(journal, death),
        hand=hand,
        policy=Policy(**config["policy"]),
        may=lambda: May(begin=True),
        tick_ms=200,
        leads_for_s=leads_for_s,
    )
    mover.start()
    mover.accept(from_json(Plan, config["plan"]))
    threading.Thread(target=_hear, args=(mover,), daemon=True).start()
    try:
        yield mover
    finally:
        assert mover.close(30_000)


def work(mover: Mover, leave: Stop, leads: Callable[[], bool] = lambda: True) -> None:
    """Until it is to leave, or does not lead any more."""
    busy = True
    while not leave.wait(0.1) and leads():
        mover.check()
        if mover.busy != busy:
            busy = mover.busy
            say("busy" if busy else "idle")


def lead(config: dict[str, Any], hand: WireHand, death: Death, leave: Stop) -> int:
    """Stand by until it leads, and move as long as it does; the exit code."""
    leadership = Leadership(leadership_plan(config["direct"], config["prefix"], config["client_id"]))
    leadership.start()
    leadership.begin(CLUSTER)
    say("stands by")
    try:
        while not leave.wait(0.1):
            journal = leadership.journal()
            if journal is not None:
                say("leads")
                with moving(config, journal, hand, death, leadership.leads_for_s) as mover:
                    work(mover, leave, lambda led=journal: leadership.journal() is led)
    except FencedOut as error:
        say("fenced")
        return error.exit_code
    finally:
        leadership.close()
    return 0


def _hear(mover: Mover) -> None:
    for line in sys.stdin:
        word, _, proposal = line.strip().partition(" ")
        mover.word(Word(word), proposal, "an operator")


if __name__ == "__main__":
    sys.exit(main())
