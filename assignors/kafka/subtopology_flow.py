"""Initial flow of Kafka's ``BalanceSubtopologyGraphConstructor``: tasks over clients, bounded per subtopology.

As in Kafka by shortest augmenting paths, neighbours in ascending order, without previous owners (KIP-925). Most paths
are straight (first task, first client with room); only the rest needs the search.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from assignors.problem import BadProblem

Ints = npt.NDArray[np.int64]


def room_by_subtopology(count: Ints, size: Ints) -> Ints:
    """``[subtopology, client]``: how many tasks of it a client may get, from the tasks of both, in Kafka's doubles."""
    bound: Ints = np.ceil(count * 1.0 / max(1, int(size.sum())) * size[:, None]).astype(np.int64)
    return bound


def first_flow(subtopology: Ints, count: Ints, room: Ints) -> Ints:
    """Return a client for every task: ``count`` tasks per client, at most ``room`` of a subtopology.

    Subtopologies are numbered from 0 and ascend, as tasks do. Raises ``BadProblem`` when a task finds no place.
    """
    spread = _Spread(subtopology.tolist(), count.tolist(), room.tolist())
    spread.straight()
    while spread.waiting:
        if not spread.around():
            task = spread.waiting[0]
            raise BadProblem(f"task number {task} has no process within the bounds by subtopology; use min_traffic")
    return np.array(spread.owner, np.int64)


class _Spread:
    def __init__(self, subtopology: list[int], count: list[int], room: list[list[int]]) -> None:
        self.subtopology, self.free, self.room = subtopology, count, room
        self.clients = len(count)
        self.owner = [-1] * len(subtopology)
        self.held: dict[tuple[int, int], set[int]] = {}
        self.waiting = list(range(len(subtopology)))

    def straight(self) -> None:
        """Take all paths that move no other task."""
        waiting: list[int] = []
        client, last = 0, -1
        for task, group in enumerate(self.subtopology):
            client = client if group == last else 0
            last = group
            while client < self.clients and not (self.free[client] and self.room[group][client]):
                client += 1
            if client == self.clients:
                waiting.append(task)
                continue
            self._give(task, client)
            self.room[group][client] -= 1
            self.free[client] -= 1
        self.waiting = waiting

    def around(self) -> bool:
        """Take the shortest path on which others move over; False when there is none.

        Nodes are tasks, then clients by subtopology, then clients, numbered as Kafka numbers them.
        """
        tasks, clients = len(self.subtopology), self.clients
        second = tasks + clients * len(self.room)
        before = dict.fromkeys(self.waiting, -1)
        queue = list(self.waiting)
        opened: set[int] = set()
        for node in queue:  # grows on the way
            if node < tasks:
                reached = self._from_task(node, opened)
            elif node < second:
                reached = self._from_subtopology(*divmod(node - tasks, clients))
            else:
                reached = self._from_client(node - second)
            for other in reached:
                if other not in before:
                    before[other] = node
                    queue.append(other)
            if node >= second and self.free[node - second]:
                self._take(before, node)
                return True
        return False

    def _from_task(self, task: int, opened: set[int]) -> list[int]:
        group = self.subtopology[task]
        if group in opened:
            return []  # the node that opened it reached all clients; its own client had been reached before
        opened.add(group)
        base = len(self.subtopology) + group * self.clients
        return [base + client for client in range(self.clients) if client != self.owner[task]]

    def _from_subtopology(self, group: int, client: int) -> list[int]:
        reached = sorted(self.held.get((group, client), ()))
        if self.room[group][client]:
            reached.append(len(self.subtopology) + self.clients * len(self.room) + client)
        return reached

    def _from_client(self, client: int) -> list[int]:
        base = len(self.subtopology) + client
        return [base + group * self.clients for group in range(len(self.room)) if self.held.get((group, client))]

    def _take(self, before: dict[int, int], node: int) -> None:
        tasks, clients = len(self.subtopology), self.clients
        second = tasks + clients * len(self.room)
        self.free[node - second] -= 1
        while (previous := before[node]) >= 0:
            if node >= second:
                self.room[(previous - tasks) // clients][node - second] -= 1
            elif previous >= second:
                self.room[(node - tasks) // clients][previous - second] += 1
            elif previous < tasks:
                self._give(previous, (node - tasks) % clients)
            node = previous
        self.waiting.remove(node)

    def _give(self, task: int, client: int) -> None:
        group = self.subtopology[task]
        if self.owner[task] >= 0:
            self.held[group, self.owner[task]].discard(task)
        self.owner[task] = client
        self.held.setdefault((group, client), set()).add(task)
