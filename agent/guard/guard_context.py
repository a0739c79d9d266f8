"""The context of the guard's checks, and the budgets per hour and day."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from agent.execute.reassign.state import plan_scope
from agent.journal import plan_entries
from agent.journal.approvals import next_attempt
from agent.journal.entries import JournalState
from agent.journal.triggers import acted_at, triggers
from agent.propose.propose_context import ProposalPreconditions
from agent.values.limits import ExecuteLimits, Limits
from agent.values.memory import BrokerAbsence, Memory
from agent.values.number_format import counted, sized_apart
from agent.values.proposal import (
    CheckPassed,
    Hold,
    HoldReason,
    PlanAttempt,
    Proposal,
    ProposalKind,
    ProposalReason,
    Refuse,
)
from agent.values.reassignment import Batch, ReassignmentPlan, latest
from agent.values.snapshot import Snapshot
from agent.values.typed_json import UnreadableError


class DatedPlan(NamedTuple):
    """A plan in the journal, and the time of its last record."""

    plan: ReassignmentPlan
    at_ms: int


class DatedBatch(NamedTuple):
    """A batch in the journal, and the time of its last record."""

    batch: Batch
    at_ms: int


class GuardJournal:
    """The journal's plans and batches, read on first use. Unreadable plans hold everything."""

    def __init__(self, view: JournalState) -> None:
        self.view = view

    @cached_property
    def plans(self) -> Mapping[str, DatedPlan]:
        """Plan name -> plan. Raises UnreadableError."""
        return {plan.proposal_id: DatedPlan(plan, at_ms) for plan, at_ms in plan_entries.dated_plans(self.view)}

    @cached_property
    def every(self) -> tuple[ReassignmentPlan, ...]:
        """Every plan, ended or not. Raises UnreadableError."""
        return tuple(begun.plan for begun in self.plans.values())

    def newest(self, proposal_id: str) -> ReassignmentPlan | None:
        """The newest attempt at a proposal; None when there was none. Raises UnreadableError."""
        return latest(self.every, proposal_id)

    def next(self, proposal_id: str) -> PlanAttempt:
        """The attempt that would begin now. Raises UnreadableError."""
        return next_attempt(self.every, self.view, proposal_id)

    @cached_property
    def batches(self) -> tuple[DatedBatch, ...]:
        """Batches in the order of their last writes. Raises UnreadableError."""
        return tuple(DatedBatch(*one) for one in plan_entries.dated_batches(self.view))

    @cached_property
    def moved(self) -> Mapping[str, int]:
        """Topic -> epoch ms of the last record of an ended plan that moved its replicas.

        An ended plan may have dropped its partitions for want of room: then its batches have them.
        """
        last: dict[str, int] = {}
        ended = [begun for begun in self.plans.values() if begun.plan.ended]
        names = {plan.proposal_id for plan, _ in ended if plan.dropped}
        moves = [(plan.targets, at_ms) for plan, at_ms in ended]
        moves += [(batch.targets, at_ms) for batch, at_ms in self.batches if batch.proposal_id in names]
        for targets, at_ms in moves:
            for topic in plan_scope(targets).topics:
                last[topic] = max(at_ms, last.get(topic, at_ms))
        return last

    @cached_property
    def unended(self) -> tuple[ReassignmentPlan, ...]:
        """The plans that have not ended, as the executor reads them. Raises UnreadableError."""
        return plan_entries.open_records(self.view).plans

    @cached_property
    def unreadable(self) -> str | None:
        """Why plans, batches or throttles cannot be read; None when they can."""
        try:
            _ = self.unended, self.plans, self.batches
        except UnreadableError as error:
            return str(error)
        return None


class GuardContext(NamedTuple):
    """The input of every check."""

    fresh: Snapshot
    memory: Memory
    limits: Limits
    preconditions: ProposalPreconditions
    unsteady: frozenset[int]
    """Brokers whose rack has not held still."""
    records: GuardJournal
    leads: bool
    now_ms: int
    granted: tuple[Proposal, ...] = ()
    """Proposals allowed earlier in the same round."""
    absences: Mapping[int, BrokerAbsence] = MappingProxyType({})
    """Absent brokers."""


Check = Callable[[Proposal, GuardContext], Hold | Refuse | CheckPassed | None]
"""A check: a hold or refusal, a pass with its numbers, or None for proposals that it does not concern."""
EMPTY: JournalState = {}


# Budgets count the journal's triggers and batches and what this round allowed. Invariant: an entry that may have been
# sent counts as sent, so no crash overdraws a budget; the journal keeps entries longer than a day. Pure.

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


