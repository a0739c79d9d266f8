"""Optimal tasks of a Streams application in columns of numbers, for large problems (KIP-925's costs).

``racks`` are numbered from 0; ``clients`` (processes) have rack and capacity; ``tasks`` have subtopology, partition,
whether they are stateful, and owner (-1: none); ``sources`` and ``changelogs`` list, in CSR form, the partitions of
each task as masks in which bit r means that rack r has a replica. ``BadProblem`` names a column that contradicts
another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from assignors.optimal.items import rank_table, ranked
from assignors.optimal.kinds import KeyNumbers, kinds_of
from assignors.optimal.task_model import TaskModel, costs_of
from assignors.optimal.tasks import solve_tasks
from assignors.optimal.tight_flow import Ints
from assignors.problem import BadProblem

_MOST = (1 << 31) - 1
_WIDEST = 62
"""More racks than this do not fit into the 64 bits of an array's mask; such masks are compared as Python's integers."""


class PartitionMasks(NamedTuple):
    """Partitions of each task t: ``mask[ptr[t]:ptr[t + 1]]``."""

    ptr: Ints
    mask: Ints | NDArray[np.object_]


class TaskColumns(NamedTuple):
    """A problem in columns, checked."""

    client_rack: Ints
    client_capacity: Ints
    subtopology: Ints
    partition: Ints
    stateful: NDArray[np.bool_]
    owner: Ints
    sources: PartitionMasks
    changelogs: PartitionMasks


class ColumnResult(NamedTuple):
    """The client of every task, and what that costs."""

    client: Ints
    cost: int
    cross_rack: int
    """Source partitions without a replica in the rack of their task's client."""
    moved: int
    """Tasks that are not on their owner; one without an owner counts."""
    lower_bound: int

    @property
    def optimal(self) -> bool:
        """Whether no assignment within the bounds costs less."""
        return self.cost == self.lower_bound


# --- reading --------------------------------------------------------------------------------------------------


def read_columns(document: Any) -> TaskColumns:
    """Check a parsed problem file and turn its lists into arrays. Raises ``BadProblem`` naming the column."""
    if not isinstance(document, Mapping):
        raise BadProblem(
            "the problem is not a JSON object; it has the fields racks, clients, tasks, sources, changelogs"
        )
    racks = document.get("racks")
    if isinstance(racks, bool) or not isinstance(racks, int) or racks < 0:
        raise BadProblem(f"racks is {_shown(racks)}; it is the number of racks")
    client_rack = _column(document, "clients", "rack", 0, racks - 1)
    clients = len(client_rack)
    capacity = _column(document, "clients", "capacity", 1, _MOST, like=("clients.rack", clients))
    subtopology = _column(document, "tasks", "subtopology", 0, _MOST)
    tasks = ("tasks.subtopology", len(subtopology))
    columns = TaskColumns(
        client_rack=client_rack,
        client_capacity=capacity,
        subtopology=subtopology,
        partition=_column(document, "tasks", "partition", 0, _MOST, like=tasks),
        stateful=_column(document, "tasks", "stateful", 0, 1, like=tasks, truths=True).astype(np.bool_),
        owner=_column(document, "tasks", "owner", -1, clients - 1, like=tasks),
        sources=_partitions(document, "sources", racks, len(subtopology)),
        changelogs=_partitions(document, "changelogs", racks, len(subtopology)),
    )
    if len(subtopology) and not clients:
        raise BadProblem("clients.rack is empty, but there are tasks; at least one client must run them")
    _unique(columns)
    return columns


def _partitions(document: Mapping[str, Any], part: str, racks: int, tasks: int) -> PartitionMasks:
    ptr = _column(document, part, "ptr", 0, 1 << 53)
    if len(ptr) != tasks + 1:
        raise BadProblem(f"{part}.ptr has {len(ptr)} entries; it has one more than there are tasks ({tasks})")
    if ptr[0] != 0 or (np.diff(ptr) < 0).any():
        raise BadProblem(f"{part}.ptr must begin with 0 and never fall")
    mask = _column(document, part, "mask", 0, (1 << racks) - 1) if racks <= _WIDEST else _wide(document, part, racks)
    if ptr[-1] != len(mask):
        raise BadProblem(f"{part}.mask has {len(mask)} entries, but {part}.ptr ends with {ptr[-1]}")
    return PartitionMasks(ptr, mask)


def _column(
    document: Mapping[str, Any],
    part: str,
    name: str,
    least: int,
    most: int,
    *,
    like: tuple[str, int] | None = None,
    truths: bool = False,
) -> Ints:
    """One column as an array; ``like`` names a column of the same length."""
    values = _values(document, part, name)
    field = f"{part}.{name}"
    if like is not None and len(values) != like[1]:
        raise BadProblem(f"{field} has {len(values)} entries, but {like[0]} has {like[1]}")
    try:
        array = np.array(values)
    except ValueError:
        array = np.array(values, dtype=object)
    whole = not len(values) or (array.ndim == 1 and array.dtype.kind in ("ib" if truths else "i"))
    if not whole or (len(values) and (array.min() < least or array.max() > most)):
        bad = next(at for at, value in enumerate(values) if not _fits(value, least, most, truths=truths))
        raise BadProblem(f"{field}[{bad}] is {_shown(values[bad])}; {_allowed(least, most)}")
    return array.astype(np.int64)


