"""Kafka's ``TaskMovement``: tasks run on caught-up processes while their targets restore state (KIP-441).

The assignment so far gives the process where each task shall run. Where that process has not caught up and another is
closer, the task runs on the closer one for now, and the intended one becomes a warm-up, as long as warm-ups are left.
Each such movement requests a probing rebalance. Standbys follow the same rule after the active tasks.

The least loaded of several caught-up processes is chosen. Kafka keeps these in a heap whose keys change while it is in
use; where that may have spoilt the order of the heap (``_ByLoad.in_doubt``) and matters, the phase is played again with
a heap of the very same layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from assignors.kafka.java import JavaHeap
from assignors.kafka.streams_order import processes_in_hash_order
from assignors.kafka.streams_problem import LONG_MAX, RUNNING_ACTIVE, ClientState
from assignors.problem import BadProblem, TaskId

Longs = npt.NDArray[np.int64]


class TaskReadiness:
    """How far each client (by its place) is behind on each stateful task."""

    def __init__(self, clients: Sequence[ClientState], stateful: Sequence[TaskId], acceptable: int) -> None:
        """``acceptable`` is the acceptable recovery lag. Raises ``BadProblem`` for a lag that is missing."""
        self.lag: Longs = np.empty((len(stateful), len(clients)), np.int64)
        for place, client in enumerate(clients):
            self.lag[:, place] = _lags(client, stateful)
        self.caught_up = (self.lag == RUNNING_ACTIVE) | ((self.lag >= 0) & (self.lag <= acceptable))
        if acceptable == LONG_MAX:
            self.caught_up[:] = True
        self.row = {task: row for row, task in enumerate(stateful)}
        behind = ~self.caught_up & (self.lag > self.lag.min(axis=1, initial=LONG_MAX)[:, None])
        self.behind: list[set[TaskId]] = [
            {stateful[row] for row in np.flatnonzero(behind[:, place]).tolist()} for place in range(len(clients))
        ]
        """By client: tasks that some other client is closer to."""

    def ready(self, task: TaskId) -> list[int]:
        """Clients that have caught up on the task."""
        places: list[int] = np.flatnonzero(self.caught_up[self.row[task]]).tolist()
        return places

    def closest_first(self, task: TaskId, before: int) -> list[int]:
        """Clients by lag, then id, up to one of them."""
        order: list[int] = np.argsort(self.lag[self.row[task]], kind="stable").tolist()
        return order[: order.index(before)]


def _lags(client: ClientState, stateful: Sequence[TaskId]) -> Longs:
    try:
        return np.fromiter(map(client.client.lags.__getitem__, stateful), np.int64, len(stateful))
    except KeyError as missing:
        raise BadProblem(
            f"client {client.id} has no lag for stateful task {missing.args[0]}; give one to every stateful task"
        ) from None
    except OverflowError:
        raise BadProblem(f"a lag of client {client.id} exceeds 64 bits; lags are numbers of offsets") from None


@dataclass(slots=True, kw_only=True)
class WarmupReplicas:
    """How many more warm-ups there may be, and where they are."""

    left: int
    """Counted down by every task that would like one, below zero too."""
    placed: dict[str, set[TaskId]] = field(default_factory=dict)

    def take(self) -> bool:
        """Whether one was left."""
        self.left -= 1
        return self.left >= 0

    def add(self, client: ClientState, task: TaskId) -> None:
        """Note that this standby is a warm-up."""
        self.placed.setdefault(client.id, set()).add(task)


class TaskMovement(NamedTuple):
    """A task whose state is closer elsewhere; in the order in which movements are made."""

    caught_up: int
    """How many clients have caught up on it."""
    task: TaskId
    destination: int
    """The client that shall have it in the end."""


def move_active(clients: Sequence[ClientState], readiness: TaskReadiness, warmups: WarmupReplicas) -> int:
    """Move active tasks to clients that are closer to their state; return how many. Clients are in ascending order."""
    movements = sorted(
        TaskMovement(len(readiness.ready(task)), task, place)
        for place, client in enumerate(clients)
        for task in client.active & readiness.behind[place]
    )

    def play(queue: _Queue) -> int:
        for movement in movements:
            _move_active(clients, readiness, warmups, queue, movement)
        return len(movements)

    return _play(play, clients, warmups)


def move_standbys(clients: Sequence[ClientState], readiness: TaskReadiness, warmups: WarmupReplicas) -> int:
    """Move standbys, but no warm-ups, to clients that are closer to their state; return how many found a place."""
    heap: JavaHeap[TaskMovement] = JavaHeap(key=lambda movement: movement[:2])
    for place, client in enumerate(clients):
        for task in sorted(client.standby & readiness.behind[place] - warmups.placed.get(client.id, set())):
            heap.push(TaskMovement(len(readiness.ready(task)), task, place))
    movements = [heap.pop() for _ in range(len(heap))]

    def play(queue: _Queue) -> int:
        return sum(_move_standby(clients, readiness, warmups, queue, movement) for movement in movements)

    return _play(play, clients, warmups)


def _move_active(
    clients: Sequence[ClientState],
    readiness: TaskReadiness,
    warmups: WarmupReplicas,
    queue: _Queue,
    movement: TaskMovement,
) -> None:
    _, task, destination = movement
    ready = readiness.ready(task)
    source = queue.take([place for place in ready if task in clients[place].standby])
    if source is None:
        source = queue.take(ready)
    taken = source is not None
    if source is None:
        source = readiness.closest_first(task, destination)[0]
    here, there = clients[source], clients[destination]
    there.active.remove(task)
    freed = False
    if task in here.standby:
        here.standby.remove(task)
        there.standby.add(task)
    elif warmups.take():
        there.standby.add(task)
        warmups.add(there, task)
    else:
        freed = True
    here.active.add(task)
    queue.back(source, destination, taken=taken, freed=freed)


def _move_standby(
    clients: Sequence[ClientState],
    readiness: TaskReadiness,
    warmups: WarmupReplicas,
    queue: _Queue,
    movement: TaskMovement,
) -> bool:
    _, task, destination = movement
    source = queue.take([place for place in readiness.ready(task) if not clients[place].has(task)])
    taken = source is not None
    if source is None:
        closer = readiness.closest_first(task, destination)
        source = next((place for place in closer if not clients[place].has(task)), None)
    if source is None:
        return False
    clients[source].standby.add(task)
    freed = not warmups.take()
    if freed:
        clients[destination].standby.remove(task)
    else:
        warmups.add(clients[destination], task)
    queue.back(source, destination, taken=taken, freed=freed)
    return True


# --- the least loaded client ----------------------------------------------------------------------------------


class _Queue(Protocol):
    def take(self, fit: Sequence[int]) -> int | None:
        """The least loaded of the clients that fit."""
        ...

    def back(self, source: int, destination: int, *, taken: bool, freed: bool) -> None:
        """Loads of these two are final; ``taken``: the source came from ``take``; ``freed``: the other lost a task."""
        ...


class _LayoutMatters(Exception):  # noqa: N818 (no error: the phase is played again)
    pass


def _play(play: Callable[[_Queue], int], clients: Sequence[ClientState], warmups: WarmupReplicas) -> int:
    before = [(set(client.active), set(client.standby)) for client in clients]
    left, placed = warmups.left, {process: set(tasks) for process, tasks in warmups.placed.items()}
    try:
        return play(_ByLoad(clients))
    except _LayoutMatters:
        for client, (active, standby) in zip(clients, before, strict=True):
            client.active, client.standby = active, standby
        warmups.left, warmups.placed = left, placed
        return play(_JavaQueue(clients))


class _ByLoad:
    """The least loaded, by plain comparison, as long as a heap would give the same."""

    def __init__(self, clients: Sequence[ClientState]) -> None:
        self.clients = clients
        self.in_doubt = False
        """Whether the heap may give another client than the least loaded one."""

    def take(self, fit: Sequence[int]) -> int | None:
        if not fit:
            self.in_doubt = False  # all clients were taken out and put back, which mends the heap
            return None
        if self.in_doubt and len(fit) > 1:
            raise _LayoutMatters
        return min(fit, key=self._key)

    def back(self, source: int, destination: int, *, taken: bool, freed: bool) -> None:
        """The source is put in while the destination still sits where its old load belongs."""
        if freed:
            load, place = self._key(destination)
            old = ((self.clients[destination].task_count + 1) / self.clients[destination].capacity, place)
            self.in_doubt |= not taken or (load, place) <= self._key(source) < old

    def _key(self, place: int) -> tuple[float, int]:
        return self.clients[place].load, place


class _JavaQueue:
    """Kafka's ``ConstrainedPrioritySet``: a heap that does not see changes of loads."""

    def __init__(self, clients: Sequence[ClientState]) -> None:
        self.clients = clients
        self.place = {client.id: place for place, client in enumerate(clients)}
        self.heap: JavaHeap[int] = JavaHeap(key=lambda place: (clients[place].load, place))
        self.inside: set[int] = set()
        for place in range(len(clients)):
            self._offer(place)

    def take(self, fit: Sequence[int]) -> int | None:
        passed: list[int] = []
        found = None
        while len(self.heap) and found is None:
            place = self.heap.pop()
            self.inside.remove(place)
            if place in fit:
                found = place
            else:
                passed.append(place)
        for process in processes_in_hash_order([self.clients[place].id for place in passed]):
            self._offer(self.place[process])
        return found

    def back(self, source: int, destination: int, *, taken: bool, freed: bool) -> None:  # noqa: ARG002 (for _ByLoad)
        self._offer(source)
        self._offer(destination)

    def _offer(self, place: int) -> None:
        if place in self.inside:
            self.heap.discard(place)
        self.inside.add(place)
        self.heap.push(place)
