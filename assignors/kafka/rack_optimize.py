"""``optimizeActiveTasks`` and ``optimizeStandbyTasks`` of Kafka's ``RackAwareTaskAssignor`` (KIP-925).

Active tasks move at the least cost of all assignments with these numbers (``min_traffic``), or of those that also bound
the tasks of a subtopology on a process (``balance_subtopology``). Standbys are swapped between pairs of processes in
different racks, at most four rounds, as long as something moves: a local optimum. In both cases the very assignment
that Kafka ends at is found; for more than ``max_literal_size`` pairs of an active task and a process another one of the
same cost is used, and the answer records it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from assignors.kafka.rack_aware import RackAwareness, RackMisses, rack_misses
from assignors.kafka.standby_steps import StandbyAssignor
from assignors.kafka.streams_problem import (
    BALANCE_SUBTOPOLOGY,
    MIN_TRAFFIC,
    ClientState,
    FlowAnswer,
    RackFacts,
    StreamsProblem,
)
from assignors.kafka.swap_flow import swap
from assignors.kafka.task_flow import balance_subtopology, min_traffic
from assignors.problem import BadProblem, TaskId

Ints = npt.NDArray[np.int64]

MAX_LITERAL_SIZE = {MIN_TRAFFIC: 1_000_000, BALANCE_SUBTOPOLOGY: 200_000}
"""Pairs of task and process up to which Kafka's own answer is found, by strategy: about ten seconds of work."""
MOST_ROUNDS = 4
"""Rounds of standby swaps, as Kafka has it."""


class RackOptimization(NamedTuple):
    """What the step came to."""

    cost: int
    """As Kafka returns it: active tasks against their places before, standbys by traffic alone."""
    flow: FlowAnswer


def optimize_active(
    problem: StreamsProblem,
    awareness: RackAwareness,
    clients: Sequence[ClientState],
    tasks: Iterable[TaskId],
    costs: tuple[int, int],
) -> RackOptimization:
    """Move these active tasks between the clients, given in ascending order; ``costs`` are traffic and non-overlap.

    Raises ``BadProblem`` for a task that is active on no client or on several, and for what cannot be priced.
    """
    order = sorted(set(tasks))
    if not order:
        return RackOptimization(0, "not run")
    misses = rack_misses(awareness, order, [client.id for client in clients], _facts(problem).task_partitions, costs)
    owner = _owners(clients, order)
    subtopology = np.array([task.subtopology for task in order], np.int64)
    strategy = problem.configs.rack_aware_assignment_strategy
    balance = strategy == BALANCE_SUBTOPOLOGY
    most = MAX_LITERAL_SIZE.get(strategy, 0) if problem.max_literal_size is None else problem.max_literal_size
    price = _prices(misses, owner, costs)
    if len(order) * len(clients) > most:
        flow: FlowAnswer = "cost-equal optimum"
        placed = _optimum(misses, owner, subtopology, "subtopology" if balance else "none", costs)
    else:
        flow = "as Kafka"
        placed = balance_subtopology(price, owner, subtopology) if balance else min_traffic(price, owner)
    for number in np.flatnonzero(placed != owner).tolist():
        clients[owner[number]].active.remove(order[number])
        clients[placed[number]].active.add(order[number])
    return RackOptimization(int(price[np.arange(len(order)), placed].sum()), flow)


def optimize_standby(
    problem: StreamsProblem,
    awareness: RackAwareness,
    clients: Sequence[ClientState],
    costs: tuple[int, int],
    rule: StandbyAssignor | None = None,
) -> RackOptimization:
    """Swap standbys between the clients, given in ascending order, where the rule lets them move.

    Raises ``BadProblem`` for what cannot be priced.
    """
    order = sorted({task for client in clients for task in client.standby})
    if not order:
        return RackOptimization(0, "not run")
    changelogs = _facts(problem).changelog_partitions
    swaps = _Swaps(clients, order, rack_misses(awareness, order, [c.id for c in clients], changelogs, costs), costs)
    if rule is not None:
        swaps.rule = rule
    for _ in range(MOST_ROUNDS):
        if not swaps.one_round():
            break
    return RackOptimization(standby_cost(problem, awareness, clients, costs[0]), "as Kafka")


def active_cost(
    problem: StreamsProblem,
    awareness: RackAwareness,
    clients: Sequence[ClientState],
    tasks: Iterable[TaskId],
    costs: tuple[int, int],
) -> int:
    """Cost of these active tasks as they are, in Kafka's units. Raises ``BadProblem`` as ``optimize_active`` does."""
    order = sorted(set(tasks))
    misses = rack_misses(awareness, order, [client.id for client in clients], _facts(problem).task_partitions, costs)
    owner = _owners(clients, order)
    return int(_prices(misses, owner, costs)[np.arange(len(order)), owner].sum())


def standby_cost(
    problem: StreamsProblem, awareness: RackAwareness, clients: Sequence[ClientState], traffic_cost: int
) -> int:
    """Cost of all standbys where they are, in Kafka's units. Raises ``BadProblem`` for what cannot be priced."""
    order = sorted({task for client in clients for task in client.standby})
    changelogs = _facts(problem).changelog_partitions
    misses = rack_misses(awareness, order, [client.id for client in clients], changelogs, (traffic_cost, 0))
    number = {task: index for index, task in enumerate(order)}
    return traffic_cost * sum(
        int(misses.crossing[[number[task] for task in client.standby], misses.rack[index]].sum())
        for index, client in enumerate(clients)
        if client.standby
    )


