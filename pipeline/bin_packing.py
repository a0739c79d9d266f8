"""Bin packing of work into tasks: longest first, so that no large piece starts late and leaves the other cores idle."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TypeVar

Piece = TypeVar("Piece")


def packed(weights: Mapping[Piece, float], tasks: int) -> dict[Piece, int]:
    """Piece -> number of its task; the heaviest task is number 0, which Spark begins with.

    Each piece, from the heaviest on, goes to the task that has least so far; pieces of one weight in their order.
    """
    tasks = max(1, min(tasks, len(weights)))
    loads = [(0.0, task) for task in range(tasks)]
    heapq.heapify(loads)
    of: dict[Piece, int] = {}
    for piece, weight in sorted(weights.items(), key=lambda one: -one[1]):
        load, task = heapq.heappop(loads)
        of[piece] = task
        heapq.heappush(loads, (load + weight, task))
    rank = {task: place for place, (_, task) in enumerate(sorted(loads, key=lambda one: (-one[0], one[1])))}
    return {piece: rank[task] for piece, task in of.items()}
