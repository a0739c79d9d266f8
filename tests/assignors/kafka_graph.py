"""Kafka's own graph of tasks and clients (KIP-925), and that of consumers, literally on networkx.

One arc from every task (or partition) to every process (or member), nothing collapsed: the independent judge of
``assignors.optimal``. Quadratic in its input. Bounds, prices and order of priorities are those of
``assignors.optimal``, but no code is shared with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import networkx as nx

from assignors.problem import ConsumerProblem, StreamsTask, TaskId, TaskProblem, TaskProcess, TopicPartition

_SINK = "sink"


def least_cost(graph: nx.MultiDiGraph[Any]) -> int:
    """Least total of weight times flow; raises ``networkx.NetworkXUnfeasible`` when the demands cannot be met."""
    cost, _ = nx.network_simplex(graph)
    return int(cost)


# --- tasks --------------------------------------------------------------------------------------------------


def task_graph(problem: TaskProblem) -> nx.MultiDiGraph[Any]:
    """Tasks -> (subtopology, process) -> process -> sink, each task supplying one unit.

    Nodes are ``("task", id)``, ``("share", subtopology, process id)``, ``("process", id)`` and ``"sink"``. Where
    a number has a lower bound, it is taken off the capacity and put into the nodes' demands.
    """
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    graph.add_node(_SINK, demand=len(problem.tasks))
    owner = _owners(problem.processes)
    per_subtopology = Counter(task.id.subtopology for task in problem.tasks)
    capacity = sum(process.capacity for process in problem.processes)
    for process in problem.processes:
        node = ("process", process.id)
        low, high = _count_bounds(problem, process, len(problem.tasks), capacity)
        _bounded(graph, node, _SINK, low, high)
        for subtopology, tasks in per_subtopology.items():
            low, high = _share_bounds(problem, process, tasks, capacity)
            _bounded(graph, ("share", subtopology, process.id), node, low, high)
    for task in problem.tasks:
        _demand(graph, ("task", task.id), -1)
        for process in problem.processes:
            cost = task_price(problem, task, process, owner.get(task.id))
            graph.add_edge(("task", task.id), ("share", task.id.subtopology, process.id), capacity=1, weight=cost)
    return graph


def task_price(problem: TaskProblem, task: StreamsTask, process: TaskProcess, owner: str | None) -> int:
    """KIP-925's price of an active task: crossing source partitions and the move away from its owner."""
    weights = task.weights or (1,) * len(task.sources)
    away = (process.rack is None or process.rack not in racks for racks in task.sources)
    crossing = sum(weight for weight, crosses in zip(weights, away, strict=True) if crosses)
    return problem.traffic_cost * crossing + problem.non_overlap_cost * (owner != process.id)


def _owners(processes: Sequence[TaskProcess]) -> dict[TaskId, str]:
    claims = Counter(task for process in processes for task in process.active)
    return {task: process.id for process in processes for task in process.active if claims[task] == 1}


def _count_bounds(problem: TaskProblem, process: TaskProcess, tasks: int, capacity: int) -> tuple[int, int]:
    if problem.counts == "fixed":
        return _before(problem, process), _before(problem, process)
    return process.capacity * tasks // capacity, -(-process.capacity * tasks // capacity)


def _share_bounds(problem: TaskProblem, process: TaskProcess, tasks: int, capacity: int) -> tuple[int, int]:
    if problem.balance == "none":
        return 0, tasks
    if problem.counts == "free":
        return process.capacity * tasks // capacity, -(-process.capacity * tasks // capacity)
    # Kafka computes the cap in doubles, in this order of operations.
    share = _before(problem, process) * 1.0 / len(problem.tasks) * tasks
    return 0, int(share) + (share > int(share))


def _before(problem: TaskProblem, process: TaskProcess) -> int:
    """Tasks of the problem that the process runs now."""
    return len({task.id for task in problem.tasks} & set(process.active))


# --- consumer partitions ------------------------------------------------------------------------------------


def consumer_graph(problem: ConsumerProblem) -> nx.MultiDiGraph[Any]:
    """Partitions -> members -> sink, one arc each; every k-th partition of a member costs more than the last.

    The total weight is balance first, then crossing weight, then moves: each step outweighs all that follows. Only for
    problems that are not co-partitioned.
    """
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    claims = Counter(partition for member in problem.members for partition in set(member.owned))
    owner = {partition: m.id for m in problem.members for partition in m.owned if claims[partition] == 1}
    topics = {topic for member in problem.members for topic in member.topics if topic in problem.racks}
    partitions = [TopicPartition(topic, p) for topic in sorted(topics) for p in range(len(problem.racks[topic]))]
    crossing_step = len(partitions) + 1
    balance_step = crossing_step * (_dearest_total(problem, partitions) + 1)
    graph.add_node(_SINK, demand=len(partitions))
    for member in problem.members:
        for nth in range(len(partitions)):
            graph.add_edge(("member", member.id), _SINK, capacity=1, weight=balance_step * (2 * nth + 1))
    for each in partitions:
        _demand(graph, ("partition", each), -1)
        for member in problem.members:
            if each.topic in member.topics:
                moved = owner.get(each, member.id) != member.id
                weight = crossing_step * _weight(problem, each) * _price(problem, each, member.rack) + moved
                graph.add_edge(("partition", each), ("member", member.id), capacity=1, weight=weight)
    return graph


def consumer_cost(problem: ConsumerProblem, loads: Iterable[int], crossing: int, moved: int) -> int:
    """Price an assignment as ``consumer_graph`` does, from its loads, its crossing weight and its moves."""
    topics = {topic for member in problem.members for topic in member.topics if topic in problem.racks}
    partitions = [TopicPartition(topic, p) for topic in topics for p in range(len(problem.racks[topic]))]
    step = len(partitions) + 1
    dearest = _dearest_total(problem, partitions)
    return step * (dearest + 1) * sum(load * load for load in loads) + step * crossing + moved


def _dearest_total(problem: ConsumerProblem, partitions: Iterable[TopicPartition]) -> int:
    return max([1, *(problem.prices or {}).values()]) * sum(_weight(problem, each) for each in partitions)


def _weight(problem: ConsumerProblem, partition: TopicPartition) -> int:
    return 1 if problem.weights is None else problem.weights.get(partition, 1)


def _price(problem: ConsumerProblem, partition: TopicPartition, reader: str | None) -> int:
    """What the cheapest way from a replica to the reader costs; the dearest of all where an end is not known."""
    ways = [(rack, reader) for rack in problem.racks[partition.topic][partition.partition] if reader is not None]
    prices = problem.prices or {}
    if not ways:
        return max([1, *prices.values()])
    return min(0 if rack == reader else prices.get((rack, there), 1) for rack, there in ways)


def _bounded(graph: nx.MultiDiGraph[Any], start: Hashable, end: Hashable, low: int, high: int) -> None:
    _demand(graph, start, low)
    _demand(graph, end, -low)
    graph.add_edge(start, end, capacity=high - low, weight=0)


def _demand(graph: nx.MultiDiGraph[Any], node: Hashable, more: int) -> None:
    if node not in graph:
        graph.add_node(node, demand=0)
    graph.nodes[node]["demand"] = graph.nodes[node].get("demand", 0) + more
