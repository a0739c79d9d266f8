"""Weighs whether waiting for more warm-ups is worth it, so that one rebalance serves them all.

What a wait costs: those that have caught up wait for the others. What it saves: a rebalance of the whole group, and for
those that come next the floor between two triggers, which they would have to sit out. All three are counted in
milliseconds of waiting tasks; a rebalance counts as much as one task that waits for one floor.

Invariant: the whole wait is bounded, counted from when the first warm-up had caught up; estimates that slip do not
prolong it.
"""

from __future__ import annotations

from collections.abc import Sequence


def worth_waiting_ms(
    ready: int, arrivals_ms: Sequence[float], *, floor_ms: int, longest_ms: int, waited_ms: int
) -> int | None:
    """How long to wait for the others; None when the trigger had better come now.

    ``ready`` warm-ups have caught up and have ``waited_ms``; the others arrive in ``arrivals_ms`` from now, sorted.
    """
    best_ms, best_cost = 0.0, _cost(0.0, ready, arrivals_ms, floor_ms)
    for wait_ms in arrivals_ms:
        if wait_ms > longest_ms - waited_ms:
            break
        cost = _cost(wait_ms, ready, arrivals_ms, floor_ms)
        if wait_ms > 0 and cost <= best_cost:
            best_ms, best_cost = wait_ms, cost
    return round(best_ms) or None


def _cost(wait_ms: float, ready: int, arrivals_ms: Sequence[float], floor_ms: int) -> float:
    """Of a trigger after that wait: who waits for it, who is too late and waits for the next, and that one itself."""
    waiting = ready * wait_ms + sum(wait_ms - arrival for arrival in arrivals_ms if arrival <= wait_ms)
    late = [wait_ms + floor_ms - arrival for arrival in arrivals_ms if wait_ms < arrival < wait_ms + floor_ms]
    return waiting + sum(late) + (floor_ms if late else 0)
