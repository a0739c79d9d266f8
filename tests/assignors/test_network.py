"""The flow layer: merged levels, levels one by one and coarse costs must tell the same truth."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest

from assignors.optimal import network as module
from assignors.optimal.network import CostTooLarge, FlowNetwork, NetworkArcs, prices, route, total
from assignors.optimal.tight_flow import InfeasibleFlowError


def random_network(seed: int, scale: int = 1) -> tuple[FlowNetwork, list[tuple[int, int, int, int, int]], list[int]]:
    """Sources, middles and sinks with two levels of cost; the second spans at most 10 per unit."""
    rng = random.Random(seed)
    left, middle, right = rng.randint(1, 5), rng.randint(1, 4), rng.randint(1, 5)
    arcs = []
    for tails, heads in (
        (range(left), range(left, left + middle)),
        (range(left, left + middle), range(left + middle, left + middle + right)),
    ):
        arcs += [
            (tail, head, rng.randint(0, 9), scale * rng.randint(-5, 5), rng.randint(0, 5))
            for tail in tails
            for head in heads
        ]
    units = rng.randint(1, 12)
    supplies = [0] * (left + middle + right)
    for _ in range(units):
        supplies[rng.randrange(left)] += 1
        supplies[left + middle + rng.randrange(right)] -= 1
    network = FlowNetwork([10 * units])
    network.nodes(len(supplies))
    network.arcs(*zip(*arcs, strict=True))
    network.supply(np.arange(len(supplies)), supplies)
    return network, arcs, supplies


def two_level_optimum(arcs: list[tuple[int, int, int, int, int]], supplies: list[int]) -> tuple[int, int] | None:
    graph = nx.MultiDiGraph()
    for node, units in enumerate(supplies):
        graph.add_node(node, demand=-units)
    step = 10**6
    for tail, head, capacity, first, second in arcs:
        graph.add_edge(tail, head, capacity=capacity, weight=step * first + second)
    try:
        cost, _ = nx.network_simplex(graph)
    except nx.NetworkXUnfeasible:
        return None
    second = cost % step
    return (cost - second) // step, second


def both_costs(arcs: list[tuple[int, int, int, int, int]], units: list[int]) -> tuple[int, int]:
    return (
        sum(arc[3] * count for arc, count in zip(arcs, units, strict=True)),
        sum(arc[4] * count for arc, count in zip(arcs, units, strict=True)),
    )


WAYS = {
    "levels merged into one cost": (module._SAFE, module._LARGE),
    "level after level on the optimal face": (0, module._LARGE),
    "levels merged, maximum flows first": (module._SAFE, 0),
    "level after level, maximum flows first": (0, 0),
}


@pytest.mark.parametrize(("safe", "large"), WAYS.values(), ids=WAYS.keys())
def test_two_levels_equal_networkx_on_300_networks(safe: int, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SAFE", safe)
    monkeypatch.setattr(module, "_LARGE", large)
    solved = 0
    for seed in range(300):
        network, arcs, supplies = random_network(seed)
        expected = two_level_optimum(arcs, supplies)
        if expected is None:
            with pytest.raises(InfeasibleFlowError):
                network.solve()
            continue
        solved += 1
        flow = network.solve()
        assert both_costs(arcs, flow.units.tolist()) == expected, seed
        assert (flow.cost, flow.bound, flow.exact) == (expected[0], expected[0], True)
    assert solved > 100


def test_costs_too_large_for_the_solver_leave_a_proven_bound() -> None:
    coarse = 0
    for seed in range(100):
        scale = (1 << 58) + 12345
        network, arcs, supplies = random_network(seed, scale)
        small = two_level_optimum([(*arc[:3], arc[3] // scale, arc[4]) for arc in arcs], supplies)
        if small is None:
            continue
        flow = network.solve()
        assert flow.cost == both_costs(arcs, flow.units.tolist())[0]
        assert flow.bound <= small[0] * scale <= flow.cost
        coarse += not flow.exact
    assert coarse > 10


def test_the_certificate_rejects_a_flow_that_is_not_optimal() -> None:
    tails, heads = np.array([0, 0]), np.array([1, 1])
    arcs = NetworkArcs(tails, heads, np.array([1, 1]), np.array([1, 5]))
    price = prices(arcs, np.array([1, 0]), 2)
    assert (arcs.costs + price[tails] - price[heads]).tolist() == [0, 4]
    with pytest.raises(ArithmeticError, match="cycle of negative cost"):
        prices(arcs, np.array([0, 1]), 2)


def test_supplies_that_do_not_add_up_are_no_flow() -> None:
    with pytest.raises(InfeasibleFlowError):
        route([0], [1], [5], [0], [2, -1])


def test_costs_that_do_not_fit_are_refused_not_wrapped() -> None:
    with pytest.raises(CostTooLarge):
        route([0, 1], [1, 2], [1, 1], [1 << 61, 1 << 61], [1, 0, -1])


def test_the_total_is_exact_beyond_64_bits() -> None:
    assert total(np.array([1 << 60, 3]), np.array([1 << 10, 1])) == (1 << 70) + 3


@pytest.mark.parametrize("spread", [0, 3, 50, 5000], ids=["near", "beside", "far", "very far from the guess"])
def test_even_counts_are_even_wherever_the_guess_was(spread: int) -> None:
    rng = random.Random(spread)
    nodes = 6
    network = FlowNetwork([])
    first, source, sink = network.nodes(nodes), network.nodes(1), network.nodes(1)
    base = np.array([rng.randint(0, 20) for _ in range(nodes)])
    units = 3 * spread + 20
    network.arcs(source, first + np.arange(nodes), units)
    network.supply(source, units)
    network.supply(sink, -units)
    flow = network.solve_even(0, sink, first + np.arange(nodes), base, np.full(nodes, units), base + spread)
    counts = sorted(base + flow.units[:nodes])
    level = sorted(base.tolist())
    for _ in range(units):
        level[0] += 1
        level.sort()
    assert counts == level
