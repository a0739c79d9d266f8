"""What the agent that runs beside a command judges by and remembers, as its telemetry tells, read beside the look.

Invariant: a command waits for it no longer than it says, and answers without it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent.cli.figures import ago
from agent.cli.loading import AskedBeside
from agent.cli.output import say
from agent.values.words import lasted

if TYPE_CHECKING:
    from agent.record.running_agent import RunningAgent
    from agent.values.limits import Limits
    from agent.values.memory import Memory
    from agent.values.observation import Observation
    from config.load import Loaded

STALE_MS = 300_000
"""An agent whose newest telemetry is older than this, or than three of its looks, is not taken for running."""
READ_MS = 10_000


def asked(loaded: Loaded) -> AskedBeside[RunningAgent | str]:
    """The agent of whichever cluster, or why none is known, read beside the look."""
    return AskedBeside("agent.record.running_agent", lambda: read(loaded, None), "reading it took too long")


def read(loaded: Loaded, cluster: str | None) -> RunningAgent | str:
    """The agent of that cluster, or why none is known, as one clause."""
    from agent.record.running_agent import Source, running_agent

    settings = loaded.settings
    return running_agent(
        Source(
            config=settings.kafka.confluent(),
            topic=settings.telemetry_topic,
            file=Path(settings.record.file) if settings.record.file else None,
            prefix=settings.topics.prefix,
            timeout_ms=READ_MS,
        ),
        cluster,
    )


def why_not_running(agent: RunningAgent, observation: Observation, loaded: Loaded) -> str | None:
    """Why it is not taken for running, as one clause."""
    age_ms = observation.taken_ms - agent.taken_ms
    if age_ms > max(STALE_MS, 3 * (agent.poll_ms or loaded.settings.poll.interval_ms)):
        return f"the newest is {lasted(age_ms)} old"
    if agent.ahead_ms > STALE_MS:
        return f"the newest is {lasted(agent.ahead_ms)} in the future, so its age is unknown: check its host's clock"
    return None


def named(agent: RunningAgent) -> str:
    """``agent rw-1 on host kafka-1``; with its process where another agent writes to the same telemetry."""
    if not agent.agent:
        return "the running agent"
    process = f", process {agent.pid}" if agent.others and agent.pid is not None else ""
    return f"agent {agent.agent} on host {agent.host}{process}"


def others(agent: RunningAgent, now_ms: int) -> list[str]:
    """``agent rw-1 on host kafka-1, process 4711, mode propose, 2 s ago``: the others that write telemetry."""
    return [
        f"{other.name}, mode {other.report.mode}, {heard_ago(other.newest_ms, other.ahead_ms, now_ms)}"
        for other in agent.others
    ]


def heard_ago(newest_ms: int, ahead_ms: int, now_ms: int) -> str:
    """``2 s ago``; where its time is of the future, and no clock's small error, how far."""
    return ago(newest_ms, now_ms) if ahead_ms <= STALE_MS else f"of {lasted(ahead_ms)} in the future"


class Beside:
    """The agent beside a look that is judged by this command's settings, but for what only the agent knows."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._asked = asked(loaded)

    def agent(self, observation: Observation, wait_s: float) -> RunningAgent | None:
        """The agent that runs in this cluster; None where none is known to."""
        settings = self._loaded.settings
        if not settings.record.file and not any(one.name == settings.telemetry_topic for one in observation.topics):
            return None
        found = self._asked.answer(wait_s)
        if isinstance(found, str) or found.cluster != observation.cluster_id:
            return None
        return found if why_not_running(found, observation, self._loaded) is None else None


def with_groups_of(agent: RunningAgent | None, own: Limits, now_ms: int) -> Limits:
    """The command's limits with the agent's settings of groups, unless the command was given settings of groups itself.

    Where both have some that differ, a line says so.
    """
    if agent is None or (agent.limits.groups, agent.limits.default_group) == (own.groups, own.default_group):
        return own
    who = f"{named(agent)}, {ago(agent.taken_ms, now_ms)}"
    if own.default_group.known or own.groups:
        say(f"settings of groups: by this command; those of the running agent differ ({who})")
        return own
    say(f"settings of groups: by the running agent ({who})")
    return replace(own, groups=agent.limits.groups, default_group=agent.limits.default_group)


def with_absences_of(agent: RunningAgent | None, memory: Memory, observation: Observation) -> Memory:
    """The memory with since when the agent misses brokers, as it has looked in between, and when it saw the others.

    On this process's clock.
    """
    if agent is None:
        return memory
    known, between_ms = agent.memory, max(0, observation.taken_ms - agent.memory.taken_ms)
    since = {
        broker: observation.monotonic_ms - between_ms - (known.monotonic_ms - since_ms)
        for broker, since_ms in known.absent.items()
    }
    # What it missed only after that look is not in its memory yet: then it is known until when the broker was there.
    live_ms = observation.monotonic_ms - between_ms
    live = {broker: since.get(broker, live_ms) for broker in known.brokers}
    return replace(memory, absent={**memory.absent, **since}, last_live=live)
