"""Place the standbys, given the active tasks (KIP-441, KIP-708, KIP-925).

Priorities: as many standbys as asked for, never two copies on one process; copies apart (``spread``); tasks and
standbys together within floor and ceil of each process's share by capacity; least cost (``traffic_cost`` per changelog
partition without a replica in the rack, ``non_overlap_cost`` where the process held no copy before).

What is proven: with one standby, and with more when one tag (or rack) has enough values for all copies, a single flow
decides all of them and every figure is the least possible for the given active tasks. Else the standbys are placed one
after the other; then sharing is still proven as ``spread`` says, the other figures stand beside weaker bounds. What
runs now is kept when it is at least as good as what was found, so that a good state stays.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from assignors.optimal.network import Ints
from assignors.optimal.spread import Spread
from assignors.optimal.standby_flow import Round, Seat, place_round
from assignors.optimal.task_model import NamedTasks, count_misses
from assignors.problem import StandbyQuality, TaskId, TaskProblem

Standbys = list[tuple[int, ...]]


def optimal_standbys(
    problem: TaskProblem, named: NamedTasks, client: Ints
) -> tuple[dict[str, tuple[TaskId, ...]], StandbyQuality | None]:
    """Return standbys by process for active tasks placed as ``client`` says, and how good they are."""
    nobody: dict[str, tuple[TaskId, ...]] = {process.id: () for process in named.processes}
    if not problem.num_standby_replicas:
        return nobody, None
    stateful = [number for number, task in enumerate(named.tasks) if task.stateful]
    missing = max(0, problem.num_standby_replicas - len(named.processes) + 1) * len(stateful)
    copies = min(problem.num_standby_replicas, len(named.processes) - 1)
    if not stateful or copies < 1:
        return nobody, StandbyQuality(missing=missing)
    case = _case(problem, named, client, stateful, copies)
    found, proven = _place(case)
    present = _present(named, case)
    if present is not None and _quality(case, present) <= _quality(case, found):
        found = present
    shared, imbalance, cost = _quality(case, found)
    quality = StandbyQuality(
        missing=missing,
        shared=shared,
        shared_bound=sum(case.spread.least_shared(case.spread.profile_of[active], copies) for active in case.active),
        imbalance=imbalance,
        imbalance_bound=imbalance if proven else 0,
        cost=cost,
        cost_bound=cost if proven else _cheapest(case),
    )
    return _by_process(named, case, found), quality


class _Case(NamedTuple):
    """Stateful tasks in order; processes by number."""

    spread: Spread
    stateful: list[int]
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


def _case(problem: TaskProblem, named: NamedTasks, client: Ints, stateful: list[int], copies: int) -> _Case:
    index = {named.tasks[number].id: position for position, number in enumerate(stateful)}
    holders: list[set[int]] = [set() for _ in stateful]
    for number, process in enumerate(named.processes):
        for task in (*process.active, *process.standby):
            if task in index:
                holders[index[task]].add(number)
    kind, misses = count_misses([named.tasks[number].changelogs for number in stateful], named.racks)
    prices = (misses * problem.traffic_cost).tolist()
    return _Case(
        spread=Spread(named.processes, problem.rack_aware_tags),
        stateful=stateful,
        copies=copies,
        active=client[stateful].tolist(),
        holders=[tuple(sorted(each)) for each in holders],
        price=[prices[each] for each in kind.tolist()],
        rack=named.model.rack.tolist(),
        move=problem.non_overlap_cost,
        load=Counter(client.tolist()),
        tasks=len(named.tasks),
        capacity=named.model.capacity.tolist(),
    )


def _place(case: _Case) -> tuple[Standbys, bool]:
    """Standbys of each task, and whether one flow decided them all."""
    together = case.copies == 1 or case.spread.all_apart(case.copies + 1)
    found: Standbys = [() for _ in case.stateful]
    load = Counter(case.load)
    per_round = case.copies if together else 1
    for done in range(0, case.copies, per_round):
        placed = place_round(_round(case, found, load, done, per_round))
        found = [(*old, *new) for old, new in zip(found, placed, strict=True)]
        load.update(process for new in placed for process in new)
    return [tuple(sorted(each)) for each in found], together


def _round(case: _Case, found: Standbys, load: Counter[int], done: int, per_round: int) -> Round:
    profile_of = case.spread.profile_of
    seats = []
    for active, standbys, holders, price in zip(case.active, found, case.holders, case.price, strict=True):
        used = (active, *standbys)
        profiles = case.spread.next_profiles(tuple(profile_of[each] for each in used), case.copies - done)
        seats.append(
            Seat(
                profiles=profiles,
                barred=tuple(sorted(each for each in used if profile_of[each] in profiles)),
                holders=tuple(each for each in holders if each not in used and profile_of[each] in profiles),
                price=tuple(price),
            )
        )
    total, capacity = case.tasks + len(seats) * (done + per_round), sum(case.capacity)
    return Round(
        seats=seats,
        copies=per_round,
        profile=profile_of,
        rack=case.rack,
        move=case.move,
        low=[mine * total // capacity - load[number] for number, mine in enumerate(case.capacity)],
        high=[-(-mine * total // capacity) - load[number] for number, mine in enumerate(case.capacity)],
    )


def _present(named: NamedTasks, case: _Case) -> Standbys | None:
    """The standbys that exist now, when every task has as many as it should have, none beside its active."""
    index = {named.tasks[number].id: position for position, number in enumerate(case.stateful)}
    now: list[list[int]] = [[] for _ in case.stateful]
    for number, process in enumerate(named.processes):
        for task in set(process.standby):
            position = index.get(task, -1)
            if position >= 0 and case.active[position] != number:
                now[position].append(number)
    return [tuple(each) for each in now] if all(len(each) == case.copies for each in now) else None


def _quality(case: _Case, found: Standbys) -> tuple[int, int, int]:
    profile_of = case.spread.profile_of
    load = Counter(case.load)
    shared = cost = 0
    for active, standbys, holders, price in zip(case.active, found, case.holders, case.price, strict=True):
        load.update(standbys)
        shared += case.spread.shared(tuple(profile_of[each] for each in (active, *standbys)))
        cost += sum(price[case.rack[each]] + case.move * (each not in holders) for each in standbys)
    total, capacity = sum(load.values()), sum(case.capacity)
    imbalance = 0
    for number, mine in enumerate(case.capacity):
        low, high = mine * total // capacity, -(-mine * total // capacity)
        imbalance += max(0, low - load[number], load[number] - high)
    return shared, imbalance, cost


def _cheapest(case: _Case) -> int:
    """What the standbys cost at least when each task chooses alone, whatever becomes of spread and balance."""
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


def _by_process(named: NamedTasks, case: _Case, found: Standbys) -> dict[str, tuple[TaskId, ...]]:
    taken: list[list[TaskId]] = [[] for _ in named.processes]
    for number, standbys in zip(case.stateful, found, strict=True):
        for process in standbys:
            taken[process].append(named.tasks[number].id)
    return {process.id: tuple(tasks) for process, tasks in zip(named.processes, taken, strict=True)}
