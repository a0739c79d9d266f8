"""Turn the tasks of a Streams application into dense integers: names in, arrays out, once.

Tasks are sorted by id, processes by id, racks by name: the order of the input leaves no trace. Tasks whose source
partitions miss the same racks are of one kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, pairwise, repeat
from operator import attrgetter
from typing import NamedTuple, TypeVar

import numpy as np

from assignors.optimal.network import Ints
from assignors.problem import BadProblem, Process, Task, TaskId, TaskProblem

_T = TypeVar("_T")
_MOST_COST = (1 << 31) - 1
"""Kafka's costs are 32-bit integers."""
_MERGE_BELOW = 4096
"""Kinds are compared row by row below this number; above, different orders of the same sources stay apart."""


class TaskModel(NamedTuple):
    """Arrays over tasks (``subtopology``, ``owner``, ``kind``) and processes (``rack``, ``capacity``)."""

    subtopology: Ints
    owner: Ints
    """The process that runs the task now, or -1."""
    kind: Ints
    misses: Ints
    """(kind, rack): source partitions that have no replica there. The last rack is that of processes without one."""
    rack: Ints
    capacity: Ints


class NamedTasks(NamedTuple):
    """The model beside the names it was made from, in its order."""

    tasks: list[Task]
    processes: list[Process]
    racks: dict[str, int]
    model: TaskModel

    def rack_of(self, process: Process) -> int:
        """Rack number of a process; the number after the last for none."""
        return len(self.racks) if process.rack is None else self.racks[process.rack]


def dense_tasks(problem: TaskProblem) -> NamedTasks:
    """Turn names into integers. Raises ``BadProblem`` naming what contradicts itself."""
    _check(problem)
    tasks = sorted(problem.tasks, key=attrgetter("id"))
    ids = [task.id for task in tasks]
    index = dict(zip(ids, count(), strict=False))
    if len(index) != len(ids):
        twice = next(a for a, b in pairwise(ids) if a == b)
        raise BadProblem(f"task {twice} occurs twice; give every task its own id")
    processes = sorted(problem.processes, key=attrgetter("id"))
    racks = {name: number for number, name in enumerate(sorted({p.rack for p in processes if p.rack is not None}))}
    subtopology, _ = _numbered([task.subtopology for task in ids])
    kind, misses = count_misses([task.sources for task in tasks], racks)
    model = TaskModel(
        subtopology=subtopology,
        owner=_owners(processes, index),
        kind=kind,
        misses=misses,
        rack=np.array([len(racks) if p.rack is None else racks[p.rack] for p in processes], np.int64),
        capacity=np.array([process.capacity for process in processes], np.int64),
    )
    return NamedTasks(tasks, processes, racks, model)


def count_misses(partitions: list[tuple[frozenset[str], ...]], racks: dict[str, int]) -> tuple[Ints, Ints]:
    """Kind of each entry, and how many of a kind's partitions have no replica in each rack (last column: in none)."""
    kind, numbers = _numbered(partitions)
    misses = np.zeros((len(numbers), len(racks) + 1), np.int64)
    for sets, number in numbers.items():
        misses[number] = len(sets)
        for names in sets:
            for name in names:
                if name in racks:
                    misses[number, racks[name]] -= 1
    if len(numbers) < _MERGE_BELOW:
        misses, merged = np.unique(misses, axis=0, return_inverse=True)
        kind = merged[kind]
    return kind, misses


def _numbered(values: list[_T]) -> tuple[Ints, dict[_T, int]]:
    """Numbers of values in the order of their first appearance."""
    numbers = dict(zip(dict.fromkeys(values), count(), strict=False))
    return np.fromiter(map(numbers.__getitem__, values), np.int64, len(values)), numbers


def _owners(processes: Iterable[Process], index: dict[TaskId, int]) -> Ints:
    """The one process that runs a task; -1 when nobody or several claim it."""
    owner = np.full(len(index), -1, np.int64)
    contested: list[int] = []
    for number, process in enumerate(processes):
        mine = np.fromiter(map(index.get, process.active, repeat(-1)), np.int64, len(process.active))
        mine = mine[mine >= 0]
        contested += mine[owner[mine] >= 0].tolist()
        owner[mine] = number
    owner[contested] = -1
    return owner


def _check(problem: TaskProblem) -> None:
    names = [process.id for process in problem.processes]
    if len(set(names)) != len(names):
        raise BadProblem(f"process {min(n for n in names if names.count(n) > 1)} occurs twice; give each its own id")
    if problem.tasks and not names:
        raise BadProblem("there are tasks but no process to run them")
    for process in problem.processes:
        if process.capacity < 1:
            raise BadProblem(f"process {process.id} has capacity {process.capacity}; it needs at least one thread")
    for name, cost in (("traffic_cost", problem.traffic_cost), ("non_overlap_cost", problem.non_overlap_cost)):
        if not 0 <= cost <= _MOST_COST:
            raise BadProblem(f"{name} is {cost}; costs lie between 0 and {_MOST_COST}")
    if problem.num_standby_replicas < 0:
        raise BadProblem(f"num_standby_replicas is {problem.num_standby_replicas}; it cannot be negative")
