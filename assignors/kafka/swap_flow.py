"""``MinTrafficGraphConstructor`` for two clients: task swaps along the cycles that Kafka cancels (KIP-925).

The steps of ``task_flow`` without arrays, for thousands of small problems: a cycle is one task each way.
"""

from __future__ import annotations

from collections.abc import Sequence


def swap(price: Sequence[tuple[int, int]], side: Sequence[int]) -> list[int]:
    """Return the side (0 or 1) of every task, in ascending order of tasks, that Kafka's ``min_traffic`` graph gives.

    ``price[task][side]`` is at least zero.
    """
    now = list(side)
    while True:
        extra = [there - here if at == 0 else here - there for (here, there), at in zip(price, now, strict=True)]
        gives = [_cheapest(extra, now, 0), _cheapest(extra, now, 1)]
        if gives[0] is None or gives[1] is None or extra[gives[0]] + extra[gives[1]] >= 0:
            return now
        before, distance = _rounds(extra[gives[0]], extra[gives[1]], len(price) + 4)
        taker, giver = _relaxed_last(price, now, before, distance)
        if giver is not None:
            gives[1 - taker] = giver
        for task in gives:
            if task is not None:
                now[task] = 1 - now[task]


def _cheapest(extra: Sequence[int], side: Sequence[int], which: int) -> int | None:
    """The first task of a side that is the cheapest to give away."""
    own = [task for task, at in enumerate(side) if at == which]
    return min(own, key=extra.__getitem__, default=None)


def _rounds(to_one: int, to_zero: int, rounds: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Distances of both clients before and after the last full round; the first round changes nothing."""
    before, now = (0, 0), (0, 0)
    for _ in range(rounds - 1):
        before, now = now, (min(now[0], now[1] + to_zero), min(now[1], now[0] + to_one))
    return before, now


def _relaxed_last(
    price: Sequence[tuple[int, int]], side: Sequence[int], before: tuple[int, int], distance: tuple[int, int]
) -> tuple[int, int | None]:
    """The client that the unfinished last round reaches first and the task that does; None when it is the source."""
    source = min(before[at] - cost[at] for cost, at in zip(price, side, strict=True))
    for task, (cost, at) in enumerate(zip(price, side, strict=True)):
        far = distance[at] - cost[at]
        if far < source:
            break
        if far + cost[1 - at] < distance[1 - at]:
            return 1 - at, task
    return 0, None
