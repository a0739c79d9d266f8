"""Items to clients at the least cost: the optimum under consumer groups and Streams tasks.

The network decides how many items of each class leave and arrive. Ties follow the position of items: the first of a
class stay, the last leave, arrivals are dealt in ascending order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from assignors.optimal.items import ItemClasses, PlacementProblem, classify, stable_order
from assignors.optimal.tight_flow import Ints
from assignors.optimal.wiring import NetworkWiring, wire


class PlacementResult(NamedTuple):
    """The client of every item, and a proven lower bound of the cost in the first level.

    In the bound an item without owner pays the price of a move, wherever it goes.
    """

    client: Ints
    bound: int


def place(problem: PlacementProblem) -> PlacementResult:
    """Give every item to a client at the least cost, level by level.

    Raises ``InfeasibleFlowError`` when the bounds contradict each other.
    """
    if not len(problem.kind):
        return PlacementResult(np.zeros(0, np.int64), 0)
    classes = classify(problem)
    wiring = wire(problem, classes)
    flow = wiring.network.solve()
    return PlacementResult(expand(problem, classes, wiring, flow.units), flow.bound + wiring.constant)


def expand(problem: PlacementProblem, classes: ItemClasses, wiring: NetworkWiring, units: Ints) -> Ints:
    """The client of every item, given the units on the arcs; only classes that some leave need their items."""
    client = problem.owner.copy()
    movers = np.sort(np.concatenate([_leavers(classes, units[wiring.leave]), classes.loose]))
    movers = movers[stable_order(classes.of_item[movers], len(classes.pool_kind))]
    pool = np.concatenate([leg.pool for leg in wiring.exits])
    target = np.concatenate([leg.target for leg in wiring.exits])
    count = np.concatenate([units[leg.arcs] for leg in wiring.exits])
    by_pool = np.argsort(pool, kind="stable")
    goal = np.repeat(target[by_pool], count[by_pool])

    any_hubs = wiring.hubs + problem.groups
    direct = goal >= any_hubs
    client[movers[direct]] = goal[direct] - any_hubs
    out = wiring.hub_exit
    arrivals = units[out.arcs] + out.low
    anywhere = np.flatnonzero((goal >= wiring.hubs) & ~direct)
    anywhere = anywhere[np.argsort(goal[anywhere] * len(client) + movers[anywhere])]
    by_hub = np.bincount(out.hub, arrivals, minlength=wiring.hubs).astype(np.int64)
    by_hub -= np.bincount(goal[goal < wiring.hubs], minlength=wiring.hubs)
    goal[anywhere] = np.repeat(np.arange(wiring.hubs), by_hub)

    arriving, hub = movers[~direct], goal[~direct]
    # By hub, then by position: as one number, because sorting plain numbers is several times faster than by two keys.
    arriving = np.sort(hub * len(client) + arriving) % max(1, len(client))
    client[arriving] = np.repeat(out.client, arrivals)
    return client


def _leavers(classes: ItemClasses, leaving: Ints) -> Ints:
    """Positions of the items that leave: of each class the last ones."""
    moving = np.flatnonzero(leaving[classes.of_owned] > 0)
    moving = moving[stable_order(classes.of_owned[moving], len(classes.size))]
    which = classes.of_owned[moving]
    touched = np.flatnonzero(leaving)
    left_over = np.repeat(np.cumsum(classes.size[touched]), classes.size[touched]) - np.arange(len(which))
    positions: Ints = classes.owned[moving[left_over <= leaving[which]]]
    return positions
