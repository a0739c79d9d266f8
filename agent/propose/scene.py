"""All that proposing looks at, and the parts of a proposal that every kind fills in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agent.propose.rests import Rests, proposal_id
from agent.values.assessment import Detection
from agent.values.basis import told_basis
from agent.values.finding import Evidence, Subject
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.proposal import Move, PlacementChange, Predicted, Proposal, ProposalKind, ProposalReason, Row
from agent.values.snapshot import RackState, Snapshot
from agent.values.weighed import Basis


class Scene(NamedTuple):
    """The snapshot with what was found in it, and what has been looked up in it so far."""

    snapshot: Snapshot
    detection: Detection
    limits: Limits
    memo: Memo
    rests: Rests
    racks: Mapping[int, str]
    """Broker -> rack, brokers of known rack only."""


class Draft(NamedTuple):
    """A proposal before it has an id, a digest and a date: all that depends on its subject alone."""

    kind: ProposalKind
    reason: ProposalReason
    subject: Subject
    sentence: str
    before: tuple[Row, ...]
    after: tuple[Row, ...]
    moves: tuple[Move, ...]
    predicted: Predicted
    evidence: Evidence
    findings: tuple[str, ...]
    lower_bound: float | None = None
    optimal: bool | None = None
    line: str | None = None
    placements: tuple[PlacementChange, ...] = ()
    basis: Basis | None = None
    """On what its figures rest; None where nothing is claimed in reads or bytes."""


def proposing(snapshot: Snapshot, detection: Detection, limits: Limits, memo: Memo | None) -> Scene:
    """The scene of one cycle."""
    memo = memo or Memo()
    racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name is not None}
    return Scene(snapshot, detection, limits, memo, Rests(snapshot, memo, detection.assessments), racks)


class Rested(NamedTuple):
    """A draft with what it rests on: it stays as it is for as long as its subject does."""

    id: str
    draft: Draft
    rests_on: str


def rested(draft: Draft, rests_on: str) -> Rested:
    """The draft with its id and digest."""
    return Rested(proposal_id(draft.kind.value, draft.subject, draft.after, rests_on), draft, rests_on)


def dated(made: Rested, snapshot: Snapshot, limits: Limits) -> Proposal:
    """The proposal of one cycle."""
    draft = made.draft
    if draft.basis is not None:  # its age grows while the draft stays
        draft = draft._replace(evidence=(*draft.evidence, *told_basis(draft.basis, snapshot)))
    return proposal_of(made._replace(draft=draft), snapshot.taken_ms, limits.proposals.ttl_ms)


def proposal_of(made: Rested, created_ms: int, ttl_ms: int) -> Proposal:
    """The proposal, made at ``created_ms`` (epoch milliseconds) and good for ``ttl_ms`` milliseconds."""
    told = made.draft._asdict()
    del told["basis"]
    return Proposal(
        **told, id=made.id, snapshot_hash=made.rests_on, created_ms=created_ms, expires_ms=created_ms + ttl_ms
    )


def finished(draft: Draft, rests_on: str, snapshot: Snapshot, limits: Limits) -> Proposal:
    """The draft with its id, digest and dates."""
    return dated(rested(draft, rests_on), snapshot, limits)
