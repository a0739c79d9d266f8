"""rackwise beside a real application: looks, decides and triggers as the agent does in mode ``execute``, in one thread.

The journal is one in memory; everything else is the product's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from agent.act.trigger import RebalanceTrigger
from agent.daemon.limits_from_settings import to_limits
from agent.execute.probing_decision import ProbingContext, decide
from agent.execute.probing_values import (
    NO_ANCHORS,
    Anchors,
    PastTrigger,
    ProbingDecision,
    ProbingOff,
    ProbingOffReason,
    ProbingTrigger,
    past_triggers,
)
from agent.execute.trigger_judgement import judge, learn
from agent.execute.trigger_refusals import refusal
from agent.guard.execute_checks import next_look_ms
from agent.values.clock import system_clock
from agent.values.cycle import Cycle
from agent.values.proposal import ProposalReason
from agent.values.snapshot import StreamsGroup
from agent.wire.admin_client import WireAdminClient
from config.settings import Settings
from testbed.demo.workload import ClusterWorkload
from tests.act.triggers import MemoryJournal
from tests.watching_agent import WatchingAgent

POLL_MS = 10_000
"""The agent's own default."""
_SAMPLED_EVERY_S = 0.1

Say = Callable[[str], None]


class Round(NamedTuple):
    """One trigger."""

    at_s: float
    """Since the reported beginning."""
    wanted: tuple[str, ...]
    """Tasks whose warm-ups justified it."""


@dataclass
class Followed:
    """What came of following an application to its rest."""

    seconds: float = 0.0
    looks: int = 0
    rounds: list[Round] = field(default_factory=list)
    vain: int = 0
    """Rounds that were judged to have promoted nothing."""


class Driver:
    """Follows one application."""

    def __init__(self, eye: WatchingAgent, admin_client: WireAdminClient, application: str, say: Say) -> None:
        self._eye, self._application, self._say = eye, application, say
        self._journal = MemoryJournal()
        self._limits = to_limits(eye.settings)
        self._trigger = RebalanceTrigger(admin_client, self._journal, system_clock, self._limits)
        self._anchors: Anchors = NO_ANCHORS

    def settle(self, *, within_s: float = 60.0) -> frozenset[str]:
        """Look until nothing warms up; its processes."""
        cycle = self._eye.until(
            lambda cycle: at_rest(self._decide(cycle)), f"{self._application} at rest", within_s=within_s
        )
        return self.processes(cycle)

    def follow(self, began: float, ended: Callable[[Cycle, ProbingDecision], bool], *, within_s: float) -> Followed:
        """Look, decide and trigger until that is true; ``began`` is monotonic. Fails when it takes too long."""
        followed = Followed()
        while True:
            cycle = self._look()
            decision = self._decide(cycle)
            followed.looks += 1
            followed.seconds = time.monotonic() - began
            if ended(cycle, decision):
                followed.vain = sum(past.promoted is False for past in self._past(cycle))
                return followed
            assert followed.seconds < within_s, f"not at rest within {within_s:.0f} s: {decision}"
            acted = isinstance(decision, ProbingTrigger) and self._carry_out(cycle, decision, began, followed)
            delay_ms = next_look_ms([decision], cycle.snapshot.monotonic_ms, poll_ms=POLL_MS, acted=acted)
            time.sleep((POLL_MS if delay_ms is None else delay_ms) / 1000)

    def processes(self, cycle: Cycle) -> frozenset[str]:
        """Ids of those that the cycle shows; empty while the application rebalances."""
        group = cycle.snapshot.groups.get(self._application)
        return frozenset(one.id for one in group.processes) if isinstance(group, StreamsGroup) else frozenset()

    def _look(self) -> Cycle:
        cycle = self._eye.look(planning=True)
        self._journal.append(*learn(self._journal.view(), cycle.snapshot, cycle.before, cycle.proposals))
        self._journal.append(*judge(self._journal.view(), cycle.snapshot))
        return cycle

    def _decide(self, cycle: Cycle) -> ProbingDecision:
        return decide(self._application, ProbingContext(cycle.snapshot, cycle.before, self._limits), self._past(cycle))

    def _past(self, cycle: Cycle) -> tuple[PastTrigger, ...]:
        taken_ms, monotonic_ms = cycle.snapshot.taken_ms, cycle.snapshot.monotonic_ms
        past, self._anchors = past_triggers(
            self._journal.view(), self._anchors, taken_ms=taken_ms, monotonic_ms=monotonic_ms
        )
        return past.get(self._application, ())

    def _carry_out(self, cycle: Cycle, decision: ProbingTrigger, began: float, followed: Followed) -> bool:
        proposals = [one for one in cycle.proposals if one.reason is ProposalReason.WARMUP_PROMOTABLE]
        proposal = next((one for one in proposals if one.subject.name == self._application), None)
        if proposal is None:
            self._say(f"not proposed: {decision.sentence}")
            return False
        why = refusal(proposal, cycle.snapshot, cycle.before, self._journal.view(), self._limits)
        if why is not None:
            self._say(f"refused: {why.sentence}")
            return False
        outcome = self._trigger.carry_out(proposal, cycle.snapshot)
        at_s = time.monotonic() - began
        self._say(f"{at_s:6.1f} s  {decision.sentence}: {outcome.sentence}")
        if outcome.done:
            followed.rounds.append(Round(at_s, tuple(str(task) for _, task in decision.copies)))
        return outcome.done


def at_rest(decision: ProbingDecision) -> bool:
    """Whether the application is stable and nothing warms up; between two rounds its leader only sets no time yet."""
    return isinstance(decision, ProbingOff) and decision.reason is ProbingOffReason.NO_WARMUPS


class Restoring:
    """Adds up the time in which some warm-up is behind, by the application's own word; asks in a thread."""

    def __init__(self, work: ClusterWorkload, application: str, acceptable: int) -> None:
        self._work, self._application, self._acceptable = work, application, acceptable
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.seconds = 0.0

    def _run(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(_SAMPLED_EVERY_S):
            lags = self._work.lags(self._application)
            now = time.monotonic()
            rows = [row for instance in lags["instances"] for row in instance["tasks"] if row["role"] == "standby"]
            if any(row["lag"] is not None and row["lag"] > self._acceptable for row in rows):
                self.seconds += now - last
            last = now

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


@contextmanager
def driver_of(settings: Settings, application: str, say: Say = print) -> Iterator[Driver]:
    """A driver with connections of its own."""
    with WatchingAgent(settings) as eye, WireAdminClient(settings.kafka.kafka_python()) as admin_client:
        admin_client.describe_brokers(10_000)
        yield Driver(eye, admin_client, application, say)
