"""What a cycle made of a look, told as telemetry events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from agent.telemetry.derived import DERIVED_SHAPES, AssessmentData, FindingData, ReportData, TaskCopiesData
from agent.telemetry.events import Event, Kind
from agent.telemetry.looks import limits_digest
from agent.values.assessment import Assessment
from agent.values.cycle import Cycle, basis, sentence, world
from agent.values.finding import Finding
from agent.values.typed_json import to_json


class Teller(NamedTuple):
    """Whose cycle it is."""

    agent: str | None = None
    host: str | None = None
    pid: int | None = None


_UNTOLD = Teller()


def derived_events(cycle: Cycle, first: int, *, full: bool, teller: Teller = _UNTOLD) -> Iterator[Event]:
    """Events after the ``first`` ones that rebuild the look. One that is not full has lags and the report alone."""
    n = first
    for kind, subject, data in _rows(cycle, teller, full=full):
        shape = to_json(DERIVED_SHAPES[kind], data)
        yield Event(kind, subject, cycle.snapshot.cluster_id, cycle.look, n, cycle.snapshot.taken_ms, shape)
        n += 1


def _rows(cycle: Cycle, teller: Teller, *, full: bool) -> Iterator[tuple[Kind, str, Any]]:
    for group, copies in cycle.snapshot.copies.items():
        yield Kind.TASK_COPIES, f"group/{group}", TaskCopiesData(group, copies)
    if full:
        for finding in cycle.detection.findings:
            yield Kind.FINDING, str(finding.subject), _finding(finding)
        for group, assessment in cycle.detection.assessments.items():
            yield Kind.ASSESSMENT, f"group/{group}", _assessment(assessment)
    yield Kind.REPORT, f"cluster/{cycle.snapshot.cluster_id}", _report(cycle, teller, full=full)


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


def _assessment(found: Assessment) -> AssessmentData:
    return AssessmentData(
        found.group_id,
        found.why_not.name if found.why_not else None,
        found.current,
        found.optimal,
        found.crossing,
        found.optimal_crossing,
        found.lower_bound,
        found.moved,
    )


def _report(cycle: Cycle, teller: Teller, *, full: bool) -> ReportData:
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
        *world(cycle.snapshot),
        len(cycle.snapshot.gaps),
        _counted(finding.reason.name for finding in cycle.detection.findings),
        cycle.changes.new,
        cycle.changes.ended,
        _counted(proposal.kind.value for proposal in cycle.proposals),
        _counted(reason.name for _, reason in plan.unplanned) if plan else {},
        limits_digest(cycle.limits),
        rests_on.value,
        why_not,
        teller.agent,
        teller.host,
        None if acting is None else acting.leads,
        () if acting is None else (*acting.reasons, *filter(None, (acting.waits,)), *acting.notices),
        teller.pid,
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
