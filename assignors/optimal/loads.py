"""Fairest number of partitions per member when members subscribe to different topics.

Fairest: loads, sorted descending, are lexicographically smallest. By decomposition (Fujishige): where a maximum flow
cannot give every member the average, the minimum cut separates the members into two smaller problems. Every fairest
assignment rounds these *fractional* loads up or down (Frank and Murota, decreasing minimisation): members with the same
rounded-up load form a tier, of which a fixed number of any members gets one more.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from assignors.optimal.items import ClientBounds
from assignors.optimal.network import FlowNetwork
from assignors.optimal.tight_flow import Ints


def fair_bounds(items: Ints, eligible: NDArray[np.bool_], clients: Ints, of_client: Ints) -> ClientBounds:
    """Bounds that all fairest assignments keep, and only those.

    ``items[g]``: items of group g; ``eligible[g, k]``: may clients of class k take them; ``clients[k]``: how many there
    are; ``of_client[c]``: class of client c.
    """
    loads = _fractional(items, eligible, clients)
    low = np.array([load.numerator // load.denominator for load in loads], np.int64)
    tops = sorted({int(low[k]) for k, load in enumerate(loads) if load.denominator > 1})
    raised = np.zeros(len(tops), np.int64)
    tier = np.full(len(loads), -1, np.int64)
    for number, top in enumerate(tops):
        inside = [k for k, load in enumerate(loads) if load.denominator > 1 and low[k] == top]
        tier[inside] = number
        raised[number] = sum((loads[k] - top) * int(clients[k]) for k in inside)
    return ClientBounds(low[of_client], tier[of_client], raised)


def even_bounds(items: int, clients: int) -> ClientBounds:
    """The same when every member may take everything: floor or ceil of the average."""
    low, raised = divmod(items, clients) if clients else (0, 0)
    tier = 0 if raised else -1
    return ClientBounds(np.full(clients, low), np.full(clients, tier), np.array([raised] if raised else [], np.int64))


def _fractional(items: Ints, eligible: NDArray[np.bool_], clients: Ints) -> list[Fraction]:
    loads = [Fraction(0)] * len(clients)
    parts = [(np.flatnonzero((items > 0) & eligible.any(axis=1)), np.arange(len(clients)))]
    while parts:
        groups, classes = parts.pop()
        amount, size = int(items[groups].sum()), int(clients[classes].sum())
        if amount == 0 or size == 0:
            continue
        heavy_groups, heavy_classes = _overloaded(
            items[groups] * size, eligible[np.ix_(groups, classes)], clients[classes] * amount
        )
        if not len(heavy_classes):
            for k in classes:
                loads[k] = Fraction(amount, size)
            continue
        parts.append((groups[heavy_groups], classes[heavy_classes]))
        parts.append((np.delete(groups, heavy_groups), np.delete(classes, heavy_classes)))
    return loads


def _overloaded(supply: Ints, eligible: NDArray[np.bool_], room: Ints) -> tuple[Ints, Ints]:
    """The source side of a minimum cut: groups that do not fit and classes that are full because of them."""
    network = FlowNetwork()
    group_node, class_node = network.nodes(len(supply)), network.nodes(len(room))
    sink, aside = network.nodes(1), network.nodes(1)
    g, k = np.nonzero(eligible)
    network.supply(group_node + np.arange(len(supply)), supply)
    network.supply(sink, -int(supply.sum()))
    across = network.arcs(group_node + g, class_node + k, int(supply.sum()))
    network.arcs(class_node + np.arange(len(room)), sink, room)
    # What does not fit goes aside at a price, so that the flow is a maximum flow and always exists.
    spill = network.arcs(group_node + np.arange(len(supply)), aside, supply, 1)
    network.arcs(aside, sink, int(supply.sum()))
    units = network.solve().units
    carried = np.zeros(eligible.shape, np.bool_)
    carried[g, k] = units[across] > 0
    groups = units[spill] > 0
    while True:
        classes = eligible[groups].any(axis=0)
        wider = groups | carried[:, classes].any(axis=1)
        if np.array_equal(wider, groups):
            return np.flatnonzero(groups), np.flatnonzero(classes)
        groups = wider
