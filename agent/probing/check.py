"""The guard's question about a trigger for warm-ups: is it time, by the fresh look? And what `explain` says of it."""

from __future__ import annotations

from typing import NamedTuple

from agent.probing.decide import Ground, decide
from agent.probing.past import NO_ANCHORS, Anchors, past_triggers
from agent.probing.values import Off, OffReason, TriggerNow, Wait, WaitReason
from agent.values.journal import View
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.proposal import Proposal, ProposalKind, ProposalReason
from agent.values.snapshot import Snapshot

PROBED = frozenset((ProposalReason.WARMUP_PROMOTABLE,))
"""Reasons that probing decides about."""
_ESTIMATES = (WaitReason.RESTORING, WaitReason.REBALANCING)
"""Reasons whose end has no known time."""


_ENDS = {
    OffReason.SWITCHED_OFF: "this waits until probing.enabled is true",
    OffReason.NOT_CLASSIC: "this waits until it is a classic Streams application",
    OffReason.EMPTY: "this waits until it has members and is Stable",
    OffReason.NO_WARMUPS: "this waits until a process of it has a warm-up",
    OffReason.NOTHING_WANTED: "this waits until its leader schedules one",
}
"""What ends it: time alone does not."""


class Held(NamedTuple):
    """Not now; the guard makes its own verdict of it."""

    reason: str
    """As `WaitReason` or `OffReason` say it."""
    sentence: str
    until_ms: int | None
    """Epoch milliseconds when it may be asked again; None when that is unknown."""


def probing_check(
    proposal: Proposal, fresh: Snapshot, memory: Memory, view: View, limits: Limits, *, anchors: Anchors = NO_ANCHORS
) -> Held | None:
    """Why a trigger for warm-ups has to wait; None where nothing of probing is in the way, or it is another proposal.

    ``view`` is the journal; ``anchors`` are those of `past_triggers`, where the caller keeps them.
    """
    if proposal.kind is not ProposalKind.TRIGGER or proposal.reason not in PROBED:
        return None
    past, _ = past_triggers(view, anchors, taken_ms=fresh.taken_ms, monotonic_ms=fresh.monotonic_ms)
    name = proposal.subject.name
    decision = decide(name, Ground(fresh, memory, limits), past.get(name, ()))
    if isinstance(decision, TriggerNow):
        return None
    if isinstance(decision, Off):
        return Held(decision.reason.value, f"{decision.sentence}; {_ENDS[decision.reason]}", None)
    return Held(decision.reason.value, decision.sentence, _wall_ms(decision, fresh))


def _wall_ms(wait: Wait, fresh: Snapshot) -> int | None:
    if wait.until_ms is None or wait.reason in _ESTIMATES:
        return None
    return fresh.taken_ms + max(0, wait.until_ms - fresh.monotonic_ms)
