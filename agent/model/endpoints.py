"""Finds the copy of a task that a reading of an application's own endpoint belongs to.

An endpoint names a process by its process id where it can, else by a client id. Invariant: a reading that could belong
to more than one process belongs to none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.memory.values import CopyKey
from agent.model.snapshot import StreamsProcess
from agent.observation import RawApplicationLag


def readings_by_copy(
    processes: Sequence[StreamsProcess], told: Iterable[RawApplicationLag]
) -> Mapping[CopyKey, tuple[RawApplicationLag, ...]]:
    """What the endpoints of one application told, by copy."""
    by_teller: dict[str, list[RawApplicationLag]] = {}
    for row in told:
        by_teller.setdefault(row.process_id, []).append(row)
    found: dict[CopyKey, tuple[RawApplicationLag, ...]] = {}
    for teller, rows in by_teller.items():
        meant = [process.id for process in processes if _goes_by(process, teller)]
        if len(meant) == 1:
            for row in rows:
                found[meant[0], row.task] = (*found.get((meant[0], row.task), ()), row)
    return found


def _goes_by(process: StreamsProcess, name: str) -> bool:
    """True for its process id, a thread's client id, and the client id that all of its threads' begin with."""
    return name == process.id or any(c == name or c.startswith(f"{name}-StreamThread-") for c in process.client_ids)
