"""Tells when to look again, so that a warm-up that has caught up does not wait for the next poll.

The nearer the time of arrival, the oftener: at the earliest time that the readings allow, then each time after a
quarter of what is likely left. That is a handful of looks for each arrival, however long the restore takes. Looks that
take long are spread out so that they cost a bounded share of the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from agent.probing.values import Decision, Off, TriggerNow, Wait, WaitReason

LEAST_MS = 1_000
"""Never sooner than this."""
_SPREAD = 10
"""A look that took a second is not repeated within ten."""
_PART = 4


def next_look_ms(
    decisions: Iterable[Decision], now_ms: int, *, poll_ms: int, took_ms: int = 0, acted: bool = False
) -> int | None:
    """Milliseconds from now until the next look; None where the ordinary poll, every ``poll_ms``, is soon enough.

    ``now_ms`` is the monotonic time of the snapshot that was decided upon, ``took_ms`` how long a cycle takes,
    ``acted`` tells that a group was triggered in this cycle. A trigger that was decided upon and not carried out asks
    for nothing: it is held for another reason.
    """
    least_ms = max(LEAST_MS, _SPREAD * took_ms)
    soonest_ms = least_ms if acted else min((_wanted_ms(decision, now_ms) for decision in decisions), default=inf)
    delay_ms = max(least_ms, soonest_ms)
    return round(delay_ms) if delay_ms < poll_ms else None


def _wanted_ms(decision: Decision, now_ms: int) -> float:
    if isinstance(decision, TriggerNow | Off):
        return inf
    until_ms = inf if decision.until_ms is None else float(decision.until_ms - now_ms)
    if decision.reason is not WaitReason.RESTORING:
        return until_ms
    return min(_arrival_ms(decision), until_ms)


def _arrival_ms(wait: Wait) -> float:
    """Until the next arrival is worth looking at."""
    if not wait.arriving:
        return inf
    etas = [arrival.eta_s for arrival in wait.arriving]
    return min(max(eta.low, eta.likely / _PART) for eta in etas) * 1_000
