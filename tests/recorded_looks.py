"""Looks as an agent records them in full: events with their JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent.telemetry.events import INPUT_SHAPES, TelemetryEvent
from agent.telemetry.looks import observation_rows
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Observation
from agent.values.typed_json import to_json


def observation_to_events(
    observation: Observation,
    memory: Memory,
    limits: Limits,
    *,
    look: str,
    findings: Mapping[str, int] | None = None,
) -> Iterator[TelemetryEvent]:
    """Every event that rebuilds the look in full, in order; the last has their number."""
    for n, row in enumerate(observation_rows(observation, memory, limits, findings)):
        data = to_json(INPUT_SHAPES[row.kind], row.data)
        yield TelemetryEvent(row.kind, row.subject, observation.cluster_id, look, n, observation.taken_ms, data)
