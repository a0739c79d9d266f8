"""Assignors of consumer groups, Streams tasks and replicas: optimal ones and Kafka's, measures, validation.

Usable without the agent; a problem (``assignors.problem``) goes in, a result comes out:

    from assignors import ConsumerProblem, optimal_consumer

``assignors.kafka`` has Kafka's own. Solvers are imported at first use: numpy and OR-Tools take a quarter of a second.
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
    ConsumerMember,
    ConsumerProblem,
    ConsumerResult,
    InfeasiblePartition,
    ReplicaBroker,
    ReplicaProblem,
    ReplicaResult,
    ReplicaSet,
    StandbyQuality,
    StreamsTask,
    TaskId,
    TaskProblem,
    TaskProcess,
    TaskResult,
    TopicPartition,
)
from assignors.validate import DefectKind, ResultDefect, consumer_defects, replica_defects, task_defects

if TYPE_CHECKING:
    from assignors.kafka.consumer_problem import ClassicMember, ClassicProblem, GroupAssignment
    from assignors.kafka.cooperative_sticky import cooperative_sticky_assign
    from assignors.kafka.range import range_assign
    from assignors.kafka.roundrobin import roundrobin_assign
    from assignors.kafka.sticky import sticky_assign
    from assignors.optimal import optimal_consumer, optimal_mapping, optimal_replicas, optimal_tasks
    from assignors.optimal.tasks import TaskMapping

__all__ = [
    "BadProblem",
    "ClassicMember",
    "ClassicProblem",
    "ConsumerMeasure",
    "ConsumerMember",
    "ConsumerProblem",
    "ConsumerResult",
    "DefectKind",
    "GroupAssignment",
    "InfeasiblePartition",
    "ReplicaBroker",
    "ReplicaMeasure",
    "ReplicaProblem",
    "ReplicaResult",
    "ReplicaSet",
    "ResultDefect",
    "StandbyQuality",
    "StreamsTask",
    "TaskId",
    "TaskMapping",
    "TaskMeasure",
    "TaskProblem",
    "TaskProcess",
    "TaskResult",
    "TopicPartition",
    "consumer_defects",
    "cooperative_sticky_assign",
    "measure_consumer",
    "measure_replicas",
    "measure_tasks",
    "optimal_consumer",
    "optimal_mapping",
    "optimal_replicas",
    "optimal_tasks",
    "range_assign",
    "replica_defects",
    "roundrobin_assign",
    "sticky_assign",
    "task_defects",
]

_WHERE = {
    "ClassicMember": "assignors.kafka.consumer_problem",
    "ClassicProblem": "assignors.kafka.consumer_problem",
    "GroupAssignment": "assignors.kafka.consumer_problem",
    "TaskMapping": "assignors.optimal.tasks",
    "cooperative_sticky_assign": "assignors.kafka.cooperative_sticky",
    "optimal_consumer": "assignors.optimal",
    "optimal_mapping": "assignors.optimal",
    "optimal_replicas": "assignors.optimal",
    "optimal_tasks": "assignors.optimal",
    "range_assign": "assignors.kafka.range",
    "roundrobin_assign": "assignors.kafka.roundrobin",
    "sticky_assign": "assignors.kafka.sticky",
}
"""Name -> the module that it is imported from at its first use."""


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
