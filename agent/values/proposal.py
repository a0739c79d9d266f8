"""Proposals: one change each, with before, after, gain, cost, evidence and expiry; and the guard's verdicts on them.

A verdict allows, holds or refuses a proposal; an allowed one has an outcome.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from agent.values.assessment import Locality
from agent.values.finding import Evidence, SubjectId
from assignors.problem import TopicPartition

SCHEMA_VERSION = 1
SCHEMA_ID = f"urn:rackwise:proposal:v{SCHEMA_VERSION}"
"""Of the JSON Schema of a proposal's document."""


class ProposalKind(StrEnum):
    """The kinds of proposals."""

    REASSIGN = "reassign"
    """Move replicas (KIP-455)."""
    LEADERS = "leaders"
    """Reorder replicas and elect the preferred leader; no data moves."""
    TRIGGER = "trigger"
    """One clean rebalance of a classic group."""
    ADVISE = "advise"
    """A setting that only the owner of the client or broker can change."""


class ProposalReason(StrEnum):
    """The reasons of proposals; each belongs to one kind."""

    MEND_RACK_SPREAD = "replicas share a rack while another is free"
    LEADERS_TO_READERS = "leaders live in another rack than their readers"
    LEADERS_EVEN = "preferred leaders are uneven over racks"
    WARMUP_PROMOTABLE = "warm-ups wait for a rebalance"
    REBALANCE_IMPROVES = "a rebalance would place work nearer to its data"
    SET_CLIENT_RACK = "members do not send their rack"
    SET_BROKER_RACK = "brokers do not tell their rack"
    SET_SELECTOR = "brokers do not serve reads from the nearest replica"
    CHANGE_ASSIGNOR = "the group's assignor does not look at racks"
    SET_STRATEGY = "the application does not look at racks when it assigns tasks"
    SET_STANDBYS = "standbys share a rack or tag with another copy"
    UPGRADE_CLIENT = "the client is too old to send its rack"
    USE_DROP_IN_ASSIGNOR = "no version of the client sends its rack by itself"
    REMOVE_THROTTLE = "a throttle was left behind"


class ProposalRow(NamedTuple):
    """One line of a before/after comparison."""

    key: str
    """``topic-0``, a member id, ``process task role``, or a setting's name."""
    value: tuple[str | int, ...]


class ProposalMove(NamedTuple):
    """One elementary change."""

    what: str
    """``replica``, ``leader``, ``partition``, ``task`` or ``setting``."""
    subject: str
    source: str | None
    target: str | None
    bytes: int | None
    """Bytes copied or restored by it; None when unknown."""


class PlacementChange(NamedTuple):
    """A partition's replica list before and after, in order: the first is the preferred leader."""

    id: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedEffect:
    """The expected effect. None is unknown, never zero."""

    before: tuple[Locality, ...] = ()
    after: tuple[Locality, ...] = ()
    cross_rack_bytes_per_s_before: float | None = None
    cross_rack_bytes_per_s_after: float | None = None
    usd_per_day_before: float | None = None
    usd_per_day_after: float | None = None
    moves: int = 0
    bytes_to_move: int | None = None
    seconds: float | None = None


class Proposal(NamedTuple):
    """A change with before, after, gain, cost, reason and expiry. Equal snapshots give byte-equal proposals."""

    id: str
    """``p-`` and 12 hex digits of the digest of kind, subject, after and snapshot hash: two agents give the same."""
    kind: ProposalKind
    reason: ProposalReason
    subject: SubjectId
    sentence: str
    before: tuple[ProposalRow, ...]
    after: tuple[ProposalRow, ...]
    moves: tuple[ProposalMove, ...]
    predicted: PredictedEffect
    lower_bound: float | None
    """Least crossing partitions or moved bytes (the sentence names the unit) of any change of this kind."""
    optimal: bool | None
    evidence: Evidence
    findings: tuple[str, ...]
    """Ids of the findings that it answers."""
    snapshot_hash: str
    """Digest of the part of the snapshot that it rests on; when that changes, the proposal is stale."""
    created_ms: int
    expires_ms: int
    line: str | None = None
    """``advise``: the exact configuration line to set."""
    schema_version: int = SCHEMA_VERSION
    placements: tuple[PlacementChange, ...] = ()
    """``reassign`` and ``leaders``: the rows of ``before`` and ``after`` as values. No part of the document."""


def placement_rows(changes: Iterable[PlacementChange]) -> tuple[tuple[ProposalRow, ...], tuple[ProposalRow, ...]]:
    """The rows of ``before`` and of ``after`` for these changes."""
    every = tuple(changes)
    before = tuple(ProposalRow(str(change.id), change.before) for change in every)
    return before, tuple(ProposalRow(str(change.id), change.after) for change in every)


