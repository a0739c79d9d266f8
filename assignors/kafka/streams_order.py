"""The order in which Java's hash maps and sets visit the tasks and processes of a Streams application.

``table`` is the table that the map or set starts from, see ``assignors.kafka.java``; items are given as inserted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from assignors.kafka.java import DEFAULT_TABLE, halves_hash, hash_order, task_hash
from assignors.kafka.streams_problem import process_key
from assignors.problem import TaskId

P = TypeVar("P", bound=Hashable)


def tasks_in_hash_order(tasks: Iterable[TaskId], table: int = DEFAULT_TABLE) -> list[TaskId]:
    """The tasks of a set, or the keys of a map, as they are visited."""
    return hash_order(tasks, _task_hash, table)


def processes_in_hash_order(processes: Iterable[str], table: int = DEFAULT_TABLE) -> list[str]:
    """The process ids of a set, or the keys of a map, as they are visited. Raises ``BadProblem`` for other text."""
    return hash_order(processes, _process_hash, table)


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
