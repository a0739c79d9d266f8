"""Findings about missing rights, missing parts of the observation, and unusable weights; one per part and cause.

Detectors that need a missing part are silent. A part that is switched off, or a subject deleted between two calls, is
no fault.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agent.detect.detect_context import DetectContext, first
from agent.values.finding import Evidence, Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.limits import AgentMode
from agent.values.number_format import counted, listed
from agent.values.observation import Gap, GapCause, ObservationPart, effect_of
from agent.values.weights import WeightsState

_HIDES_GROUPS = "brokers leave out groups and reassignments that it may not describe, without an error"
_NO_FAULT = frozenset((GapCause.NOT_ASKED, GapCause.VANISHED))
_WHOLE_WORLD = frozenset((ObservationPart.BROKERS, ObservationPart.TOPICS, ObservationPart.GROUPS))

_NEEDS = {
    ObservationPart.BROKERS: "DESCRIBE on the cluster",
    ObservationPart.TOPICS: "DESCRIBE on topics",
    ObservationPart.TOPIC_CONFIGS: "DESCRIBE_CONFIGS on topics",
    ObservationPart.BROKER_CONFIGS: "DESCRIBE_CONFIGS on the cluster",
    ObservationPart.GROUP_CONFIGS: "DESCRIBE_CONFIGS on groups",
    ObservationPart.END_OFFSETS: "DESCRIBE on topics",
    ObservationPart.COMMITTED_OFFSETS: "DESCRIBE on groups and on their topics",
    ObservationPart.GROUPS: "DESCRIBE on groups",
    ObservationPart.REASSIGNMENTS: "DESCRIBE on the cluster",
    ObservationPart.LOG_DIRS: "DESCRIBE on the cluster",
    ObservationPart.RIGHTS: "DESCRIBE on the cluster",
    ObservationPart.APPLICATION_LAGS: "access to the application's endpoint",
    ObservationPart.RACK_LOCATORS: "access to the sources in rack.locator.properties",
    ObservationPart.WEIGHTS: "READ and DESCRIBE on the weights topic",
}


def rights_findings(view: DetectContext) -> list[Finding]:
    """One finding per part and cause, and one per right that is known to be missing."""
    by_kind: dict[tuple[ObservationPart, GapCause], list[Gap]] = {}
    for gap in view.snapshot.gaps:
        if gap.cause not in _NO_FAULT:
            by_kind.setdefault((gap.part, gap.cause), []).append(gap)
    findings = [
        _not_allowed(part, gaps, view) if cause is GapCause.NOT_ALLOWED else _missing(part, cause, gaps, view)
        for (part, cause), gaps in by_kind.items()
    ]
    denied = {part for part, cause in by_kind if cause is GapCause.NOT_ALLOWED}
    return findings + _cluster_rights(view, denied, {part for part, _ in by_kind})


def _not_allowed(part: ObservationPart, gaps: Sequence[Gap], view: DetectContext) -> Finding:
    return Finding(
        reason=FindingReason.RIGHTS_MISSING,
        subject=SubjectId("cluster", view.snapshot.cluster_id),
        sentence=f"rackwise may not see {_what(part, gaps)}, so {effect_of(part)}: grant {_NEEDS[part]}",
        evidence=_evidence(part, gaps),
        severity=_severity(part, gaps, FindingSeverity.WARNING),
        since_ms=view.snapshot.taken_ms,
        detail=_slug(part),
    )


def _missing(part: ObservationPart, cause: GapCause, gaps: Sequence[Gap], view: DetectContext) -> Finding:
    usual = FindingSeverity.INFO if cause is GapCause.UNSUPPORTED else FindingSeverity.WARNING
    return Finding(
        reason=FindingReason.PART_MISSING,
        subject=SubjectId("cluster", view.snapshot.cluster_id),
        sentence=f"{_what(part, gaps)}: {cause}, so {effect_of(part)} ({gaps[0].detail})",
        evidence=(("cause", str(cause)), *_evidence(part, gaps)),
        severity=_severity(part, gaps, usual),
        since_ms=view.snapshot.taken_ms,
        detail=f"{_slug(part)}_{cause.name.lower()}",
    )


def _cluster_rights(
    view: DetectContext, denied: Collection[ObservationPart], gapped: Collection[ObservationPart]
) -> list[Finding]:
    """Missing rights by the brokers' answer without a refusal, and hidden names.

    Names that a failed question hides (``gapped``) may be shown again with the next answer: no right is missing.
    """
    rights = view.snapshot.rights
    lacks = (
        (rights.cluster_describe is False and not denied, "cluster_describe", "DESCRIBE on the cluster", _HIDES_GROUPS),
        (
            rights.cluster_describe_configs is False and ObservationPart.BROKER_CONFIGS not in denied,
            "cluster_describe_configs",
            "DESCRIBE_CONFIGS on the cluster",
            effect_of(ObservationPart.BROKER_CONFIGS),
        ),
        (
            rights.cluster_alter is False and view.limits.mode is AgentMode.EXECUTE,
            "cluster_alter",
            "ALTER on the cluster",
            "no reassignment can be made",
        ),
        (
            bool(rights.topics_hidden) and ObservationPart.TOPICS not in gapped,
            "topics_hidden",
            _NEEDS[ObservationPart.TOPICS],
            f"{vanished(rights.topics_hidden or 0, 'topic')} any more",
        ),
        (
            bool(rights.groups_hidden) and ObservationPart.GROUPS not in gapped,
            "groups_hidden",
            _NEEDS[ObservationPart.GROUPS],
            f"{vanished(rights.groups_hidden or 0, 'group')} any more",
        ),
    )
    return [
        Finding(
            reason=FindingReason.RIGHTS_MISSING,
            subject=SubjectId("cluster", view.snapshot.cluster_id),
            sentence=f"rackwise lacks {right}: {effect}",
            evidence=(("right", right),),
            severity=FindingSeverity.WARNING,
            since_ms=view.snapshot.taken_ms,
            detail=detail,
        )
        for lacking, detail, right, effect in lacks
        if lacking
    ]


def vanished(number: int, what: str) -> str:
    """``1 topic that was there before is not shown``, ``2 topics that were there before are not shown``."""
    one, many = f"{what} that was there before is", f"{what}s that were there before are"
    return f"{counted(number, one, many)} not shown"


def _what(part: ObservationPart, gaps: Sequence[Gap]) -> str:
    """``end offsets``, or ``end offsets of orders and payments``."""
    subjects = [gap.subject for gap in gaps if gap.subject]
    return str(part) if len(subjects) < len(gaps) else f"{part} of {listed(subjects)}"


def _evidence(part: ObservationPart, gaps: Sequence[Gap]) -> Evidence:
    subjects = [gap.subject for gap in gaps if gap.subject]
    return (("part", str(part)), ("gaps", len(gaps)), ("first", first(subjects)), ("detail", gaps[0].detail))


def _severity(part: ObservationPart, gaps: Sequence[Gap], usual: FindingSeverity) -> FindingSeverity:
    """Without brokers, topics or groups there is nothing to judge."""
    whole = any(not gap.subject for gap in gaps)
    return FindingSeverity.CRITICAL if whole and part in _WHOLE_WORLD else usual


def _slug(part: ObservationPart) -> str:
    return part.name.lower()


# Weights: at most one finding per cycle. No published weights are no fault.


def weights_findings(view: DetectContext) -> list[Finding]:
    """Weights that are published but cannot be used: all of them, or some."""
    state = view.snapshot.weights
    if state is None or state.silent or (state.why_not is None and not state.stale and not state.unreadable):
        return []
    if state.why_not is not None:
        sentence = f"weights of the pipeline are not used: {state.why_not}; optima count partitions meanwhile"
        return [_finding(sentence, FindingSeverity.WARNING, state, view)]
    return [
        _finding(f"weights of the pipeline are used in part: {_left_out(state)}", FindingSeverity.INFO, state, view)
    ]


def _left_out(state: WeightsState) -> str:
    parts = []
    if state.stale:
        parts.append(f"those of {counted(state.stale, 'topic or group', 'topics and groups')} are too old")
    if state.unreadable:
        parts.append(f"{counted(state.unreadable, 'record')} cannot be read, such as: {state.example}")
    return "; ".join(parts)


def _finding(sentence: str, severity: FindingSeverity, state: WeightsState, view: DetectContext) -> Finding:
    return Finding(
        reason=FindingReason.WEIGHTS_UNUSED,
        subject=SubjectId("cluster", view.snapshot.cluster_id),
        sentence=sentence,
        evidence=(
            ("measured until", state.to_ms),
            ("too old", state.stale),
            ("unreadable", state.unreadable),
        ),
        severity=severity,
        since_ms=view.snapshot.taken_ms,
    )