def _facts(problem: StreamsProblem) -> RackFacts:
    if problem.racks is None:
        raise BadProblem("no racks are known, so tasks cannot be placed by rack")
    return problem.racks


def _owners(clients: Sequence[ClientState], tasks: Sequence[TaskId]) -> Ints:
    number = {task: index for index, task in enumerate(tasks)}
    owner = np.full(len(tasks), -1, np.int64)
    for index, client in enumerate(clients):
        for task in client.active & number.keys():
            if owner[number[task]] >= 0:
                other = clients[owner[number[task]]].id
                raise BadProblem(f"task {task} is active on {other} and on {client.id}; it can run on one process only")
            owner[number[task]] = index
    if (owner < 0).any():
        raise BadProblem(f"task {tasks[int(np.argmin(owner))]} is active on no process; place it first")
    return owner


def _prices(misses: RackMisses, owner: Ints, costs: tuple[int, int]) -> Ints:
    price = misses.costs(costs[0]) + costs[1]
    price[np.arange(len(owner)), owner] -= costs[1]
    return price


def _optimum(
    misses: RackMisses, owner: Ints, subtopology: Ints, balance: Literal["none", "subtopology"], costs: tuple[int, int]
) -> Ints:
    """Another answer of the same cost, found for all tasks at once."""
    # OR-Tools is slow to load, so it is loaded only where it is needed.
    from assignors.optimal.kinds import unique_rows  # noqa: PLC0415
    from assignors.optimal.task_model import TaskModel  # noqa: PLC0415
    from assignors.optimal.tasks import solve_tasks  # noqa: PLC0415

    count, kind = unique_rows(misses.crossing)
    model = TaskModel(
        subtopology=np.unique(subtopology, return_inverse=True)[1].astype(np.int64),
        owner=owner,
        kind=kind,
        misses=count,
        rack=misses.rack,
        capacity=np.ones(len(misses.rack), np.int64),
    )
    return solve_tasks(model, "fixed", balance, *costs).client


class _Swaps:
    """Standbys by client, the cost of each elsewhere, and the clients with a copy of each task."""

    def __init__(
        self, clients: Sequence[ClientState], tasks: Sequence[TaskId], misses: RackMisses, costs: tuple[int, int]
    ) -> None:
        self.clients, self.rule = clients, StandbyAssignor(name="", assign=lambda *_: [])
        self.traffic, self.stay = misses.crossing * costs[0], costs[1]
        self.rack = misses.rack
        self.number = {task: index for index, task in enumerate(tasks)}
        self.holders: defaultdict[TaskId, list[ClientState]] = defaultdict(list)
        for client in clients:
            for task in client.active | client.standby:
                self.holders[task].append(client)
        self.least = np.array([self._least(index) for index in range(len(clients))])
        """``[client, rack]``: the least that giving any one standby to that rack costs."""

    def _least(self, index: int) -> Ints:
        standby = self.clients[index].standby
        if not standby:
            return np.full(self.traffic.shape[1], 1 << 40, np.int64)
        rows = self.traffic[[self.number[task] for task in standby]]
        least: Ints = (rows - rows[:, [self.rack[index]]]).min(axis=0) + self.stay
        return least

    def one_round(self) -> bool:
        """Try all pairs of clients, in ascending order; whether anything moved."""
        moved = False
        for one in range(len(self.clients)):
            other = self._next(one, one + 1)
            while other is not None:
                moved |= self._try(one, other)
                other = self._next(one, other + 1)
        return moved

    def _next(self, one: int, start: int) -> int | None:
        """The first client from ``start`` on with which a swap could pay."""
        pays = self.least[one, self.rack[start:]] + self.least[start:, self.rack[one]] < 0
        found = np.flatnonzero(pays & (self.rack[start:] != self.rack[one]))
        return start + int(found[0]) if len(found) else None

    def _try(self, one: int, other: int) -> bool:
        mine, theirs = self._movable(one, other), self._movable(other, one)
        if not mine or not theirs:
            return False
        tasks = sorted(mine + theirs)
        side = [0 if task in self.clients[one].standby else 1 for task in tasks]
        prices = []
        for task, where in zip(tasks, side, strict=True):
            here, there = (int(self.traffic[self.number[task], self.rack[index]]) for index in (one, other))
            prices.append((here + (where == 1) * self.stay, there + (where == 0) * self.stay))
        after = swap(prices, side)
        moves = [(task, side[index]) for index, task in enumerate(tasks) if after[index] != side[index]]
        pair = self.clients[one], self.clients[other]
        for task, before in moves:
            source, destination = pair[before], pair[1 - before]
            source.standby.remove(task)
            destination.standby.add(task)
            self.holders[task].remove(source)
            self.holders[task].append(destination)
        if moves:
            self.least[one], self.least[other] = self._least(one), self._least(other)
        return bool(moves)

    def _movable(self, source: int, destination: int) -> list[TaskId]:
        there, allows = self.clients[destination], self.rule.allows_task
        here = self.clients[source]
        return [
            task
            for task in here.standby
            if not there.has(task) and (allows is None or allows(here, there, self.holders[task]))
        ]
