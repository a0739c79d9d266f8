"""Turn the tasks of a Streams application into dense integers: names in, arrays out, once.

Tasks are sorted by id, processes by id, racks by name: the order of the input leaves no trace. Tasks whose source
partitions miss the same racks are of one kind.
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from assignors.optimal.kinds import kinds_of
from assignors.optimal.network import Ints
from assignors.optimal.task_ids import number_ids
from assignors.problem import BadProblem, Process, Task, TaskId, TaskProblem

_MOST_COST = (1 << 31) - 1
"""Kafka's costs are 32-bit integers."""


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

    ids: list[TaskId]
    tasks: tuple[Task, ...]
    processes: list[Process]
    racks: dict[str, int]
    model: TaskModel

    def rack_of(self, process: Process) -> int:
        """Rack number of a process; the number after the last for none."""
        return len(self.racks) if process.rack is None else self.racks[process.rack]


def dense_tasks(problem: TaskProblem) -> NamedTasks:
    """Turn names into integers. Raises ``BadProblem`` naming what contradicts itself."""
    _check(problem)
    processes = sorted(problem.processes, key=attrgetter("id"))
    tasks, ids = problem.tasks, list(map(attrgetter("id"), problem.tasks))
    order, subtopology, owner = number_ids(ids, [process.active for process in processes])
    if order is not None:
        tasks, ids = tuple(map(tasks.__getitem__, order)), list(map(ids.__getitem__, order))
    racks = {name: number for number, name in enumerate(sorted({p.rack for p in processes if p.rack is not None}))}
    kind, misses = count_misses(list(map(attrgetter("sources"), tasks)), racks)
    model = TaskModel(
        subtopology=subtopology,
        owner=owner,
        kind=kind,
        misses=misses,
        rack=np.array([len(racks) if p.rack is None else racks[p.rack] for p in processes], np.int64),
        capacity=np.array([process.capacity for process in processes], np.int64),
    )
    return NamedTasks(ids, tasks, processes, racks, model)


def count_misses(partitions: list[tuple[frozenset[str], ...]], racks: dict[str, int]) -> tuple[Ints, Ints]:
    """Kind of each entry, and how many of a kind's partitions have no replica in each rack (last column: in none)."""
    numbers = _Numbers()
    number = np.fromiter(map(numbers.__getitem__, chain.from_iterable(partitions)), np.int64)
    here = np.zeros((len(numbers), len(racks)), np.int64)
    for names, row in numbers.items():
        here[row, [racks[name] for name in names if name in racks]] = 1
    return kinds_of(number, np.fromiter(map(len, partitions), np.int64, len(partitions)), here)


class _Numbers(dict[frozenset[str], int]):
    """Set of racks -> its number, in the order of first appearance."""

    def __missing__(self, names: frozenset[str]) -> int:
        number = self[names] = len(self)
        return number


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
