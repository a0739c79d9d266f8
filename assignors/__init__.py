"""Assign work and judge assignments: the best answer with its proof, what an answer costs, what is wrong with it.

Usable alone: nothing here knows the agent. A problem (``assignors.problem``) goes in, a result comes out:

    from assignors import ConsumerProblem, optimal_consumer

The solvers are imported when they are first asked for, because numpy and OR-Tools take a quarter of a second.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from assignors.measure import (
    ConsumerMeasure,
    ReplicaMeasure,
    TaskMeasure,
    measure_consumer,
    measure_replicas,
    measure_tasks,
)
from assignors.problem import (
    BadProblem,
    Broker,
    ConsumerMember,
    ConsumerProblem,
    ConsumerResult,
    Infeasible,
    Process,
    ReplicaProblem,
    ReplicaResult,
    ReplicaSet,
    StandbyQuality,
    Task,
    TaskId,
    TaskProblem,
    TaskResult,
    TopicPartition,
)
from assignors.validate import Defect, DefectKind, consumer_defects, replica_defects, task_defects

if TYPE_CHECKING:
    from assignors.optimal import optimal_consumer, optimal_replicas, optimal_tasks

__all__ = [
    "BadProblem",
    "Broker",
    "ConsumerMeasure",
    "ConsumerMember",
    "ConsumerProblem",
    "ConsumerResult",
    "Defect",
    "DefectKind",
    "Infeasible",
    "Process",
    "ReplicaMeasure",
    "ReplicaProblem",
    "ReplicaResult",
    "ReplicaSet",
    "StandbyQuality",
    "Task",
    "TaskId",
    "TaskMeasure",
    "TaskProblem",
    "TaskResult",
    "TopicPartition",
    "consumer_defects",
    "measure_consumer",
    "measure_replicas",
    "measure_tasks",
    "optimal_consumer",
    "optimal_replicas",
    "optimal_tasks",
    "replica_defects",
    "task_defects",
]


def __getattr__(name: str) -> Any:
    if name.startswith("optimal_") and name in __all__:
        return getattr(import_module("assignors.optimal"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
