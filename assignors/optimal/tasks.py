"""Find the best assignment of Streams tasks, with proof (KIP-925's costs, solved exactly).

The cost is ``traffic_cost`` per source partition without a replica in the rack of its task's process, plus
``non_overlap_cost`` per task that does not stay on its process (a task that nobody ran counts as moved). Four kinds of
bounds, as ``TaskProblem`` names them:
- fixed, none: every process keeps its number of tasks (Kafka's ``min_traffic``). A move inside a rack never helps, so
  racks are the clients of a tiny network, and tasks fill the places that became free;
- fixed, subtopology: besides at most ``ceil(n * 1.0 / T * T_s)`` tasks of a subtopology on a process with n tasks
  (Kafka's ``balance_subtopology``, in the same order of doubles);
- free, none: floor or ceil of the share by capacity;
- free, subtopology: floor or ceil also per subtopology. Both levels together are always possible: the exact fractional
  shares fulfil them, and flows have whole solutions where they have fractional ones.
Where moves cost nothing, the fewest moves decide between answers of equal cost; and what runs now stays when it is
allowed and nothing is cheaper, so the best assignment, once reached, is not left again.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from assignors.optimal.items import Bounds, GroupBounds, Placement, Price, stable_order
from assignors.optimal.network import Ints
from assignors.optimal.placement import Placed, place
from assignors.optimal.rack_swap import swap_racks
from assignors.optimal.standbys import optimal_standbys
from assignors.optimal.task_model import NamedTasks, TaskModel, dense_tasks
from assignors.problem import BadProblem, TaskId, TaskProblem, TaskResult


def optimal_tasks(problem: TaskProblem) -> TaskResult:
    """Return active tasks of least cost and then standbys; equal input gives an equal answer in any input order.

    Raises ``BadProblem`` for ids that occur twice, a process without capacity, tasks without any process, costs that
    are negative or beyond 32 bit, and for fixed counts when a task has no owner.
    """
    named = dense_tasks(problem)
    if problem.counts == "fixed" and (named.model.owner < 0).any():
        task = named.tasks[int(np.argmax(named.model.owner < 0))].id
        raise BadProblem(f"task {task} runs on no single process, so counts cannot be fixed; use counts free")
    placed = solve_tasks(named.model, problem.counts, problem.balance, problem.traffic_cost, problem.non_overlap_cost)
    model, client = named.model, placed.client
    crossing = int(model.misses[model.kind, model.rack[client]].sum()) if len(client) else 0
    moved = int((client != model.owner).sum())
    cost = problem.traffic_cost * crossing + problem.non_overlap_cost * moved
    standby, quality = optimal_standbys(problem, named, client)
    return TaskResult(
        active=_by_process(named, client),
        standby=standby,
        cost=cost,
        crossing=crossing,
        moved=moved,
        lower_bound=placed.bound,
        optimal=cost == placed.bound,
        standbys=quality,
    )


def solve_tasks(
    model: TaskModel,
    counts: Literal["fixed", "free"],
    balance: Literal["none", "subtopology"],
    traffic_cost: int,
    non_overlap_cost: int,
) -> Placed:
    """Solve from arrays to arrays: the process of every task, and a proven lower bound of the cost.

    With fixed counts every task must have an owner.
    """
    moves = np.full(len(model.misses), non_overlap_cost)
    prices: tuple[Price, ...] = (Price(model.misses * traffic_cost, moves),)
    if not non_overlap_cost:
        prices += (Price(0 * model.misses, np.ones_like(moves)),)
    if counts == "fixed" and balance == "none":
        return swap_racks(model, prices)
    placement = Placement(
        group=np.zeros_like(model.kind) if balance == "none" else model.subtopology,
        owner=model.owner,
        kind=model.kind,
        rack=model.rack,
        prices=prices,
        bounds=_exactly(np.bincount(model.owner, minlength=len(model.rack))) if counts == "fixed" else _fair(model),
        group_bounds=None if balance == "none" else _per_subtopology(model, counts),
    )
    placed = place(placement)
    return _unless_better(model, prices[0], placed) if _allowed_now(placement) else placed


def _exactly(count: Ints) -> Bounds:
    return Bounds(count, np.full(len(count), -1), np.zeros(0, np.int64))


def _fair(model: TaskModel) -> Bounds:
    """Floor or ceil of the share by capacity; how many take the ceil is fixed, who does is not."""
    tasks, capacity = len(model.kind), int(model.capacity.sum())
    low, rest = model.capacity * tasks // max(1, capacity), model.capacity * tasks % max(1, capacity)
    raised = tasks - int(low.sum())
    return Bounds(low, np.where(rest > 0, 0, -1), np.array([raised] if raised else [], np.int64))


def _per_subtopology(model: TaskModel, counts: Literal["fixed", "free"]) -> GroupBounds:
    size = np.bincount(model.subtopology)[:, None]
    if counts == "free":
        capacity = int(model.capacity.sum())
        return GroupBounds(model.capacity * size // capacity, -(-model.capacity * size // capacity))
    mine = np.bincount(model.owner, minlength=len(model.rack))
    # The order of these doubles is Kafka's: n * 1.0 / T * T_s.
    high = np.ceil(mine * 1.0 / max(1, len(model.kind)) * size).astype(np.int64)
    return GroupBounds(np.zeros_like(high), high)


def _unless_better(model: TaskModel, price: Price, placed: Placed) -> Placed:
    """What runs now, unless something cheaper was found."""
    now = int(price.rack[model.kind, model.rack[model.owner]].sum())
    return Placed(model.owner, placed.bound) if now == placed.bound else placed


def _allowed_now(placement: Placement) -> bool:
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
    order = stable_order(client, len(named.processes)).tolist()
    tasks = list(map(named.ids.__getitem__, order))
    ends = np.cumsum(np.bincount(client, minlength=len(named.processes))).tolist()
    return {
        process.id: tuple(tasks[start:end])
        for process, start, end in zip(named.processes, [0, *ends], ends, strict=False)
    }
