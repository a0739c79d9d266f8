"""Probing's values: earlier triggers of the journal on the monotonic clock, and decisions with their reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from agent.detect.streams import WarmupArrival
from agent.journal.entries import JournalState
from agent.journal.triggers import TriggerEffect, TriggerEntry, TriggerVerdict, triggers
from agent.values.memory import CopyKey
from agent.values.proposal import ProposalReason


class PastTrigger(NamedTuple):
    """An earlier trigger of the group, for the bounds."""

    at_ms: int
    """Monotonic time, on the clock of the decided snapshot."""
    promoted: bool | None
    """Whether a warm-up took over by it; None while that is not known."""
    probing: bool = True
    """False for a trigger that was not for warm-ups: it counts for floor and budget, not for promotions."""


class ProbingReason(StrEnum):
    """Reason of a probing rebalance."""

    CAUGHT_UP = "warm-ups have caught up"
    LIKELY = "warm-ups have probably caught up"
    """By the estimate; a trigger that is too early costs one cheap round and brings fresh offset sums."""
    LEARN = "the progress of the warm-ups is unknown"
    """No endpoint, and no restore rate or one that may be wrong by far: one rebalance gives fresh offset sums."""
    STANDBY = "a standby falls behind without bound"


class ProbingWaitReason(StrEnum):
    """Reason to wait with a probing rebalance."""

    REBALANCING = "the group is not stable"
    RESTORING = "no warm-up has caught up"
    SHARING = "more warm-ups will have caught up very soon"
    SETTLING = "the group has only just rebalanced"
    JUDGING = "what the last trigger did is not seen yet"
    FLOOR = "the last trigger is too recent"
    BACK_OFF = "the last triggers promoted nothing"
    BUDGET = "the budget of the hour is used up"
    DEADLINE = "the application will rebalance by itself"


class ProbingOffReason(StrEnum):
    """Reason why a group needs no probing rebalance."""

    SWITCHED_OFF = "probing is switched off"
    NOT_CLASSIC = "no classic Streams application"
    EMPTY = "the group has no members"
    NO_WARMUPS = "no warm-ups"
    NOTHING_WANTED = "the application wants no other assignment"


class ProbingTrigger(NamedTuple):
    """Decision to trigger one rebalance of the group now."""

    group_id: str
    reason: ProbingReason
    copies: tuple[CopyKey, ...]
    """(process, task) that justify it; every one is hosted there."""
    sentence: str


class ProbingWait(NamedTuple):
    """Decision to wait with the probing rebalance of a group."""

    group_id: str
    reason: ProbingWaitReason
    until_ms: int | None
    """Monotonic; None when that is unknown."""
    why: str
    arriving: tuple[WarmupArrival, ...] = ()
    """Warm-ups on their way, the first to arrive first."""

    @property
    def sentence(self) -> str:
        """Sentence for operators."""
        return f"held: {self.why}"


class ProbingOff(NamedTuple):
    """Decision that a group needs no probing rebalance; no time is known at which it will."""

    group_id: str
    reason: ProbingOffReason
    sentence: str


ProbingDecision = ProbingTrigger | ProbingWait | ProbingOff


def failures(past: Sequence[PastTrigger], now_ms: int, judged_within_ms: int) -> int:
    """How many triggers in a row, back from the last one, promoted nothing; one without a judgement counts in time."""
    count = 0
    for trigger in sorted(past, reverse=True, key=lambda one: one.at_ms):
        if not trigger.probing:
            continue
        if trigger.promoted or (trigger.promoted is None and now_ms - trigger.at_ms < judged_within_ms):
            break
        count += 1
    return count


# The journal has wall-clock times, which may jump. A trigger is anchored on the monotonic clock when it is first read
# and stays there: a jump can age a trigger of an earlier process, never one of this process. A future time counts as
# now.

Anchors = Mapping[tuple[str, str, int], int]
"""(group, proposal, epoch ms of the intent) -> monotonic ms."""
NO_ANCHORS: Anchors = MappingProxyType({})

_NOT_ASKED = (TriggerEffect.NOT_SENT, TriggerEffect.REFUSED)
_UNKNOWN = (TriggerVerdict.OVERTAKEN, TriggerVerdict.CANNOT_TELL)


def past_triggers(
    view: JournalState, anchors: Anchors, *, taken_ms: int, monotonic_ms: int
) -> tuple[Mapping[str, tuple[PastTrigger, ...]], Anchors]:
    """(group -> its triggers, oldest first; the anchors for the next call, at first an empty mapping)."""
    kept: dict[tuple[str, str, int], int] = {}
    past: dict[str, list[PastTrigger]] = {}
    for entry in triggers(view):
        for wall_ms, promoted in _times(entry):
            key = entry.group_id, entry.proposal_id, wall_ms
            kept[key] = anchors.get(key, monotonic_ms - max(0, taken_ms - wall_ms))
            probing = entry.reason == ProposalReason.WARMUP_PROMOTABLE.name
            past.setdefault(entry.group_id, []).append(PastTrigger(kept[key], promoted, probing))
    return {group: tuple(sorted(of, key=lambda one: one.at_ms)) for group, of in sorted(past.items())}, kept


def _times(entry: TriggerEntry) -> list[tuple[int, bool | None]]:
    """(sent at, whether it promoted). Earlier sendings under the same name had promoted nothing."""
    earlier: list[tuple[int, bool | None]] = [(at_ms, False) for at_ms in entry.earlier_ms]
    if entry.effect in _NOT_ASKED:
        return earlier
    return [*earlier, (entry.intended_ms, _promoted(entry))]


def _promoted(entry: TriggerEntry) -> bool | None:
    if entry.judgement is None or entry.judgement.verdict in _UNKNOWN:
        return None
    return entry.judgement.came > 0
