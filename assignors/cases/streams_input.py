"""Read the input of a Streams case (``streams.*``) into the problem that Kafka's assignors solve.

Whatever does not have the shape of a case raises ``BadProblem`` with a sentence naming the field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from assignors.kafka.streams_problem import (
    AssignmentConfigs,
    RackFacts,
    Replicas,
    StreamsClient,
    StreamsProblem,
    StreamsResult,
)
from assignors.problem import BadProblem, TaskId, TopicPartition

T = TypeVar("T")

_NUMBERS = (
    "acceptable_recovery_lag",
    "max_warmup_replicas",
    "num_standby_replicas",
    "probing_rebalance_interval_ms",
)
_COSTS = ("rack_aware_assignment_traffic_cost", "rack_aware_assignment_non_overlap_cost")


def streams_problem(case: Mapping[str, Any]) -> StreamsProblem:
    """Return the problem of a case; ``iteration`` defaults to what production does (``java_hash``)."""
    tasks = a_map(case.get("tasks"), "tasks")
    iteration = case.get("iteration", "java_hash")
    if iteration not in ("listed", "java_hash", "sorted"):
        raise BadProblem(f"iteration is {iteration!r}; it is one of listed, java_hash, sorted")
    racks = case.get("rack")
    return StreamsProblem(
        tasks=_task_ids(tasks.get("all"), "tasks.all"),
        stateful=_task_ids(tasks.get("stateful"), "tasks.stateful"),
        clients=tuple(
            _client(a_map(client, f"clients[{index}]"), f"clients[{index}]")
            for index, client in enumerate(a_list(case.get("clients"), "clients"))
        ),
        configs=_configs(a_map(case.get("configs"), "configs")),
        racks=None if racks is None else _racks(a_map(racks, "rack")),
        iteration=iteration,
    )


def clients_output(result: StreamsResult) -> dict[str, dict[str, list[str]]]:
    """``clients`` of an output: process -> active and standby tasks, sorted."""
    return {
        process: {"active": list(map(str, active)), "standby": list(map(str, result.standby.get(process, ())))}
        for process, active in result.active.items()
    }


def task_id(text: Any, field: str) -> TaskId:
    """Read ``0_1``."""
    match text.split("_") if isinstance(text, str) else ():
        case [subtopology, partition] if _digits(subtopology) and _digits(partition):
            return TaskId(int(subtopology), int(partition))
    raise BadProblem(f"{field} has {text!r}; a task is written subtopology_partition, as in 0_1")


def topic_partition(text: Any, field: str) -> TopicPartition:
    """Read ``topic-0``; the topic may have dashes of its own."""
    if isinstance(text, str):
        topic, _, partition = text.rpartition("-")
        if topic and _digits(partition):
            return TopicPartition(topic, int(partition))
    raise BadProblem(f"{field} has {text!r}; a partition is written topic-number, as in orders-0")


def whole(value: Any, field: str) -> int:
    """Read a whole number; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadProblem(f"{field} is {value!r}; it must be a whole number")
    return value


def text(value: Any, field: str) -> str:
    """Read a text."""
    if not isinstance(value, str):
        raise BadProblem(f"{field} is {value!r}; it must be text")
    return value


def a_map(value: Any, field: str) -> Mapping[str, Any]:
    """Read a JSON object."""
    if not isinstance(value, Mapping):
        raise BadProblem(f"{field} is {_kind(value)}; it must be an object")
    return value


def a_list(value: Any, field: str) -> list[Any]:
    """Read a JSON array."""
    if not isinstance(value, list):
        raise BadProblem(f"{field} is {_kind(value)}; it must be an array")
    return value


def _client(client: Mapping[str, Any], field: str) -> StreamsClient:
    lags = a_map(client.get("lags", {}), f"{field}.lags")
    tags = a_map(client.get("tags", {}), f"{field}.tags")
    return StreamsClient(
        id=text(client.get("id"), f"{field}.id"),
        capacity=whole(client.get("capacity"), f"{field}.capacity"),
        tags={key: text(value, f"{field}.tags.{key}") for key, value in tags.items()},
        prev_active=_task_ids(client.get("prev_active", []), f"{field}.prev_active"),
        prev_standby=_task_ids(client.get("prev_standby", []), f"{field}.prev_standby"),
        lags={task_id(task, f"{field}.lags"): whole(lag, f"{field}.lags.{task}") for task, lag in lags.items()},
        assigned_active=_task_ids(client.get("assigned_active", []), f"{field}.assigned_active"),
        assigned_standby=_task_ids(client.get("assigned_standby", []), f"{field}.assigned_standby"),
    )


def _configs(configs: Mapping[str, Any]) -> AssignmentConfigs:
    given: dict[str, Any] = {
        name: whole(configs[name], f"configs.{name}") for name in _NUMBERS if configs.get(name) is not None
    }
    given |= {name: whole(configs[name], f"configs.{name}") for name in _COSTS if configs.get(name) is not None}
    if configs.get("rack_aware_assignment_strategy") is not None:
        name = "configs.rack_aware_assignment_strategy"
        given["rack_aware_assignment_strategy"] = text(configs["rack_aware_assignment_strategy"], name)
    if configs.get("rack_aware_assignment_tags") is not None:
        name = "configs.rack_aware_assignment_tags"
        given["rack_aware_assignment_tags"] = _each(configs["rack_aware_assignment_tags"], name, text)
    return AssignmentConfigs(**given)


def _racks(racks: Mapping[str, Any]) -> RackFacts:
    consumers = a_map(racks.get("consumer_racks", {}), "rack.consumer_racks")
    return RackFacts(
        consumer_racks={
            process: {
                consumer: _rack(rack, f"rack.consumer_racks.{process}.{consumer}")
                for consumer, rack in a_map(of_process, f"rack.consumer_racks.{process}").items()
            }
            for process, of_process in consumers.items()
        },
        cluster=_topics(racks.get("cluster", {}), "rack.cluster"),
        described=_topics(racks.get("described", {}), "rack.described"),
        task_partitions=_partitions(racks.get("task_partitions", {}), "rack.task_partitions"),
        changelog_partitions=_partitions(racks.get("changelog_partitions", {}), "rack.changelog_partitions"),
    )


def _topics(topics: Any, field: str) -> dict[str, tuple[Replicas, ...]]:
    return {
        topic: _each(partitions, f"{field}.{topic}", lambda racks, where: _each(racks, where, _rack))
        for topic, partitions in a_map(topics, field).items()
    }


def _partitions(tasks: Any, field: str) -> dict[TaskId, tuple[TopicPartition, ...]]:
    return {
        task_id(task, field): _each(partitions, f"{field}.{task}", topic_partition)
        for task, partitions in a_map(tasks, field).items()
    }


def _rack(rack: Any, field: str) -> str | None:
    return None if rack is None else text(rack, field)


def _task_ids(tasks: Any, field: str) -> tuple[TaskId, ...]:
    return _each(tasks, field, task_id)


def _each(values: Any, field: str, read: Callable[[Any, str], T]) -> tuple[T, ...]:
    return tuple(read(value, field) for value in a_list(values, field))


def _digits(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) <= 10


def _kind(value: Any) -> str:
    return "missing" if value is None else f"a {type(value).__name__}"
