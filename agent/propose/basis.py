"""On what a proposal's figures rest: weights of the pipeline, the agent's own rates, or counts; and why not weights.

Said at the end of the sentence wherever weights are asked for, and in the evidence always.
"""

from __future__ import annotations

from agent.detect.assessment import Assessment
from agent.detect.finding import Evidence
from agent.model.snapshot import Snapshot, TopicState
from agent.model.weighed import Basis

_MINUTE_MS = 60_000
_HOUR_MS = 3_600_000
_NO_WEIGHT = "some of the partitions that it is about have none"


def basis_of_group(assessment: Assessment | None) -> Basis:
    """On what the figures of a group rest."""
    if assessment is None:
        return Basis.COUNTS
    if assessment.weighing is not None:
        return Basis.WEIGHTS
    return Basis.OWN_RATES if any(of.unit == "bytes_per_s" for of in assessment.current) else Basis.COUNTS


def basis_of_topic(topic: TopicState, snapshot: Snapshot) -> Basis:
    """On what the figures of a topic rest."""
    ids = [state.id for state in topic.partitions]
    if ids and all(partition in snapshot.weighed.bytes_per_s for partition in ids):
        return Basis.WEIGHTS
    return Basis.OWN_RATES if ids and all(p in snapshot.bytes_per_s for p in ids) else Basis.COUNTS


def told_basis(basis: Basis, snapshot: Snapshot) -> tuple[str, Evidence]:
    """(What is added to a sentence, rows of evidence)."""
    rows: Evidence = (("basis", basis.value),)
    state = snapshot.weights
    if state is None:
        return "", rows
    if basis is Basis.WEIGHTS and state.to_ms is not None:
        age_ms = max(0, snapshot.taken_ms - state.to_ms)
        times = (("weights_from_ms", state.from_ms), ("weights_until_ms", state.to_ms))
        return f"; by weights of the pipeline, {_age(age_ms)} old", (*rows, *times, ("weights_age_s", age_ms // 1_000))
    why = state.why_not or _NO_WEIGHT
    rows = (*rows, ("why_not_weights", why))
    if basis is Basis.OWN_RATES:
        return f"; bytes/s are rackwise's own rates, and optima count partitions (no weights: {why})", rows
    return f"; partitions are counted (no weights: {why})", rows


def _age(age_ms: int) -> str:
    if age_ms < _HOUR_MS:
        return f"{age_ms // _MINUTE_MS} min"
    return f"{age_ms // _HOUR_MS} h {age_ms % _HOUR_MS // _MINUTE_MS} min"
