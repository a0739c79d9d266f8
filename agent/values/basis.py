"""On what a proposal's figures rest: weights of the pipeline, the agent's own rates, or counts; and why not weights.

Each proposal has it in its evidence. An answer of many proposals says it once, wherever weights are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.values.assessment import Assessment
from agent.values.finding import Evidence
from agent.values.proposal import Proposal
from agent.values.snapshot import Snapshot, TopicState
from agent.values.weighed import Basis
from agent.values.words import counted, in_full, lasted

_NAMED = 5
"""Proposals that are named where the figures of an answer rest on different things."""
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


def told_basis(basis: Basis, snapshot: Snapshot) -> Evidence:
    """Rows of evidence: the basis, the age of weights, or why there are none where they were asked for."""
    rows: Evidence = (("basis", basis.value),)
    state = snapshot.weights
    if state is None:
        return rows
    if basis is Basis.WEIGHTS and state.to_ms is not None:
        age_ms = max(0, snapshot.taken_ms - state.to_ms)
        times = (("weights_from_ms", state.from_ms), ("weights_until_ms", state.to_ms))
        return (*rows, *times, ("weights_age_s", age_ms // 1_000))
    return (*rows, ("why_not_weights", state.why_not or _NO_WEIGHT))


def figures_rest_on(proposals: Iterable[Proposal]) -> str | None:
    """On what the figures of an answer rest, once for all of its proposals; None where weights are not asked for."""
    told: dict[str, list[str]] = {}
    for proposal in proposals:
        basis = _told(dict(proposal.evidence))
        if basis is not None:
            told.setdefault(basis, []).append(proposal.id)
    if len(told) < 2:
        return next((f"figures: {each}" for each in told), None)
    # The basis of most comes first; of as many, by its words.
    ordered = sorted(told.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return "; ".join(f"figures of {_named(ids)}: {each}" for each, ids in ordered)


def _named(ids: list[str]) -> str:
    if len(ids) <= _NAMED:
        return in_full(ids)
    return in_full([*ids[:_NAMED], counted(len(ids) - _NAMED, "more proposal")])


def _told(evidence: Mapping[str, object]) -> str | None:
    age_s, why = evidence.get("weights_age_s"), evidence.get("why_not_weights")
    if isinstance(age_s, int):
        return f"weights of the pipeline, {lasted(1_000 * age_s)} old"
    if why is None:
        return None
    if evidence["basis"] == Basis.OWN_RATES.value:
        return f"bytes per second are rackwise's own rates, and optima count partitions (no weights: {why})"
    return f"partitions are counted (no weights: {why})"
