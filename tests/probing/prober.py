"""rackwise beside a simulated application: looks, decides and triggers, with its real stages and no shell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from agent.decode.members import decode_members
from agent.execute.probing_decision import ProbingContext, decide
from agent.execute.probing_values import PastTrigger, ProbingDecision, ProbingTrigger
from agent.guard.execute_checks import next_look_ms
from agent.memory.remember import remember
from agent.model.build_snapshot import build_snapshot
from agent.values.assessment import DetectionResult
from agent.values.limits import GroupLimits, Limits, ProbingLimits
from agent.values.memory import CopyKey, Memory
from agent.values.snapshot import Snapshot, StreamsGroup
from tests.builders import MONOTONIC_MS
from tests.probing.application import Application

NOTHING_FOUND = DetectionResult(findings=(), assessments={})
POLL_S = 10.0


@dataclass
class ProbingStep:
    """One look and what was decided."""

    at_s: float
    decision: ProbingDecision


class Prober:
    """Looks at one application until it is stopped; ``triggers`` are the seconds at which it asked."""

    def __init__(
        self,
        app: Application,
        probing: ProbingLimits | None = None,
        *,
        endpoint: bool = True,
        known: bool = True,
        memory: Memory | None = None,
        wall_offset_s: Callable[[float], float] = lambda _second: 0.0,
        settings: GroupLimits | None = None,
    ) -> None:
        self.app, self.probing, self._endpoint = app, probing or ProbingLimits(), endpoint
        of_app = settings or GroupLimits(
            known=known,
            acceptable_recovery_lag=app.configs.acceptable_recovery_lag,
            max_warmup_replicas=app.configs.max_warmup_replicas,
            num_standby_replicas=app.configs.num_standby_replicas,
            probing_rebalance_interval_ms=app.configs.probing_rebalance_interval_ms,
        )
        self.limits = Limits(groups={"app": of_app}, probing=self.probing)
        self.memory = memory or Memory()
        self.triggers: list[float] = []
        self.past: list[PastTrigger] = []
        self.steps: list[ProbingStep] = []
        self.looks = 0
        self._wall_offset_s = wall_offset_s
        self._open: tuple[str | None, tuple[CopyKey, ...]] | None = None

    def run(self, until_s: float, *, stop: Callable[[Application], bool] = lambda app: app.balanced) -> Prober:
        """Look after look until the application has come to rest or the time is over."""
        while self.app.now_s < until_s:
            delay_s = self.look()
            if stop(self.app):
                break
            self.app.advance(min(until_s, self.app.now_s + delay_s))
        return self

    def look(self) -> float:
        """One look, with what follows from it; seconds until the next."""
        self.looks += 1
        snapshot = self._snapshot()
        self._judge(snapshot)
        decision = decide("app", ProbingContext(snapshot, self.memory, self.limits), self.past)
        self.steps.append(ProbingStep(self.app.now_s, decision))
        self.memory = remember(self.memory, snapshot, NOTHING_FOUND)
        if isinstance(decision, ProbingTrigger):
            self._trigger(decision, snapshot)
            return 1.0
        delay_ms = next_look_ms([decision], snapshot.monotonic_ms, poll_ms=round(POLL_S * 1000))
        return POLL_S if delay_ms is None else delay_ms / 1000

    def _snapshot(self) -> Snapshot:
        observation = self.app.as_shown(endpoint=self._endpoint).at(self.app.now_s)
        moved_ms = round(self._wall_offset_s(self.app.now_s) * 1000)
        observation = replace(observation, taken_ms=observation.taken_ms + moved_ms)
        return build_snapshot(observation, decode_members(observation), self.memory, self.limits)

    def _trigger(self, decision: ProbingTrigger, snapshot: Snapshot) -> None:
        group = snapshot.groups["app"]
        assert isinstance(group, StreamsGroup)
        self._open = group.join, decision.copies
        self.triggers.append(self.app.now_s)
        self.past.append(PastTrigger(MONOTONIC_MS + round(self.app.now_s * 1000), None))
        self.app.rebalance()

    def _judge(self, snapshot: Snapshot) -> None:
        """By the assignment that is seen after the rebalance, as the journal's judgement does."""
        group = snapshot.groups["app"]
        if self._open is None or not isinstance(group, StreamsGroup) or group.hidden or group.join == self._open[0]:
            return
        runs = {(process.id, task) for process in group.processes for task in process.active}
        self.past[-1] = self.past[-1]._replace(promoted=bool(runs & set(self._open[1])))
        self._open = None
