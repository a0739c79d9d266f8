"""Answers for replicas and standbys found by networkx, on graphs that say literally what is asked: one arc per choice.

Nothing is collapsed, and what is decided is what *stays or comes*, where the optimum's own networks decide what goes.
Costs are tuples, most important first, made one number by factors that no sum of later ones can reach.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

import networkx as nx

from assignors.problem import ReplicaProblem, ReplicaSet, TaskProblem, TaskProcess, TaskResult, TopicPartition
from tests.assignors.oracles import shared_copies, tag_value

Costs = tuple[int, ...]


class Graph:
    """Arcs with a cost per level, solved by networkx; what is not demanded elsewhere ends at "sink"."""

    def __init__(self, levels: int) -> None:
        self.demand: Counter[Any] = Counter()
        self._levels = levels
        self._arcs: list[tuple[Any, Any, int, Costs]] = []

    def arc(self, tail: Any, head: Any, capacity: int, *costs: int) -> None:
        self._arcs.append((tail, head, capacity, (*costs, *[0] * (self._levels - len(costs)))))

    def solve(self) -> tuple[dict[Any, Counter[Any]], Costs] | None:
        """Units from node to node of the cheapest flow and its costs; None when nothing fits."""
        spans = [sum(room * abs(costs[level]) for _, _, room, costs in self._arcs) for level in range(self._levels)]
        factors = [prod(2 * span + 1 for span in spans[level + 1 :]) for level in range(self._levels)]
        graph = nx.MultiDiGraph()
        for node, demand in self.demand.items():
            graph.add_node(node, demand=demand)
        graph.add_node("sink", demand=-self.demand.total())
        for number, (tail, head, capacity, costs) in enumerate(self._arcs):
            weight = sum(cost * factor for cost, factor in zip(costs, factors, strict=True))
            graph.add_edge(tail, head, key=number, capacity=capacity, weight=weight)
        try:
            _, flow = nx.network_simplex(graph)
        except nx.NetworkXUnfeasible:
            return None
        units: dict[Any, Counter[Any]] = {}
        total = [0] * self._levels
        for number, (tail, head, _, costs) in enumerate(self._arcs):
            carried = flow[tail][head][number]
            units.setdefault(tail, Counter())[head] += carried
            total = [sum(pair) for pair in zip(total, (carried * cost for cost in costs), strict=True)]
        return units, tuple(total)


# --- replicas -------------------------------------------------------------------------------------------------


def flow_replicas(problem: ReplicaProblem) -> tuple[tuple[tuple[int, ...], ...], set[TopicPartition]]:
    """The best replicas of each partition, and the partitions for which no placement keeps the rule.

    partition -> (partition, rack) -> brokers that hold a replica or take one -> sink, by the square of their count.
    """
    parts = [_Part(problem, each) for each in problem.partitions]
    hopeless = [part for part in parts if _replica_graph(problem, [part]).solve() is None]
    open_ones = [part for part in parts if part not in hopeless]
    fixed = Counter(broker for part in hopeless for broker in part.partition.replicas)
    solved = _replica_graph(problem, open_ones, fixed).solve()
    assert solved is not None
    units, _ = solved
    lists = []
    for part in parts:
        came = {head for tail, heads in units.items() if part.owns(tail) for head in +heads if isinstance(head, int)}
        lists.append(part.partition.replicas if part in hopeless else tuple(sorted(part.kept | came)))
    return tuple(lists), {part.partition.id for part in hopeless}


class _Part:
    """What a partition may do."""

    def __init__(self, problem: ReplicaProblem, partition: ReplicaSet) -> None:
        rack = {broker.id: broker.rack for broker in problem.brokers}
        shut = {broker.id for broker in problem.brokers if not broker.accepts}
        racks = sorted({name for name in rack.values() if name is not None})
        self.partition = partition
        self.most = -(-len(partition.replicas) // len(racks)) if racks else len(partition.replicas)
        self.unknown = sum(rack[each] is None for each in partition.replicas)
        self.holders = {name: [each for each in partition.replicas if rack[each] == name] for name in racks}
        self.over = {name for name, mine in self.holders.items() if len(mine) > self.most}
        self.only_needed = not problem.balance or self.unknown > 0
        """Racks that are not crowded lose nothing, others no more than they must."""
        self.kept = {
            each
            for each in partition.replicas
            if rack[each] not in self.over and (self.only_needed or rack[each] is None or each in shut)
        }
        if partition.keeps_leader:
            self.kept.add(partition.replicas[0])
        self.led_in = rack[partition.replicas[0]]
        self.takers = {
            name: [b.id for b in problem.brokers if b.rack == name and b.accepts and b.id not in partition.replicas]
            for name in racks
        }

    def owns(self, node: Any) -> bool:
        return isinstance(node, tuple) and node[0] == self.partition.id


def _replica_graph(problem: ReplicaProblem, parts: list[_Part], fixed: Counter[int] | None = None) -> Graph:
    graph = Graph(5 if problem.balance else 6)
    shut = {broker.id for broker in problem.brokers if not broker.accepts}
    count = Counter(fixed or {})
    for part in parts:
        count.update(part.kept)
        name, size = part.partition.id, part.partition.size_bytes
        graph.demand[name, "any rack"] -= len(part.partition.replicas) - len(part.kept)
        for rack, holders in part.holders.items():
            crowded, free = rack in part.over, [each for each in holders if each not in part.kept]
            if crowded and part.only_needed:
                staying = part.most - len(part.kept & {*holders})
                graph.demand[name, rack] -= staying
                graph.demand[name, "any rack"] += staying
            else:
                stay = len(holders) + part.unknown if part.only_needed else len(holders) - len(free)
                for place in range(part.most - stay):
                    near = dict(part.partition.readers).get(rack, 0) if not place and not holders else 0
                    far = _levels(problem, far=(rack != part.led_in) - near)
                    graph.arc((name, "any rack"), (name, rack), 1, *far)
                for broker in part.takers[rack]:
                    graph.arc((name, rack), broker, 1, *_levels(problem, copied=1 if size is None else size, moves=1))
            for broker in free:
                stays = _levels(
                    problem, drained=int(broker in shut), leader_moves=-int(broker == part.partition.replicas[0])
                )
                graph.arc((name, rack), broker, 1, *stays)
    for broker in (each.id for each in problem.brokers):
        for more in range(len(parts)):
            square = 0 if broker in shut else 2 * (count[broker] + more) + 1
            graph.arc(broker, "sink", 1, *_levels(problem, squares=square))
    return graph


def _levels(
    problem: ReplicaProblem,
    *,
    squares: int = 0,
    copied: int = 0,
    moves: int = 0,
    drained: int = 0,
    leader_moves: int = 0,
    far: int = 0,
) -> Costs:
    """In the order of ``replica_score``; a replica that stays is one not drained, a leader that stays not displaced."""
    return (
        (squares, copied, moves, drained, leader_moves)
        if problem.balance
        else (copied, moves, drained, leader_moves, far, squares)
    )


# --- standbys -------------------------------------------------------------------------------------------------


def flow_standbys(problem: TaskProblem, result: TaskResult, copies: int) -> Costs:
    """The least sharing, imbalance and cost of standbys beside the given actives, in that order.

    task -> (task, value of the tag) -> processes -> sink. Exact for one standby, whose sharing depends on the active
    alone. For several it is exact with one tag (or racks) where the active's value is known: then the first copy on a
    new value shares with none and each further one with one more.
    """
    graph = Graph(3)
    tasks = [task for task in problem.tasks if task.stateful]
    process_of = {task: each for each in problem.processes for task in result.active[each.id]}
    for task in tasks:
        active = process_of[task.id]
        graph.demand[task.id] -= copies
        values = {each.id: _value(problem, each, copies) for each in problem.processes if each.id != active.id}
        for value in sorted(set(values.values()), key=repr):
            fresh = copies > 1 and value is not None and value != _value(problem, active, copies)
            if fresh:
                graph.arc(task.id, (task.id, value), 1)
            graph.arc(task.id, (task.id, value), copies, int(copies > 1 and _some_known(problem)))
        for each in problem.processes:
            if each.id in values:
                shared = shared_copies(problem, [active, each]) if copies == 1 else 0
                price = problem.traffic_cost * sum(each.rack not in racks for racks in task.changelogs)
                price += problem.non_overlap_cost * (task.id not in (*each.active, *each.standby))
                graph.arc((task.id, values[each.id]), each.id, 1, shared, 0, price)
    total, capacity = len(problem.tasks) + copies * len(tasks), sum(each.capacity for each in problem.processes)
    missing = 0
    for each in problem.processes:
        low, high = each.capacity * total // capacity, -(-each.capacity * total // capacity)
        have = len(result.active[each.id])
        missing += max(0, low - have) + sum(extra.bit_length() for extra in range(1, have - high + 1))
        for load in range(have, have + len(tasks)):
            graph.arc(each.id, "sink", 1, 0, -1 if load < low else max(0, load + 1 - high).bit_length())
    solved = graph.solve()
    assert solved is not None
    shared, imbalance, cost = solved[1]
    return shared, imbalance + missing, cost


def _value(problem: TaskProblem, process: TaskProcess, copies: int) -> str | None:
    """The value that copies should not share; for a single standby the process itself, because each is looked at."""
    tag = next(iter(problem.rack_aware_tags), "rack")
    return process.id if copies == 1 else tag_value(problem, process, tag)


def _some_known(problem: TaskProblem) -> bool:
    return any(_value(problem, each, 2) is not None for each in problem.processes)
