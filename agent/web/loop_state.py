"""The loop's state for other threads: one frozen value that is replaced as a whole. Unknown is None, not zero."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from agent.record.recorder import RecordingResult
from agent.values.clock import ClockReading
from agent.values.cycle import Cycle
from agent.values.last_known import LastKnown, is_failed
from agent.values.number_format import lasted
from agent.values.progress import ExecuteState
from agent.web.cycle_history import CycleSummary, EndedProposal, failed_summary, summary_of, with_ended, with_summary


class CycleFailure(NamedTuple):
    """A cycle that ended without a result."""

    cycle: int
    sentence: str
    at_ms: int
    """Epoch milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """The loop at one instant. Durations are taken from the monotonic clock."""

    started: ClockReading
    cycle: Cycle | None = None
    """The last one that succeeded."""
    planned: Cycle | None = None
    """The last one that planned, and saw what there is: without topics or groups nothing would be proposed."""
    known: LastKnown | None = None
    """Counts and findings as looks last confirmed them."""
    recording: RecordingResult | None = None
    last_end: ClockReading | None = None
    """When a cycle last ended, in whatever way."""
    last_success: ClockReading | None = None
    running_since: ClockReading | None = None
    """When the cycle that is running began; None while none is."""
    failure: CycleFailure | None = None
    """The last failure; None once a cycle has succeeded again."""
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    """Looks that were due while one was running."""
    overran: int = 0
    """Cycles that took longer than the time between two looks."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Stage -> seconds spent in it since the start."""
    acts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(kind of proposal, done or not done) -> how often since the start."""
    acting: ExecuteState | None = None
    """None outside of mode execute."""
    notifications: Mapping[str, int] = field(default_factory=dict)
    """Outcome -> number since the start; empty without a target of notifications."""
    past: tuple[CycleSummary, ...] = ()
    """A row a minute for the last day, the newest last."""
    ended_proposals: tuple[EndedProposal, ...] = ()
    """Those that are made no more, the newest last."""
    stopping: bool = False


class LoopMonitor:
    """Holds the state of a running loop; the loop's thread writes, any thread reads."""

    def __init__(self, started: ClockReading) -> None:
        self._lock = threading.Lock()
        self._state = LoopState(started=started)

    @property
    def state(self) -> LoopState:
        """The state now."""
        return self._state

    def began(self, at: ClockReading) -> None:
        """A cycle has begun."""
        self._update(running_since=at)

    def succeeded(self, cycle: Cycle, recording: RecordingResult, at: ClockReading) -> None:
        """A cycle has ended with a result."""
        before = self._state
        spent = {stage: before.seconds.get(stage, 0.0) + ms / 1_000 for stage, ms in cycle.stages_ms.items()}
        self._update(
            cycle=cycle,
            planned=cycle if cycle.planned and not is_failed(cycle.snapshot) else before.planned,
            known=cycle.known,
            recording=recording,
            last_end=at,
            last_success=at,
            running_since=None,
            failure=None,
            succeeded=before.succeeded + 1,
            seconds={**before.seconds, **spent},
            acts=_added(before.acts, cycle),
            past=with_summary(before.past, summary_of(cycle, before.cycle, before.planned)),
            ended_proposals=with_ended(before.ended_proposals, cycle, before.planned),
        )

    def failed(self, failure: CycleFailure, at: ClockReading) -> None:
        """A cycle has ended without a result."""
        before = self._state
        past = with_summary(before.past, failed_summary(failure.at_ms, failure.sentence))
        self._update(failure=failure, last_end=at, running_since=None, failed=before.failed + 1, past=past)

    def skipped(self) -> None:
        """A look was due while one was running."""
        self._update(skipped=self._state.skipped + 1)

    def overran(self) -> None:
        """A cycle took longer than the time between two looks."""
        self._update(overran=self._state.overran + 1)

    def notified(self, counts: Mapping[str, int]) -> None:
        """Notifications were sent, or were not."""
        self._update(notifications=counts)

    def stopping(self) -> None:
        """The process is about to end."""
        self._update(stopping=True)

    def _update(self, **changes: object) -> None:
        with self._lock:
            self._state = replace(self._state, **changes)  # type: ignore[arg-type] # the callers above name fields


def _added(acts: Mapping[tuple[str, str], int], cycle: Cycle) -> Mapping[tuple[str, str], int]:
    if not cycle.outcomes:
        return acts
    kinds = {proposal.id: proposal.kind.value for proposal in cycle.proposals}
    new = Counter((kinds[one.proposal_id], "done" if one.done else "not done") for one in cycle.outcomes)
    return Counter(acts) + new


class HealthStatus(NamedTuple):
    """Whether the agent is well, with every reason against it."""

    well: bool
    reasons: tuple[str, ...]


def live(state: LoopState, now: ClockReading, stall_ms: int) -> HealthStatus:
    """Whether cycles end, with any result, within ``stall_ms``. An agent that is not live should be restarted."""
    silent_ms = now.monotonic_ms - (state.last_end or state.started).monotonic_ms
    if silent_ms <= stall_ms:
        return HealthStatus(well=True, reasons=())
    return HealthStatus(well=False, reasons=(f"no cycle has ended for {silent_ms // 1_000} s",))


def ready(state: LoopState, now: ClockReading, fresh_ms: int) -> HealthStatus:
    """Whether the last look succeeded within ``fresh_ms`` and, in mode execute, this agent can lead and act.

    A standby agent is ready.
    """
    reasons: list[str] = []
    if state.stopping:
        reasons.append("the agent is stopping")
    if state.failure is not None:
        reasons.append(state.failure.sentence)
    if state.last_success is None:
        reasons.append("no look has succeeded yet")
    elif (age_ms := now.monotonic_ms - state.last_success.monotonic_ms) > fresh_ms:
        reasons.append(f"the last successful look was {lasted(age_ms)} ago")
    if state.acting is not None:
        reasons += state.acting.reasons
    return HealthStatus(well=not reasons, reasons=tuple(reasons))
