"""Give the best possible answer, exact and deterministic, with a proven lower bound."""

from assignors.optimal.consumer import optimal_consumer
from assignors.optimal.replicas import optimal_replicas
from assignors.optimal.tasks import TaskMapping, optimal_mapping, optimal_tasks

__all__ = ["TaskMapping", "optimal_consumer", "optimal_mapping", "optimal_replicas", "optimal_tasks"]
