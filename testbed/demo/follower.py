"""Cycles of the agent during the demo: prints what is new in each, starts the script, and ends the demo."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from agent.daemon.daemon import AgentDaemon
from agent.values.cycle import sentence
from agent.values.proposal import ProposalReason
from agent.web.agent_view import LoopState
from testbed.demo.console import ConsoleLine, DemoConsole
from testbed.demo.events import CycleEvents

_TICK_S = 0.1
_FIRST_CYCLE_S = 120.0
_QUIET_S = 15.0


class LoopFollower:
    """A thread that follows the loop. ``done`` is set when the demo ran its time, not when it was cut short.

    ``until``: the demo also waits until it is true.
    """

    def __init__(
        self,
        agent: AgentDaemon,
        screen: DemoConsole,
        seconds: int,
        *,
        on_first: Callable[[], None],
        promotion_proposed: threading.Event,
        until: Callable[[], bool] = lambda: True,
    ) -> None:
        self._agent = agent
        self._screen = screen
        self._seconds = seconds
        self._on_first = on_first
        self._promotion_proposed = promotion_proposed
        self._until = until
        self._news = CycleEvents()
        self._shown_cycle = 0
        self._failed = 0
        self._quiet_since = time.monotonic()
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo-usher", daemon=True)
        self.done = threading.Event()

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def join(self) -> None:
        """Tell nothing more."""
        self._leave.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        while self._shown_cycle == 0 and not self._leave.is_set():
            self._follow()
            if self._shown_cycle == 0 and time.monotonic() - began > _FIRST_CYCLE_S:
                self._screen.tell(ConsoleLine("problem", f"no cycle has succeeded within {_FIRST_CYCLE_S:.0f} s"))
                self._agent.stop()
                return
            self._leave.wait(_TICK_S)
        ends = time.monotonic() + self._seconds
        while (time.monotonic() < ends or not self._until()) and not self._leave.is_set():
            self._follow()
            self._leave.wait(_TICK_S)
        if not self._leave.is_set():
            self.done.set()
            self._agent.stop()

    def _follow(self) -> None:
        state = self._agent.watch.state
        self._tell_failure(state)
        cycle = state.cycle
        if cycle is None or cycle.number == self._shown_cycle:
            return
        if self._shown_cycle == 0:
            self._screen.begin()
            self._screen.tell(ConsoleLine("look", sentence(cycle)))
            self._on_first()
        self._shown_cycle = cycle.number
        news = self._news.of(cycle)
        if not news and time.monotonic() - self._quiet_since > _QUIET_S:
            news = [ConsoleLine("look", f"{sentence(cycle)}; no change")]
        if news:
            self._screen.tell(*news)
            self._quiet_since = time.monotonic()
        if any(proposal.reason is ProposalReason.WARMUP_PROMOTABLE for proposal in cycle.proposals):
            self._promotion_proposed.set()

    def _tell_failure(self, state: LoopState) -> None:
        if state.failure is not None and state.failed > self._failed:
            self._failed = state.failed
            self._screen.tell(ConsoleLine("problem", state.failure.sentence))
