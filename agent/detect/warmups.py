"""How far the warm-ups of an application are: certain, probable, on their way, or not to be told.

Only copies that a process hosts count. State that a member reports for a task which it does not host may be deleted at
any time (``state.cleanup.delay.ms``): it is no process's copy, so it is not here and justifies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from agent.values.memory import CopyKey, Join
from agent.values.snapshot import LagSource, Range, Role, TaskCopy

LEARN_AFTER_MS = 30_000
"""With nothing to estimate from, so much time is given to warm-ups before one rebalance is spent on learning."""
LONG_MS = 4 * LEARN_AFTER_MS
CHECKED_AT = 4
"""A restore that is estimated to take longer than that is checked after this part of its time."""


class Arrival(NamedTuple):
    """A warm-up that is still restoring."""

    copy: CopyKey
    eta_s: Range
    """Seconds until its lag is acceptable."""
    estimated: bool = False
    """True where no reading of the lag stands behind it."""


class Doubt(StrEnum):
    """Why only a rebalance can tell: it brings fresh offset sums."""

    LIKELY = "they have probably caught up"
    NOTHING_KNOWN = "no recent lag of them is known"
    LONG_ESTIMATE = "the estimate of their restore time is long, and part of that time is over"


class Readiness(NamedTuple):
    """The warm-ups of one application; each is in one of the five."""

    caught_up: tuple[CopyKey, ...]
    """For certain."""
    likely: tuple[CopyKey, ...]
    """By the model's middle; its worst case says no."""
    arriving: tuple[Arrival, ...]
    """By likely time of arrival."""
    unknown: tuple[CopyKey, ...]
    """Nothing but the lag at the last join is known, or the reading is old."""
    stuck: tuple[CopyKey, ...]
    """Read to be behind, with no time of arrival: too few readings, or standing still."""


def readiness(copies: Iterable[TaskCopy], acceptable: int) -> Readiness:
    """Sorts the warm-ups among the copies. ``acceptable`` is ``acceptable.recovery.lag``."""
    copies = [copy for copy in copies if copy.role is Role.WARMUP]
    caught_up: list[CopyKey] = []
    likely: list[CopyKey] = []
    arriving: list[Arrival] = []
    unknown: list[CopyKey] = []
    stuck: list[CopyKey] = []
    for copy in copies:
        key = copy.process_id, copy.task
        if copy.caught_up:
            caught_up.append(key)
        elif copy.caught_up is False:
            _on_its_way(copy, key, arriving, stuck)
        elif copy.lag_source is LagSource.MODEL and copy.lag is not None:
            if copy.lag.likely <= acceptable:
                likely.append(key)
            else:
                _on_its_way(copy, key, arriving, unknown)
        else:
            unknown.append(key)
    arriving += _in_turn(copies, stuck, acceptable)
    arriving.sort(key=lambda one: (one.eta_s.likely, one.copy[0], str(one.copy[1])))
    told = {one.copy for one in arriving}
    still = tuple(key for key in stuck if key not in told)
    return Readiness(tuple(caught_up), tuple(likely), tuple(arriving), tuple(unknown), still)


def doubt_about(warm: Readiness, join: Join | None, now_ms: int) -> tuple[Doubt, tuple[CopyKey, ...]] | None:
    """Why only a rebalance can tell how far which warm-ups are; None where it is known, or will be known soon.

    ``join`` is the last rebalance of the group, ``now_ms`` the monotonic time.
    """
    if warm.caught_up:
        return None
    if warm.likely:
        return Doubt.LIKELY, warm.likely
    age_ms = 0 if join is None else now_ms - join.seen_ms
    if warm.unknown and not warm.arriving:
        return (Doubt.NOTHING_KNOWN, warm.unknown) if age_ms >= LEARN_AFTER_MS else None
    if warm.arriving and all(one.estimated for one in warm.arriving):
        whole_ms = age_ms + warm.arriving[0].eta_s.likely * 1_000
        if whole_ms >= LONG_MS and age_ms >= whole_ms / CHECKED_AT:
            return Doubt.LONG_ESTIMATE, tuple(one.copy for one in warm.arriving)
    return None


def _on_its_way(copy: TaskCopy, key: CopyKey, arriving: list[Arrival], rest: list[CopyKey]) -> None:
    if copy.eta_s is None:
        rest.append(key)
    else:
        arriving.append(Arrival(key, copy.eta_s, copy.lag_source is LagSource.MODEL))


def _in_turn(copies: Sequence[TaskCopy], stuck: Sequence[CopyKey], acceptable: int) -> list[Arrival]:
    """When those will arrive that stand still while their process restores others: a thread takes them in turn."""
    arrivals = []
    for process in sorted({process for process, _ in stuck}):
        here = [copy for copy in copies if copy.process_id == process and copy.lag is not None]
        speed = max((copy.rate_per_s.likely for copy in here if copy.rate_per_s is not None), default=0.0)
        if speed <= 0:
            continue
        ahead = sum(_missing(copy, acceptable) for copy in here if (process, copy.task) not in stuck)
        for copy in sorted(here, key=lambda copy: _missing(copy, acceptable)):
            if (process, copy.task) in stuck:
                own = _missing(copy, acceptable)
                ahead += own
                arrivals.append(Arrival((process, copy.task), Range(own / speed, ahead / speed, 2 * ahead / speed)))
    return arrivals


def _missing(copy: TaskCopy, acceptable: int) -> float:
    return 0.0 if copy.lag is None else max(0.0, copy.lag.likely - acceptable)
