"""Finds the copy of a task that a reading of an application's own endpoint belongs to.

An endpoint names a process by its process id where it can, else by a client id. Invariant: a reading that could belong
to more than one process belongs to none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.values.memory import CopyKey
from agent.values.observation import RawApplicationLag
from agent.values.snapshot import StreamsProcess
from assignors.problem import TaskId


def readings_by_copy(
    processes: Sequence[StreamsProcess], tasks: Iterable[TaskId], told: Iterable[RawApplicationLag]
) -> Mapping[CopyKey, tuple[RawApplicationLag, ...]]:
    """What the endpoints of one application told, by copy; brokers give subtopologies names that look like numbers."""
    named = {str(task): task for task in tasks}
    by_teller: dict[str, list[RawApplicationLag]] = {}
    for row in told:
        by_teller.setdefault(row.process_id, []).append(row)
    found: dict[CopyKey, tuple[RawApplicationLag, ...]] = {}
    for teller, rows in by_teller.items():
        meant = [process.id for process in processes if _goes_by(process, teller)]
        if len(meant) == 1:
            for row in rows:
                copy = meant[0], named.get(str(row.task), row.task)
                found[copy] = (*found.get(copy, ()), row)
    return found


def _goes_by(process: StreamsProcess, name: str) -> bool:
    """True for its process id, a thread's client id, and the client id that all of its threads' begin with."""
    return name == process.id or any(c == name or c.startswith(f"{name}-StreamThread-") for c in process.client_ids)
