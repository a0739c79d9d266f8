"""Optimal assignment of Streams tasks with proof (KIP-925's costs, solved exactly).

Cost: ``traffic_cost`` per source partition without a replica in the rack of its task's process, plus
``non_overlap_cost`` per task that is not on its process (one that none ran counts as moved). Bounds of ``TaskProblem``:
- fixed, none: every process keeps its number of tasks (``min_traffic``), solved between racks (``rack_swap``);
- fixed, subtopology: also at most ``ceil(n * 1.0 / T * T_s)`` tasks of a subtopology on a process with n tasks
  (``balance_subtopology``, in the same order of doubles);
- free, none: floor or ceil of the share by capacity;
- free, subtopology: floor or ceil also per subtopology, which is always feasible.
Where moves cost nothing the fewest moves decide ties; the present assignment stays when nothing is cheaper.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from assignors.optimal.items import ClientBounds, GroupBounds, PlacementProblem, PriceLevel, ranked, stable_order
from assignors.optimal.placement import PlacementResult, place
from assignors.optimal.rack_swap import swap_racks
from assignors.optimal.standbys import optimal_standbys
from assignors.optimal.task_model import NamedTasks, TaskModel, costs_of, dense_tasks
from assignors.optimal.tight_flow import Ints
from assignors.problem import BadProblem, TaskId, TaskProblem, TaskResult


class TaskMapping(NamedTuple):
    """Active tasks by themselves, and what they cost as ``TaskResult`` explains it."""

    process: dict[TaskId, str]
    cost: int
    crossing: int
    moved: int
    lower_bound: int

    @property
    def optimal(self) -> bool:
        """Whether no assignment within the bounds costs less."""
        return self.cost == self.lower_bound


def optimal_tasks(problem: TaskProblem) -> TaskResult:
    """Return active tasks of least cost and then standbys; equal input gives an equal answer in any input order.

    Raises ``BadProblem`` for ids that occur twice, a process without capacity, tasks without any process, costs that
    are negative or beyond 32 bit, and for fixed counts when a task has no owner.
    """
    named = dense_tasks(problem)
    placed = _placed(problem, named)
    crossing, moved = costs_of(named.model, placed.client)
    cost = problem.traffic_cost * crossing + problem.non_overlap_cost * moved
    standby, quality = optimal_standbys(problem, named, placed.client)
    return TaskResult(
        active=_by_process(named, placed.client),
        standby=standby,
        cost=cost,
        crossing=crossing,
        moved=moved,
        lower_bound=placed.bound,
        optimal=cost == placed.bound,
        standbys=quality,
    )


def optimal_mapping(problem: TaskProblem) -> TaskMapping:
    """Return the active tasks of ``optimal_tasks`` as task -> process, in half the time where there are very many."""
    named = dense_tasks(problem)
    placed = _placed(problem, named)
    crossing, moved = costs_of(named.model, placed.client)
    cost = problem.traffic_cost * crossing + problem.non_overlap_cost * moved
    client = np.empty_like(placed.client)
    client[named.places(np.arange(len(client)))] = placed.client
    names = np.array([process.id for process in named.processes], object)
    # In the order in which the tasks lie in memory: that, not the number of steps, decides how long it takes.
    process = dict(zip(named.ids, names[client].tolist(), strict=True))
    return TaskMapping(process, cost, crossing, moved, placed.bound)


def _placed(problem: TaskProblem, named: NamedTasks) -> PlacementResult:
    model = named.model
    if problem.counts == "fixed" and (model.owner < 0).any():
        place = named.places(np.flatnonzero(model.owner < 0)[:1])
        task = named.ids[int(place[0])]
        raise BadProblem(f"task {task} runs on no single process, so counts cannot be fixed; use counts free")
    return solve_tasks(model, problem.counts, problem.balance, problem.traffic_cost, problem.non_overlap_cost)


def solve_tasks(
    model: TaskModel,
    counts: Literal["fixed", "free"],
    balance: Literal["none", "subtopology"],
    traffic_cost: int,
    non_overlap_cost: int,
) -> PlacementResult:
    """Solve from arrays to arrays: the process of every task, and a proven lower bound of the cost.

    With fixed counts every task must have an owner.
    """
    moves = np.full(len(model.misses), non_overlap_cost)
    prices: tuple[PriceLevel, ...] = (PriceLevel(model.misses * traffic_cost, moves),)
    if not non_overlap_cost:
        prices += (PriceLevel(0 * model.misses, np.ones_like(moves)),)
    if counts == "fixed" and balance == "none":
        return swap_racks(model, prices)
    group = np.zeros_like(model.kind)
    if balance == "subtopology":
        _, group = ranked(model.subtopology, int(model.subtopology.max(initial=-1)) + 1)
    placement = PlacementProblem(
        group=group,
        owner=model.owner,
        kind=model.kind,
        rack=model.rack,
        prices=prices,
        bounds=_exactly(np.bincount(model.owner, minlength=len(model.rack))) if counts == "fixed" else _fair(model),
        group_bounds=None if balance == "none" else _per_group(model, group, counts),
    )
    placed = place(placement)
    return _unless_better(model, prices[0], placed) if _allowed_now(placement) else placed


def _exactly(count: Ints) -> ClientBounds:
    return ClientBounds(count, np.full(len(count), -1), np.zeros(0, np.int64))


def _fair(model: TaskModel) -> ClientBounds:
    """Floor or ceil of the share by capacity; the number of processes with the ceil is fixed."""
    tasks, capacity = len(model.kind), int(model.capacity.sum())
    low, rest = model.capacity * tasks // max(1, capacity), model.capacity * tasks % max(1, capacity)
    raised = tasks - int(low.sum())
    return ClientBounds(low, np.where(rest > 0, 0, -1), np.array([raised] if raised else [], np.int64))


def _per_group(model: TaskModel, group: Ints, counts: Literal["fixed", "free"]) -> GroupBounds:
    size = np.bincount(group)[:, None]
    if counts == "free":
        capacity = int(model.capacity.sum())
        return GroupBounds(model.capacity * size // capacity, -(-model.capacity * size // capacity))
    mine = np.bincount(model.owner, minlength=len(model.rack))
    # The order of these doubles is Kafka's: n * 1.0 / T * T_s.
    high = np.ceil(mine * 1.0 / max(1, len(model.kind)) * size).astype(np.int64)
    return GroupBounds(np.zeros_like(high), high)


def _unless_better(model: TaskModel, price: PriceLevel, placed: PlacementResult) -> PlacementResult:
    """What runs now, unless something cheaper was found."""
    now = int(price.rack[model.kind, model.rack[model.owner]].sum())
    return PlacementResult(model.owner, placed.bound) if now == placed.bound else placed


def _allowed_now(placement: PlacementProblem) -> bool:
    """Whether every item has an owner and the owners keep all bounds."""
    if not len(placement.owner) or (placement.owner < 0).any() or placement.bounds is None:
        return False
    clients = len(placement.rack)
    over = np.bincount(placement.owner, minlength=clients) - placement.bounds.low
    if (over < 0).any() or (over > (placement.bounds.tier >= 0)).any():
        return False
    if placement.group_bounds is None:
        return True
    shape = placement.group_bounds.low.shape
    pairs = np.bincount(placement.group * clients + placement.owner, minlength=shape[0] * shape[1]).reshape(shape)
    return bool((pairs >= placement.group_bounds.low).all() and (pairs <= placement.group_bounds.high).all())


def _by_process(named: NamedTasks, client: Ints) -> dict[str, tuple[TaskId, ...]]:
    order = named.places(stable_order(client, len(named.processes)))
    tasks = np.fromiter(named.ids, object, len(named.ids))[order].tolist()
    ends = np.cumsum(np.bincount(client, minlength=len(named.processes))).tolist()
    return {
        process.id: tuple(tasks[start:end])
        for process, start, end in zip(named.processes, [0, *ends], ends, strict=False)
    }
