"""The network of a placement problem.

    (group, client) --leave--> pool (group, kind) --rack price--> hub (group, rack) --> (group, client) --> client

Leaving costs minus what staying costs. A pool reaches racks cheaper than its dearest one directly, all others through
one "any rack" hub, which is also the hub of each rack that no pool of the group reaches directly. Bounds per (group,
client) and per client are bounds of arcs. Invariant: flow and placement have equal cost up to a constant (a round trip
of an item costs more than nothing). At most classes + pools * racks + 2 * groups * clients arcs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from assignors.optimal.items import ItemClasses, PlacementProblem
from assignors.optimal.network import FlowNetwork, total
from assignors.optimal.tight_flow import Ints

_MANY = 1 << 40
"""A capacity that never binds: more than there can be items."""


class PoolExit(NamedTuple):
    """Arcs out of pools: to a hub (``target`` below all hubs), to an "any rack" hub, or to a single client."""

    arcs: slice
    pool: Ints
    target: Ints


class HubExit(NamedTuple):
    """Arcs from hubs to clients, ordered by hub; ``low`` units flow beside what the arc carries."""

    arcs: slice
    hub: Ints
    client: Ints
    low: Ints


class NetworkWiring(NamedTuple):
    """The network and where its arcs lie. Targets: hubs, then "any rack" hubs by group, then clients."""

    network: FlowNetwork
    leave: slice
    exits: tuple[PoolExit, ...]
    hub_exit: HubExit
    hubs: int
    constant: int
    """What all owned items cost in the first level if they stayed."""


def wire(problem: PlacementProblem, classes: ItemClasses) -> NetworkWiring:
    """Build the network of a placement."""
    groups, clients, racks = problem.groups, len(problem.rack), problem.racks
    network = FlowNetwork(_spans(problem, int(classes.size.sum()) + len(classes.loose)))
    client_node, pool_node = network.nodes(clients), network.nodes(len(classes.pool_kind))
    any_node = network.nodes(groups)
    start = _start_nodes(problem, classes, network, client_node)

    at = start[classes.group * clients + classes.owner]
    stay = [price.rack[classes.kind, problem.rack[classes.owner]] for price in problem.prices]
    network.supply(at, classes.size)
    leave = network.arcs(at, pool_node + classes.pool, classes.size, *(-price for price in stay))
    network.supply(pool_node + classes.of_item[classes.loose], 1)

    hub_node = np.repeat(any_node + np.arange(groups), racks)
    exits = (
        _to_holders(problem, classes, network, (pool_node, start, len(hub_node) + groups)),
        _to_racks(problem, classes, network, pool_node, hub_node),
        _to_any(problem, classes, network, pool_node, any_node),
    )
    hub_exit = _to_clients(problem, network, start, client_node, hub_node)
    _count(problem, network, client_node)
    return NetworkWiring(network, leave, exits, hub_exit, len(hub_node), total(stay[0], classes.size))


def _spans(problem: PlacementProblem, items: int) -> list[int]:
    spans = [items * int((price.rack.max(axis=1, initial=0) + price.move).max(initial=0)) for price in problem.prices]
    return spans[1:] if problem.bounds is not None else [*spans[1:], items * (items + 1)]


def _start_nodes(problem: PlacementProblem, classes: ItemClasses, network: FlowNetwork, client_node: int) -> Ints:
    """Node where items of (group, client) start or arrive: its own when the pair has bounds and items, else -1.

    Without bounds per group the client itself is the node. A pair with bounds but without items needs no node,
    because its bounds lie on the arc from the hub.
    """
    groups, clients = problem.groups, len(problem.rack)
    if problem.group_bounds is None:
        return np.tile(client_node + np.arange(clients), groups)
    pairs = classes.group * clients + classes.owner
    if problem.holdings is not None:
        held_in = _pool_of_kind(classes, problem.holdings.kind)
        pairs = np.concatenate([pairs, classes.pool_group[held_in] * clients + problem.holdings.client])
    pairs = np.unique(pairs)
    start = np.full(groups * clients, -1, np.int64)
    start[pairs] = network.nodes(len(pairs)) + np.arange(len(pairs))
    low, high = problem.group_bounds.low.ravel()[pairs], problem.group_bounds.high.ravel()[pairs]
    network.arcs(start[pairs], client_node + pairs % clients, high - low)
    network.supply(start[pairs], -low)
    network.supply(client_node + pairs % clients, low)
    return start


def _to_holders(
    problem: PlacementProblem, classes: ItemClasses, network: FlowNetwork, nodes: tuple[int, Ints, int]
) -> PoolExit:
    pool_node, start, first_target = nodes
    nothing = np.zeros(0, np.int64)
    if problem.holdings is None:
        return PoolExit(network.arcs(nothing, nothing, nothing), nothing, nothing)
    kind, client, part = problem.holdings
    pool = _pool_of_kind(classes, kind)
    costs = [price.rack[kind, problem.rack[client]] + price.move[kind] for price in problem.prices]
    costs[-1] = costs[-1] - part
    node = start[classes.pool_group[pool] * len(problem.rack) + client]
    return PoolExit(network.arcs(pool_node + pool, node, _MANY, *costs), pool, first_target + client)


def _to_racks(
    problem: PlacementProblem, classes: ItemClasses, network: FlowNetwork, pool_node: int, hub_node: Ints
) -> PoolExit:
    """Arcs to the hubs of cheaper racks; gives those hubs nodes of their own in ``hub_node``, behind "any rack"."""
    racks = problem.racks
    cheaper = np.zeros((len(problem.prices[0].move), racks), np.bool_)
    for price in problem.prices:
        cheaper |= price.rack[:, :racks] != price.rack[:, :racks].max(axis=1, initial=0, keepdims=True)
    pool, rack = np.nonzero(cheaper[classes.pool_kind])
    kind, hub = classes.pool_kind[pool], classes.pool_group[pool] * racks + rack
    costs = (price.rack[kind, rack] + price.move[kind] for price in problem.prices)
    reached = np.unique(hub)
    any_node = hub_node[reached]
    hub_node[reached] = network.nodes(len(reached)) + np.arange(len(reached))
    network.arcs(any_node, hub_node[reached], _MANY)
    return PoolExit(network.arcs(pool_node + pool, hub_node[hub], _MANY, *costs), pool, hub)


def _to_any(
    problem: PlacementProblem, classes: ItemClasses, network: FlowNetwork, pool_node: int, any_node: int
) -> PoolExit:
    pool = np.arange(len(classes.pool_kind))
    dearest = (price.rack[:, : problem.racks].max(axis=1, initial=0) + price.move for price in problem.prices)
    arcs = network.arcs(
        pool_node + pool, any_node + classes.pool_group, _MANY, *(cost[classes.pool_kind] for cost in dearest)
    )
    return PoolExit(arcs, pool, problem.groups * problem.racks + classes.pool_group)


def _to_clients(
    problem: PlacementProblem, network: FlowNetwork, start: Ints, client_node: int, hub_node: Ints
) -> HubExit:
    clients, racks = len(problem.rack), problem.racks
    pair = np.arange(problem.groups * clients)
    if problem.eligible is not None:
        pair = pair[problem.eligible.ravel()]
    hub = pair // clients * racks + problem.rack[pair % clients]
    by_hub = np.argsort(hub, kind="stable")
    pair, hub = pair[by_hub], hub[by_hub]
    client = pair % clients
    low, room, target = np.zeros(len(pair), np.int64), np.full(len(pair), _MANY), start[pair]
    if problem.group_bounds is not None:
        least, most = problem.group_bounds.low.ravel()[pair], problem.group_bounds.high.ravel()[pair]
        bare = target < 0
        target = np.where(bare, client_node + client, target)
        low = np.where(bare, least, 0)
        room = most - low
        network.supply(hub_node[hub], -low)
        network.supply(target, low)
    return HubExit(network.arcs(hub_node[hub], target, room), hub, client, low)


def _count(problem: PlacementProblem, network: FlowNetwork, client_node: int) -> None:
    """Say how many items each client takes in the end."""
    clients = np.arange(len(problem.rack))
    if problem.bounds is not None:
        low, tier, raised = problem.bounds
        tier_node = network.nodes(len(raised))
        network.supply(client_node + clients, -low)
        network.supply(tier_node + np.arange(len(raised)), -raised)
        flexible = np.flatnonzero(tier >= 0)
        network.arcs(client_node + flexible, tier_node + tier[flexible], 1)
        return
    sink = network.nodes(1)
    network.supply(sink, -len(problem.kind))
    least, most = _totals(problem)
    network.arcs(client_node + clients, sink, least)
    # The k-th item of a client costs k in the last level, which makes totals as even as they can be.
    who = np.repeat(clients, most - least)
    first = np.repeat(np.cumsum(most - least) - (most - least), most - least)
    nth = least[who] + np.arange(len(who)) - first
    network.arcs(client_node + who, sink, 1, *([0] * len(problem.prices)), nth)


def _totals(problem: PlacementProblem) -> tuple[Ints, Ints]:
    if problem.group_bounds is None:
        items = np.full(len(problem.rack), len(problem.kind))
        return np.zeros_like(items), items
    low, high = problem.group_bounds
    if problem.eligible is not None:
        low, high = np.where(problem.eligible, low, 0), np.where(problem.eligible, high, 0)
    return low.sum(axis=0), high.sum(axis=0)


def _pool_of_kind(classes: ItemClasses, kind: Ints) -> Ints:
    """Pool of kinds that occur in one group only."""
    order = np.argsort(classes.pool_kind, kind="stable")
    found: Ints = order[np.searchsorted(classes.pool_kind[order], kind)]
    return found
