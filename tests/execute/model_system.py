"""What a model checker's system is made of: a cluster, a journal, agents with their shells, requests on their way."""

from __future__ import annotations

from typing import NamedTuple

from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    ClusterChange,
    PlanCommand,
    RequestResult,
)
from agent.execute.reassign.state import MachineState
from agent.values.limits import ExecuteLimits
from agent.values.reassignment import ReassignmentPlan, ReassignmentPolicy, ReassignmentRecords
from agent.values.throttles import ThrottleResource
from assignors.problem import TopicPartition
from tests.execute.abstract_cluster import Cluster, Part

POLICY = ReassignmentPolicy(
    ExecuteLimits(
        batch_partitions=2,
        max_bytes_in_flight=None,
        throttle=1,
        throttle_ceiling=2,
        stuck_after_ms=2,
        grace_after_broker_loss_ms=1,
        request_timeout_ms=2,
        intent_valid_ms=1,
    ),
    look_ms=1,
    idle_look_ms=1,
    max_sendings=3,
    max_elections=2,
)
LATEST = POLICY.landing_ms


class Agent(NamedTuple):
    """An agent with its shell."""

    state: MachineState
    epoch: int
    frozen: bool = False
    missed_ms: int = 0
    durable: bool = False
    """What it appends is written, and it does not know yet."""
    appending_ms: int = 0
    """Since it began to append."""
    away: bool = False
    """It was frozen for a while since its latest append, so that its lease is not sure."""
    sent: int = 0
    """The number of the request whose answer it awaits; 0: none."""
    wrote: ReassignmentRecords | None = None
    """The journal right after its latest append."""


class Request(NamedTuple):
    """A request on its way."""

    act: ClusterChange
    epoch: int
    number: int
    """Among those of its agent that are on their way."""
    age_ms: int = 0
    left_out: tuple[RequestResult, ...] = ()
    """What was not asked for after the last look before it."""


class Left(NamedTuple):
    """How often each may still happen."""

    crashes: int = 0
    freezes: int = 0
    losses: int = 0
    """Answers lost, requests late, looks failed, controllers that say not now."""
    brokers: int = 0
    foreign: int = 0
    """Moves of others, and cancels of ours by others."""
    throttles: int = 0
    """Throttles that others set."""
    deletions: int = 0
    min_isr: int = 0
    delays: int = 0
    """Time passes although an actor has something to do."""
    commands: tuple[PlanCommand, ...] = ()
    """Sorted; one that is there twice may be said twice."""
    unread: int = 0
    """Looks in which something did not answer."""
    lags: int = 0
    """Looks that show partitions as they were before their latest change."""
    holds: int = 0
    """Times that the guard lets no new batch begin for a while, or lets an approval end."""
    again: int = 0
    """Plans that are handed over once more: the same attempt, or the next one, at any time."""


class System(NamedTuple):
    """All of it."""

    cluster: Cluster
    journal: ReassignmentRecords
    epoch: int
    agents: tuple[Agent, ...]
    wire: tuple[Request, ...]
    left: Left
    ended: tuple[ReassignmentPlan, ...] = ()
    """The latest attempts that ended, one for each plan of the scenario, by name."""
    harm: str = ""
    former: tuple[Part, ...] | None = None
    """The partitions before their latest change, while a look may still show them."""


class Scenario(NamedTuple):
    """Where it starts, and what may happen."""

    plan: ReassignmentPlan
    cluster: Cluster
    left: Left
    second: ReassignmentPlan | None = None
    """Accepted after the first."""
    shell_checks_freshness: bool = True
    shell_checks_lease: bool = True
    shell_looks_last: bool = True
    """Right before each request."""
    others_wait: bool = False
    """Other people do nothing between a look of ours and what follows from it."""
    policy: ReassignmentPolicy = POLICY

    @property
    def plans(self) -> tuple[ReassignmentPlan, ...]:
        """In the order in which they were accepted."""
        return (self.plan,) if self.second is None else (self.plan, self.second)


def in_order(*requests: Request) -> tuple[Request, ...]:
    return tuple(sorted(requests, key=lambda it: (it.epoch, it.number)))


def subjects(act: ClusterChange) -> list[TopicPartition | ThrottleResource]:
    if isinstance(act, AlterReassignments):
        return [move.id for move in act.moves]
    if isinstance(act, AlterThrottles):
        return sorted({setting.resource for setting in act.settings})
    return list(act.partitions)
