"""The best possible answer, exact and deterministic, with a proven lower bound."""

from assignors.optimal.consumer import optimal_consumer

__all__ = ["optimal_consumer"]
