"""Are there weights that plans could rest on, and do not? One finding a cycle at most, never one per group.

Where no weights are published nothing is wrong: then the report and every proposal say on what they rest.
"""

from __future__ import annotations

from agent.detect.ground import View
from agent.detect.words import count
from agent.values.finding import Finding, FindingReason, Severity, Subject
from agent.values.weighed import WeightsState


def weights_findings(view: View) -> list[Finding]:
    """Weights that are published but cannot be used: all of them, or some."""
    state = view.snapshot.weights
    if state is None or state.silent or (state.why_not is None and not state.stale and not state.unreadable):
        return []
    if state.why_not is not None:
        sentence = f"weights of the pipeline are not used: {state.why_not}; optima count partitions meanwhile"
        return [_finding(sentence, Severity.WARNING, state, view)]
    return [_finding(f"weights of the pipeline are used in part: {_left_out(state)}", Severity.INFO, state, view)]


def _left_out(state: WeightsState) -> str:
    parts = []
    if state.stale:
        parts.append(f"those of {count(state.stale, 'topic or group', 'topics and groups')} are too old")
    if state.unreadable:
        parts.append(f"{count(state.unreadable, 'record')} cannot be read, such as: {state.example}")
    return "; ".join(parts)


def _finding(sentence: str, severity: Severity, state: WeightsState, view: View) -> Finding:
    return Finding(
        reason=FindingReason.WEIGHTS_UNUSED,
        subject=Subject("cluster", view.snapshot.cluster_id),
        sentence=sentence,
        evidence=(
            ("measured until", state.to_ms),
            ("too old", state.stale),
            ("unreadable", state.unreadable),
        ),
        severity=severity,
        since_ms=view.snapshot.taken_ms,
    )