def _triggers_left(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed | None:
    if proposal.kind is not ProposalKind.TRIGGER:
        return None
    limits, now_ms = context.limits.trigger, context.now_ms
    granted = len([one for one in context.granted if one.kind is ProposalKind.TRIGGER])
    if granted >= limits.budget_per_cycle:
        sentence = f"allowed in this cycle: {counted(granted, 'trigger')} (trigger.budget_per_cycle)"
        return Hold(proposal.id, HoldReason.OVER_BUDGET, sentence)
    every = acted_at(context.records.view)
    uses: list[str] = []
    for span_ms, word, budget in ((HOUR_MS, "hour", limits.budget_per_hour), (DAY_MS, "day", limits.budget_per_day)):
        used, free_ms = _used(every, now_ms, span_ms, budget - granted)
        uses.append(f"{used + granted} of {counted(budget, 'trigger')} in the last {word}")
        if used + granted >= budget:
            return Hold(proposal.id, HoldReason.OVER_BUDGET, f"{uses[-1]} (trigger.budget_per_{word})", free_ms)
    return CheckPassed("; ".join(uses))


def _triggers_of_group_left(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed | None:
    if proposal.kind is not ProposalKind.TRIGGER:
        return None
    name = proposal.subject.name
    promotion = proposal.reason is ProposalReason.WARMUP_PROMOTABLE
    budget = (context.limits.probing if promotion else context.limits.trigger).budget_per_group_per_hour
    used, free_ms = _used(_of_group(context, name, promotion=promotion), context.now_ms, HOUR_MS, budget)
    setting = f"{'probing' if promotion else 'trigger'}.budget_per_group_per_hour"
    sentence = f"{used:,} of {counted(budget, 'trigger')} of group {name} in the last hour ({setting})"
    return Hold(proposal.id, HoldReason.OVER_BUDGET, sentence, free_ms) if used >= budget else CheckPassed(sentence)


def _batches_of_plans_left(proposal: Proposal, context: GuardContext) -> Hold | CheckPassed | None:
    if proposal.kind not in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        return None
    return batches_left(proposal.id, context.records.batches, context.limits.execute, context.now_ms)


def batches_left(
    proposal_id: str, batches: Sequence[DatedBatch], execute: ExecuteLimits, now_ms: int
) -> Hold | CheckPassed:
    """Whether the budget allows one more batch; also asked before each batch of a plan that is open."""
    # What was withdrawn before it was sent, or is about to be sent, has asked for nothing and copied nothing.
    batches = [sent for sent in batches if sent.batch.sendings]
    times = sorted(sent.at_ms for sent in batches)
    uses: list[str] = []
    for span_ms, word, budget in (
        (HOUR_MS, "hour", execute.batches_per_hour),
        (DAY_MS, "day", execute.batches_per_day),
    ):
        used, free_ms = _used(times, now_ms, span_ms, budget)
        uses.append(
            f"{used:,} of {counted(budget, 'batch', 'batches')} in the last {word} (execute.batches_per_{word})"
        )
        if used >= budget:
            return Hold(proposal_id, HoldReason.OVER_BUDGET, uses[-1], free_ms)
    if execute.bytes_per_day is not None:
        moved = _bytes(batches, now_ms)
        if moved is None:
            sentence = "the number of bytes copied in the last day is unknown (execute.bytes_per_day)"
            return Hold(proposal_id, HoldReason.OVER_BUDGET, sentence)
        copied, most = sized_apart(moved, execute.bytes_per_day)
        uses.append(f"{copied} of {most} copied in the last day (execute.bytes_per_day)")
        if moved >= execute.bytes_per_day:
            return Hold(proposal_id, HoldReason.OVER_BUDGET, uses[-1])
    return CheckPassed("; ".join(uses))


def _bytes(batches: Sequence[DatedBatch], now_ms: int) -> int | None:
    total = 0
    for batch, at_ms in batches:
        if now_ms - at_ms >= DAY_MS:
            continue
        for target in batch.targets:
            if target.moves_data and target.bytes is None:
                return None
            total += len(target.adding) * (target.bytes or 0)
    return total


def _of_group(context: GuardContext, name: str, *, promotion: bool) -> tuple[int, ...]:
    """When triggers of that group were asked for: those for warm-ups, or all others."""
    kinds = {
        at
        for entry in triggers(context.records.view, name)
        if (entry.reason == ProposalReason.WARMUP_PROMOTABLE.name) is promotion
        for at in entry.times_ms
    }
    return tuple(at for at in acted_at(context.records.view, name) if at in kinds)


def _used(times: Sequence[int], now_ms: int, span_ms: int, budget: int) -> tuple[int, int | None]:
    """How many of these sorted times lie within the span, and when one fewer than the budget will."""
    recent = [at for at in times if now_ms - at < span_ms]
    over = len(recent) - budget
    return len(recent), recent[over] + span_ms if 0 <= over < len(recent) else None


BUDGET_CHECKS: tuple[Check, ...] = (_triggers_left, _triggers_of_group_left, _batches_of_plans_left)
"""In their order."""
