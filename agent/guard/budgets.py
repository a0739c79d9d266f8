"""Is there budget left? Counted from the journal's triggers and batches, and from what this round allowed already.

Invariant: what may have been asked counts as asked, so a budget is never overdrawn by a crash; entries are kept longer
than the longest budget looks back. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.guard.ground import Check, Ground, Sent
from agent.journal.triggers import acted_at, triggers
from agent.values.limits import ExecuteLimits
from agent.values.proposal import Proposal, ProposalKind, ProposalReason
from agent.values.verdict import Fine, Hold, HoldReason
from agent.values.words import counted, sized_apart

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


def _triggers(proposal: Proposal, ground: Ground) -> Hold | Fine | None:
    if proposal.kind is not ProposalKind.TRIGGER:
        return None
    limits, now_ms = ground.limits.trigger, ground.now_ms
    granted = len([one for one in ground.granted if one.kind is ProposalKind.TRIGGER])
    if granted >= limits.budget_per_cycle:
        sentence = f"held: allowed in this cycle: {counted(granted, 'trigger')} (trigger.budget_per_cycle)"
        return Hold(proposal.id, HoldReason.OVER_BUDGET, sentence)
    every = acted_at(ground.records.view)
    told: list[str] = []
    for span_ms, word, budget in (
        (HOUR_MS, "hour", limits.budget_per_hour),
        (DAY_MS, "day", limits.budget_per_day),
    ):
        used, free_ms = _used(every, now_ms, span_ms, budget - granted)
        told.append(f"{used + granted} of {counted(budget, 'trigger')} in the last {word}")
        if used + granted >= budget:
            return Hold(proposal.id, HoldReason.OVER_BUDGET, f"held: {told[-1]} (trigger.budget_per_{word})", free_ms)
    return Fine("; ".join(told))


def _group_triggers(proposal: Proposal, ground: Ground) -> Hold | Fine | None:
    if proposal.kind is not ProposalKind.TRIGGER:
        return None
    name = proposal.subject.name
    promotion = proposal.reason is ProposalReason.WARMUP_PROMOTABLE
    budget = (ground.limits.probing if promotion else ground.limits.trigger).budget_per_group_per_hour
    used, free_ms = _used(_of_group(ground, name, promotion=promotion), ground.now_ms, HOUR_MS, budget)
    setting = f"{'probing' if promotion else 'trigger'}.budget_per_group_per_hour"
    sentence = f"{used:,} of {counted(budget, 'trigger')} of group {name} in the last hour ({setting})"
    return Hold(proposal.id, HoldReason.OVER_BUDGET, f"held: {sentence}", free_ms) if used >= budget else Fine(sentence)


def _batches(proposal: Proposal, ground: Ground) -> Hold | Fine | None:
    if proposal.kind not in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        return None
    return batches_left(proposal.id, ground.records.batches, ground.limits.execute, ground.now_ms)


def batches_left(proposal_id: str, batches: Sequence[Sent], execute: ExecuteLimits, now_ms: int) -> Hold | Fine:
    """Whether the budget allows one more batch; also asked before each batch of a plan that is open."""
    # What was withdrawn before it was sent, or is about to be sent, has asked for nothing and copied nothing.
    batches = [sent for sent in batches if sent.batch.sendings]
    times = sorted(sent.at_ms for sent in batches)
    told: list[str] = []
    for span_ms, word, budget in (
        (HOUR_MS, "hour", execute.batches_per_hour),
        (DAY_MS, "day", execute.batches_per_day),
    ):
        used, free_ms = _used(times, now_ms, span_ms, budget)
        told.append(
            f"{used:,} of {counted(budget, 'batch', 'batches')} in the last {word} (execute.batches_per_{word})"
        )
        if used >= budget:
            return Hold(proposal_id, HoldReason.OVER_BUDGET, f"held: {told[-1]}", free_ms)
    if execute.bytes_per_day is not None:
        moved = _bytes(batches, now_ms)
        if moved is None:
            sentence = "held: the number of bytes copied in the last day is unknown (execute.bytes_per_day)"
            return Hold(proposal_id, HoldReason.OVER_BUDGET, sentence)
        copied, most = sized_apart(moved, execute.bytes_per_day)
        told.append(f"{copied} of {most} copied in the last day (execute.bytes_per_day)")
        if moved >= execute.bytes_per_day:
            return Hold(proposal_id, HoldReason.OVER_BUDGET, f"held: {told[-1]}")
    return Fine("; ".join(told))


def _bytes(batches: Sequence[Sent], now_ms: int) -> int | None:
    total = 0
    for batch, at_ms in batches:
        if now_ms - at_ms >= DAY_MS:
            continue
        for target in batch.targets:
            if target.moves_data and target.bytes is None:
                return None
            total += len(target.adding) * (target.bytes or 0)
    return total


def _of_group(ground: Ground, name: str, *, promotion: bool) -> tuple[int, ...]:
    """When triggers of that group were asked for: those for warm-ups, or all others."""
    kinds = {
        at
        for entry in triggers(ground.records.view, name)
        if (entry.reason == ProposalReason.WARMUP_PROMOTABLE.name) is promotion
        for at in entry.times_ms
    }
    return tuple(at for at in acted_at(ground.records.view, name) if at in kinds)


def _used(times: Sequence[int], now_ms: int, span_ms: int, budget: int) -> tuple[int, int | None]:
    """How many of these sorted times lie within the span, and when one fewer than the budget will."""
    recent = [at for at in times if now_ms - at < span_ms]
    over = len(recent) - budget
    return len(recent), recent[over] + span_ms if 0 <= over < len(recent) else None


BUDGET_CHECKS: tuple[Check, ...] = (_triggers, _group_triggers, _batches)
"""In the order in which they are asked."""
