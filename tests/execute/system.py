"""What a model checker's system is made of: a cluster, a journal, agents with their shells, requests on their way."""

from __future__ import annotations

from typing import NamedTuple

from agent.execute.messages import Act, Result, Word
from agent.execute.state import State
from agent.execute.values import Plan, Policy, Records
from tests.execute.abstract import Cluster

POLICY = Policy(
    batch_partitions=2,
    throttle_bytes_per_s=1,
    throttle_ceiling_bytes_per_s=2,
    stuck_after_ms=2,
    grace_ms=1,
    request_timeout_ms=2,
    fresh_ms=1,
    look_ms=1,
    idle_look_ms=1,
    max_sendings=3,
    max_elections=2,
)
LATEST = POLICY.landing_ms


class Agent(NamedTuple):
    """An agent with its shell."""

    state: State
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
    wrote: Records | None = None
    """The journal right after its latest append."""


class Request(NamedTuple):
    """A request on its way."""

    act: Act
    epoch: int
    number: int
    """Among those of its agent that are on their way."""
    age_ms: int = 0
    left_out: tuple[Result, ...] = ()
    """What was not asked for after the last look before it."""


class Left(NamedTuple):
    """How often each may still happen."""

    crashes: int = 0
    freezes: int = 0
    losses: int = 0
    """Answers lost, requests late, looks failed, controllers that say not now."""
    brokers: int = 0
    foreign: int = 0
    """Moves of others."""
    throttles: int = 0
    """Throttles that others set."""
    deletions: int = 0
    min_isr: int = 0
    delays: int = 0
    """Time passes although somebody has something to do."""
    words: frozenset[Word] = frozenset()
    again: int = 0
    """Plans that are handed over once more: the same attempt, or the next one, at any time."""


class System(NamedTuple):
    """All of it."""

    cluster: Cluster
    journal: Records
    epoch: int
    agents: tuple[Agent, ...]
    wire: tuple[Request, ...]
    left: Left
    ended: str = ""
    """The state in which the plan ended."""
    harm: str = ""


class Scenario(NamedTuple):
    """Where it starts, and what may happen."""

    plan: Plan
    cluster: Cluster
    left: Left
    shell_checks_freshness: bool = True
    shell_checks_lease: bool = True
    shell_looks_last: bool = True
    """Right before each request."""
    others_wait: bool = False
    """Other people do nothing between a look of ours and what follows from it."""
    policy: Policy = POLICY
