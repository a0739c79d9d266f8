"""Verdicts of the guard on proposals (allow, hold, refuse), and outcomes of allowed proposals."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from agent.values.reassignment import PlanAttempt


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
    sentence: str
    until_ms: int | None = None
    """Epoch milliseconds of the next check; None when unknown."""
    lasting: bool = False
    """True where only a change of settings, or of the group by its owner, ends it."""

    @property
    def passes(self) -> bool:
        """Whether it can end without a change of settings."""
        return not self.lasting and self.reason not in _LASTING


class Refuse(NamedTuple):
    """The proposal is over."""

    proposal_id: str
    reason: RefuseReason
    sentence: str


Verdict = Allow | Hold | Refuse


class CheckPassed(NamedTuple):
    """One check passed; the sentence has its numbers."""

    sentence: str


class Outcome(NamedTuple):
    """The outcome of one allowed proposal."""

    proposal_id: str
    done: bool
    sentence: str
