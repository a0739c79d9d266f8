"""A look with bytes per second: from two looks, or from the telemetry of the running agent as the base.

Invariant: a command that looks once waits for the agent's telemetry no longer than `AGENT_MS` in all, read beside the
look; without it the answer is the same but for bytes and money, which are then unknown and said to be, and for what
only the agent is set to or remembers: settings of groups, and since when a broker is absent.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from agent.cli import session
from agent.cli.output import say
from agent.cli.running_agents import AgentQuery, AgentReportQuery, BackgroundQuery, with_absences_of, with_groups_of

if TYPE_CHECKING:
    from agent.record.newest_look import NewestLook
    from agent.record.running_agent import RunningAgent
    from agent.simulate.evaluation import StageEvaluation
    from agent.values.limits import Limits
    from agent.values.memory import Memory
    from agent.values.observation import Observation
    from agent.values.rates import RateMeasurement
    from config.load import LoadedSettings
    from config.settings import Settings

AGENT_MS = 2_000
LEAST_FOR_MS = 5_000
"""Rates over less time say little (`agent.model.streams`)."""
MOST_FOR_MS = 3_600_000


def parsed(duration: str | None, option: str = "--for", least_ms: int = LEAST_FOR_MS) -> int | None:
    """Milliseconds of an option; None where it is not given. Raises BadInput."""
    from agent.errors import BadInput
    from config.value_kinds import format_duration, parse_duration

    if duration is None:
        return None
    least = format_duration(least_ms)
    todo = f"Write a duration from {least} to 1h, such as {option} 10s."
    try:
        for_ms = parse_duration(duration)
    except ValueError as error:
        raise BadInput(f"{option} {duration} is not a duration", why=str(error), todo=todo) from error
    if not least_ms <= for_ms <= MOST_FOR_MS:
        raise BadInput(f"{option} {duration} is out of range", why=f"it is from {least} to 1h", todo=todo)
    return for_ms


def look(loaded: LoadedSettings, *, for_ms: int | None = None, reported: bool = False) -> StageEvaluation:
    """What a cluster shows, finds and would propose, with rates where there are any. Raises what a look raises.

    ``reported``: also what the running agent reports of itself.
    """
    report = AgentReportQuery(loaded.settings) if reported else None
    evaluation, observation = _look(loaded, for_ms)
    return evaluation if report is None else evaluation._replace(agent=report.of(observation))


def _look(loaded: LoadedSettings, for_ms: int | None) -> tuple[StageEvaluation, Observation]:
    if for_ms is not None:
        return _two_looks(loaded, for_ms)
    from agent.daemon.limits_from_settings import to_limits

    agent, beside = AgentLookQuery(loaded.settings), AgentQuery(loaded)
    with session.looking(loaded) as take:
        observation = take()
    running = beside.agent(observation, AGENT_MS / 1000)
    limits = with_groups_of(running, to_limits(loaded.settings), observation.taken_ms)
    return with_base_of(agent, observation, limits, running, planning=True), observation


def with_base_of(
    agent: AgentLookQuery,
    observation: Observation,
    limits: Limits,
    running: RunningAgent | None = None,
    *,
    planning: bool = False,
) -> StageEvaluation:
    """One look with the rates that the agent's telemetry is a base for, and since when it misses brokers."""
    from agent.values.rates import judged

    memory, rates = agent.base(observation)
    memory = with_absences_of(running, memory, observation)
    evaluation = session.seen_through(observation, memory, limits, planning=planning)
    return evaluation._replace(rates=judged(rates, evaluation.snapshot))


def _two_looks(loaded: LoadedSettings, for_ms: int) -> tuple[StageEvaluation, Observation]:
    from agent.daemon.limits_from_settings import to_limits

    began = time.monotonic_ns()
    say(f"looking twice, {for_ms / 1000:g} s apart")
    beside = AgentQuery(loaded)
    with session.looking(loaded) as take:
        first = take()
        running = beside.agent(first, AGENT_MS / 1000)
        limits = with_groups_of(running, to_limits(loaded.settings), first.taken_ms)
        from agent.simulate.evaluation import first_memory, second_look

        memory = first_memory(first, limits)
        time.sleep(max(0.0, (first.monotonic_ms + for_ms) / 1000 - time.monotonic()))
        second = take()
    memory = with_absences_of(running, memory, second)
    evaluation = second_look(second, memory, limits)
    return evaluation._replace(took_ms=(time.monotonic_ns() - began) // 1_000_000), second


class AgentLookQuery:
    """The running agent's newest look, asked for in a thread from now on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._asked: BackgroundQuery[NewestLook | None] = BackgroundQuery("agent.record.newest_look", self._ask, None)

    def base(self, observation: Observation) -> tuple[Memory, RateMeasurement]:
        """What the look's rates may rest on, and who measured; an empty memory, and why, where there is nothing."""
        from agent.simulate.evaluation import base_of_agent
        from agent.telemetry.events import EventKind
        from agent.telemetry.looks import memory_of
        from agent.values.clock import ClockReading
        from agent.values.memory import Memory
        from agent.values.rates import RateMeasurement
        from agent.values.typed_json import UnreadableError

        topic = self._settings.telemetry_topic
        if not any(one.name == topic for one in observation.topics):
            return Memory(), RateMeasurement(why_not=f"this is one look, and there is no topic {topic} of an agent")
        found = self._asked.answer(AGENT_MS / 1000)
        if found is None:
            return Memory(), RateMeasurement(why_not=f"{topic} did not answer within {AGENT_MS} ms")
        event = found.events.get(EventKind.MEMORY)
        if event is None or event.cluster != observation.cluster_id:
            return Memory(), RateMeasurement(why_not=found.why_not or f"{topic} is of another cluster")
        try:
            memory = memory_of(event)
        except UnreadableError as error:
            return Memory(), RateMeasurement(why_not=f"the memory in {topic} cannot be read ({error})")
        now = ClockReading(observation.taken_ms, observation.monotonic_ms)
        return base_of_agent(memory, event.look, event.taken_ms, now)

    def _ask(self) -> NewestLook:
        from agent.record.newest_look import newest_look
        from agent.telemetry.events import EventKind

        settings = self._settings
        return newest_look(
            settings.kafka.confluent(),
            settings.telemetry_topic,
            None,
            frozenset({EventKind.MEMORY}),
            prefix=settings.topics.prefix,
            timeout_ms=AGENT_MS,
        )
