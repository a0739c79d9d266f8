"""Kafka Streams' ``Graph``: maximum flow and minimum-cost flow, with exactly Kafka's flow (KIP-925).

``max_flow`` takes shortest augmenting paths, ``min_cost_flow`` cancels the negative cycles that Bellman-Ford finds;
both visit nodes and neighbours in ascending order. ``task_flow`` is the fast form for Kafka's graph of tasks and
clients; this module takes any graph and is the reference for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from assignors.problem import BadProblem


class GraphEdge(NamedTuple):
    """A directed edge with what flows over it now."""

    start: int
    end: int
    capacity: int
    cost: int
    flow: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGraph:
    """Edges in any order; nodes are the numbers that occur in them."""

    source: int
    sink: int
    edges: tuple[GraphEdge, ...]

    @property
    def total_cost(self) -> int:
        """Sum of cost times flow."""
        return sum(edge.cost * edge.flow for edge in self.edges)

    @property
    def flow(self) -> int:
        """Units of flow that leave the source."""
        return sum(edge.flow for edge in self.edges if edge.start == self.source)


def max_flow(graph: FlowGraph) -> FlowGraph:
    """Return the graph with as much flow as fits, on top of what flows already. Raises ``BadProblem``."""
    residual = _Residual(graph)
    while path := residual.shortest_path():
        residual.push(path)
    return residual.as_graph()


def min_cost_flow(graph: FlowGraph) -> FlowGraph:
    """Return the graph with as much flow as before at the least cost.

    Raises ``BadProblem`` when the flow is not conserved at some node, or for edges that contradict each other.
    """
    residual = _Residual(graph)
    _check_conserved(graph)
    while cycle := residual.negative_cycle():
        residual.push(cycle)
    return residual.as_graph()


class _Residual:
    """What can still be pushed: arc ``2 * n`` is edge n, arc ``2 * n + 1`` takes its flow back."""

    def __init__(self, graph: FlowGraph) -> None:
        _check_edges(graph.edges)
        self.graph = graph
        names = sorted({edge.start for edge in graph.edges} | {edge.end for edge in graph.edges})
        number = {name: index for index, name in enumerate(names)}
        self.nodes = len(names)
        self.source, self.sink = number.get(graph.source), number.get(graph.sink)
        self.start: list[int] = []
        self.end: list[int] = []
        self.cost: list[int] = []
        self.left: list[int] = []
        for edge in graph.edges:
            ends = number[edge.start], number[edge.end]
            self.start += ends
            self.end += ends[::-1]
            self.cost += (edge.cost, -edge.cost)
            self.left += (edge.capacity - edge.flow, edge.flow)
        self.order = sorted(range(len(self.start)), key=lambda arc: (self.start[arc], self.end[arc]))
        self.leaving: list[list[int]] = [[] for _ in names]
        for arc in self.order:
            self.leaving[self.start[arc]].append(arc)

    def shortest_path(self) -> list[int]:
        """Arcs of the first shortest path with room from source to sink; empty when there is none."""
        if self.source is None or self.sink is None:
            return []
        arrived: dict[int, int] = {}
        queue = deque([self.source])
        while queue:
            for arc in self.leaving[queue.popleft()]:
                node = self.end[arc]
                if node == self.source or node in arrived or self.left[arc] <= 0:
                    continue
                arrived[node] = arc
                if node == self.sink:
                    return self._back(arrived, node, self.source)
                queue.append(node)
        return []

    def negative_cycle(self) -> list[int]:
        """Arcs of the cycle that Kafka would cancel next; empty when no cycle has a negative cost.

        Kafka starts Bellman-Ford from a node of its own that reaches all others for nothing, so all distances start at
        zero, and lets it run for as many rounds as there are nodes. What is relaxed first in the last round leads to
        the cycle. A round without any change proves that there is none.
        """
        distance, parent = [0] * self.nodes, [-1] * self.nodes
        open_arcs = [(self.start[arc], self.end[arc], self.cost[arc], arc) for arc in self.order if self.left[arc] != 0]
        for last in [False] * self.nodes + [True]:
            changed = False
            for start, end, cost, arc in open_arcs:
                if distance[start] + cost < distance[end]:
                    distance[end] = distance[start] + cost
                    parent[end] = arc
                    changed = True
                    if last:
                        return self._cycle(parent, end)
            if not changed:
                return []
        return []

    def _cycle(self, parent: Sequence[int], node: int) -> list[int]:
        seen: set[int] = set()
        while node not in seen:
            seen.add(node)
            node = self.start[parent[node]]
        return self._back({other: arc for other, arc in enumerate(parent) if arc >= 0}, node, node)

    def _back(self, arrived: dict[int, int], node: int, until: int) -> list[int]:
        """Arcs walked backwards from a node, at least one, until the other is reached."""
        arcs = [arrived[node]]
        while self.start[arcs[-1]] != until:
            arcs.append(arrived[self.start[arcs[-1]]])
        return arcs

    def push(self, arcs: Sequence[int]) -> None:
        """Push what fits over all of the arcs."""
        amount = min(self.left[arc] for arc in arcs)
        for arc in arcs:
            self.left[arc] -= amount
            self.left[arc ^ 1] += amount

    def as_graph(self) -> FlowGraph:
        """The graph with the flow that was reached."""
        edges = (edge._replace(flow=self.left[2 * index + 1]) for index, edge in enumerate(self.graph.edges))
        return replace(self.graph, edges=tuple(edges))


def _check_edges(edges: Sequence[GraphEdge]) -> None:
    pairs: set[tuple[int, int]] = set()
    for edge in edges:
        where = f"the edge from {edge.start} to {edge.end}"
        if not 0 <= edge.flow <= edge.capacity:
            raise BadProblem(f"{where} has flow {edge.flow} at capacity {edge.capacity}; a flow is from 0 to capacity")
        if edge.start == edge.end:
            raise BadProblem(f"{where} is a loop; an edge joins two nodes")
        if {(edge.start, edge.end), (edge.end, edge.start)} & pairs:
            raise BadProblem(f"{where} joins nodes that are joined already; two nodes have at most one edge")
        pairs.add((edge.start, edge.end))


def _check_conserved(graph: FlowGraph) -> None:
    surplus: dict[int, int] = {}
    for edge in graph.edges:
        if edge.start == graph.sink or edge.end == graph.source:
            raise BadProblem(f"the edge from {edge.start} to {edge.end} leaves the sink or enters the source; turn it")
        surplus[edge.start] = surplus.get(edge.start, 0) - edge.flow
        surplus[edge.end] = surplus.get(edge.end, 0) + edge.flow
    for node, flow in surplus.items():
        if flow and node not in (graph.source, graph.sink):
            raise BadProblem(f"node {node} has {flow:+d} more flow in than out; what flows in must flow out")
