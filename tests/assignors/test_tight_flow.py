"""Maximum flows along cheapest arcs find what cost scaling finds, or say that they gave up."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import TaskProblem, optimal_tasks, task_defects
from assignors.optimal import network
from assignors.optimal.network import NetworkArcs, prices
from assignors.optimal.tight_flow import InfeasibleFlowError, tight_flow
from tests.assignors.strategies import examples, task_problems

Arc = tuple[int, int, int, int]
NODES = 6


@examples(300)
@given(
    arcs=st.lists(
        st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.integers(0, 4), st.integers(-3, 11)),
        min_size=1, max_size=18,
    ),
    moved=st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=5),
)  # fmt: skip
def test_any_network_costs_what_networkx_says(arcs: list[Arc], moved: list[tuple[int, int]]) -> None:
    """Cycles of negative cost, loops, parallel arcs and amounts that do not fit among them."""
    supplies = np.zeros(NODES, np.int64)
    for start, end in moved:
        supplies[start] += 1
        supplies[end] -= 1
    columns = NetworkArcs(*(np.array(column, np.int64) for column in zip(*arcs, strict=True)))
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    graph.add_nodes_from((node, {"demand": -units}) for node, units in enumerate(supplies.tolist()))
    for tail, head, capacity, cost in arcs:
        graph.add_edge(tail, head, capacity=capacity, weight=cost)
    try:
        expected = nx.network_simplex(graph)[0]
    except nx.NetworkXUnfeasible:
        with pytest.raises(InfeasibleFlowError):
            tight_flow(*columns, supplies)
        return
    units = tight_flow(*columns, supplies)
    assert units is not None
    assert ((units >= 0) & (units <= columns.capacities)).all()
    assert int(units @ columns.costs) == expected
    price = prices(columns, units, NODES)
    reduced = columns.costs + price[columns.tails] - price[columns.heads]
    assert (reduced[units < columns.capacities] >= 0).all()


@examples(200)
@given(problem=task_problems())
def test_tasks_cost_the_same_by_either_way(problem: TaskProblem) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "_LARGE", 0)
        quick = optimal_tasks(problem)
    assert task_defects(problem, quick) == ()
    assert quick.optimal
    assert (quick.cost, quick.lower_bound) == (optimal_tasks(problem).cost, optimal_tasks(problem).lower_bound)


def test_a_network_of_many_different_costs_is_left_to_cost_scaling() -> None:
    count = 200
    node = np.arange(count)
    # Every unit has a price of its own, and each round would carry one.
    tails, heads = np.append(node, count), np.append(np.full(count, count), count + 1)
    supplies = np.concatenate([np.ones(count, np.int64), [0, -count]])
    costs = np.append(7 * node * node, 0)
    assert tight_flow(tails, heads, np.full(count + 1, count), costs, supplies) is None


def test_costs_that_would_not_fit_are_left_to_cost_scaling() -> None:
    one = np.ones(1, np.int64)
    assert tight_flow(0 * one, one, one, one << 60, np.array([1, -1])) is None
