"""An agent whose last look is one recorded look, as the API and the page see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agent.journal.entries import JournalState
from agent.loop import CycleStages, run_cycle
from agent.record.newest_look import AgentRun
from agent.values.clock import ClockReading
from agent.values.cycle import AgentIdentity, Cycle
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Observation
from agent.values.plan import ExecuteState
from agent.web.agent_view import AgentView, LoopState
from config.load import load_settings

IDENTITY = AgentIdentity("rw-1", "host-1", 4711, 10_000)


def cycle_of(
    observation: Observation, memory: Memory | None = None, limits: Limits | None = None, *, number: int = 1
) -> Cycle:
    """The planning cycle of an observation."""
    line = CycleStages(limits or Limits())
    name = f"look-{number}"
    return run_cycle(
        line, lambda: observation, observation, memory or Memory(), number=number, name=name, planning=True
    )


def state_of(cycle: Cycle | None) -> LoopState:
    """A loop that has just finished this cycle."""
    state = LoopState(started=ClockReading(0, 0))
    if cycle is None:
        return state
    at = ClockReading(cycle.observation.taken_ms, cycle.observation.monotonic_ms)
    return replace(state, cycle=cycle, planned=cycle, last_success=at, last_end=at, succeeded=cycle.number)


def view_of(
    cycle: Cycle | None,
    *,
    journal: Callable[[], JournalState] = dict,
    state: Callable[[], LoopState] | None = None,
    settings: Mapping[str, Any] | None = None,
    clock_s: Callable[[], float] | None = None,
    read_agents: Callable[[], tuple[AgentRun, ...] | str] = tuple,
    acting: Callable[[], ExecuteState | None] = lambda: None,
) -> AgentView:
    """The view of an agent that has finished this cycle last."""
    assignments = [
        "kafka.bootstrap.servers=127.0.0.1:1",
        *(f"{key}={value}" for key, value in (settings or {}).items()),
    ]
    more: dict[str, Any] = {} if clock_s is None else {"clock_s": clock_s}
    return AgentView(
        state=state or (lambda: state_of(cycle)),
        settings=load_settings(assignments=assignments, environ={}),
        read_journal=journal,
        journal_name="rackwise.journal",
        identity=IDENTITY,
        read_agents=read_agents,
        acting=acting,
        **more,
    )
