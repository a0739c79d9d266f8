"""Progress of plans and state of execute mode, as the leader reports them.

Units are bytes, bytes per second and seconds; None is unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple, TypedDict

from agent.values.reassignment import Batch, ReassignmentPlan, ThrottleDebt
from assignors.problem import TopicPartition


class ReplicaProgress(NamedTuple):
    """A copy that is being made."""

    id: TopicPartition
    broker: int
    """To which it is copied."""
    bytes: int | None
    of_bytes: int | None
    bytes_per_s: float | None
    seconds_left: float | None


class BrokerProgress(NamedTuple):
    """All that a broker is still to take."""

    broker: int
    replicas: int
    bytes_left: int | None
    bytes_per_s: float | None
    seconds_left: float | None


class PlanProgress(NamedTuple):
    """A plan, and how far it is."""

    plan: ReassignmentPlan
    batches: tuple[Batch, ...]
    done: int
    """Partitions that have their planned replicas."""
    ended: int
    """Partitions that will not be touched again."""
    replicas: tuple[ReplicaProgress, ...]
    brokers: tuple[BrokerProgress, ...]


class ExecutorStatus(NamedTuple):
    """All that an operator may want to know."""

    plans: tuple[PlanProgress, ...]
    """Those that have not ended, and ended ones that the journal still has, by the time they were last written."""
    debts: tuple[ThrottleDebt, ...]
    """Throttles of ours."""
    may_begin: bool
    may_not: str
    look_failed: str | None
    """Why the cluster could not be seen in the latest look; None when it could."""
    failure: str | None
    """Why nothing is carried out any more; None while it is."""
    journal_failed: str | None = None
    """Why the journal could not be written lately, or a plan not at all; None when it could."""
    holds: tuple[str, ...] = ()
    """What keeps open plans from going on, one for each that is held. A plan that moves, or whose turn comes later, is
    not."""

    @property
    def waits(self) -> str:
        """What the first plan that is held waits for; empty where none is."""
        return next(iter(self.holds), "")


class ExecuteFault(StrEnum):
    """What of acting can fail on its own."""

    LEAD = "lead"
    """It cannot lead, or could not if it were chosen."""
    LOOK = "look"
    """The executor could not see the cluster well enough."""
    JOURNAL = "journal"
    """The journal did not answer, or cannot be read."""
    PLANS = "plans"
    """Nothing is carried out any more."""


_FAILING = {
    ExecuteFault.LEAD: "this agent cannot lead",
    ExecuteFault.LOOK: "plans are not carried on",
    ExecuteFault.JOURNAL: "plans are not carried on",
    ExecuteFault.PLANS: "no plan is carried out any more",
}


class ExecuteState(NamedTuple):
    """Mode execute as it is. None while this agent does not lead, because only its leader knows."""

    leads: bool
    plans: int | None = None
    """Plans that have not ended."""
    partitions_left: int | None = None
    """Partitions of theirs that are still to be moved."""
    throttles: int | None = None
    """Throttle settings of ours that stand in the cluster."""
    records_ignored: int | None = None
    """Records of the journal's topic that no agent wrote; None where records are not signed."""
    troubles: Mapping[ExecuteFault, str] = MappingProxyType({})
    """What fails now, and why."""
    waiting: int | None = None
    """Open plans that are held."""
    waits: str = ""
    """What the first of them waits for."""
    notices: tuple[str, ...] = ()
    """What is not as it should be, and keeps no agent from leading."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """What fails, as sentences."""
        return tuple(f"{_FAILING[trouble]}: {why}" for trouble, why in self.troubles.items())

    @property
    def told(self) -> frozenset[ExecuteFault]:
        """Of what it is known whether it fails: a standby agent carries nothing out."""
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
    """False where it goes by other settings than the agent above it."""
    age_ms: int | None
    """How old its newest cycle is; null where its time is of the future by more than 5 min."""


class AgentDocument(TypedDict):
    """The agent that leads, by the cycle reports of the telemetry topic; where none does, the newest one."""

    name: str | None
    host: str | None
    mode: str
    leads: bool | None
    """Null outside of mode execute."""
    acting: list[str]
    """Mode execute: what keeps it from leading or from carrying plans on, and what open plans wait for."""
    age_ms: int | None
    """How old that cycle is; null where its time is of the future by more than 5 min."""
    pid: int | None
    """Process id on its host; null from an older agent."""
    others: list[OtherAgent]
    """Other agents that write to the same topic now."""
