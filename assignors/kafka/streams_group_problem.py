"""Input and output of the coordinator's assignor of Streams groups (KIP-1071): no racks, tags, lags or warm-ups.

A process is all members with the same process id; each member is one stream thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assignors.kafka.exceptions import KafkaRefusal
from assignors.problem import BadProblem, TaskId

SubtopologyPartitions = Mapping[str, tuple[int, ...]]
"""Subtopology -> partitions of its tasks."""


class TaskAssignorException(KafkaRefusal):
    """Tasks, and no member to run them."""

    kafka_name = "TaskAssignorException"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredSubtopology:
    """A part of the topology; it has one task for each partition of its widest input topic."""

    id: str
    partitions: int
    stateful: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMember:
    """One member of the group with the tasks of its last target assignment."""

    id: str
    process_id: str
    active: SubtopologyPartitions
    standby: SubtopologyPartitions


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupProblem:
    """Which member shall run which task, and hold which standby."""

    subtopologies: tuple[ConfiguredSubtopology, ...]
    members: tuple[StreamsMember, ...]
    """In the order in which the coordinator's map gives them."""
    num_standby_replicas: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupResult:
    """The target assignment: member -> its tasks, sorted. Every member has an entry in both maps."""

    active: Mapping[str, tuple[TaskId, ...]]
    standby: Mapping[str, tuple[TaskId, ...]]
    warnings: tuple[str, ...] = ()


def check_streams_group(problem: StreamsGroupProblem) -> None:
    """Raise ``BadProblem`` where an id is listed twice or a count is negative, ``KafkaRefusal`` without members."""
    for what, ids in (
        ("subtopology", [subtopology.id for subtopology in problem.subtopologies]),
        ("member", [member.id for member in problem.members]),
    ):
        seen: set[str] = set()
        for each in ids:
            if each in seen:
                raise BadProblem(f"{what} {each} is listed twice; an id stands for one thing")
            seen.add(each)
    for subtopology in problem.subtopologies:
        if subtopology.partitions < 0:
            raise BadProblem(f"subtopology {subtopology.id} has {subtopology.partitions} partitions; give 0 or more")
    if problem.num_standby_replicas < 0:
        raise BadProblem(f"num_standby_replicas is {problem.num_standby_replicas}; give a number from 0 on")
    if not problem.members and any(subtopology.partitions for subtopology in problem.subtopologies):
        raise TaskAssignorException("No member available to assign active tasks.")


def tasks_of(subtopologies: Iterable[ConfiguredSubtopology]) -> list[TaskId]:
    """All their tasks, subtopologies as listed, partitions ascending."""
    return [TaskId(each.id, partition) for each in subtopologies for partition in range(each.partitions)]


def claimed(partitions: SubtopologyPartitions) -> list[TaskId]:
    """The tasks that a member's assignment names."""
    return [TaskId(subtopology, partition) for subtopology, numbers in partitions.items() for partition in numbers]


def shortfall(missing: int, configured: int, task: TaskId) -> str:
    """What Kafka warns of when no process is left that could hold another standby of the task."""
    return (
        f"unable to assign {missing} of {configured} standby tasks for task {task}: every process has a copy of it; "
        "add application instances"
    )
