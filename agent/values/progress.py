"""Progress of plans, state of mode execute, and agents of the telemetry topic; None is unknown, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from typing_extensions import TypedDict

from agent.values.reassignment import Batch, ReassignmentPlan, ThrottleDebt
from assignors.problem import TopicPartition

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
