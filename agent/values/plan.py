"""The plan: changes that would mend what was found, before they become proposals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agent.values.prediction import Prediction
from agent.values.proposal import PlacementChange, ProposalReason
from assignors.problem import TaskId, TopicPartition


class Unplanned(StrEnum):
    """Why something that was found is not planned for."""

    BELOW_THRESHOLD = "nothing worth doing: the gain is below the threshold"
    HELD = "held: a rack has not been stable, or a broker has not been absent, for long enough"
    INFEASIBLE = "no allowed placement mends it"
    UNKNOWN_RACK = "the benefit would rest on an unknown rack"
    RUNNING = "a reassignment of it is running"
    NO_LEADER = "it has no leader, so its new replicas would have nothing to copy from"
    EXCLUDED = "excluded by the settings"
    CAPPED = "left for a later cycle by the caps"
    EAGER = "an eager group stops all its members for a rebalance, so none is proposed"
    STATIC = "a group with static members is not made to rebalance"
    UNSTABLE = "the group is rebalancing, rolling or still warming up"
    UNKNOWN_SELECTOR = "the benefit would rest on an unknown replica selector"
    UNEVEN = "it would leave preferred leaders more uneven than the limit"
    OWN_ASSIGNOR = "its own assignor is predicted not to bring the gain"
    RACKS_OFF = "a rebalance would not help: the group's assignor does not look at racks now"
    MAY_BE_MEANT = "it may be meant to stay, so nothing is proposed about it"
    NO_LEVER = "no setting or move that is known here changes it"
    KEEPS_LEADERS = "its preferred leader would have to change, and preferred leaders are to be kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementPlan:
    """New replica lists for one topic; ``leaders_only`` when only their order changes."""

    topic: str
    reason: ProposalReason
    changes: tuple[PlacementChange, ...]
    leaders_only: bool
    lower_bound: int
    """What no plan for this topic can undercut: bytes that must move (an unknown size counts as one byte); for leaders
    the reads that cross whichever in-sync replica leads, or the changes that evenness needs."""
    optimal: bool
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerPlan:
    """A classic group that one rebalance would improve."""

    group_id: str
    reason: ProposalReason
    promotable: tuple[tuple[str, TaskId], ...] = ()
    """(process, task) of warm-ups that have caught up."""
    moves: tuple[tuple[TopicPartition, str, str], ...] = ()
    """(partition, from member, to member) as its own assignor is predicted to have it; where that is unknown, as
    the optimum has it."""
    findings: tuple[str, ...] = ()
    prediction: Prediction | None = None
    """What its own assignor gives, or why that is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvicePlan:
    """A setting that its owner should change."""

    subject_kind: str
    subject: str
    reason: ProposalReason
    setting: str
    now: str | None
    wanted: str
    line: str
    why: str
    who: tuple[str, ...]
    """Clients or brokers it concerns."""
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All changes of one cycle, each list sorted by subject, and what was left out and why."""

    placements: tuple[PlacementPlan, ...] = ()
    triggers: tuple[TriggerPlan, ...] = ()
    advice: tuple[AdvicePlan, ...] = ()
    unplanned: tuple[tuple[str, Unplanned], ...] = ()
    """(finding id or subject, reason)."""
    predictions: Mapping[str, Prediction] = field(default_factory=dict)
    """Group -> what its own assignor gives, for the groups of which the plan had to know it."""
