"""Streams applications of any size for the benches: as columns, as objects, and as the case that Kafka's Java reads."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from uuid import UUID

import numpy as np

from assignors import StreamsTask, TaskId, TaskProblem, TaskProcess
from assignors.optimal.columns import PartitionMasks, TaskColumns

CAPACITIES = (1, 2, 4, 8)


def columns(
    tasks: int,
    clients: int,
    *,
    racks: int = 3,
    subtopologies: int = 20,
    sources: int = 1,
    mixed: bool = True,
    dealt: bool = False,
) -> TaskColumns:
    """An application that has run for a while: shares by capacity with some noise, most tasks where their data is.

    Every source partition has replicas in two racks; for nine tasks of ten one is in the rack of the owner. ``dealt``:
    tasks are dealt in turn instead and data is anywhere, as Kafka's HighAvailabilityTaskAssignor starts.
    """
    rng = np.random.default_rng(tasks)
    capacity = rng.choice(CAPACITIES, clients) if mixed else np.ones(clients, np.int64)
    rack = np.arange(clients) % racks
    owner = np.sort(rng.integers(0, int(capacity.sum()), tasks))
    owner = rng.permutation(np.repeat(np.arange(clients), capacity)[owner])
    if dealt:
        in_order = np.lexsort((np.arange(tasks) // subtopologies, np.arange(tasks) % subtopologies))
        owner[in_order] = np.arange(tasks) % clients
    near = 0.0 if dealt else 0.9
    first = np.where(rng.random(tasks) < near, rack[owner], rng.integers(0, racks, tasks))
    first = np.repeat(first, sources)
    second = (first + rng.integers(1, racks, tasks * sources)) % racks
    none = np.zeros(tasks + 1, np.int64)
    return TaskColumns(
        client_rack=rack,
        client_capacity=capacity.astype(np.int64),
        subtopology=np.arange(tasks) % subtopologies,
        partition=np.arange(tasks) // subtopologies,
        stateful=np.ones(tasks, np.bool_),
        owner=owner,
        sources=PartitionMasks(np.arange(tasks + 1) * sources, (1 << first) | (1 << second)),
        changelogs=PartitionMasks(none, np.zeros(0, np.int64)),
    )


def objects(given: TaskColumns, **options: Any) -> TaskProblem:
    """The same problem as objects; ``options`` are those of ``TaskProblem``."""
    masks: dict[int, frozenset[str]] = {}
    for mask in np.unique(given.sources.mask).tolist():
        masks[mask] = frozenset(rack_name(rack) for rack in range(64) if mask >> rack & 1)
    sources = [masks[mask] for mask in given.sources.mask.tolist()]
    ids = [TaskId(*each) for each in zip(given.subtopology.tolist(), given.partition.tolist(), strict=True)]
    active: list[list[TaskId]] = [[] for _ in given.client_rack]
    for task, owner in zip(ids, given.owner.tolist(), strict=True):
        if owner >= 0:
            active[owner].append(task)
    return TaskProblem(
        tasks=tuple(
            StreamsTask(id=task, stateful=True, sources=tuple(sources[start:end]))
            for task, (start, end) in zip(ids, pairwise(given.sources.ptr.tolist()), strict=True)
        ),
        processes=tuple(
            TaskProcess(id=str(UUID(int=number + 1)), rack=rack_name(rack), capacity=capacity, active=tuple(mine))
            for number, (rack, capacity, mine) in enumerate(
                zip(given.client_rack.tolist(), given.client_capacity.tolist(), active, strict=True)
            )
        ),
        **options,
    )


def rack_name(rack: int) -> str:
    return f"rack-{rack:02}"


def kafka_case(problem: TaskProblem) -> dict[str, Any]:
    """A problem with fixed counts as a case of ``streams.rack_optimize``; source n of subtopology s is ``in-s-n``."""
    texts = {task.id: str(task.id) for task in problem.tasks}
    topics: dict[str, list[list[str]]] = {}
    partitions: dict[str, list[str]] = {}
    for task in sorted(problem.tasks, key=lambda each: each.id):
        names = partitions[texts[task.id]] = []
        for number, racks in enumerate(task.sources):
            replicas = topics.setdefault(f"in-{task.id.subtopology}-{number}", [])
            names.append(f"in-{task.id.subtopology}-{number}-{len(replicas)}")
            replicas.append(sorted(racks))
    return {
        "tasks": {"all": list(partitions), "stateful": list(partitions)},
        "clients": [
            {
                "id": process.id, "capacity": process.capacity, "tags": {}, "lags": {},
                "assigned_active": [texts[task] for task in process.active],
            }
            for process in problem.processes
        ],
        "configs": {
            "acceptable_recovery_lag": 0,
            "max_warmup_replicas": 2,
            "num_standby_replicas": 0,
            "probing_rebalance_interval_ms": 600_000,
            "rack_aware_assignment_tags": [],
            "rack_aware_assignment_strategy": "min_traffic" if problem.balance == "none" else "balance_subtopology",
            "rack_aware_assignment_traffic_cost": problem.traffic_cost,
            "rack_aware_assignment_non_overlap_cost": problem.non_overlap_cost,
        },
        "rack": {
            "consumer_racks": {process.id: {"consumer": process.rack} for process in problem.processes},
            "cluster": topics,
            "described": {},
            "task_partitions": partitions,
            "changelog_partitions": {},
        },
        "iteration": "sorted",
        "mode": "active",
        "optimize_tasks": list(partitions),
        "traffic_cost": problem.traffic_cost,
        "non_overlap_cost": problem.non_overlap_cost,
    }  # fmt: skip
