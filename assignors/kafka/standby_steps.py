"""Kafka's ``StandbyTaskAssignor`` and ``StandbyTaskAssignmentUtils``: standbys to the least loaded processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from assignors.kafka.load_queue import LoadQueue
from assignors.kafka.streams_problem import ClientState
from assignors.problem import TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbyAssignor:
    """How standbys are placed, and which of them may move afterwards."""

    name: str
    """Simple name of Kafka's class."""
    assign: Callable[[Sequence[ClientState], Iterable[TaskId], int], list[str]]
    """``assign(clients, stateful tasks, replicas)`` adds standbys, in the order of the tasks; returns warnings."""
    allows: Callable[[ClientState, ClientState], bool] | None = None
    """``allows(source, destination)``: whether standbys may move there to even out load. None: always."""
    allows_task: Callable[[ClientState, ClientState, Iterable[ClientState]], bool] | None = None
    """``allows_task(source, destination, holders)``: whether a standby of a task with copies on these holders may move
    there to save traffic. None: always."""


def by_load(clients: Iterable[ClientState]) -> LoadQueue[ClientState]:
    """Clients by load, then process id."""
    return LoadQueue(clients, lambda client: (client.load, client.key))


def least_without(queue: LoadQueue[ClientState], task: TaskId) -> ClientState | None:
    """The least loaded client without a copy of the task."""
    return queue.first(lambda client: not client.has(task), lambda _: True)


def give_standbys(queue: LoadQueue[ClientState], task: TaskId, missing: int, configured: int) -> list[str]:
    """Place ``missing`` standbys of a task on the least loaded clients without a copy; a warning when some are left."""
    while missing > 0:
        client = least_without(queue, task)
        if client is None:
            noun = "standby" if configured == 1 else "standbys"
            why = f"{missing} of {configured} {noun} of task {task} cannot be placed: every process has a copy of it"
            return [f"{why}; start more instances or lower num.standby.replicas"]
        client.standby.add(task)
        queue.changed(client)
        missing -= 1
    return []
