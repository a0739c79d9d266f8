"""Kafka's ``FallbackPriorTaskAssignor``, which Streams runs while end offsets are unknown (KIP-441).

Every active task returns to its previous process, at any balance; the others are placed as by the legacy sticky
assignor without racks. It always asks for a follow-up rebalance.
"""

from __future__ import annotations

from assignors.kafka.legacy_sticky import legacy_steps
from assignors.kafka.streams_order import tasks_in_order
from assignors.kafka.streams_problem import StreamsProblem, StreamsResult, client_states, streams_result


def fallback_prior(problem: StreamsProblem) -> StreamsResult:
    """Return what every process gets. Raises ``BadProblem``, and ``KafkaRefusal`` without any process."""
    states = client_states(problem)
    steps = legacy_steps(problem, states, must_preserve_active=True)
    steps.place_active()
    warnings = list(steps.place_standbys(tasks_in_order(problem, problem.stateful)))
    return streams_result(states, followup_rebalance=True, warnings=warnings)
