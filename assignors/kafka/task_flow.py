"""Minimum-cost flow of tasks over clients along the cycles that Kafka's ``Graph`` cancels, without a graph (KIP-925).

Kafka runs Bellman-Ford over an edge per (task, client) for every cycle; the answer depends on the order of edges. Here:
- distances start at zero and costs are not negative, so a task's distance is its client's less its own cost, and a
  round maps clients to clients by the cheapest task that one can give the other (``TaskOffers.best``);
- ascending edges fall into phases without inner order (tasks to clients; clients to tasks and second stage; second
  stage to clients), each one array operation. Ties: the first task, at the second stage the first subtopology;
- rounds become periodic, and repeated periods are skipped (``task_rounds``).
``min_traffic`` keeps task counts per client; ``balance_subtopology`` starts from ``subtopology_flow``.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from assignors.kafka.subtopology_flow import first_flow, room_by_subtopology
from assignors.kafka.task_rounds import FAR, BellmanFordRounds, TaskOffers

Ints = npt.NDArray[np.int64]
_Node = tuple[str, int, int]


def min_traffic(cost: Ints, owner: Ints) -> Ints:
    """Return the client of every task that Kafka's ``min_traffic`` graph gives.

    Tasks and clients are numbers in ascending order of their ids; ``cost[task, client]`` is at least zero and
    ``owner[task]`` is the client of the task now.
    """
    return _Clients(cost, owner, np.zeros(len(owner), np.int64), None).cheapest()


def balance_subtopology(cost: Ints, owner: Ints, subtopology: Ints) -> Ints:
    """Return the client of every task that Kafka's ``balance_subtopology`` graph gives.

    ``subtopology`` ascends, because tasks do. Raises ``BadProblem`` when the bounds leave a task without a client.
    """
    dense = np.unique(subtopology, return_inverse=True)[1].astype(np.int64)
    count = np.bincount(owner, minlength=cost.shape[1])
    room = room_by_subtopology(count, np.bincount(dense))
    return _Clients(cost, first_flow(dense, count, room), dense, room).cheapest()


class _Clients:
    """Who has which tasks, and what each can give to the others at which price.

    A row is a client within a subtopology, numbered ``subtopology * clients + client``.
    """

    def __init__(self, cost: Ints, owner: Ints, subtopology: Ints, room: Ints | None) -> None:
        tasks, clients = cost.shape
        self.cost, self.room = cost, room
        self.row: Ints = subtopology * clients + owner
        self.own = cost[np.arange(tasks), owner]
        """What every task costs where it is."""
        self.shape: tuple[int, int] = (int(subtopology[-1]) + 1 if tasks else 0, clients)
        self.held: dict[int, list[int]] = {}
        """Tasks of a row, ascending; only rows with tasks."""
        for task, row in enumerate(self.row.tolist()):
            self.held.setdefault(row, []).append(task)
        self.slot: dict[int, int] = {}
        """Where prices of a row are in the two tables below."""
        self.free_slots = list(range(tasks))
        self.best = np.empty((tasks, clients), np.int64)
        self.first = np.empty((tasks, clients), np.int64)
        self._price(set(self.held))

    def cheapest(self) -> Ints:
        """Cancel cycles until none has a negative cost."""
        while moves := self._next_cycle():
            touched = set()
            for task, client in moves:
                touched |= self._move(task, client)
            self._price(touched)
        clients: Ints = self.row % self.shape[1]
        return clients

    def _move(self, task: int, client: int) -> set[int]:
        clients = self.shape[1]
        old = int(self.row[task])
        new = old - old % clients + client
        self.held[old].remove(task)
        insort(self.held.setdefault(new, []), task)
        self.row[task], self.own[task] = new, self.cost[task, client]
        return {old, new}

    def _price(self, rows: set[int]) -> None:
        """Work out anew what the rows can give."""
        clients = self.shape[1]
        for row in rows:
            if not self.held[row]:
                del self.held[row]
                if row in self.slot:
                    self.free_slots.append(self.slot.pop(row))
        for row in rows & self.held.keys():
            slot = self.slot.get(row)
            if slot is None:
                slot = self.slot[row] = self.free_slots.pop()
            tasks = np.array(self.held[row])
            extra = self.cost[tasks] - self.own[tasks][:, None]
            cheapest = extra.argmin(axis=0)
            self.best[slot] = extra[cheapest, np.arange(clients)]
            self.best[slot, row % clients] = FAR
            self.first[slot] = tasks[cheapest]

    def _next_cycle(self) -> list[tuple[int, int]]:
        """The cycle that Kafka cancels next, as (task, new client); empty when there is none."""
        rounds = BellmanFordRounds(self._offers(), self.shape, self._nodes() - 1)
        if rounds.settled:
            return []
        parents = _Parents(self, rounds)
        node = parents.relaxed_last()
        return parents.cycle(node) if node else []

    def _offers(self) -> TaskOffers:
        groups, clients = self.shape
        rows = sorted(self.held)
        slots = [self.slot[row] for row in rows]
        row = np.array(rows, np.int64)
        closed = unused = None
        if self.room is not None:
            count = np.bincount(self.row, minlength=groups * clients).reshape(self.shape)
            closed, unused = np.where(count < self.room, 0, FAR), np.where(count > 0, 0, FAR)
        start = np.searchsorted(row, np.arange(groups) * clients)
        return TaskOffers(row, start, self.best[slots], self.first[slots], closed, unused)

    def _nodes(self) -> int:
        """Nodes of Kafka's graph: tasks, clients by subtopology, second stages, source, sink and a node of its own."""
        groups, clients = self.shape
        return len(self.row) + clients * groups + (0 if self.room is None else clients) + 3


