"""Limits and memory of the running agent, from its newest telemetry.

Read from the tail of the telemetry topic or of this machine's telemetry file, whichever is newer. No broker, file or
record makes it raise; without a running agent a clause has the reason.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from agent.record.newest_look import (
    WINDOW_MS,
    AgentRun,
    NewestLook,
    TelemetryLine,
    leading_look,
    leading_of,
    newest_events,
    runs_in_lines,
    wall_ms,
)
from agent.telemetry.events import EventKind, LimitsData
from agent.telemetry.looks import checked, limits_from_record, memory_of
from agent.values.limits import AgentMode, Limits
from agent.values.memory import Memory
from agent.values.typed_json import UnreadableError, from_json
from config.plain_file import open_plain

KINDS = frozenset({EventKind.LIMITS, EventKind.MEMORY, EventKind.REPORT})
_FIRST_STEP = 1 << 20
_GROWTH = 8
_REPORTS_BYTES = 8 << 20
"""So much of a file's end is searched for reports of several agents."""
_MOST_BYTES = 256 * 1024 * 1024


class RunningAgent(NamedTuple):
    """An agent by its newest telemetry."""

    limits: Limits
    memory: Memory
    """What went into its newest look that is written in full."""
    cluster: str
    """Id of the cluster that it looks at."""
    taken_ms: int
    """Epoch milliseconds of its newest look: by the broker's clock where the topic has it, else by its own; the time
    at which it was read, where that is of the future."""
    agent: str | None
    """Its name; None where an older rackwise wrote."""
    host: str | None
    settings_changed: bool
    """True when reports of the telemetry went by other settings than these: another agent writes too."""
    pid: int | None = None
    leads: bool | None = None
    """Mode execute: whether it led after its newest cycle; None in the other modes."""
    others: tuple[AgentRun, ...] = ()
    """Other agents that write to the same telemetry, those in mode execute first."""
    poll_ms: int | None = None
    """Milliseconds between two of its looks, as it is set; None from an older agent."""
    ahead_ms: int = 0
    """How far its newest look is in the future, by the clock of ``taken_ms``."""
    stopped: bool = False
    """Whether that is the report of its end."""


class TelemetrySource(NamedTuple):
    """The telemetry topic and file to read."""

    config: Mapping[str, str | int]
    """confluent-kafka's configuration."""
    topic: str | None
    file: Path | None
    prefix: str
    timeout_ms: int


def running_agent(source: TelemetrySource, cluster: str | None) -> RunningAgent | str:
    """The agent, or why none is known, as one clause. ``cluster`` None takes any cluster's."""
    found: list[RunningAgent] = []
    why_not: list[str] = []
    for newest, runs in _newest(source, cluster):
        agent = _agent(newest, runs)
        if isinstance(agent, RunningAgent):
            found.append(agent)
        else:
            why_not.append(agent)
    if found:
        return max(found, key=_rank)
    return "; ".join(why_not) or "no telemetry topic or file is set"


def _rank(one: RunningAgent) -> tuple[bool, bool, bool, bool, int]:
    return (
        not one.stopped,
        one.leads is True,
        one.limits.mode is AgentMode.EXECUTE,
        one.ahead_ms <= WINDOW_MS,
        one.taken_ms,
    )


def _newest(source: TelemetrySource, cluster: str | None) -> Iterable[tuple[NewestLook, tuple[AgentRun, ...]]]:
    if source.file is not None:
        path, deadline = source.file, time.monotonic() + source.timeout_ms / 1_000
        yield leading_of(
            lambda whose, instance: newest_in_file(path, whose, deadline, instance),
            lambda: runs_in_lines([TelemetryLine(value) for value in _tail(path)], cluster, wall_ms()),
            cluster,
        )
    if source.topic is not None:
        yield leading_look(
            source.config, source.topic, cluster, KINDS, prefix=source.prefix, timeout_ms=source.timeout_ms
        )


def _tail(path: Path) -> list[bytes]:
    """The last whole lines of a file; none where it is unreadable."""
    try:
        with open_plain(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _REPORTS_BYTES))
            lines: list[bytes] = file.read().split(b"\n")
            return lines[0 if size <= _REPORTS_BYTES else 1 : -1]
    except OSError:
        return []


def newest_in_file(path: Path, cluster: str | None, deadline: float, instance: str | None = None) -> NewestLook:
    """The newest events of `KINDS` in a telemetry file, from its end in steps that grow, until ``deadline``."""
    step = _FIRST_STEP
    try:
        with open_plain(path) as file:
            size = file.seek(0, os.SEEK_END)
            while True:
                file.seek(max(0, size - step))
                lines = file.read(step).split(b"\n")
                whole = step >= size
                # The first may be the end of a line, and what follows the last line break is one that is being written.
                left_out: list[str] = []
                events = newest_events([lines[0 if whole else 1 : -1]], cluster, KINDS, left_out.append, instance)
                missing = ", ".join(sorted(KINDS - events.keys()))
                if not missing or whole or step > _MOST_BYTES or time.monotonic() > deadline:
                    why_not = f"{path} shows no {missing}" if missing else None
                    if missing and left_out:
                        why_not = f"{why_not}; {len(left_out)} of its lines could not be read: {left_out[0]}"
                    return NewestLook(events, why_not)
                step *= _GROWTH
    except OSError as error:
        return NewestLook({}, f"{path} cannot be read ({error.strerror})")


def _agent(newest: NewestLook, runs: tuple[AgentRun, ...]) -> RunningAgent | str:
    if newest.why_not is not None:
        return newest.why_not
    limits_event, first = newest.events[EventKind.LIMITS], runs[0]
    report = first.report
    try:
        recorded = from_json(LimitsData, limits_event.data)
        limits = checked(limits_from_record(recorded.limits))
        memory = memory_of(newest.events[EventKind.MEMORY])
    except UnreadableError as error:
        return f"its telemetry cannot be read ({error})"
    return RunningAgent(
        limits,
        memory,
        limits_event.cluster,
        first.newest_ms,
        report.agent,
        report.host,
        any(one.report.limits_digest != recorded.digest for one in runs),
        report.pid,
        report.leads,
        runs[1:],
        report.poll_ms,
        first.ahead_ms,
        report.stopped,
    )
