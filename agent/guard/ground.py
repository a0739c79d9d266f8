"""What the guard judges by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from agent.execute.reassign.whole import whole
from agent.journal import moves
from agent.journal.attempts import next_attempt
from agent.propose.rests import Rests
from agent.values.absences import Absence
from agent.values.attempts import Attempt, latest
from agent.values.journal import View
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.proposal import Proposal
from agent.values.reassignment import Batch, Plan
from agent.values.snapshot import Snapshot
from agent.values.typed_json import UnreadableError
from agent.values.verdict import Fine, Hold, Refuse


class Begun(NamedTuple):
    """A plan in the journal, and when it was last heard of."""

    plan: Plan
    at_ms: int


class Sent(NamedTuple):
    """A batch in the journal, and when it was last heard of."""

    batch: Batch
    at_ms: int


class Records:
    """What the journal says, each part read when it is first asked for. Plans that cannot be read hold everything."""

    def __init__(self, view: View) -> None:
        self.view = view

    @cached_property
    def plans(self) -> Mapping[str, Begun]:
        """By name. Raises UnreadableError."""
        return {plan.proposal_id: Begun(plan, at_ms) for plan, at_ms in moves.dated_plans(self.view)}

    def newest(self, proposal_id: str) -> Plan | None:
        """The newest attempt at a proposal; None when there was none. Raises UnreadableError."""
        return latest((begun.plan for begun in self.plans.values()), proposal_id)

    def next(self, proposal_id: str) -> Attempt:
        """The attempt that would begin now. Raises UnreadableError."""
        return next_attempt(tuple(begun.plan for begun in self.plans.values()), self.view, proposal_id)

    @cached_property
    def batches(self) -> tuple[Sent, ...]:
        """In the order in which they were last written. Raises UnreadableError."""
        return tuple(Sent(*one) for one in moves.dated_batches(self.view))

    @cached_property
    def moved(self) -> Mapping[str, int]:
        """Topic -> epoch ms at which a plan of ours that moved its replicas was last heard of.

        An ended plan may have lost its partitions, as there is no room for those of all: its batches still tell.
        """
        last: dict[str, int] = {}
        ended = [begun for begun in self.plans.values() if begun.plan.ended]
        names = {plan.proposal_id for plan, _ in ended if plan.dropped}
        told = [(plan.targets, at_ms) for plan, at_ms in ended]
        told += [(batch.targets, at_ms) for batch, at_ms in self.batches if batch.proposal_id in names]
        for targets, at_ms in told:
            for topic in whole(targets).topics:
                last[topic] = max(at_ms, last.get(topic, at_ms))
        return last

    @cached_property
    def unended(self) -> tuple[Plan, ...]:
        """The plans that have not ended, as the executor reads them. Raises UnreadableError."""
        return moves.read(self.view).plans

    @cached_property
    def unreadable(self) -> str | None:
        """Why plans, batches or throttles cannot be read; None when they can."""
        try:
            _ = self.unended, self.plans, self.batches
        except UnreadableError as error:
            return str(error)
        return None


class Ground(NamedTuple):
    """What the guard judges by."""

    fresh: Snapshot
    memory: Memory
    limits: Limits
    rests: Rests
    unsteady: frozenset[int]
    """Brokers whose rack has not held still."""
    records: Records
    leads: bool
    now_ms: int
    granted: tuple[Proposal, ...] = ()
    """What was allowed before it in the same round."""
    absences: Mapping[int, Absence] = MappingProxyType({})
    """Absent brokers."""


Check = Callable[[Proposal, Ground], Hold | Refuse | Fine | None]
"""A check: what holds a proposal, by which numbers nothing does, or None when it is not about it."""
EMPTY: View = {}
