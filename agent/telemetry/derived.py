"""The shape of what a cycle made of a look, as telemetry tells it: for history and reports, never to rebuild a look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agent.telemetry.events import Kind
from agent.values.assessment import Locality
from agent.values.finding import Evidence
from agent.values.snapshot import TaskCopy


class ReportData(NamedTuple):
    """One cycle in numbers, with its sentence."""

    cycle: int
    mode: str
    planned: bool
    full: bool
    """Whether the events that rebuild the look were written too."""
    sentence: str
    took_ms: int
    stages_ms: Mapping[str, int]
    brokers: int
    racks: int
    topics: int
    partitions: int
    groups: int
    members: int
    gaps: int
    findings: Mapping[str, int]
    """Reason -> number of findings."""
    new_findings: tuple[str, ...]
    ended_findings: tuple[str, ...]
    proposals: Mapping[str, int]
    """Kind -> number of proposals."""
    unplanned: Mapping[str, int]
    """Why nothing is planned for a finding -> how often."""
    limits_digest: str
    basis: str | None = None
    """On what optima and bytes rest: weights of the pipeline, own rates, or counts."""
    why_not_weights: str | None = None
    """Why weights are not used; None where they are, and where they are not asked for."""
    agent: str | None = None
    """Name of the agent whose cycle it was; None from an older one."""
    host: str | None = None
    """Where that agent runs."""
    leads: bool | None = None
    """Mode execute: whether it led after this cycle; None in the other modes, and from an older agent."""
    acting: tuple[str, ...] = ()
    """Mode execute: what kept it from leading or from carrying plans on, what open plans waited for, and notices."""
    pid: int | None = None
    """Process id of that agent on its host; None from an older agent."""


class FindingData(NamedTuple):
    """One finding."""

    id: str
    reason: str
    severity: str
    subject: str
    sentence: str
    evidence: Evidence
    since_ms: int
    held: bool


class AssessmentData(NamedTuple):
    """One group against its optimum."""

    group: str
    why_not: str | None
    current: tuple[Locality, ...]
    optimal: tuple[Locality, ...]
    crossing: int
    optimal_crossing: int
    lower_bound: int
    moved: int


class TaskCopiesData(NamedTuple):
    """Every copy of a stateful task of one application, with how far behind it is."""

    group: str
    copies: tuple[TaskCopy, ...]


DERIVED_SHAPES: Mapping[Kind, type] = {
    Kind.REPORT: ReportData,
    Kind.FINDING: FindingData,
    Kind.ASSESSMENT: AssessmentData,
    Kind.TASK_COPIES: TaskCopiesData,
}
"""Kinds that tell what was made of a look, with the shape of their data."""
