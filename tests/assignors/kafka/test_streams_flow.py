"""Kafka's flow step for tasks (KIP-925): the golden graphs, and the fast way against the graph, tie for tie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.cases.registry import AssignorCase
from assignors.kafka.graph import FlowGraph, GraphEdge, max_flow, min_cost_flow
from assignors.kafka.subtopology_flow import first_flow, room_by_subtopology
from assignors.kafka.swap_flow import swap
from assignors.kafka.task_flow import balance_subtopology, min_traffic
from assignors.problem import BadProblem
from tests.assignors.kafka.golden import assert_as_kafka, golden_cases
from tests.assignors.kafka.kafka_graph import graph_balance_subtopology, graph_min_traffic
from tests.assignors.strategies import examples

Costs = list[list[int]]


@pytest.mark.parametrize("case", golden_cases("streams.min_cost_flow"))
def test_the_flow_is_kafkas(case: AssignorCase) -> None:
    assert_as_kafka(case)


@st.composite
def deals(draw: st.DrawFn, clients: int | None = None) -> tuple[Costs, list[int], list[int]]:
    """Costs of tasks on clients, owners and subtopologies; costs of few kinds, so that ties abound."""
    count = clients or draw(st.integers(1, 6))
    tasks = draw(st.integers(1, 14))
    prices = draw(st.sampled_from(((0, 10), (0, 1), (0, 1, 10, 11), tuple(range(30)), (0, 2**31 - 1))))
    row = st.lists(st.sampled_from(prices), min_size=count, max_size=count)
    kinds = draw(st.lists(row, min_size=1, max_size=8))
    cost = [list(draw(st.sampled_from(kinds))) for _ in range(tasks)]
    owner = draw(st.lists(st.integers(0, count - 1), min_size=tasks, max_size=tasks))
    if draw(st.booleans()):
        for task, client in enumerate(owner):
            cost[task] = [price + (other != client) for other, price in enumerate(cost[task])]
    groups = sorted(draw(st.lists(st.integers(0, 3), min_size=tasks, max_size=tasks)))
    return cost, owner, [sorted(set(groups)).index(group) for group in groups]


@examples(200)
@given(deals())
def test_min_traffic_ends_where_the_graph_ends(deal: tuple[Costs, list[int], list[int]]) -> None:
    cost, owner, _ = deal
    assert min_traffic(np.array(cost), np.array(owner)).tolist() == graph_min_traffic(cost, owner)


@examples(200)
@given(deals())
def test_balance_subtopology_ends_where_the_graph_ends(deal: tuple[Costs, list[int], list[int]]) -> None:
    cost, owner, subtopology = deal
    first, last = graph_balance_subtopology(cost, owner, subtopology)
    count = np.bincount(owner, minlength=len(cost[0]))
    room = room_by_subtopology(count, np.bincount(subtopology))
    assert first_flow(np.array(subtopology), count, room).tolist() == first
    assert balance_subtopology(np.array(cost), np.array(owner), np.array(subtopology)).tolist() == last


@examples(200)
@given(deals(clients=2))
def test_two_clients_swap_as_the_graph_does(deal: tuple[Costs, list[int], list[int]]) -> None:
    cost, owner, _ = deal
    assert swap([(one, two) for one, two in cost], owner) == graph_min_traffic(cost, owner)


def test_a_thousand_rounds_are_skipped_and_the_last_ones_are_kafkas() -> None:
    # Sixty tasks make Kafka run 68 rounds for each cycle: many periods of any length.
    rng = np.random.default_rng(5)
    owner = np.arange(60) % 6
    cost = rng.integers(0, 3, (60, 6)) * 10 + (np.arange(6) != owner[:, None])
    subtopology = np.arange(60) // 20
    assert min_traffic(cost, owner).tolist() == graph_min_traffic(cost.tolist(), owner.tolist())
    ends = graph_balance_subtopology(cost.tolist(), owner.tolist(), subtopology.tolist())
    assert balance_subtopology(cost, owner, subtopology).tolist() == ends[1]


EDGE = GraphEdge(0, 1, 2, 1, 1)


@pytest.mark.parametrize(
    ("edges", "complaint"),
    [
        pytest.param((EDGE._replace(flow=3),), "flow 3 at capacity 2", id="more flows than fits"),
        pytest.param((EDGE._replace(end=0),), "is a loop", id="an edge comes back to where it starts"),
        pytest.param((EDGE, EDGE), "joined already", id="two edges join the same nodes"),
        pytest.param((EDGE, GraphEdge(1, 0, 1, 1, 0)), "joined already", id="an edge leads back"),
        pytest.param(
            (EDGE, GraphEdge(1, 9, 2, 0, 2)), "node 1 has -1 more flow in than out", id="flow comes from nowhere"
        ),
        pytest.param((EDGE, GraphEdge(9, 3, 2, 0, 0)), "leaves the sink", id="an edge leaves the sink"),
    ],
)
def test_a_graph_that_contradicts_itself_is_refused(edges: tuple[GraphEdge, ...], complaint: str) -> None:
    with pytest.raises(BadProblem, match=complaint):
        min_cost_flow(FlowGraph(source=0, sink=9, edges=edges))


def test_a_graph_without_its_source_has_no_flow() -> None:
    graph = FlowGraph(source=7, sink=9, edges=(EDGE,))
    assert max_flow(graph) == graph
