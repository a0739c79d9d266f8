"""Kafka's ``HighAvailabilityTaskAssignor``, the default of Streams (KIP-441).

Priorities: every task runs; active tasks on caught-up processes; the number of standbys; load per thread; traffic
between racks. The target is dealt afresh in the order of ids; where its processes must catch up first, tasks run
elsewhere, warm-ups are placed and a probing rebalance is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from assignors.kafka.load_queue import LoadQueue
from assignors.kafka.rack_aware import (
    STATELESS_NON_OVERLAP_COST,
    STATELESS_TRAFFIC_COST,
    RackAwareness,
    both_tags_and_racks,
    rack_awareness,
)
from assignors.kafka.rack_optimize import optimize_active, optimize_standby
from assignors.kafka.standby import standby_assignor
from assignors.kafka.streams_problem import (
    ClientState,
    FlowAnswer,
    StreamsProblem,
    StreamsResult,
    client_states,
    streams_result,
)
from assignors.kafka.task_movement import TaskReadiness, WarmupReplicas, move_active, move_standbys
from assignors.problem import BadProblem, TaskId

TRAFFIC_COST = 10
NON_OVERLAP_COST = 1
"""Where the application configures none."""


def high_availability(problem: StreamsProblem) -> StreamsResult:
    """Return what Kafka's ``HighAvailabilityTaskAssignor`` gives.

    Raises ``BadProblem`` for a problem that contradicts itself, tasks without any client, and a client without a lag
    for some stateful task.
    """
    states = client_states(problem)
    _check(problem)
    clients = sorted(states.values(), key=lambda client: client.key)
    stateful = sorted(problem.stateful)
    awareness = rack_awareness(problem)
    costs = _costs(problem)
    warnings = [f"tasks are assigned without racks: {awareness.reason}"] if awareness.unexpected else []

    flows: list[FlowAnswer] = [_place_stateful(problem, awareness, clients, stateful, costs)]
    if problem.configs.num_standby_replicas > 0:
        warnings += both_tags_and_racks(problem, awareness)
        warnings += _place_standbys(problem, awareness, clients, stateful, costs)
    warmups = WarmupReplicas(left=problem.configs.max_warmup_replicas)
    readiness = TaskReadiness(clients, stateful, problem.configs.acceptable_recovery_lag)
    movements = move_active(clients, readiness, warmups) + move_standbys(clients, readiness, warmups)
    stateless = sorted(set(problem.tasks) - set(stateful))
    flows.append(_place_stateless(problem, awareness, clients, stateless))
    return streams_result(
        states,
        warmup=warmups.placed,
        followup_rebalance=movements > 0,
        flow=next((flow for flow in ("cost-equal optimum", "as Kafka") if flow in flows), "not run"),
        warnings=warnings,
    )


def _check(problem: StreamsProblem) -> None:
    if problem.tasks and not problem.clients:
        raise BadProblem("there are tasks but no process to run them; give at least one")
    for client in problem.clients:
        if client.assigned_active or client.assigned_standby:
            raise BadProblem(f"client {client.id} has tasks assigned already; this assignor starts without assignments")


def _costs(problem: StreamsProblem) -> tuple[int, int]:
    traffic = problem.configs.rack_aware_assignment_traffic_cost
    non_overlap = problem.configs.rack_aware_assignment_non_overlap_cost
    return TRAFFIC_COST if traffic is None else traffic, NON_OVERLAP_COST if non_overlap is None else non_overlap


def _place_stateful(
    problem: StreamsProblem,
    awareness: RackAwareness,
    clients: Sequence[ClientState],
    stateful: Sequence[TaskId],
    costs: tuple[int, int],
) -> FlowAnswer:
    for place, client in enumerate(clients):
        client.active.update(stateful[place :: len(clients)])
    _even_out(clients, lambda client: client.active, None)
    if awareness.enabled:
        return optimize_active(problem, awareness, clients, stateful, costs).flow
    return "not run"


def _place_standbys(
    problem: StreamsProblem,
    awareness: RackAwareness,
    clients: Sequence[ClientState],
    stateful: Sequence[TaskId],
    costs: tuple[int, int],
) -> list[str]:
    assignor = standby_assignor(problem)
    warnings = assignor.assign(clients, stateful, problem.configs.num_standby_replicas)
    _even_out(clients, lambda client: client.standby, assignor.allows)
    if awareness.enabled:
        optimize_standby(problem, awareness, clients, costs, assignor)
    return warnings


def _place_stateless(
    problem: StreamsProblem, awareness: RackAwareness, clients: Sequence[ClientState], stateless: Sequence[TaskId]
) -> FlowAnswer:
    """By active tasks per thread alone; standbys do not count here."""
    queue = LoadQueue(clients, lambda client: (client.active_load, client.key))
    for task in stateless:
        client = queue.least()
        client.active.add(task)
        queue.changed(client)
    if awareness.enabled:
        costs = STATELESS_TRAFFIC_COST, STATELESS_NON_OVERLAP_COST
        return optimize_active(problem, awareness, clients, stateless, costs).flow
    return "not run"


def _even_out(
    clients: Sequence[ClientState],
    tasks_of: Callable[[ClientState], set[TaskId]],
    allows: Callable[[ClientState, ClientState], bool] | None,
) -> None:
    """Move tasks from client to client, in ascending order of both, as long as that brings loads closer together."""
    loads = _Loads(clients)
    moved = True
    while moved:
        moved = False
        for source, giver in enumerate(clients):
            destination = loads.next(source, 0)
            while destination is not None:
                taker = clients[destination]
                if allows is None or allows(giver, taker):
                    for task in sorted(tasks_of(giver)):
                        if not loads.closer(source, destination):
                            break
                        if not taker.has(task):
                            tasks_of(giver).remove(task)
                            tasks_of(taker).add(task)
                            loads.move(source, destination)
                            moved = True
                destination = loads.next(source, destination + 1)


class _Loads:
    """Tasks of all clients side by side, in the doubles that Kafka compares."""

    def __init__(self, clients: Sequence[ClientState]) -> None:
        self.count = np.array([client.task_count for client in clients], np.float64)
        self.capacity = np.array([client.capacity for client in clients], np.float64)

    def next(self, source: int, start: int) -> int | None:
        """The first client from ``start`` on to which a move would help."""
        helps = self._helps(source, self.count[start:], self.capacity[start:])
        place = int(np.argmax(helps)) if len(helps) else 0
        return start + place if len(helps) and helps[place] else None

    def closer(self, source: int, destination: int) -> bool:
        """Whether one more move would help."""
        one = slice(destination, destination + 1)
        return bool(self._helps(source, self.count[one], self.capacity[one])[0])

    def move(self, source: int, destination: int) -> None:
        """Count one move."""
        self.count[source] -= 1
        self.count[destination] += 1

    def _helps(
        self, source: int, count: np.typing.NDArray[np.float64], capacity: np.typing.NDArray[np.float64]
    ) -> np.typing.NDArray[np.bool_]:
        mine, threads = self.count[source], self.capacity[source]
        skew = mine / threads - count / capacity
        after = (mine - 1.0) / threads - (count + 1.0) / capacity
        helps: np.typing.NDArray[np.bool_] = (skew > 0) & (after >= 0) & (after < skew)
        return helps
