"""Optimal standbys for given active tasks (KIP-441, KIP-708, KIP-925).

Priorities: number of standbys, never two copies on one process; copies apart (``spread``); tasks and standbys together
within floor and ceil of the share by capacity; least cost (``traffic_cost`` per changelog partition without a replica
in the rack, ``non_overlap_cost`` for a process that held no copy).

One standby, or several when one tag (or rack) has values for all copies, are one flow, proven optimal. Else standbys
are placed one by one and polished; sharing is proven as in ``spread``, the other bounds are weaker (imbalance: what one
tag alone forces). The present standbys stay when they are at least as good.
"""

from __future__ import annotations

from collections import Counter

from assignors.optimal.spread import CopySpread
from assignors.optimal.standby_case import StandbyCase, Standbys, cheapest, present, quality, read_case
from assignors.optimal.standby_flow import StandbyDemand, StandbyRound, place_round
from assignors.optimal.standby_polish import polish
from assignors.optimal.task_model import NamedTasks
from assignors.optimal.tight_flow import Ints
from assignors.problem import StandbyQuality, TaskId, TaskProblem


def optimal_standbys(
    problem: TaskProblem, named: NamedTasks, client: Ints
) -> tuple[dict[str, tuple[TaskId, ...]], StandbyQuality | None]:
    """Return standbys by process for active tasks placed by ``client``, and their quality."""
    none: dict[str, tuple[TaskId, ...]] = {process.id: () for process in named.processes}
    if not problem.num_standby_replicas:
        return none, None
    stateful = {number: task for number, task in enumerate(named.sorted_tasks()) if task.stateful}
    missing = max(0, problem.num_standby_replicas - len(named.processes) + 1) * len(stateful)
    copies = min(problem.num_standby_replicas, len(named.processes) - 1)
    if not stateful or copies < 1:
        return none, StandbyQuality(missing=missing)
    case = read_case(problem, named, client, stateful, copies)
    least_imbalance = _least_imbalance(problem, named, case) if copies > 1 else 0
    placed, proven = _place(case, least_imbalance)
    now = present(named, case)
    if now is not None and quality(case, now) <= quality(case, placed):
        placed = now
    shared, imbalance, cost = quality(case, placed)
    judged = StandbyQuality(
        missing=missing,
        shared=shared,
        shared_bound=sum(case.spread.least_shared(case.spread.profile_of[active], copies) for active in case.active),
        imbalance=imbalance,
        imbalance_bound=imbalance if proven else least_imbalance,
        cost=cost,
        cost_bound=cost if proven else cheapest(case),
    )
    return _by_process(named, case, placed), judged


def _least_imbalance(problem: TaskProblem, named: NamedTasks, case: StandbyCase) -> int:
    """A bound for several tags: with one tag alone a flow decides, and the other tags only forbid more.

    Holds where the least sharing is the sum of what each tag allows, so that every tag is as far apart as it can be.
    """
    alone = [CopySpread(named.processes, (tag,)) for tag in problem.rack_aware_tags]
    for active in set(case.active):
        each = sum(one.least_shared(one.profile_of[active], case.copies) for one in alone)
        if case.spread.least_shared(case.spread.profile_of[active], case.copies) != each:
            return 0
    singles = (case._replace(spread=one) for one in alone if one.all_apart(case.copies + 1))
    return max((quality(single, _place(single, 0)[0])[1] for single in singles), default=0)


def _place(case: StandbyCase, least_imbalance: int) -> tuple[Standbys, bool]:
    """Standbys of each task, and whether one flow decided them all."""
    together = case.copies == 1 or case.spread.all_apart(case.copies + 1)
    found: Standbys = [() for _ in case.stateful]
    load = Counter(case.load)
    per_round = case.copies if together else 1
    for done in range(0, case.copies, per_round):
        placed = place_round(_round(case, found, load, done, per_round))
        found = [(*old, *new) for old, new in zip(found, placed, strict=True)]
        load.update(process for new in placed for process in new)
    found = [tuple(sorted(each)) for each in found]
    return found if together else polish(case, found, least_imbalance), together


def _round(case: StandbyCase, placed: Standbys, load: Counter[int], done: int, per_round: int) -> StandbyRound:
    profile_of = case.spread.profile_of
    seats = []
    for active, standbys, holders, price in zip(case.active, placed, case.holders, case.price, strict=True):
        used = (active, *standbys)
        profiles = case.spread.next_profiles(tuple(profile_of[each] for each in used), case.copies - done)
        seats.append(
            StandbyDemand(
                profiles=profiles,
                barred=tuple(sorted(each for each in used if profile_of[each] in profiles)),
                holders=tuple(each for each in holders if each not in used and profile_of[each] in profiles),
                price=tuple(price),
            )
        )
    low, high = case.shares(done + per_round)
    return StandbyRound(
        seats=seats,
        copies=per_round,
        profile=profile_of,
        rack=case.rack,
        move=case.move,
        low=[share - load[number] for number, share in enumerate(low)],
        high=[share - load[number] for number, share in enumerate(high)],
    )


def _by_process(named: NamedTasks, case: StandbyCase, placed: Standbys) -> dict[str, tuple[TaskId, ...]]:
    taken: list[list[TaskId]] = [[] for _ in named.processes]
    for task, standbys in zip(case.stateful, placed, strict=True):
        for process in standbys:
            taken[process].append(task)
    return {process.id: tuple(tasks) for process, tasks in zip(named.processes, taken, strict=True)}
