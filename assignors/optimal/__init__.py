"""Optimal assignors: exact and deterministic, with a proven lower bound.

Solvers are imported at first use, because most clusters are at their optimum by a bound that needs no numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assignors.problem import (
    ConsumerProblem,
    ConsumerResult,
    LeaderCandidate,
    LeaderCapacity,
    ReplicaProblem,
    ReplicaResult,
    TaskProblem,
    TaskResult,
)

if TYPE_CHECKING:
    from assignors.optimal.tasks import TaskMapping

__all__ = ["optimal_consumer", "optimal_leaders", "optimal_mapping", "optimal_replicas", "optimal_tasks"]


def optimal_consumer(problem: ConsumerProblem, *, may_stay: bool = True) -> ConsumerResult:
    """Return the optimal assignment of a consumer group (KIP-881); see `assignors.optimal.consumer`."""
    from assignors.optimal.consumer import optimal_consumer as solve

    return solve(problem, may_stay=may_stay)


def optimal_leaders(candidates: Sequence[Sequence[LeaderCandidate]], room: LeaderCapacity) -> list[int]:
    """Return the broker that leads each partition; see `assignors.optimal.leaders`."""
    from assignors.optimal.leaders import optimal_leaders as solve

    return solve(candidates, room)


def optimal_replicas(problem: ReplicaProblem) -> ReplicaResult:
    """Return new replica lists for the partitions that change (KIP-36); see `assignors.optimal.replicas`."""
    from assignors.optimal.replicas import optimal_replicas as solve

    return solve(problem)


def optimal_tasks(problem: TaskProblem) -> TaskResult:
    """Return active tasks of least cost and then standbys (KIP-925); see `assignors.optimal.tasks`."""
    from assignors.optimal.tasks import optimal_tasks as solve

    return solve(problem)


def optimal_mapping(problem: TaskProblem) -> TaskMapping:
    """Return the active tasks of ``optimal_tasks`` as task -> process; see `assignors.optimal.tasks`."""
    from assignors.optimal.tasks import optimal_mapping as solve

    return solve(problem)
