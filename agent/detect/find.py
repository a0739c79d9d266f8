"""Findings and assessments of one cycle, by all detectors.

One finding per subject and reason, with counts and the first few names; warm-ups one by one. ``detail`` separates the
causes of one reason. Equal snapshots and memories give equal findings in the same order, with a memo or without; ages
come from the memory alone; a missing part has one finding, and detectors that need it none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import attrgetter

from agent.detect.assess import assess_groups, topics_by_group
from agent.detect.brokers import absent_findings, broker_findings, move_findings
from agent.detect.detect_context import detect_context
from agent.detect.groups import group_findings, prediction_findings
from agent.detect.replicas import replica_findings
from agent.detect.rights import rights_findings, weights_findings
from agent.detect.streams import streams_findings
from agent.values.assessment import Assessment, DetectionResult
from agent.values.finding import Finding, FindingSeverity
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import Memory
from agent.values.snapshot import Snapshot

_GRAVEST_FIRST = (FindingSeverity.CRITICAL, FindingSeverity.WARNING, FindingSeverity.INFO)
_ID = attrgetter("id")


def detect(snapshot: Snapshot, memory: Memory, limits: Limits, memo: Memo | None = None) -> DetectionResult:
    """Findings, gravest first and then by id, and an assessment for every group."""
    memo = memo if memo is not None else Memo()
    return find_all(snapshot, assess_groups(snapshot, limits, memo), memory, limits, memo)


def find_all(
    snapshot: Snapshot, assessments: Mapping[str, Assessment], memory: Memory, limits: Limits, memo: Memo
) -> DetectionResult:
    """The findings, given how far each group is from its optimum."""
    view = detect_context(snapshot, memory, limits, memo)
    groups = group_findings(view, assessments, memo)
    findings = [
        *rights_findings(view),
        *absent_findings(view, memo),
        *broker_findings(view, groups.racks),
        *replica_findings(view, memo),
        *move_findings(view),
        *groups.findings,
        *streams_findings(view),
        *prediction_findings(view),
        *weights_findings(view),
    ]
    aged = _aged(findings, memory, snapshot.taken_ms)
    return DetectionResult(
        findings=_gravest_first(aged), assessments=assessments, topics=topics_by_group(snapshot, memo)
    )


def _aged(findings: Iterable[Finding], memory: Memory, now_ms: int) -> list[Finding]:
    """Each finding with the time when it was first seen, as far back as the memory goes."""
    first_seen, gone = memory.first_seen, memory.gone
    aged = []
    for finding in findings:
        since_ms = first_seen.get(finding.id)
        if since_ms is None:
            since_ms = gone[finding.id][0] if finding.id in gone else now_ms
        aged.append(finding if finding.since_ms == since_ms else replace(finding, since_ms=since_ms))
    return aged


def _gravest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    by_severity: dict[FindingSeverity, list[Finding]] = {severity: [] for severity in _GRAVEST_FIRST}
    for finding in findings:
        by_severity[finding.severity].append(finding)
    return tuple([found for of in by_severity.values() for found in sorted(of, key=_ID)])
