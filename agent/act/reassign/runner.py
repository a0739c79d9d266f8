"""Runs the executor's machine against the cluster, one command after the other, in the caller's thread.

Invariants: the machine decides, this only carries out: a command is answered before the next one is begun, and nothing
but its commands is ever done. Whatever stops this between two commands (a signal, a fence, a journal that does not
answer) is as if the process had died there: the journal knows all that is needed to go on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Protocol

from agent.act.journal.journal import Journal
from agent.act.reassign.carrying import carry_out
from agent.act.reassign.looking import LookFailedError, Traffic, look, no_traffic
from agent.errors import BadInput, FencedOut
from agent.execute.reassign.machine import begins, resume, step
from agent.execute.reassign.messages import (
    Accepted,
    Act,
    Alter,
    Answered,
    Append,
    Appended,
    Cancel,
    Command,
    Configure,
    Elect,
    Event,
    Fenced,
    Finish,
    Kind,
    Known,
    Look,
    Looked,
    May,
    Result,
    Say,
    Seen,
    Tick,
    valid_ms,
)
from agent.execute.reassign.state import State
from agent.journal import moves
from agent.journal.room import need_of, no_room
from agent.values.clock import elapsed_s
from agent.values.journal import View, Write
from agent.values.reassignment import Change, Plan, Policy
from agent.values.typed_json import UnreadableError
from agent.wire.deadline import Deadline
from agent.wire.hand import WireHand


class Listener(Protocol):
    """Called with what happens; none of these may take long or raise."""

    def seen(self, seen: Seen) -> None:
        """The cluster was looked at."""

    def look_failed(self, sentence: str) -> None:
        """It could not be seen well enough."""

    def answered(self, act: Act, results: tuple[Result, ...]) -> None:
        """A request was answered, or was not."""

    def said(self, say: Say) -> None:
        """The machine has something to say."""

    def finished(self, finish: Finish) -> None:
        """A plan has ended."""


class Runner:
    """The machine with its hands; not safe to use from several threads, but for `stop` and `held`."""

    def __init__(
        self,
        journal: Journal,
        hand: WireHand,
        policy: Policy,
        listener: Listener,
        *,
        may: Callable[[], May],
        traffic: Traffic = no_traffic,
        leads_for_s: Callable[[], float] = lambda: inf,
    ) -> None:
        """``may`` is asked before each look, so that nothing begins on an older permission than what was seen.

        ``leads_for_s`` tells for how long this agent surely leads; no request is begun after that.
        """
        self._journal = journal
        self._hand = hand
        self._policy = policy
        self._listener = listener
        self._may = may
        self._traffic = traffic
        self._leads_for_s = leads_for_s
        self._stopped = threading.Event()
        self._state: State | None = None
        self._told_at = elapsed_s()
        self._good_until = float("-inf")
        """Until when the request of the latest append may be begun, on the clock of `elapsed_s`."""
        self.last_may: May | None = None
        """What the machine was last given; None when it was given nothing since it was resumed."""

    def resume(self) -> None:
        """Forget what was known, and go on from what the journal says.

        Raises FencedOut, JournalUnavailable, and BadInput when the journal is not understood.
        """
        try:
            records = moves.read(self._journal.view())
        except UnreadableError as error:
            raise BadInput(
                "The moves in the journal cannot be read",
                why=str(error),
                todo="Nothing is moved until the rackwise that wrote it, or a newer one, leads.",
            ) from error
        self.last_may = None
        self._state, commands = resume(records, self._policy)
        self._told_at = elapsed_s()
        self._work_off(commands)

    def hear(self, event: Event | None = None) -> None:
        """Tell the machine that time passed and, then, what happened; do all that it asks for.

        Raises FencedOut, after which nothing may be done any more, and JournalUnavailable, after which it must be
        resumed.
        """
        self._work_off(self._step(self._tick()))
        if isinstance(event, Accepted):
            # A plan that the journal has dropped since may be an attempt of the same name now.
            self._step(Known(moves.known(self._journal.view())))
        if event is not None:
            self._work_off(self._step(self._tick(), event))

    @property
    def held(self) -> Mapping[str, str]:
        """Plan -> what keeps it from going on, as the machine found it. Callable from any thread."""
        state = self._state
        return {} if state is None else state.held

    @property
    def idle(self) -> bool:
        """True when no plan is open and no throttle of ours is set."""
        return self._state is not None and self._state.idle

    def stop(self) -> None:
        """Begin no further command; the one under way ends by its own deadline. Callable from any thread."""
        self._stopped.set()

    def _work_off(self, commands: Iterable[Command]) -> None:
        queue = deque(commands)
        while queue and not self._stopped.is_set():
            answer = self._do(queue.popleft())
            if answer is not None:
                queue.extend(self._step(self._tick(), answer))

    def _do(self, command: Command) -> Event | None:
        match command:
            case Append():
                return self._append(command)
            case Look():
                return self._look(command)
            case Alter() | Cancel() | Configure() | Elect():
                return self._act(command)
            case Say():
                self._listener.said(command)
            case Finish():
                self._listener.finished(command)
                self._tidy()
        return None

    def _append(self, command: Append) -> Appended:
        began = elapsed_s()
        self._write(lambda view: _lines(view, command.changes))
        took_ms = (elapsed_s() - began) * 1000
        limits = self._policy.limits
        good_ms = valid_ms(took_ms, least_ms=limits.intent_valid_ms, request_timeout_ms=limits.request_timeout_ms)
        self._good_until = began + good_ms / 1000
        return Appended()

    def _write(self, lines: Callable[[View], tuple[Write, ...]]) -> None:
        try:
            if writes := lines(self._journal.view()):
                self._journal.append(*writes)
        except FencedOut:
            self._step(Fenced())
            self._stopped.set()
            raise

    def _tidy(self) -> None:
        """Keep the journal small; what is open is never touched, so when it may be done does not matter."""
        self._write(moves.tidy)

    def _ask_may(self) -> May:
        """Whether a new batch may begin; the machine hears of each change."""
        if (may := self._may()) != self.last_may:
            self._step(may)
            self.last_may = may
        return may

    def _look(self, command: Look) -> Looked:
        self._ask_may()
        try:
            seen = look(self._hand, command, self._policy.limits.request_timeout_ms, self._traffic)
        except LookFailedError as error:
            self._listener.look_failed(str(error))
            return Looked(None, error.silent)
        self._listener.seen(seen)
        return Looked(seen)

    def _act(self, act: Act) -> Answered:
        if isinstance(act, Alter | Elect) and self._state is not None and begins(self._state, act):
            # Asked once more: a pause may have been answered since the look.
            plan = self._state.plan
            why = self._ask_may().of(plan.proposal_id if plan is not None else "")
            if why is not None:
                subjects = act.partitions if isinstance(act, Elect) else [move.id for move in act.moves]
                return Answered(tuple(Result(one, Kind.NOT_SENT, why) for one in subjects))
        begin_by = Deadline(min(self._good_until, elapsed_s() + self._leads_for_s()))
        results = carry_out(self._hand, act, begin_by=begin_by, timeout_ms=self._policy.limits.request_timeout_ms)
        self._listener.answered(act, results)
        return Answered(results)

    def _tick(self) -> Tick:
        now = elapsed_s()
        elapsed_ms = int((now - self._told_at) * 1000)
        # What is cut off here is said the next time.
        self._told_at += elapsed_ms / 1000
        return Tick(elapsed_ms)

    def _step(self, *events: Event) -> list[Command]:
        commands: list[Command] = []
        for event in events:
            if self._state is None:
                raise RuntimeError("the machine was not resumed")
            self._state, more = step(self._state, event, self._policy)
            commands += more
        return commands


def _lines(view: View, changes: tuple[Change, ...]) -> tuple[Write, ...]:
    """What to write. Raises BadInput for a plan beside which there is no room: others were accepted since it was let.

    Without it the journal could outgrow what any agent reads, and no agent could lead.
    """
    names = moves.known(view)
    new = [one for one in changes if isinstance(one, Plan) and not one.ended and one.proposal_id not in names]
    for plan in new:
        try:
            why = no_room(view, need_of(plan))
        except UnreadableError as error:
            why = str(error)
        if why is not None:
            raise BadInput(f"Plan {plan.proposal_id} cannot begin now", why=why)
    return moves.changed(view, changes)