def saved_bytes_per_s(predicted: PredictedEffect) -> float | None:
    """Saved cross-rack bytes per second; None when unknown."""
    before, after = predicted.cross_rack_bytes_per_s_before, predicted.cross_rack_bytes_per_s_after
    return None if before is None or after is None else before - after


def saved_usd_per_day(predicted: PredictedEffect) -> float | None:
    """Saved dollars a day; None when unknown."""
    before, after = predicted.usd_per_day_before, predicted.usd_per_day_after
    return None if before is None or after is None else round(before - after, 6) + 0.0  # no noise, and no negative zero


class LifecycleStep(NamedTuple):
    """A step in the life of a proposal after its creation."""

    id: str
    kind: str
    subject: str
    state: str
    """``void``."""
    sentence: str
    at_ms: int
    schema_version: int = 1


class PlanAttempt(NamedTuple):
    """A plan's name, taken apart."""

    of: str
    """Id of the proposal, or the name of the rolled-back plan with `_BACK` after it."""
    number: int = 1

    def __str__(self) -> str:
        return self.of if self.number == 1 else f"{self.of}.{self.number}"


class HoldReason(StrEnum):
    """Why a proposal is held; each may end without a change of the proposal."""

    UNDER_MIN_ISR = "a partition in the proposal is under its min ISR"
    UNKNOWN = "a part of the cluster that the proposal needs is unknown"
    REASSIGNMENT_RUNNING = "a reassignment is already in progress"
    GROUP_NOT_STABLE = "the group is not stable now"
    RACK_NOT_STEADY = "a rack has not been stable for long enough"
    BROKER_ABSENT = "a broker that it rests on is absent, and may be restarting"
    COOLING_DOWN = "the cooldown of the topic or group has not ended"
    OWNER_ACTS = "only the owner of the client or broker can do it"
    DRY_RUN = "the mode is a dry run"
    NOT_LEADING = "this agent does not lead"
    WRONG_CLUSTER = "this is not the cluster of the settings or of the journal"
    BEGUN = "it is in progress"
    TOO_LARGE = "it is larger than one plan may be, or than the journal has room for"
    GROUP_REFUSED = "the group must not be triggered now"
    PROBING = "its warm-ups are not worth a rebalance yet"
    PAUSED = "acting is paused"
    EXCLUDED = "the settings exclude it"
    OUTSIDE_WINDOW = "the time is outside the allowed windows"
    TRIED = "the same trigger was sent recently"
    TOO_LITTLE_GAIN = "the gain is below the least gain"
    NO_PAYBACK = "the pay-back time is too long or unknown"
    OVER_BUDGET = "the budget is used up"
    NEEDS_APPROVAL = "it is not approved"


_LASTING = frozenset(
    {
        HoldReason.OWNER_ACTS,
        HoldReason.DRY_RUN,
        HoldReason.WRONG_CLUSTER,
        HoldReason.EXCLUDED,
        HoldReason.TOO_LITTLE_GAIN,
        HoldReason.NO_PAYBACK,
    }
)


class RefuseReason(StrEnum):
    """Why a proposal is over; the next cycle makes a new one if there is still something to propose."""

    STALE_SNAPSHOT = "the state that the proposal was made from has changed"
    EXPIRED = "the proposal has expired"


class Allow(NamedTuple):
    """The proposal may be executed now."""

    proposal_id: str
    sentence: str
    by: str = ""
    """Approver: ``user@host``, or ``rule NAME``."""
    rule: str | None = None
    """The rule that approved it; None where a person did."""
    throttle_bytes_per_s: int | None = None
    """The approver's own throttle; None: by the settings."""
    max_moves: int | None = None
    reason: str = ""
    """The approver's text, or the numbers by which the rule held."""
    attempt: PlanAttempt | None = None
    """The plan that may begin; None: the first attempt at the proposal."""
    until_ms: int | None = None
    """Epoch milliseconds at which the person's approval ends; None for a rule, which is evaluated each time."""


class Hold(NamedTuple):
    """The proposal waits for a condition."""

    proposal_id: str
    reason: HoldReason
    why: str
    until_ms: int | None = None
    """Epoch milliseconds of the next check; None when unknown."""
    lasting: bool = False
    """True where only a change of settings, or of the group by its owner, ends it."""

    @property
    def sentence(self) -> str:
        """As operators read it."""
        return f"held: {self.why}"

    @property
    def passes(self) -> bool:
        """Whether it can end without a change of settings."""
        return not self.lasting and self.reason not in _LASTING


class Refuse(NamedTuple):
    """The proposal is over."""

    proposal_id: str
    reason: RefuseReason
    why: str

    @property
    def sentence(self) -> str:
        """As operators read it."""
        return f"refused: {self.why}"


Verdict = Allow | Hold | Refuse


class CheckPassed(NamedTuple):
    """One check passed; the sentence has its numbers."""

    sentence: str


class Outcome(NamedTuple):
    """The outcome of one allowed proposal."""

    proposal_id: str
    done: bool
    sentence: str
