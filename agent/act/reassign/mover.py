"""Carries accepted plans out, in a thread of its own: about once a second while there is something to do, else asleep.

What is to be done, and what was, is in the journal; the next agent goes on from there. `close`
only stops: a plan that is open stays open, its moves go on in the cluster, and nothing is cleared or cancelled.
A fence, or a journal that is not understood, ends it for good; `check` raises the reason.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from math import inf

from agent.act.journal.journal import Journal
from agent.act.reassign.looking import Traffic, no_traffic
from agent.act.reassign.runner import Runner
from agent.act.reassign.telling import Telling
from agent.errors import EXECUTOR, BadInput, JournalUnavailable, RackwiseError, thread
from agent.execute.reassign.messages import Accepted, Event, May, Said, Word
from agent.values.journal import View
from agent.values.progress import Status
from agent.values.reassignment import Plan, Policy
from agent.wire.hand import WireHand

SWEEP_S = 60.0
"""How often to see what the journal says although nothing is open."""


class Mover:
    """The executor of one agent. Every method may be called from any thread."""

    def __init__(
        self,
        *,
        journal: Journal,
        hand: WireHand,
        policy: Policy,
        may: Callable[[], May],
        traffic: Traffic = no_traffic,
        leads_for_s: Callable[[], float] = lambda: inf,
        tick_ms: int = 1_000,
    ) -> None:
        """``may`` tells whether a new batch may begin now; it is asked before each look, so it must be quick.

        ``leads_for_s`` tells for how long this agent surely leads; nothing is sent after that.
        ``hand`` and ``journal`` stay the caller's: close them after this.
        """
        self._journal = journal
        self._tick_s = tick_ms / 1000
        self._telling = Telling()
        self._runner = Runner(journal, hand, policy, self._telling, may=may, traffic=traffic, leads_for_s=leads_for_s)
        self._inbox: deque[Event] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._resumed = False
        self._failure: Exception | None = None
        self._view: View = {}
        self._thread = thread(EXECUTOR, self._run)

    def start(self) -> None:
        """Go on with what the journal says, and clear what throttles of ours no open plan needs."""
        self._thread.start()

    def accept(self, plan: Plan) -> None:
        """Carry this plan out, after those that were accepted before. One that was accepted once is left aside."""
        self._post(Accepted(plan))

    def word(self, word: Word, proposal_id: str, who: str = "") -> None:
        """What an operator says about a plan."""
        self.hear(Said(word, proposal_id, who))

    def hear(self, said: Said) -> None:
        """The same, with the id of the operator's command."""
        self._post(said)

    def status(self) -> Status:
        """Every plan that the journal knows, how far it is, and what holds it."""
        failure, runner = self._failure, self._runner
        told = None if failure is None else str(failure)
        return self._telling.status(self._known(), runner.last_may, told, runner.held)

    @property
    def busy(self) -> bool:
        """True while a plan is open, a throttle of ours is set, or something was posted and not begun."""
        return not self._resumed or bool(self._inbox) or not self._runner.idle

    @property
    def ended(self) -> bool:
        """True once nothing of it runs any more, and no request of its is under way."""
        return not self._thread.is_alive()

    def check(self) -> None:
        """Raises what ended the mover: FencedOut, or whatever else it cannot continue with."""
        if self._failure is not None:
            raise self._failure

    def close(self, deadline_ms: int = 3_000) -> bool:
        """Begin nothing more; True when the call under way ended in time. What is open stays in the journal."""
        self._runner.stop()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(deadline_ms / 1000)
        return not self._thread.is_alive()

    def _post(self, event: Event) -> None:
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
        except Exception as error:  # noqa: BLE001 told by `check`, in the thread that can end the agent
            self._telling.defect(error)
            self._ended(error)

    def _turn(self) -> None:
        """One step: what was posted, else the mere passing of time."""
        event: Event | None = None
        try:
            if not self._resumed:
                self._runner.resume()
                self._resumed = True
            while self._inbox:
                event = self._inbox.popleft()
                self._runner.hear(event)
            event = None
            self._runner.hear()
            self._telling.journal_answers()
            self._telling.progress(self._known())
        except BadInput as error:
            if event is None:
                raise
            # A plan that no journal can hold is not begun; the others go on.
            self._telling.left_aside(error)
            self._resumed = False
        except JournalUnavailable as error:
            self._telling.journal_unavailable(error)
            # Heard again it does no harm: a plan is accepted once, and a word said twice is said.
            if event is not None:
                self._inbox.appendleft(event)
            self._resumed = False

    def _known(self) -> View:
        """What the journal says, or last said: one that ended has no more to say, and status is asked all the same."""
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
        self._runner.stop()
        self._telling.ended(error)
