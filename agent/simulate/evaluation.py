"""Evaluates one look by the stages from decode to propose; replays recorded looks; learns record sizes.

Equal input gives equal answers; nothing is remembered, guarded or done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from agent.decode.members import decode_members
from agent.detect.find import detect
from agent.memory.remember import MAX_PARTITIONS, WINDOW_MS, learned_bytes_per_record, rate_base, remember, size_base
from agent.model.build_snapshot import build_snapshot
from agent.plan.make import make_plan
from agent.propose.make import propose
from agent.telemetry.changes import whole_looks
from agent.telemetry.events import TelemetryEvent
from agent.telemetry.looks import CycleInputs, IncompleteLookError, observation_from_events
from agent.values.assessment import DetectionResult
from agent.values.clock import ClockReading
from agent.values.limits import Limits
from agent.values.memory import Memory, after_restart
from agent.values.number_format import counted, lasted
from agent.values.observation import Observation
from agent.values.plan import Plan
from agent.values.proposal import Proposal
from agent.values.rates import UNKNOWN_RATES, RateMeasurement, RateSource, judged
from agent.values.snapshot import Snapshot

if TYPE_CHECKING:
    from agent.values.plan import AgentDocument


class StageEvaluation(NamedTuple):
    """Every pure stage's answer for one look. ``plan`` is None when nothing was planned."""

    limits: Limits
    before: Memory
    """The memory that went into it."""
    snapshot: Snapshot
    detection: DetectionResult
    plan: Plan | None
    proposals: tuple[Proposal, ...]
    took_ms: int = 0
    """The look and all stages; 0 for a recorded look."""
    rates: RateMeasurement = UNKNOWN_RATES
    """Source of its bytes per second."""
    agent: AgentDocument | None = None
    """The running agent's report of itself, where requested."""


def evaluate(observation: Observation, memory: Memory, limits: Limits, *, planning: bool = True) -> StageEvaluation:
    """Snapshot, findings, plan and proposals of an observation."""
    snapshot = build_snapshot(observation, decode_members(observation, None), memory, limits, None)
    detection = detect(snapshot, memory, limits, None)
    plan = make_plan(snapshot, detection, limits, None) if planning else None
    proposals = propose(snapshot, plan, detection, limits, None) if plan is not None else ()
    return StageEvaluation(limits, memory, snapshot, detection, plan, proposals)


def keeping_leaders(evaluation: StageEvaluation) -> StageEvaluation:
    """The same look, with the proposals that change no preferred leader."""
    limits = replace(evaluation.limits, plan=replace(evaluation.limits.plan, keep_leaders=True))
    plan = make_plan(evaluation.snapshot, evaluation.detection, limits, None)
    return evaluation._replace(
        limits=limits, plan=plan, proposals=propose(evaluation.snapshot, plan, evaluation.detection, limits, None)
    )


# Replay: the recorded observation, memory and limits go through the loop's own stages with empty memos.


def replay(events: Iterable[TelemetryEvent]) -> tuple[Proposal, ...]:
    """The proposals of the recorded look. Raises IncompleteLookError and UnreadableError."""
    return replay_look(observation_from_events(events)).proposals


def replay_look(recorded: CycleInputs) -> StageEvaluation:
    """Every stage's answer for a recorded look."""
    return evaluate(recorded.observation, recorded.memory, recorded.limits)


def recorded_looks(
    events: Iterable[TelemetryEvent], left_out: Callable[[str], None] = lambda _: None
) -> Iterator[CycleInputs]:
    """Every complete look among the events, in their order; ``left_out`` is given why another is not complete."""
    for look in whole_looks(events):
        try:
            if isinstance(look, IncompleteLookError):
                raise look
            yield observation_from_events(look)
        except IncompleteLookError as error:
            left_out(str(error))


# The loop learns the size of a record when it remembers a look, and uses it in the next one. A command looks only
# twice, so it learns before its second look is evaluated.

OLDEST_BASE_MS = 600_000
"""Milliseconds; older figures of the agent no longer describe the traffic."""
_AHEAD_MS = 1_000
"""Tolerated difference of two clocks; above it bytes per second would be of another time."""


def first_memory(observation: Observation, limits: Limits) -> Memory:
    """The memory of the first look for the second, as the agent's loop makes it, in a cluster of any size."""
    first = evaluate(observation, Memory(), limits, planning=False)
    after = remember(Memory(), first.snapshot, first.detection)
    return replace(after, rate_bases=(rate_base(first.snapshot),), size_base=size_base(first.snapshot))


def second_look(observation: Observation, memory: Memory, limits: Limits, *, planning: bool = True) -> StageEvaluation:
    """The evaluation of the second look, with rates."""
    snapshot = build_snapshot(observation, decode_members(observation, None), memory, limits, None)
    learned = replace(memory, bytes_per_record=learned_bytes_per_record(memory, snapshot))
    evaluation = evaluate(observation, learned, limits, planning=planning)
    base_ms = learned.rate_bases[0].monotonic_ms if learned.rate_bases else None
    seconds = None if base_ms is None else (observation.monotonic_ms - base_ms) / 1000
    return evaluation._replace(rates=judged(RateMeasurement(RateSource.COMMAND, seconds), evaluation.snapshot))


def next_look(observation: Observation, memory: Memory, limits: Limits) -> tuple[StageEvaluation, Memory]:
    """One more look with rates over the last minute, and the memory for the next."""
    evaluation = second_look(observation, memory, limits, planning=False)
    snapshot, after = evaluation.snapshot, remember(evaluation.before, evaluation.snapshot, evaluation.detection)
    young = [base for base in memory.rate_bases if snapshot.monotonic_ms - base.monotonic_ms < WINDOW_MS]
    bases = (*young, rate_base(snapshot)) if snapshot.end_offsets else memory.rate_bases
    return evaluation, replace(after, rate_bases=bases, size_base=after.size_base or memory.size_base)


def base_of_agent(memory: Memory, look: str, taken_ms: int, now: ClockReading) -> tuple[Memory, RateMeasurement]:
    """The rate bases of the agent's memory on this process's clock, with their measurement; else the reason.

    ``look``, ``taken_ms``: the look that the memory went into. No other memory of the agent is used: findings of a
    command are of its own look.
    """
    age_ms = max(0, now.wall_ms - taken_ms)
    if (ahead_ms := taken_ms - now.wall_ms) > _AHEAD_MS:
        why = f"is {lasted(ahead_ms)} in the future, so the time since it is unknown"
        return Memory(), RateMeasurement(why_not=f"the newest look in the agent's telemetry {why}")
    moved = after_restart(memory, now.wall_ms, now.monotonic_ms)
    bases = tuple(base for base in moved.rate_bases if now.monotonic_ms - base.monotonic_ms <= OLDEST_BASE_MS)
    if not bases:
        return Memory(), RateMeasurement(
            why_not=f"the newest recorded look in the agent's telemetry {_no_base(moved, age_ms)}"
        )
    kept = Memory(rate_bases=bases, bytes_per_record=moved.bytes_per_record)
    return kept, RateMeasurement(RateSource.AGENT, (now.monotonic_ms - bases[0].monotonic_ms) / 1000, look, age_ms)


def _no_base(memory: Memory, age_ms: int) -> str:
    if memory.rate_bases:
        return f"is {lasted(age_ms)} old"
    if not memory.cycle:
        return f"is its first, {lasted(age_ms)} old, and rates need two, record.every apart"
    return f"keeps no end offsets: none were read, or those of more than {counted(MAX_PARTITIONS, 'partition')}"
