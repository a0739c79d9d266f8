"""Verdicts of the guard (allowed, held with what would have to change, refused for good), and what became of them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class HoldReason(StrEnum):
    """Why a proposal waits; each may pass without a change of the proposal."""

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
    """It may be done now."""

    proposal_id: str
    sentence: str
    by: str = ""
    """Who approved it: ``user@host``, or ``rule NAME``."""
    rule: str | None = None
    """The rule that approved it, where no person did."""
    throttle_bytes_per_s: int | None = None
    """What the person who approved it asked for; None: as the settings say."""
    max_moves: int | None = None
    reason: str = ""
    """What that person wrote, or by which numbers the rule held."""
    plan: str = ""
    """Name of the plan that may begin: which attempt; the proposal's id where it is empty."""
    until_ms: int | None = None
    """Epoch milliseconds until when the person's approval lasts; None for a rule's, which is asked anew each time."""


class Hold(NamedTuple):
    """Not now."""

    proposal_id: str
    reason: HoldReason
    sentence: str
    until_ms: int | None = None
    """Epoch milliseconds when it may be asked again; None when unknown."""
    lasting: bool = False
    """True where neither time nor what the agent does ends it: only settings, or an owner's change of the group, do."""

    @property
    def passes(self) -> bool:
        """Whether it can end without a change of settings."""
        return not self.lasting and self.reason not in _LASTING


class Refuse(NamedTuple):
    """Never."""

    proposal_id: str
    reason: RefuseReason
    sentence: str


Verdict = Allow | Hold | Refuse


class CheckPassed(NamedTuple):
    """One check has nothing against it, and by which numbers."""

    sentence: str


class Outcome(NamedTuple):
    """What became of one allowed proposal."""

    proposal_id: str
    done: bool
    sentence: str
