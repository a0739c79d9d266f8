"""Cases of Kafka's sticky Streams assignors, of task-to-thread assignment and of KIP-1071's assignor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from assignors.cases.fields import MOST_PARTITIONS, an_array, an_object, each, release, text, truth, whole
from assignors.cases.streams_input import clients_output, streams_problem, task_id
from assignors.kafka.fallback_prior import fallback_prior
from assignors.kafka.legacy_sticky import legacy_sticky
from assignors.kafka.rack_aware import rack_awareness
from assignors.kafka.sticky_kip924 import sticky_kip924
from assignors.kafka.streams_group_problem import ConfiguredSubtopology, StreamsGroupProblem, StreamsMember
from assignors.kafka.streams_group_sticky import streams_group_sticky
from assignors.kafka.streams_group_sticky_41 import streams_group_sticky_41
from assignors.kafka.streams_problem import LONG_MAX, StreamsProblem, StreamsResult
from assignors.kafka.task_assignment_utils import validate_task_assignment
from assignors.kafka.threads import StreamThread, ThreadProblem, ThreadTasks, assign_threads
from assignors.problem import TaskId


def _with_racks(case: Mapping[str, Any], assign: Callable[[StreamsProblem], StreamsResult]) -> dict[str, Any]:
    problem = streams_problem(case)
    awareness = rack_awareness(problem)
    result = assign(problem)
    return {
        "followup_rebalance": result.followup_rebalance,
        "valid_client_rack": awareness.valid_client_rack,
        "can_enable_rack_aware": awareness.enabled,
        "clients": clients_output(result),
    }


def _sticky(case: Mapping[str, Any], _version: str) -> dict[str, Any]:
    problem = streams_problem(case)
    must_preserve_active = truth(case.get("must_preserve_active", False), "must_preserve_active")
    result = sticky_kip924(problem, must_preserve_active=must_preserve_active)
    return {
        "followup_rebalance": result.followup_rebalance,
        "validation": str(validate_task_assignment(problem, result)),
        "clients": clients_output(result),
    }


def _thread_assignment(case: Mapping[str, Any], _version: str) -> dict[str, Any]:
    problem = ThreadProblem(
        active=each(case.get("active"), "active", task_id),
        standby=each(case.get("standby"), "standby", task_id),
        threads=each(case.get("consumers"), "consumers", _thread),
        end_offset_sums=_sums(case.get("task_end_offset_sums"), "task_end_offset_sums"),
    )
    result = assign_threads(problem)
    return {"consumers": {consumer: _thread_tasks(tasks) for consumer, tasks in result.threads.items()}}


def _thread(value: Any, field: str) -> StreamThread:
    consumer = an_object(value, field)
    return StreamThread(
        consumer=text(consumer.get("id"), f"{field}.id"),
        offset_sums=_sums(consumer.get("task_offset_sums"), f"{field}.task_offset_sums"),
    )


def _sums(value: Any, field: str) -> dict[TaskId, int]:
    return {
        task_id(task, field): whole(offset, f"{field}.{task}", -LONG_MAX - 1, LONG_MAX)
        for task, offset in an_object(value, field).items()
    }


def _thread_tasks(tasks: ThreadTasks) -> dict[str, list[str]]:
    return {
        "active_stateful": list(map(str, tasks.active_stateful)),
        "standby": list(map(str, tasks.standby)),
        "active_stateless": list(map(str, tasks.active_stateless)),
    }


def _group_sticky(case: Mapping[str, Any], version: str) -> dict[str, Any]:
    problem = StreamsGroupProblem(
        subtopologies=each(case.get("subtopologies"), "subtopologies", _subtopology),
        members=each(case.get("members"), "members", _member),
        num_standby_replicas=whole(case.get("num_standby_replicas"), "num_standby_replicas"),
    )
    # The assignor was rewritten for 4.2 and is the same, instruction for instruction, in 4.3.
    assign = streams_group_sticky_41 if release(version) < (4, 2) else streams_group_sticky
    result = assign(problem)
    return {
        "members": {
            member: {"active": _by_subtopology(active), "standby": _by_subtopology(result.standby[member])}
            for member, active in result.active.items()
        }
    }


def _subtopology(value: Any, field: str) -> ConfiguredSubtopology:
    subtopology = an_object(value, field)
    return ConfiguredSubtopology(
        id=text(subtopology.get("id"), f"{field}.id"),
        partitions=whole(subtopology.get("partitions"), f"{field}.partitions", 0, MOST_PARTITIONS),
        stateful=truth(subtopology.get("stateful"), f"{field}.stateful"),
    )


def _member(value: Any, field: str) -> StreamsMember:
    member = an_object(value, field)
    return StreamsMember(
        id=text(member.get("id"), f"{field}.id"),
        process_id=text(member.get("process_id"), f"{field}.process_id"),
        active=_partitions(member.get("active"), f"{field}.active"),
        standby=_partitions(member.get("standby"), f"{field}.standby"),
    )


def _partitions(value: Any, field: str) -> dict[str, tuple[int, ...]]:
    return {
        subtopology: tuple(whole(number, f"{field}.{subtopology}") for number in an_array(numbers, field))
        for subtopology, numbers in an_object(value, field).items()
    }


def _by_subtopology(tasks: Iterable[TaskId]) -> dict[str, list[int]]:
    partitions: dict[str, list[int]] = {}
    for task in tasks:
        partitions.setdefault(str(task.subtopology), []).append(task.partition)
    return partitions


RUNNERS: Mapping[str, Callable[[Mapping[str, Any], str], dict[str, Any]]] = {
    "group.streams_sticky": _group_sticky,
    "streams.fallback_prior": lambda case, _version: _with_racks(case, fallback_prior),
    "streams.sticky": _sticky,
    "streams.sticky_legacy": lambda case, _version: _with_racks(case, legacy_sticky),
    "streams.thread_assignment": _thread_assignment,
}
