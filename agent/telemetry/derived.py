"""Telemetry's rows of derived values (findings, assessments, verdicts): for history and reports, not for replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from agent.telemetry.events import EventKind, LookRow, TelemetryEvent
from agent.telemetry.looks import limits_digest
from agent.values.assessment import Assessment, Locality
from agent.values.cycle import AgentIdentity, Cycle, basis, cluster_size, sentence
from agent.values.finding import Evidence, Finding
from agent.values.snapshot import TaskCopy
from agent.values.typed_json import to_json


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
    poll_ms: int | None = None
    """Milliseconds between two of its looks, as it is set; None from an older agent."""
    stopped: bool = False
    """Whether the agent wrote it as its last one, when it was stopped; the figures are those of its last cycle."""


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


DERIVED_SHAPES: Mapping[EventKind, type] = {
    EventKind.REPORT: ReportData,
    EventKind.FINDING: FindingData,
    EventKind.ASSESSMENT: AssessmentData,
    EventKind.TASK_COPIES: TaskCopiesData,
}
"""Kinds of events derived from a look, with the shape of their data."""


_UNNAMED = AgentIdentity()


def derived_events(
    cycle: Cycle, first: int, *, full: bool, agent: AgentIdentity = _UNNAMED
) -> Iterator[TelemetryEvent]:
    """Events after the ``first`` ones that rebuild the look; without ``full`` only lags and the report."""
    for n, row in enumerate(derived_rows(cycle, full=full, agent=agent), first):
        data = to_json(DERIVED_SHAPES[row.kind], row.data)
        taken_ms = cycle.snapshot.taken_ms
        yield TelemetryEvent(row.kind, row.subject, cycle.snapshot.cluster_id, cycle.look, n, taken_ms, data)


def derived_rows(cycle: Cycle, *, full: bool, agent: AgentIdentity = _UNNAMED) -> Iterator[LookRow]:
    """Rows of the derived events, as values."""
    for group, copies in cycle.snapshot.copies.items():
        yield LookRow(EventKind.TASK_COPIES, f"group/{group}", TaskCopiesData(group, copies))
    if full:
        for finding in cycle.detection.findings:
            yield LookRow(EventKind.FINDING, str(finding.subject), _finding(finding))
        for group, assessment in cycle.detection.assessments.items():
            yield LookRow(EventKind.ASSESSMENT, f"group/{group}", _assessment(assessment))
    yield LookRow(EventKind.REPORT, f"cluster/{cycle.snapshot.cluster_id}", _report(cycle, agent, full=full))


def last_report(cycle: Cycle, agent: AgentIdentity, at_ms: int) -> TelemetryEvent:
    """The report of an agent that is stopped after this cycle: under the name of the look that does not come."""
    before = _report(cycle, agent, full=False)
    report = before._replace(
        planned=False,
        took_ms=0,
        stages_ms={},
        new_findings=(),
        ended_findings=(),
        leads=None if before.leads is None else False,
        acting=(),
        stopped=True,
    )
    instance, _, number = cycle.look.rpartition("-")
    cluster = cycle.snapshot.cluster_id
    return TelemetryEvent(
        EventKind.REPORT,
        f"cluster/{cluster}",
        cluster,
        f"{instance}-{int(number) + 1}",
        0,
        at_ms,
        to_json(ReportData, report),
    )


def _finding(finding: Finding) -> FindingData:
    return FindingData(
        finding.id,
        finding.reason.name,
        finding.severity.name,
        str(finding.subject),
        finding.sentence,
        finding.evidence,
        finding.since_ms,
        finding.held,
    )


def _assessment(assessment: Assessment) -> AssessmentData:
    return AssessmentData(
        assessment.group_id,
        assessment.why_not.name if assessment.why_not else None,
        assessment.current,
        assessment.optimal,
        assessment.crossing,
        assessment.optimal_crossing,
        assessment.lower_bound,
        assessment.moved,
    )


def _report(cycle: Cycle, agent: AgentIdentity, *, full: bool) -> ReportData:
    plan, acting = cycle.plan, cycle.acting
    rests_on, why_not = basis(cycle.snapshot)
    return ReportData(
        cycle.number,
        cycle.limits.mode.value,
        cycle.planned,
        full,
        sentence(cycle),
        cycle.took_ms,
        cycle.stages_ms,
        *cluster_size(cycle.snapshot),
        len(cycle.snapshot.gaps),
        _counted(finding.reason.name for finding in cycle.detection.findings),
        cycle.changes.new,
        cycle.changes.ended,
        _counted(proposal.kind.value for proposal in cycle.proposals),
        _counted(reason.name for _, reason in plan.unplanned) if plan else {},
        limits_digest(cycle.limits),
        rests_on.value,
        why_not,
        agent.agent,
        agent.host,
        None if acting is None else acting.leads,
        () if acting is None else (*acting.reasons, *filter(None, (acting.waits,)), *acting.notices),
        agent.pid,
        agent.poll_ms,
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
