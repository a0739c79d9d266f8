"""Tasks of a Streams application as dense integer arrays: tasks and processes by id, racks by name.

Tasks whose source partitions miss the same racks are of one kind.
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from assignors.optimal.kinds import KeyNumbers, first_come, kinds_of, unique_rows
from assignors.optimal.task_ids import number_ids
from assignors.optimal.tight_flow import Ints
from assignors.problem import BadProblem, StreamsTask, TaskId, TaskProblem, TaskProcess

_MOST_TOTAL = 1 << 60
_MOST_COST = (1 << 31) - 1
"""Kafka's costs are 32-bit integers."""


class TaskModel(NamedTuple):
    """Arrays over tasks (``subtopology``, ``owner``, ``kind``) and processes (``rack``, ``capacity``)."""

    subtopology: Ints
    """Equal, arbitrary numbers for tasks of one subtopology."""
    owner: Ints
    """The process that runs the task now, or -1."""
    kind: Ints
    misses: Ints
    """(kind, rack): source partitions that have no replica there, or what they weigh.

    The last rack is that of processes without one.
    """
    rack: Ints
    capacity: Ints


def cells(model: TaskModel, client: Ints) -> Ints:
    """Rack of each task's process and its kind as one number: ``rack * kinds + kind``."""
    # One array all the way: with 100,000 tasks what a pass costs is mostly new memory.
    cell: Ints = model.rack[client]
    cell *= len(model.misses)
    cell += model.kind
    return cell


def costs_of(model: TaskModel, client: Ints) -> tuple[int, int]:
    """Source partitions without a replica in the rack of their task's process, and tasks not on their owner."""
    kinds, racks = model.misses.shape
    moved = int(np.count_nonzero(client != model.owner))
    if racks * kinds > len(client):
        return int(model.misses[model.kind, model.rack[client]].sum()), moved
    count = np.bincount(cells(model, client), minlength=racks * kinds)
    return int((count.reshape(racks, kinds) * model.misses.T).sum()), moved


class NamedTasks(NamedTuple):
    """The model, whose tasks are in the order of their ids, with the names it was made from."""

    tasks: tuple[StreamsTask, ...]
    """As the problem lists them."""
    ids: list[TaskId]
    """Of ``tasks``."""
    order: Ints | None
    """Positions in ``tasks``, in the order of the model; None when it is the same order."""
    processes: list[TaskProcess]
    racks: dict[str, int]
    model: TaskModel

    def rack_of(self, process: TaskProcess) -> int:
        """Rack number of a process; the number after the last for none."""
        return len(self.racks) if process.rack is None else self.racks[process.rack]

    def sorted_tasks(self) -> list[StreamsTask]:
        """Tasks in the order of the model."""
        return list(self.tasks) if self.order is None else list(map(self.tasks.__getitem__, self.order.tolist()))

    def places(self, numbers: Ints) -> Ints:
        """Positions in ``tasks`` of tasks given by their number in the model."""
        return numbers if self.order is None else self.order[numbers]


def dense_tasks(problem: TaskProblem) -> NamedTasks:
    """Turn names into integers. Raises ``BadProblem`` naming what contradicts itself."""
    _check(problem)
    processes = sorted(problem.processes, key=attrgetter("id"))
    # Objects are read in the order of the input, near which they lie in memory; only numbers are put in order.
    tasks, ids = problem.tasks, list(map(attrgetter("id"), problem.tasks))
    order, subtopology, owner = number_ids(ids, [process.active for process in processes])
    racks = {name: number for number, name in enumerate(sorted({p.rack for p in processes if p.rack is not None}))}
    if any(task.weights is not None for task in tasks):
        kind, misses = _weigh_misses(problem, racks)
    else:
        kind, misses = count_misses(list(map(attrgetter("sources"), tasks)), racks)
    kind, misses = first_come(kind if order is None else kind[order], misses)
    model = TaskModel(
        subtopology=subtopology,
        owner=owner,
        kind=kind,
        misses=misses,
        rack=np.array([len(racks) if p.rack is None else racks[p.rack] for p in processes], np.int64),
        capacity=np.array([process.capacity for process in processes], np.int64),
    )
    return NamedTasks(tasks, ids, order, processes, racks, model)


def count_misses(partitions: list[tuple[frozenset[str], ...]], racks: dict[str, int]) -> tuple[Ints, Ints]:
    """Kind of each entry, and how many of a kind's partitions have no replica in each rack (last column: in none)."""
    lists: KeyNumbers[tuple[frozenset[str], ...]] = KeyNumbers()
    number = np.fromiter(map(lists.__getitem__, partitions), np.int64, len(partitions))
    sets: KeyNumbers[frozenset[str]] = KeyNumbers()
    set_number = np.fromiter(map(sets.__getitem__, chain.from_iterable(lists)), np.int64)
    # The last column takes racks that no process has, and goes.
    here = np.zeros((len(sets), len(racks) + 1), np.int64)
    row = np.repeat(np.arange(len(sets)), np.fromiter(map(len, sets), np.int64, len(sets)))
    here[row, [racks.get(name, -1) for name in chain.from_iterable(sets)]] = 1
    kind, misses = kinds_of(set_number, np.fromiter(map(len, lists), np.int64, len(lists)), here[:, :-1])
    return kind[number], misses


def _weigh_misses(problem: TaskProblem, racks: dict[str, int]) -> tuple[Ints, Ints]:
    """The same with the weight of these partitions instead of their number."""
    weights = [_weights(task) for task in problem.tasks]
    if sum(map(sum, weights)) * max(1, problem.traffic_cost) > _MOST_TOTAL:
        raise BadProblem("the weights of all tasks times traffic_cost are above 2**60; give weights in larger units")
    rows = np.zeros((len(weights), len(racks) + 1), np.int64)
    for number, (task, of_task) in enumerate(zip(problem.tasks, weights, strict=True)):
        for names, weight in zip(task.sources, of_task, strict=True):
            rows[number] += weight
            rows[number, [racks[name] for name in names if name in racks]] -= weight
    misses, kind = unique_rows(rows)
    return kind, misses


def _weights(task: StreamsTask) -> tuple[int, ...]:
    weights = task.weights if task.weights is not None else (1,) * len(task.sources)
    if len(weights) != len(task.sources) or min(weights, default=0) < 0:
        raise BadProblem(f"task {task.id} needs one weight for each source, none below 0; it has {weights}")
    return weights


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
