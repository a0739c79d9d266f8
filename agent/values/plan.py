"""Plans of one cycle (changes that fix findings), predictions of groups' next assignments, and progress of what runs.

Progress is that of reassignments, of mode execute, and of the agents of the telemetry topic; None is unknown, never
zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from typing_extensions import TypedDict

from agent.values.finding import SubjectId
from agent.values.number_format import counted
from agent.values.proposal import PlacementChange, ProposalReason
from agent.values.reassignment import Batch, ReassignmentPlan, ThrottleDebt
from assignors.problem import TaskId, TopicPartition


class PredictionCertainty(StrEnum):
    """How exact a prediction is."""

    EXACT = "exact"
    """Kafka is deterministic here and all of its inputs are known."""
    COST_EQUAL = "equal cost, not the exact assignment"
    """Balance and cost are Kafka's, but the assignment may differ: a note has the reason."""


class PredictionBasis(StrEnum):
    """The source of the group's assignor and its settings."""

    READ = "read from the group"
    SET = "set by the user"
    ASSUMED = "Kafka's defaults, assumed"


class NotPredicted(StrEnum):
    """Why a group has no prediction."""

    OTHER_KIND = "the group assigns no partitions to readers"
    HIDDEN = "a rebalance is running, so its members are not shown"
    EMPTY = "the group has no members"
    UNDECODABLE = "member bytes could not be read"
    TOPICS_UNKNOWN = "a topic that it reads could not be described"
    TOPOLOGY_UNKNOWN = "the application's topology is unknown"
    UNKNOWN_ASSIGNOR = "rackwise does not have its assignor"
    TOO_LARGE = "it is larger than plan.predict_limit"
    REFUSED = "its assignor would answer with an error"


class PredictedAssignment(NamedTuple):
    """Partitions and tasks of each reader: a member of a consumer group, or a process of a Streams application."""

    reads: Mapping[str, tuple[TopicPartition, ...]]
    """Every reader -> the partitions that it reads (of its active tasks), sorted."""
    active: Mapping[str, tuple[TaskId, ...]] = {}
    """Streams: every process -> its active tasks."""
    standby: Mapping[str, tuple[TaskId, ...]] = {}
    """Streams: every process -> its standbys; warm-ups are not among them."""
    warmup: Mapping[str, tuple[TaskId, ...]] = {}
    """Streams: process -> its warm-up tasks (KIP-441)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupCosts:
    """The extra cost of warm-ups until they are done (KIP-441). Bytes are None where a size is unknown."""

    at_once: int
    """Additional replicas of tasks at any one time, at most."""
    tasks: int
    """Tasks that warm up over the whole way."""
    disk_bytes: int | None
    """Disk that the application's hosts need beyond now, over the whole way."""
    read_bytes: int | None
    """Bytes that brokers serve for restoring, over the whole way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The predicted result of a group's next rebalance. ``why_not`` is set, and the rest empty, if unknown."""

    group_id: str
    assignor: str | None = None
    """By Kafka's name, such as ``cooperative-sticky``, ``uniform`` or ``HighAvailabilityTaskAssignor``."""
    settings: str = ""
    """Its settings as one clause, such as ``rack.aware.assignment.strategy min_traffic, num.standby.replicas 1``."""
    basis: PredictionBasis = PredictionBasis.READ
    certainty: PredictionCertainty = PredictionCertainty.EXACT
    first: PredictedAssignment | None = None
    """After the next rebalance alone. Under cooperative-sticky a partition that changes hands has no owner then;
    under HighAvailability tasks stay where their state is."""
    settled: PredictedAssignment | None = None
    """In the end: after the follow-up rebalances, with warm-ups caught up."""
    rebalances: int | None = None
    """Rebalances until then; None where they were not counted because there are many."""
    warmups: WarmupCosts | None = None
    """None where nothing warms up."""
    why_not: NotPredicted | None = None
    notes: tuple[str, ...] = ()
    """Assumptions, reasons for equal cost only, and Kafka's own warnings, as clauses."""


_TASK = re.compile(r"\btask \d+_\d+(, active on [0-9a-f-]+)?")


def merged_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """The notes in their order; those that differ only in their tasks are one."""
    alike: dict[str, list[str]] = {}
    for note in notes:
        alike.setdefault(_TASK.sub("task", note), []).append(note)
    return tuple(
        first if not others else f"{first} (the same of {counted(len(others), 'more task')})"
        for first, *others in alike.values()
    )


