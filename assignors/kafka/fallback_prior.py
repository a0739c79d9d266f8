"""What Kafka's ``FallbackPriorTaskAssignor`` gives: it stands in while end offsets are unknown (KIP-441).

Every active task goes back to where it was, whatever the balance; the rest is placed as by the legacy sticky assignor,
without racks. A follow-up rebalance is always wanted, in which the real assignor has its say.
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
