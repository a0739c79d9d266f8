"""Kafka's graph of tasks and clients, built edge by edge: the measure for the flow step that does without it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from assignors.kafka.graph import FlowGraph, GraphEdge, max_flow, min_cost_flow

SOURCE = -1


def graph_min_traffic(cost: Sequence[Sequence[int]], owner: Sequence[int]) -> list[int]:
    """The client of every task."""
    tasks, clients = len(cost), len(cost[0])
    edges = [
        GraphEdge(task, tasks + client, 1, price, int(owner[task] == client))
        for task, row in enumerate(cost)
        for client, price in enumerate(row)
    ]
    edges += [GraphEdge(SOURCE, task, 1, 0, 1) for task in range(tasks)]
    count = Counter(owner)
    edges += [GraphEdge(tasks + client, tasks + clients, count[client], 0, count[client]) for client in range(clients)]
    solved = min_cost_flow(FlowGraph(source=SOURCE, sink=tasks + clients, edges=tuple(edges)))
    return _clients(solved, tasks, clients)


def graph_balance_subtopology(
    cost: Sequence[Sequence[int]], owner: Sequence[int], subtopology: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The client of every task, after the maximum flow and at the end. Subtopologies are numbered from 0."""
    tasks, clients, groups = len(cost), len(cost[0]), max(subtopology) + 1
    second, sink = tasks + clients * groups, tasks + clients * groups + clients
    edges = [GraphEdge(SOURCE, task, 1, 0, 0) for task in range(tasks)]
    edges += [
        GraphEdge(task, tasks + clients * subtopology[task] + client, 1, price, 0)
        for task, row in enumerate(cost)
        for client, price in enumerate(row)
    ]
    count, size = Counter(owner), Counter(subtopology)
    for client in range(clients):
        for group in range(groups):
            room = math.ceil(count[client] * 1.0 / tasks * size[group])
            edges.append(GraphEdge(tasks + clients * group + client, second + client, room, 0, 0))
        edges.append(GraphEdge(second + client, sink, count[client], 0, 0))
    first = max_flow(FlowGraph(source=SOURCE, sink=sink, edges=tuple(edges)))
    return _clients(first, tasks, clients), _clients(min_cost_flow(first), tasks, clients)


def _clients(graph: FlowGraph, tasks: int, clients: int) -> list[int]:
    placed = {edge.start: (edge.end - tasks) % clients for edge in graph.edges if edge.flow and 0 <= edge.start < tasks}
    return [placed[task] for task in range(tasks)]
