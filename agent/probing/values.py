"""What probing knows and says: earlier triggers, and one decision per application with its reason and its sentence."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from agent.detect.warmups import Arrival
from agent.values.memory import CopyKey


class Past(NamedTuple):
    """A trigger of the group, as far as bounds ask for it."""

    at_ms: int
    """Monotonic, on the clock of the snapshot that is decided upon."""
    promoted: bool | None
    """Whether a warm-up took over by it; None while that is not known."""
    probing: bool = True
    """False for a trigger that was not for warm-ups: it counts for floor and budget, and says nothing of promotions."""


class Reason(StrEnum):
    """Why a rebalance is asked for now."""

    CAUGHT_UP = "warm-ups have caught up"
    LIKELY = "warm-ups have probably caught up"
    """By the model: fresh offset sums will tell, and a trigger that came too early costs one cheap round."""
    LEARN = "the progress of the warm-ups is unknown"
    """No endpoint, and no restore rate or one that may be wrong by far: one rebalance gives fresh offset sums."""
    STANDBY = "a standby falls behind without bound"


class WaitReason(StrEnum):
    """Why not yet."""

    REBALANCING = "the group is not stable"
    RESTORING = "no warm-up has caught up"
    SHARING = "more warm-ups will have caught up very soon"
    SETTLING = "the group has only just rebalanced"
    JUDGING = "what the last trigger did is not seen yet"
    FLOOR = "the last trigger is too recent"
    BACK_OFF = "the last triggers promoted nothing"
    BUDGET = "the budget of the hour is used up"
    DEADLINE = "the application will rebalance by itself"


class OffReason(StrEnum):
    """Why probing has nothing to do."""

    SWITCHED_OFF = "probing is switched off"
    NOT_CLASSIC = "no classic Streams application"
    EMPTY = "the group has no members"
    NO_WARMUPS = "no warm-ups"
    NOTHING_WANTED = "the application wants no other assignment"


class TriggerNow(NamedTuple):
    """Ask for one rebalance now."""

    group_id: str
    reason: Reason
    copies: tuple[CopyKey, ...]
    """(process, task) that justify it; every one is hosted there."""
    sentence: str


class Wait(NamedTuple):
    """Not yet."""

    group_id: str
    reason: WaitReason
    until_ms: int | None
    """Monotonic; None when that is unknown."""
    sentence: str
    arriving: tuple[Arrival, ...] = ()
    """Warm-ups on their way, the first to arrive first."""


class Off(NamedTuple):
    """Nothing to do, and no time when there will be."""

    group_id: str
    reason: OffReason
    sentence: str


Decision = TriggerNow | Wait | Off


def failures(past: Sequence[Past], now_ms: int, judged_within_ms: int) -> int:
    """How many triggers in a row, back from the last one, promoted nothing; one without a judgement counts in time."""
    count = 0
    for trigger in sorted(past, reverse=True, key=lambda one: one.at_ms):
        if not trigger.probing:
            continue
        if trigger.promoted or (trigger.promoted is None and now_ms - trigger.at_ms < judged_within_ms):
            break
        count += 1
    return count