def _wide(document: Mapping[str, Any], part: str, racks: int) -> NDArray[np.object_]:
    """Masks of more racks than an array's numbers have bits."""
    values = _values(document, part, "mask")
    for at, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0 or value.bit_length() > racks:
            raise BadProblem(f"{part}.mask[{at}] is {_shown(value)}; it is a mask of {racks} racks")
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _values(document: Mapping[str, Any], part: str, name: str) -> list[Any]:
    columns = document.get(part)
    if not isinstance(columns, Mapping):
        raise BadProblem(f"{part} is {_shown(columns)}; it is an object of columns")
    values = columns.get(name)
    if not isinstance(values, list):
        raise BadProblem(f"{part}.{name} is {_shown(values)}; it is a list of numbers")
    return values


def _fits(value: Any, least: int, most: int, *, truths: bool) -> bool:
    if isinstance(value, bool):
        return truths
    return isinstance(value, int) and least <= value <= most


def _allowed(least: int, most: int) -> str:
    return f"it is a whole number from {least} to {most}" if least <= most else "nothing is allowed there"


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    shape = "a huge number" if isinstance(value, int) and value.bit_length() > 200 else repr(value)
    return shape if len(shape) <= 60 else f"{shape[:57]}..."


def _unique(columns: TaskColumns) -> None:
    _, place, often = np.unique(columns.subtopology << 31 | columns.partition, return_index=True, return_counts=True)
    if (often > 1).any():
        twice = int(place[np.argmax(often > 1)])
        task = f"{columns.subtopology[twice]}_{columns.partition[twice]}"
        raise BadProblem(f"tasks.partition has task {task} twice; every task has its own subtopology and partition")


# --- solving --------------------------------------------------------------------------------------------------


def column_model(columns: TaskColumns) -> TaskModel:
    """The dense model of a problem: tasks whose sources miss the same racks are of one kind."""
    racks, rack = np.unique(columns.client_rack, return_inverse=True)
    kind, misses = _kinds(columns.sources, racks)
    return TaskModel(
        subtopology=columns.subtopology,
        owner=columns.owner,
        kind=kind,
        misses=misses,
        rack=rack.astype(np.int64),
        capacity=columns.client_capacity,
    )


def optimal_columns(
    model: TaskModel,
    counts: Literal["fixed", "free"],
    balance: Literal["none", "subtopology"],
    traffic_cost: int,
    non_overlap_cost: int,
) -> ColumnResult:
    """The client of every task at least cost within the bounds (those of ``assignors.optimal.tasks``).

    Raises ``BadProblem`` for costs out of bounds, and for fixed counts when a task has no owner.
    """
    for name, cost in (("traffic cost", traffic_cost), ("non-overlap cost", non_overlap_cost)):
        if not 0 <= cost <= _MOST:
            raise BadProblem(f"the {name} is {_shown(cost)}; costs are whole numbers from 0 to {_MOST}")
    if counts == "fixed" and (model.owner < 0).any():
        task = int(np.argmax(model.owner < 0))
        raise BadProblem(f"tasks.owner[{task}] is -1; fixed counts need an owner for every task, free counts do not")
    if not len(model.kind):
        return ColumnResult(np.zeros(0, np.int64), 0, 0, 0, 0)
    placed = solve_tasks(model, counts, balance, traffic_cost, non_overlap_cost)
    cross_rack, moved = costs_of(model, placed.client)
    cost = traffic_cost * cross_rack + non_overlap_cost * moved
    return ColumnResult(placed.client, cost, cross_rack, moved, placed.bound)


def _kinds(sources: PartitionMasks, racks: Ints) -> tuple[Ints, Ints]:
    ptr, mask = sources
    if mask.dtype != np.int64:
        number, here = _wide_masks(mask.tolist(), racks)
        return kinds_of(number, np.diff(ptr), here)
    mask = np.asarray(mask, np.int64)
    size = int(mask.max(initial=0)) + 1
    if size > len(mask) or len(mask) != len(ptr) - 1 or (ptr[1:] == ptr[:-1]).any():
        distinct, number = ranked(mask, size)
        return kinds_of(number, np.diff(ptr), distinct[:, None] >> racks & 1)
    # One source for every task: what is kept apart are masks, and one look-up per task is all.
    distinct, rank_of = rank_table(mask, size)
    kind, misses = kinds_of(np.arange(len(distinct)), np.ones_like(distinct), distinct[:, None] >> racks & 1)
    return kind[rank_of][mask], misses


def _wide_masks(masks: list[int], racks: Ints) -> tuple[Ints, Ints]:
    """Number of each mask among the distinct ones, and (mask, rack) whether that rack has a replica."""
    numbers: KeyNumbers[int] = KeyNumbers()
    number = np.fromiter(map(numbers.__getitem__, masks), np.int64, len(masks))
    here = [[mask >> rack & 1 for rack in racks.tolist()] for mask in numbers]
    return number, np.array(here, np.int64).reshape(len(numbers), len(racks))
