"""The guard's check of triggers for warm-ups, its answer for `explain`, and the time of the next look."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from agent.execute.probing.decide import ProbingContext, decide
from agent.execute.probing.values import (
    NO_ANCHORS,
    ProbingDecision,
    ProbingOff,
    ProbingOffReason,
    ProbingTrigger,
    ProbingWait,
    ProbingWaitReason,
    past_triggers,
)
from agent.journal.entries import JournalState
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.proposal import Proposal, ProposalKind, ProposalReason
from agent.values.snapshot import Snapshot

PROBED = frozenset((ProposalReason.WARMUP_PROMOTABLE,))
"""Reasons that probing decides about."""
_ESTIMATES = (ProbingWaitReason.RESTORING, ProbingWaitReason.REBALANCING)
"""Reasons whose end has no known time."""
_ENDS = {
    ProbingOffReason.SWITCHED_OFF: "this waits until probing.enabled is true",
    ProbingOffReason.NOT_CLASSIC: "this waits until it is a classic Streams application",
    ProbingOffReason.EMPTY: "this waits until it has members and is Stable",
    ProbingOffReason.NO_WARMUPS: "this waits until a process of it has a warm-up",
    ProbingOffReason.NOTHING_WANTED: "this waits until its leader schedules one",
}
"""The change that ends each; time alone does not."""


class ProbingHold(NamedTuple):
    """A trigger is not due; the guard turns it into a verdict."""

    reason: str
    """A value of `ProbingWaitReason` or `ProbingOffReason`."""
    why: str
    until_ms: int | None
    """Epoch milliseconds of its end; None when that is unknown."""


def probing_check(
    proposal: Proposal, fresh: Snapshot, memory: Memory, view: JournalState, limits: Limits
) -> ProbingHold | None:
    """Why a trigger for warm-ups has to wait; None where probing does not hold it, or for other proposals.

    ``view`` is the journal.
    """
    if proposal.kind is not ProposalKind.TRIGGER or proposal.reason not in PROBED:
        return None
    past, _ = past_triggers(view, NO_ANCHORS, taken_ms=fresh.taken_ms, monotonic_ms=fresh.monotonic_ms)
    name = proposal.subject.name
    decision = decide(name, ProbingContext(fresh, memory, limits), past.get(name, ()))
    if isinstance(decision, ProbingTrigger):
        return None
    if isinstance(decision, ProbingOff):
        return ProbingHold(decision.reason.value, f"{decision.sentence}; {_ENDS[decision.reason]}", None)
    return ProbingHold(decision.reason.value, decision.why, _wall_ms(decision, fresh))


def _wall_ms(wait: ProbingWait, fresh: Snapshot) -> int | None:
    if wait.until_ms is None or wait.reason in _ESTIMATES:
        return None
    return fresh.taken_ms + max(0, wait.until_ms - fresh.monotonic_ms)


# Looks for warm-ups: one at the earliest arrival that the readings allow, then one after each quarter of the likely
# remaining time, so each arrival costs a handful. Slow looks are spread, so that they cost a bounded share of the time.

LEAST_MS = 1_000
"""Least time between looks."""
_SPREAD = 10
"""A look that took a second is not repeated within ten."""
_PART = 4


def next_look_ms(
    decisions: Iterable[ProbingDecision], now_ms: int, *, poll_ms: int, took_ms: int = 0, acted: bool = False
) -> int | None:
    """Milliseconds from now until the next look; None where the next poll, every ``poll_ms``, is soon enough.

    ``now_ms``: monotonic time of the decided snapshot; ``took_ms``: duration of a cycle; ``acted``: whether a group was
    triggered in this cycle. A decided trigger that was not sent is held for another reason and needs no look.
    """
    least_ms = max(LEAST_MS, _SPREAD * took_ms)
    soonest_ms = least_ms if acted else min((_wanted_ms(decision, now_ms) for decision in decisions), default=inf)
    delay_ms = max(least_ms, soonest_ms)
    return round(delay_ms) if delay_ms < poll_ms else None


def _wanted_ms(decision: ProbingDecision, now_ms: int) -> float:
    if isinstance(decision, ProbingTrigger | ProbingOff):
        return inf
    until_ms = inf if decision.until_ms is None else float(decision.until_ms - now_ms)
    if decision.reason is not ProbingWaitReason.RESTORING:
        return until_ms
    return min(_arrival_ms(decision), until_ms)


def _arrival_ms(wait: ProbingWait) -> float:
    """Milliseconds until the next arrival is worth a look."""
    if not wait.arriving:
        return inf
    etas = [arrival.eta_s for arrival in wait.arriving]
    return min(max(eta.low, eta.likely / _PART) for eta in etas) * 1_000