class Unplanned(StrEnum):
    """The reason why a finding or subject has no plan."""

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
    UNSTABLE = "the group is not stable, or its members are not shown"
    ROLLING = "the group's members are being upgraded: their metadata has more than one version"
    WARMING_UP = "the group has tasks that still warm up"
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
    """Least cost of any plan for this topic: bytes that must move (an unknown size counts as one byte); for leaders the
    reads that cross whichever in-sync replica leads, or the changes that evenness needs."""
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
    """(partition, from member, to member) by its own assignor's prediction, or by the optimum where that is unknown."""
    findings: tuple[str, ...] = ()
    prediction: Prediction | None = None
    """The prediction of its own assignor, or why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvicePlan:
    """A setting that the owner of the client or broker should change."""

    subject_kind: str
    subject: str
    reason: ProposalReason
    setting: str
    now: str | None
    wanted: str
    lines: tuple[str, ...]
    """Settings or commands, one each; a name in them may have a line feed."""
    why: str
    who: tuple[str, ...]
    """Affected clients, brokers or topics."""
    who_kind: str = "client"
    """Kind of each of these: ``client``, ``broker`` or ``topic``."""
    findings: tuple[str, ...]

    @property
    def line(self) -> str:
        """The settings or commands as one text."""
        return "\n".join(self.lines)


UnplannedKey = str | SubjectId | TopicPartition
"""What is not planned: a finding by its id, a subject, or a partition of a topic."""


def unplanned_subject(key: UnplannedKey) -> str | SubjectId:
    """The key; of a partition its topic."""
    return SubjectId("topic", key.topic) if isinstance(key, TopicPartition) else key


def unplanned_text(key: UnplannedKey) -> str:
    """As an operator reads it: ``topic/orders-0`` is a partition."""
    return f"topic/{key}" if isinstance(key, TopicPartition) else str(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All changes of one cycle, each list sorted by subject, and those left out with the reason."""

    placements: tuple[PlacementPlan, ...] = ()
    triggers: tuple[TriggerPlan, ...] = ()
    advice: tuple[AdvicePlan, ...] = ()
    unplanned: tuple[tuple[UnplannedKey, Unplanned], ...] = ()
    predictions: Mapping[str, Prediction] = field(default_factory=dict)
    """Group -> prediction of its own assignor, where the plan needed it."""


class RuleAnswer(StrEnum):
    """The answer of a rule."""

    YES = "yes"
    NO = "no"
    WAIT = "wait"
    """Not now; this ends by itself."""
    UNKNOWN = "unknown"
    """An input of the rule is unknown."""
    FOUND = "found"
    """The rule is a finding."""
    FACT = "fact"
    """A figure, which answers no question."""


Value = str | int | float | bool | tuple[str | int, ...] | None
"""A figure, or names."""


class ExplainedRule(NamedTuple):
    """A rule with its subject, its answer, and the sentence with its figures."""

    about: str
    """``orders-0``, ``orders-0 on broker 3``, ``group/orders``, ``member m1``, a finding's or a proposal's id."""
    rule: str
    answer: RuleAnswer
    sentence: str
    value: Value = None
    """The figure of a fact, for machines; its unit is in ``rule``."""


def yes_or_no(fine: bool) -> RuleAnswer:  # noqa: FBT001 (a truth is what it turns into a word)
    """YES for True, NO for False."""
    return RuleAnswer.YES if fine else RuleAnswer.NO


STALE_MS = 300_000
"""An agent whose newest telemetry is older than this, or than three of its looks, is not taken for running."""


class ReplicaProgress(NamedTuple):
    """A replica that is being copied."""

    id: TopicPartition
    broker: int
    """The broker that takes it."""
    bytes: int | None
    of_bytes: int | None
    bytes_per_s: float | None
    seconds_left: float | None


class BrokerProgress(NamedTuple):
    """All replicas that a broker is still to take."""

    broker: int
    replicas: int
    bytes_left: int | None
    bytes_per_s: float | None
    seconds_left: float | None


