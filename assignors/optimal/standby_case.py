"""Bounds of an application's standbys before they are placed, and the quality of a placement."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from assignors.optimal.spread import CopySpread
from assignors.optimal.task_model import NamedTasks, count_misses
from assignors.optimal.tight_flow import Ints
from assignors.problem import StreamsTask, TaskId, TaskProblem

Standbys = list[tuple[int, ...]]
"""Per stateful task the processes of its standbys."""


class StandbyCase(NamedTuple):
    """Stateful tasks in order; processes by number."""

    spread: CopySpread
    stateful: list[TaskId]
    copies: int
    active: list[int]
    """Process of the active task."""
    holders: list[tuple[int, ...]]
    """Processes that held a copy of the task before, ascending."""
    price: list[list[int]]
    """Cost of a standby of each task in each rack, on a process that held it before."""
    rack: list[int]
    move: int
    load: Counter[int]
    """Active tasks per process, stateless ones too."""
    tasks: int
    capacity: list[int]

    def shares(self, standbys: int) -> tuple[list[int], list[int]]:
        """Per process the rounded-down and rounded-up share of tasks with so many standbys for each stateful one."""
        total, capacity = self.tasks + len(self.stateful) * standbys, sum(self.capacity)
        return [mine * total // capacity for mine in self.capacity], [
            -(-mine * total // capacity) for mine in self.capacity
        ]


def read_case(
    problem: TaskProblem, named: NamedTasks, client: Ints, stateful: dict[int, StreamsTask], copies: int
) -> StandbyCase:
    """Collect the facts: ``client`` is the process of each task, ``stateful`` ones get ``copies`` standbys each."""
    index = {task.id: position for position, task in enumerate(stateful.values())}
    holders: list[set[int]] = [set() for _ in stateful]
    for number, process in enumerate(named.processes):
        for task in (*process.active, *process.standby):
            if task in index:
                holders[index[task]].add(number)
    kind, misses = count_misses([task.changelogs for task in stateful.values()], named.racks)
    prices = (misses * problem.traffic_cost).tolist()
    return StandbyCase(
        spread=CopySpread(named.processes, problem.rack_aware_tags),
        stateful=[task.id for task in stateful.values()],
        copies=copies,
        active=client[list(stateful)].tolist(),
        holders=[tuple(sorted(each)) for each in holders],
        price=[prices[each] for each in kind.tolist()],
        rack=named.model.rack.tolist(),
        move=problem.non_overlap_cost,
        load=Counter(client.tolist()),
        tasks=len(named.tasks),
        capacity=named.model.capacity.tolist(),
    )


def quality(case: StandbyCase, placed: Standbys) -> tuple[int, int, int]:
    """Sharing, imbalance and cost of a placement, as ``StandbyQuality`` explains them."""
    profile_of = case.spread.profile_of
    load = Counter(case.load)
    shared = cost = 0
    for active, standbys, holders, price in zip(case.active, placed, case.holders, case.price, strict=True):
        load.update(standbys)
        shared += case.spread.shared(tuple(profile_of[each] for each in (active, *standbys)))
        cost += sum(price[case.rack[each]] + case.move * (each not in holders) for each in standbys)
    low, high = case.shares(case.copies)
    imbalance = sum(off_share(load[number], *bounds) for number, bounds in enumerate(zip(low, high, strict=True)))
    return shared, imbalance, cost


def off_share(count: int, low: int, high: int) -> int:
    """How much a number of tasks is off its bounds, as ``StandbyQuality.imbalance`` counts it."""
    over, step, off = count - high, 1, max(0, low - count)
    while over > 0:
        off += step * min(over, 1 << (step - 1))
        over -= 1 << (step - 1)
        step += 1
    return off


def present(named: NamedTasks, case: StandbyCase) -> Standbys | None:
    """The standbys that exist now, when every task has as many as it should have, none with its active."""
    index = {task: position for position, task in enumerate(case.stateful)}
    now: list[list[int]] = [[] for _ in case.stateful]
    for number, process in enumerate(named.processes):
        for task in set(process.standby):
            position = index.get(task, -1)
            if position >= 0 and case.active[position] != number:
                now[position].append(number)
    return [tuple(each) for each in now] if all(len(each) == case.copies for each in now) else None


def cheapest(case: StandbyCase) -> int:
    """The least cost of the standbys when each task chooses alone, without regard to spread and balance."""
    inside = Counter(case.rack)
    least: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {}
    total = 0
    for active, holders, price in zip(case.active, case.holders, case.price, strict=True):
        key = (active, holders, tuple(price))
        if key not in least:
            held = Counter(case.rack[each] for each in {*holders, active})
            prices = [price[case.rack[each]] for each in holders if each != active]
            for rack, size in inside.items():
                prices += [price[rack] + case.move] * min(size - held[rack], case.copies)
            least[key] = sum(sorted(prices)[: case.copies])
        total += least[key]
    return total
