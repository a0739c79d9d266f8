"""Bin packing of work into tasks: longest first, so that no large piece starts late and leaves the other cores idle."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline.local_relation import local_relation
from pipeline.schemas.table import INT, column, columns

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


def placed(rows: DataFrame, key: Sequence[str], weights: Mapping[Any, float], tasks: int) -> DataFrame:
    """The rows whose values of ``key`` have a weight; equal ones in one of ``tasks`` tasks, the heaviest first."""
    task_of = packed(weights, tasks)
    schema = columns(*(rows.schema[name] for name in key), column("task", INT, "Number of the task."))
    where = local_relation(rows.sparkSession, [(*piece, task) for piece, task in task_of.items()], schema)
    joined = rows.join(F.broadcast(where), [*key], how="inner")
    return joined.repartitionById(max(task_of.values(), default=0) + 1, "task").drop("task")
