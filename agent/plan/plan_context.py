"""Context of the planners: findings by reason and subject, and brokers that are to hold nothing more.

No plan without a finding, and none from a finding that hysteresis holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from agent.values.assessment import DetectionResult
from agent.values.finding import Finding, FindingReason, SubjectId
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.plan import Prediction
from agent.values.snapshot import BrokerState, RackState, Snapshot

IMPROVABLE = (
    FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM,
    FindingReason.GROUP_KIND_IGNORES_RACKS,
    FindingReason.ASSIGNOR_WOULD_NOT_FIX,
    FindingReason.RACK_AWARENESS_OFF,
)
"""Reasons of findings that a group's reads could be nearer."""
_BROKER_REASONS = (FindingReason.BROKER_ABSENT, FindingReason.BROKER_RACK_CHANGED, FindingReason.RACK_FLAPPING)


class FindingIndex:
    """Findings by reason and subject; made once per cycle."""

    __slots__ = ("_by_reason",)

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._by_reason: dict[FindingReason, dict[SubjectId, list[Finding]]] = {}
        for finding in findings:
            self._by_reason.setdefault(finding.reason, {}).setdefault(finding.subject, []).append(finding)

    def of(self, reason: FindingReason) -> list[Finding]:
        """All findings of a reason, by subject and id."""
        by_subject = self._by_reason.get(reason, {})
        return sorted((f for found in by_subject.values() for f in found), key=lambda f: (f.subject, f.id))

    def about(self, reason: FindingReason, *subjects: SubjectId) -> list[Finding]:
        """The findings of a reason about any of these subjects."""
        by_subject = self._by_reason.get(reason)
        if not by_subject:
            return []
        return [finding for subject in subjects for finding in by_subject.get(subject, ())]

    def by_subject(self, reason: FindingReason) -> Iterable[tuple[SubjectId, list[Finding]]]:
        """The findings of a reason, subject by subject, in no particular order."""
        return self._by_reason.get(reason, {}).items()

    def any(self, *reasons: FindingReason) -> bool:
        """True when there is at least one finding of one of these reasons."""
        return any(reason in self._by_reason for reason in reasons)


class AddressedFindings(NamedTuple):
    """The findings that a plan answers; ``held`` when one of them is held down."""

    ids: tuple[str, ...]
    held: bool


class PlanContext(NamedTuple):
    """All that planning looks at."""

    snapshot: Snapshot
    detection: DetectionResult
    found: FindingIndex
    improvable: Mapping[str, AddressedFindings]
    """Group -> findings that its reads could be nearer."""
    held: frozenset[int]
    """Brokers whose rack has not been stable for long enough, and those that have not been absent for long enough:
    nothing may rest on them."""
    limits: Limits
    memo: Memo
    predictions: Mapping[str, Prediction]
    """Group -> prediction of its own assignor, where one is needed."""


def plan_context(
    snapshot: Snapshot,
    detection: DetectionResult,
    limits: Limits,
    memo: Memo | None,
    predictions: Mapping[str, Prediction] = MappingProxyType({}),
) -> PlanContext:
    """The findings in order, ready to be asked."""
    found = FindingIndex(detection.findings)
    held = held_brokers(found, snapshot)
    improvable = _improvable(found)
    memo = memo if memo is not None else Memo()
    return PlanContext(snapshot, detection, found, improvable, held, limits, memo, predictions)


def addressed_findings(findings: Iterable[Finding]) -> AddressedFindings | None:
    """Their ids, sorted; None when there is no finding and thus nothing to plan."""
    found = list(findings)
    return _addressed(found) if found else None


def _addressed(findings: Sequence[Finding]) -> AddressedFindings:
    return AddressedFindings(tuple(sorted({f.id for f in findings})), any(f.held for f in findings))


def _improvable(found: FindingIndex) -> dict[str, AddressedFindings]:
    by_group: dict[str, list[Finding]] = {}
    for reason in IMPROVABLE:
        for subject, findings in found.by_subject(reason):
            if subject.kind == "group":
                known = by_group.get(subject.name)
                by_group[subject.name] = findings if known is None else known + findings
    return {
        group: AddressedFindings((findings[0].id,), findings[0].held) if len(findings) == 1 else _addressed(findings)
        for group, findings in by_group.items()
    }


def held_brokers(found: FindingIndex, snapshot: Snapshot) -> frozenset[int]:
    """Brokers whose rack flaps or changed too lately, and those that are absent and waited for."""
    held: set[int] = set()
    for reason in _BROKER_REASONS:
        for finding in found.of(reason):
            if finding.held or reason is FindingReason.RACK_FLAPPING:
                held.update(broker.id for broker in snapshot.brokers if _concerns(finding, broker))
    return frozenset(held)


def gone_brokers(found: FindingIndex) -> frozenset[int]:
    """Brokers that are absent and not waited for: what they held is led by others, and no share is theirs."""
    absent = found.of(FindingReason.BROKER_ABSENT)
    return frozenset(finding.broker for finding in absent if finding.broker is not None and not finding.held)


def _concerns(finding: Finding, broker: BrokerState) -> bool:
    if finding.broker is not None:
        return finding.broker == broker.id
    return broker.rack.state is RackState.KNOWN and finding.subject == ("rack", broker.rack.name)