def _blocks(tasks: Ints) -> Iterator[Ints]:
    """The tasks in slices of growing size: the first that counts is often among the first."""
    low, size = 0, 32
    while low < len(tasks):
        yield tasks[low : low + size]
        low, size = low + size, 4 * size


class _Parents:
    """The last round, and the way back from what it reaches first.

    A node is ``("task", t, 0)``, ``("client", subtopology, client)`` or ``("second", client, 0)``.
    """

    def __init__(self, clients: _Clients, rounds: BellmanFordRounds) -> None:
        self.clients, self.rounds = clients, rounds
        self.last: dict[_Node, _Node] = {}
        """What the last round changed before it stopped."""

    def relaxed_last(self) -> _Node | None:
        """The node that the last round reaches first; None when it reaches none."""
        return self._from_tasks() or self._from_clients()

    def _from_tasks(self) -> _Node | None:
        clients, before, now = self.clients, self.rounds.recent[-2], self.rounds.recent[-1]
        source = int((before.given.ravel()[clients.row] - clients.own).min())
        distance = now.given.ravel()[clients.row] - clients.own
        offers, width = self.rounds.offers, clients.shape[1]
        to_source = distance < source
        useful = now.given.ravel()[offers.row][:, None] + offers.best < now.kept[offers.row // width]
        gives = np.zeros(clients.shape[0] * width, np.bool_)
        gives[offers.row] = useful.any(axis=1)
        # The cheapest task of a useful offer counts for sure; dearer ones before it may.
        last = int(offers.first[useful].min(initial=len(distance)))
        for block in _blocks(np.flatnonzero((gives[clients.row] | to_source)[: last + 1])):
            group = clients.row[block] // width
            closer = distance[block][:, None] + clients.cost[block] < now.kept[group]
            found = closer.any(axis=1) | to_source[block]
            if found.any():
                at = int(np.argmax(found))
                task: _Node = ("task", int(block[at]), 0)
                if to_source[block[at]]:
                    return task
                node: _Node = ("client", int(group[at]), int(np.argmax(closer[at])))
                self.last[node] = task
                return node
        return None

    def _from_clients(self) -> _Node | None:
        clients, now = self.clients, self.rounds.recent[-1]
        for row in range(clients.shape[0] * clients.shape[1]):
            group, client = divmod(row, clients.shape[1])
            if row in clients.held and now.kept[group, client] < now.given[group, client]:
                return "task", clients.held[row][0], 0
            closed = self.rounds.offers.closed
            if closed is not None and closed[group, client] == 0 and now.kept[group, client] < now.second[client]:
                node: _Node = ("second", client, 0)
                self.last[node] = ("client", group, client)
                return node
        return None

    def cycle(self, node: _Node) -> list[tuple[int, int]]:
        """Walk back until a node comes again; the tasks that change their client on the cycle, with the new client."""
        seen: set[_Node] = set()
        while node not in seen:
            seen.add(node)
            node = self._before(node)
        moves = []
        other = node
        while True:
            earlier = self._before(other)
            if other[0] == "client" and earlier[0] == "task":
                moves.append((earlier[1], other[2]))
            other = earlier
            if other == node:
                return moves

    def _before(self, node: _Node) -> _Node:
        if node in self.last:
            return self.last[node]
        match node:
            case "task", task, _:
                group, client = divmod(int(self.clients.row[task]), self.clients.shape[1])
                return "client", group, client
            case "client", group, client:
                giver = self.rounds.task_before(group, client)
                return ("second", client, 0) if giver is None else ("task", giver, 0)
            case _:
                return "client", self.rounds.group_before(node[1]), node[1]
