"""Minimum-cost flow of few different costs by maximum flows along the cheapest arcs (primal-dual).

Saturate what earns something; while units are where they must not stay, price every node by its distance from them and
carry them along *tight* arcs by a maximum flow. Few small costs need two or three rounds, a tenth of cost scaling's
time; many different costs make it give up early. Invariant: no arc with room has a negative reduced cost, none with
units a positive one, so the prices prove the flow optimal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python.max_flow import SimpleMaxFlow

Ints = NDArray[np.int64]

_MOST_ROUNDS = 16
_TRIAL = 4
"""After this number of rounds most of the units must have arrived."""
_MOST_COSTS = 64
"""More different costs than this would need too many rounds."""
_FAR = 1 << 62
_SAFE = 1 << 56
"""Costs times nodes stay below this: prices are sums of distances."""


class InfeasibleFlowError(Exception):
    """The supplies cannot be carried to the demands within the capacities."""


def tight_flow(tails: Ints, heads: Ints, capacities: Ints, costs: Ints, supplies: Ints) -> Ints | None:
    """Units per arc of a flow of least cost; None when too many rounds, or too large numbers, would be needed.

    Raises ``InfeasibleFlowError`` when nothing fits.
    """
    earning = costs < 0
    if int(np.abs(costs).max(initial=0)) * (len(supplies) + 1) > _SAFE or int(capacities[earning].sum()) > _SAFE:
        return None
    if len(np.unique(costs)) > _MOST_COSTS:
        return None
    if supplies.sum():
        raise InfeasibleFlowError
    units = np.where(earning, capacities, 0)
    excess = supplies.copy()
    _carry(excess, tails[earning], heads[earning], units[earning])
    price = np.zeros_like(supplies)
    reduced = costs
    before = int(excess[excess > 0].sum())
    for done in range(_MOST_ROUNDS):
        waiting = int(excess[excess > 0].sum())
        if not waiting:
            return units
        if done == _TRIAL and 10 * waiting > before:
            return None
        distance = _distances(tails, heads, reduced, units < capacities, units > 0, excess)
        missing = distance[excess < 0]
        if missing.min() == _FAR:
            raise InfeasibleFlowError
        farthest = missing[missing < _FAR].max()
        price += np.minimum(distance, farthest)
        reduced = costs + price[tails] - price[heads]
        near = distance <= farthest
        tight = np.flatnonzero((reduced == 0) & near[tails] & near[heads])
        ahead, back = tight[units[tight] < capacities[tight]], tight[units[tight] > 0]
        start = np.concatenate([tails[ahead], heads[back]])
        end = np.concatenate([heads[ahead], tails[back]])
        carried = _most(start, end, np.concatenate([capacities[ahead] - units[ahead], units[back]]), excess)
        _carry(excess, start, end, carried)
        units[ahead] += carried[: len(ahead)]
        units[back] -= carried[len(ahead) :]
    return None if (excess > 0).any() else units


def _carry(excess: Ints, tails: Ints, heads: Ints, units: Ints) -> None:
    np.subtract.at(excess, tails, units)
    np.add.at(excess, heads, units)


def _distances(  # noqa: PLR0917 (one row of facts per arc)
    tails: Ints, heads: Ints, reduced: Ints, ahead: NDArray[np.bool_], back: NDArray[np.bool_], excess: Ints
) -> Ints:
    """Length of the cheapest way from units that wait to each node; a round looks at arcs out of what came nearer."""
    start = np.concatenate([tails[ahead], heads[back]])
    end = np.concatenate([heads[ahead], tails[back]])
    length = np.concatenate([reduced[ahead], -reduced[back]])
    distance = np.where(excess > 0, 0, _FAR)
    nearer = excess > 0
    while nearer.any():
        arcs = np.flatnonzero(nearer[start])
        reached, way = end[arcs], distance[start[arcs]] + length[arcs]
        better = way < distance[reached]
        reached = reached[better]
        np.minimum.at(distance, reached, way[better])
        nearer = np.zeros_like(nearer)
        nearer[reached] = True
    return distance


def _most(start: Ints, end: Ints, room: Ints, excess: Ints) -> Ints:
    """A maximum flow from where units wait to where they are missing."""
    source, sink = len(excess), len(excess) + 1
    waiting, missing = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
    solver: Any = SimpleMaxFlow()
    solver.add_arcs_with_capacity(
        np.concatenate([start, np.full(len(waiting), source), missing]).astype(np.int32),
        np.concatenate([end, waiting, np.full(len(missing), sink)]).astype(np.int32),
        np.concatenate([room, excess[waiting], -excess[missing]]),
    )
    status = solver.solve(source, sink)
    if status != SimpleMaxFlow.Status.OPTIMAL:
        raise ArithmeticError(f"the maximum flow ended with {status.name} on {len(start)} arcs")
    units: Ints = solver.flows(np.arange(len(start), dtype=np.int32))
    return units
