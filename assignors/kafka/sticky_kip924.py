"""Kafka's public ``StickyTaskAssignor`` (KIP-924, ``task.assignor.class``).

As the legacy sticky assignor, but equally loaded processes are equal at any thread count, and racks count only with
both costs configured (``task_assignment_utils``). Kafka places standbys in the order of memory addresses; here tasks
are taken in ascending order, so that equal input gives equal output.
"""

from __future__ import annotations

from assignors.kafka.legacy_sticky import weakest
from assignors.kafka.rack_aware import STATELESS_NON_OVERLAP_COST, STATELESS_TRAFFIC_COST
from assignors.kafka.sticky_steps import StickyRules, StickySteps
from assignors.kafka.streams_order import processes_in_hash_order
from assignors.kafka.streams_problem import FlowAnswer, StreamsProblem, StreamsResult, client_states, streams_result
from assignors.kafka.task_assignment_utils import RackAwareUtils


def sticky_kip924(problem: StreamsProblem, *, must_preserve_active: bool = False) -> StreamsResult:
    """Return what every process gets. Raises ``BadProblem``, and ``KafkaRefusal`` without any process.

    ``must_preserve_active``: every active task stays where it was, racks are left alone and a follow-up rebalance is
    wanted (the assignor's constructor argument).
    """
    states = client_states(problem)
    order = [states[process] for process in processes_in_hash_order(states)]
    steps = StickySteps(
        problem,
        order,
        StickyRules(more_threads_first=False, candidates_hashed=True, must_preserve_active=must_preserve_active),
    )
    steps.place_active()
    racks = RackAwareUtils(problem, order)
    configs = problem.configs
    costs = configs.rack_aware_assignment_traffic_cost or 0, configs.rack_aware_assignment_non_overlap_cost or 0

    warnings = []
    flows: list[FlowAnswer] = []
    why_not = racks.why_not(standby=False)
    if why_not:
        warnings += [why_not] if configs.rack_aware_assignment_strategy != "none" else []
    elif not must_preserve_active:
        stateless = frozenset(problem.tasks).difference(problem.stateful)
        flows.append(racks.optimize_active(problem.stateful, costs).flow)
        flows.append(racks.optimize_active(stateless, (STATELESS_TRAFFIC_COST, STATELESS_NON_OVERLAP_COST)).flow)
    warnings += steps.place_standbys(sorted(problem.stateful))
    if configs.num_standby_replicas > 0 and not must_preserve_active and not racks.why_not(standby=True):
        flows.append(racks.optimize_standby(costs))
    return streams_result(states, followup_rebalance=must_preserve_active, flow=weakest(flows), warnings=warnings)
