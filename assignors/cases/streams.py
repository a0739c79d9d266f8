"""Cases of Kafka Streams: high-availability assignor, standby assignors, rack-aware step and flow graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assignors.cases.fields import an_array, one_of, truth, whole
from assignors.cases.streams_input import clients_output, streams_problem, task_id
from assignors.kafka.graph import FlowGraph, GraphEdge, max_flow, min_cost_flow
from assignors.kafka.high_availability import high_availability
from assignors.kafka.rack_aware import RackAwareness, rack_awareness
from assignors.kafka.rack_optimize import active_cost, optimize_active, optimize_standby, standby_cost
from assignors.kafka.standby import standby_assignor
from assignors.kafka.standby_steps import StandbyAssignor
from assignors.kafka.standby_tags import client_tag_aware
from assignors.kafka.streams_problem import ClientState, StreamsProblem, client_states, streams_result
from assignors.problem import BadProblem

MOST_CLIENTS_FOR_MOVEMENTS = 6
"""Up to this number of clients an output lists, for each pair, the standbys that may move."""


def _high_availability(case: Mapping[str, Any], _version: str) -> dict[str, Any]:
    problem = streams_problem(case)
    result = high_availability(problem)
    output = {"followup_rebalance": result.followup_rebalance, "clients": clients_output(result)}
    return output | _enabled(rack_awareness(problem))


def _rack_optimize(case: Mapping[str, Any], _version: str) -> dict[str, Any]:
    problem = streams_problem(case)
    awareness = rack_awareness(problem)
    clients = _ascending(problem)
    output: dict[str, Any] = _enabled(awareness)
    mode = one_of(case.get("mode"), "mode", ("active", "standby"))
    costs = _cost(case, "traffic_cost"), _cost(case, "non_overlap_cost")
    if awareness.enabled and mode == "active":
        tasks = [task_id(task, "optimize_tasks") for task in an_array(case.get("optimize_tasks"), "optimize_tasks")]
        output["cost_before"] = active_cost(problem, awareness, clients, tasks, costs)
        output["returned_cost"] = optimize_active(problem, awareness, clients, tasks, costs).cost
        output["cost_after"] = active_cost(problem, awareness, clients, tasks, costs)
    elif awareness.enabled:
        tags = one_of(case.get("movable"), "movable", ("always", "tags")) == "tags"
        rule = client_tag_aware(problem.configs.rack_aware_assignment_tags, _client_tags) if tags else None
        output["cost_before"] = standby_cost(problem, awareness, clients, costs[0])
        output["returned_cost"] = optimize_standby(problem, awareness, clients, costs, rule).cost
    return output | {"clients": _clients(clients)}


def _standby(case: Mapping[str, Any], _version: str) -> dict[str, Any]:
    problem = streams_problem(case)
    clients = list(client_states(problem).values())
    stateful = sorted(problem.stateful) if problem.iteration == "sorted" else problem.stateful
    awareness = rack_awareness(problem)
    use_racks = truth(case.get("use_client_racks", False), "use_client_racks") and awareness.valid_client_rack
    assignor = standby_assignor(problem, awareness.process_racks if use_racks else None)
    assignor.assign(clients, stateful, problem.configs.num_standby_replicas)
    output = {"followup_rebalance": False, "implementation": assignor.name, "clients": _clients(clients)}
    if len(clients) <= MOST_CLIENTS_FOR_MOVEMENTS:
        output["allowed_movements"] = _movements(clients, assignor)
    return output


def _min_cost_flow(case: Mapping[str, Any], _version: str) -> dict[str, Any]:
    graph = FlowGraph(
        source=whole(case.get("source"), "source"),
        sink=whole(case.get("sink"), "sink"),
        edges=tuple(_edge(edge, f"edges[{place}]") for place, edge in enumerate(an_array(case.get("edges"), "edges"))),
    )
    output: dict[str, Any] = {"cost_before": graph.total_cost}
    for operation in an_array(case.get("operations"), "operations"):
        if one_of(operation, "operations", ("max_flow", "min_cost")) == "max_flow":
            graph = max_flow(graph)
            output["max_flow"] = graph.flow
        else:
            graph = min_cost_flow(graph)
    flows = [edge.flow for edge in graph.edges]
    return output | {"flows": flows, "total_cost": graph.total_cost, "flow": graph.flow}


def _cost(case: Mapping[str, Any], name: str) -> int:
    return whole(case.get(name), name, 0)


def _enabled(awareness: RackAwareness) -> dict[str, bool]:
    return {"valid_client_rack": awareness.valid_client_rack, "can_enable_rack_aware": awareness.enabled}


def _ascending(problem: StreamsProblem) -> list[ClientState]:
    return sorted(client_states(problem).values(), key=lambda client: client.key)


def _clients(clients: Sequence[ClientState]) -> dict[str, dict[str, list[str]]]:
    return clients_output(streams_result({client.id: client for client in clients}))


def _client_tags(client: ClientState) -> Mapping[str, str]:
    return client.client.tags


def _movements(clients: Sequence[ClientState], assignor: StandbyAssignor) -> list[dict[str, Any]]:
    return [
        {
            "source": source.id,
            "destination": destination.id,
            "any_task": assignor.allows is None or assignor.allows(source, destination),
            "tasks_allowed": [
                str(task)
                for task in sorted(source.standby)
                if assignor.allows_task is None
                or assignor.allows_task(source, destination, [client for client in clients if client.has(task)])
            ],
        }
        for source in clients
        for destination in clients
        if source is not destination
    ]


def _edge(edge: Any, field: str) -> GraphEdge:
    numbers = an_array(edge, field)
    if len(numbers) != len(GraphEdge._fields):
        raise BadProblem(f"{field} has {len(numbers)} numbers; it is [from, to, capacity, cost, flow]")
    return GraphEdge(*(whole(number, f"{field}[{place}]") for place, number in enumerate(numbers)))


RUNNERS = {
    "streams.ha": _high_availability,
    "streams.rack_optimize": _rack_optimize,
    "streams.standby": _standby,
    "streams.min_cost_flow": _min_cost_flow,
}