class PlanProgress(NamedTuple):
    """A plan with its progress."""

    plan: ReassignmentPlan
    batches: tuple[Batch, ...]
    done: int
    """Partitions that have their planned replicas."""
    ended: int
    """Partitions that will not be touched again."""
    replicas: tuple[ReplicaProgress, ...]
    brokers: tuple[BrokerProgress, ...]


class ExecutorStatus(NamedTuple):
    """The executor's plans, throttle debts and failures."""

    plans: tuple[PlanProgress, ...]
    """Open plans, and ended ones that the journal still has, by the time of their last entry."""
    debts: tuple[ThrottleDebt, ...]
    """Throttles of ours."""
    look_failed: str | None
    """Why the latest look failed; None when it did not."""
    failure: str | None
    """Why no plan is executed any more; None while plans are."""
    journal_failed: str | None = None
    """Why the journal could not be written lately, or a plan not at all; None without a failure."""
    holds: tuple[str, ...] = ()
    """One hold for each open plan that waits; a plan that moves, or is queued behind another, has none."""

    @property
    def waits(self) -> str:
        """The first hold; empty without any."""
        return next(iter(self.holds), "")


class ExecuteFault(StrEnum):
    """Parts of mode execute that fail on their own."""

    LEAD = "lead"
    """The agent cannot lead, or could not if it were chosen."""
    LOOK = "look"
    """The executor's look at the cluster failed."""
    JOURNAL = "journal"
    """The journal did not answer, or cannot be read."""
    PLANS = "plans"
    """No plan is executed any more."""


_FAILING = {
    ExecuteFault.LEAD: "this agent cannot lead",
    ExecuteFault.LOOK: "plans are not carried on",
    ExecuteFault.JOURNAL: "plans are not carried on",
    ExecuteFault.PLANS: "no plan is carried out any more",
}


class ExecuteState(NamedTuple):
    """State of mode execute. A field is None while this agent does not lead, because only the leader knows it."""

    leads: bool
    plans: int | None = None
    """Plans that have not ended."""
    partitions_left: int | None = None
    """Their partitions that are still to be moved."""
    throttles: int | None = None
    """Throttle settings of rackwise in the cluster."""
    records_ignored: int | None = None
    """Records of the journal's topic that no agent wrote; None where records are not signed."""
    troubles: Mapping[ExecuteFault, str] = MappingProxyType({})
    """Failing part -> why."""
    waiting: int | None = None
    """Open plans that are held."""
    waits: str = ""
    """The first of their holds."""
    notices: tuple[str, ...] = ()
    """Defects that keep no agent from leading."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Failures as sentences."""
        return tuple(f"{_FAILING[trouble]}: {why}" for trouble, why in self.troubles.items())

    @property
    def known_faults(self) -> frozenset[ExecuteFault]:
        """Parts whose failure is known: a standby agent executes nothing."""
        return frozenset(ExecuteFault) if self.leads else frozenset((ExecuteFault.LEAD,))


class OtherAgent(TypedDict):
    """Another agent that writes to the same telemetry topic."""

    name: str | None
    host: str | None
    pid: int | None
    """Process id on its host; null from an older agent."""
    mode: str
    leads: bool | None
    """Null outside of mode execute."""
    same_settings: bool
    """False where its settings differ from those of the agent above it."""
    age_ms: int | None
    """Age of its newest cycle; null where that is more than 5 min in the future."""


class AgentDocument(TypedDict):
    """The leading agent by the cycle reports of the telemetry topic; where none leads, the newest one."""

    name: str | None
    host: str | None
    mode: str
    leads: bool | None
    """Null outside of mode execute."""
    acting: list[str]
    """Mode execute: its failures, and the holds of open plans."""
    age_ms: int | None
    """Age of that cycle; null where it is more than 5 min in the future."""
    pid: int | None
    """Process id on its host; null from an older agent."""
    stopped: bool
    """Whether it reported, ``age_ms`` ago, that it was stopped; no other agent runs then."""
    others: list[OtherAgent]
    """Other agents that write to the same topic now."""


class AgentsDocument(TypedDict):
    """The agent that answers, and the agents of the telemetry topic."""

    this: AgentDocument
    """The agent that answers, at its last look; ``others`` is empty."""
    reported: AgentDocument | None
    """By the telemetry topic: the leading agent, else the newest one, with all others; null where none was read."""
    why_not: str | None
    """Why none was read; null where one was."""
