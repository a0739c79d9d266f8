"""Kafka's ``LegacyStickyTaskAssignor`` (``internal.task.assignor.class``).

Priorities: active tasks near their previous process, within the share by threads; rack traffic among equal counts
(KIP-925; by default staying counts ten times a crossing); then standbys likewise. No warm-ups: a task moves at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from assignors.kafka.rack_aware import STATELESS_NON_OVERLAP_COST, STATELESS_TRAFFIC_COST, rack_awareness
from assignors.kafka.rack_optimize import optimize_active, optimize_standby
from assignors.kafka.sticky_steps import StickyRules, StickySteps
from assignors.kafka.streams_order import processes_in_order, tasks_in_order
from assignors.kafka.streams_problem import (
    ClientState,
    FlowAnswer,
    StreamsProblem,
    StreamsResult,
    client_states,
    streams_result,
)

TRAFFIC_COST = 1
NON_OVERLAP_COST = 10
"""For stateful tasks, where nothing is configured: state is dearer than traffic."""


def legacy_sticky(problem: StreamsProblem) -> StreamsResult:
    """Return what every process gets. Raises ``BadProblem``, and ``KafkaRefusal`` without any process."""
    states = client_states(problem)
    steps = legacy_steps(problem, states, must_preserve_active=False)
    steps.place_active()

    awareness = rack_awareness(problem)
    warnings = [awareness.reason] if awareness.unexpected else []
    ascending = sorted(states.values(), key=lambda state: state.key)
    configs = problem.configs
    costs = (
        TRAFFIC_COST
        if configs.rack_aware_assignment_traffic_cost is None
        else configs.rack_aware_assignment_traffic_cost,
        NON_OVERLAP_COST
        if configs.rack_aware_assignment_non_overlap_cost is None
        else configs.rack_aware_assignment_non_overlap_cost,
    )
    flows: list[FlowAnswer] = []
    if awareness.enabled:
        stateless = frozenset(problem.tasks).difference(problem.stateful)
        for tasks, costs_of_kind in (
            (problem.stateful, costs),
            (stateless, (STATELESS_TRAFFIC_COST, STATELESS_NON_OVERLAP_COST)),
        ):
            flows.append(optimize_active(problem, awareness, ascending, tasks, costs_of_kind).flow)
    warnings += steps.place_standbys(tasks_in_order(problem, problem.stateful))
    if awareness.enabled and configs.num_standby_replicas > 0:
        flows.append(optimize_standby(problem, awareness, ascending, costs).flow)
    return streams_result(states, flow=weakest(flows), warnings=warnings)


def legacy_steps(problem: StreamsProblem, states: dict[str, ClientState], *, must_preserve_active: bool) -> StickySteps:
    """The steps with the rules of the legacy assignor."""
    return StickySteps(
        problem,
        [states[process] for process in processes_in_order(problem)],
        StickyRules(more_threads_first=True, candidates_hashed=False, must_preserve_active=must_preserve_active),
    )


def weakest(flows: Sequence[FlowAnswer]) -> FlowAnswer:
    """The weakest of the answers of several steps."""
    order: tuple[FlowAnswer, ...] = ("cost-equal optimum", "as Kafka", "not run")
    return next(flow for flow in order if flow in (*flows, "not run"))
