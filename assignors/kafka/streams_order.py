"""Iteration order of Java's hash maps and sets of Streams tasks and processes.

``table`` is the table that the map or set starts from, see ``assignors.kafka.java``; items are given as inserted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from assignors.kafka.java import DEFAULT_TABLE, halves_hash, hash_order, task_hash
from assignors.kafka.streams_problem import StreamsProblem, process_key
from assignors.problem import TaskId

P = TypeVar("P", bound=Hashable)


def tasks_in_hash_order(tasks: Iterable[TaskId], table: int = DEFAULT_TABLE) -> list[TaskId]:
    """The tasks of a set, or the keys of a map, as they are visited."""
    return hash_order(tasks, _task_hash, table)


def processes_in_hash_order(processes: Iterable[str]) -> list[str]:
    """The process ids of a set, or the keys of a map, as they are visited. Raises ``BadProblem`` for other text."""
    return hash_order(processes, _process_hash, order=process_key)


def processes_in_order(problem: StreamsProblem) -> list[str]:
    """The ids of the clients as Kafka's map of them iterates."""
    processes = [client.id for client in problem.clients]
    if problem.iteration == "sorted":
        return sorted(processes, key=process_key)
    return processes_in_hash_order(processes) if problem.iteration == "java_hash" else processes


def tasks_in_order(problem: StreamsProblem, tasks: Iterable[TaskId]) -> list[TaskId]:
    """All or the stateful tasks, given as listed, as Kafka's set of them iterates."""
    if problem.iteration == "sorted":
        return sorted(tasks)
    return tasks_in_hash_order(tasks) if problem.iteration == "java_hash" else list(tasks)


def process_ranks(processes: Iterable[P], hashes: Mapping[P, int], table: int) -> dict[P, int]:
    """The place of each process in the order of a table of just that size, whichever of them are in it."""

    def bucket(process: P) -> int:
        value = hashes[process] & 0xFFFFFFFF
        return (value ^ value >> 16) & table - 1

    return {process: place for place, process in enumerate(sorted(processes, key=bucket))}


def _task_hash(task: TaskId) -> int:
    return task_hash((int(task.subtopology), task.partition))


def _process_hash(process: str) -> int:
    return halves_hash(process_key(process))
