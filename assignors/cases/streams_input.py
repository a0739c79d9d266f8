"""Input of a Streams case (``streams.*``) as ``StreamsProblem``; ``BadProblem`` names a malformed field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

from assignors.cases.fields import an_object, each, one_of, shown, text, text_or_none, whole
from assignors.kafka.streams_problem import (
    LONG_MAX,
    AssignmentConfigs,
    Iteration,
    RackFacts,
    RackStrategy,
    Replicas,
    StreamsClient,
    StreamsProblem,
    StreamsResult,
)
from assignors.problem import BadProblem, TaskId, TopicPartition

_ITERATIONS = get_args(Iteration)
_STRATEGIES = get_args(RackStrategy)
_LONGS = ("acceptable_recovery_lag", "probing_rebalance_interval_ms")
_INTEGERS = (
    "max_warmup_replicas",
    "num_standby_replicas",
    "rack_aware_assignment_traffic_cost",
    "rack_aware_assignment_non_overlap_cost",
)


def streams_problem(case: Mapping[str, Any]) -> StreamsProblem:
    """Return the problem of a case; ``iteration`` defaults to what production does (``java_hash``)."""
    tasks = an_object(case.get("tasks"), "tasks")
    racks = case.get("rack")
    return StreamsProblem(
        tasks=_task_ids(tasks.get("all"), "tasks.all"),
        stateful=_task_ids(tasks.get("stateful"), "tasks.stateful"),
        clients=each(case.get("clients"), "clients", _client),
        configs=_configs(an_object(case.get("configs"), "configs")),
        racks=None if racks is None else _racks(an_object(racks, "rack")),
        iteration=cast("Iteration", one_of(case.get("iteration", "java_hash"), "iteration", _ITERATIONS)),
    )


def clients_output(result: StreamsResult) -> dict[str, dict[str, list[str]]]:
    """``clients`` of an output: process -> active and standby tasks, sorted."""
    return {
        process: {"active": list(map(str, active)), "standby": list(map(str, result.standby.get(process, ())))}
        for process, active in result.active.items()
    }


def task_id(value: Any, field: str) -> TaskId:
    """Read ``0_1``. Raises BadProblem for anything else."""
    match value.split("_") if isinstance(value, str) else ():
        case [subtopology, partition] if _digits(subtopology) and _digits(partition):
            return TaskId(int(subtopology), int(partition))
    raise BadProblem(f"{field} is {shown(value)}; a task is written subtopology_partition, as in 0_1")


def topic_partition(value: Any, field: str) -> TopicPartition:
    """Read ``topic-0``; the topic may have dashes of its own. Raises BadProblem for anything else."""
    if isinstance(value, str):
        topic, _, partition = value.rpartition("-")
        if topic and _digits(partition):
            return TopicPartition(topic, int(partition))
    raise BadProblem(f"{field} is {shown(value)}; a partition is written topic-number, as in orders-0")


def _client(value: Any, field: str) -> StreamsClient:
    client = an_object(value, field)
    lags = an_object(client.get("lags", {}), f"{field}.lags")
    tags = an_object(client.get("tags", {}), f"{field}.tags")
    return StreamsClient(
        id=text(client.get("id"), f"{field}.id"),
        capacity=whole(client.get("capacity"), f"{field}.capacity"),
        tags={key: text(tag, f"{field}.tags.{key}") for key, tag in tags.items()},
        prev_active=_task_ids(client.get("prev_active", []), f"{field}.prev_active"),
        prev_standby=_task_ids(client.get("prev_standby", []), f"{field}.prev_standby"),
        lags={task_id(task, f"{field}.lags"): _long(lag, f"{field}.lags.{task}") for task, lag in lags.items()},
        assigned_active=_task_ids(client.get("assigned_active", []), f"{field}.assigned_active"),
        assigned_standby=_task_ids(client.get("assigned_standby", []), f"{field}.assigned_standby"),
    )


def _configs(configs: Mapping[str, Any]) -> AssignmentConfigs:
    """A setting that is missing or null has its default."""
    given: dict[str, Any] = {}
    for names, read in ((_LONGS, _long), (_INTEGERS, whole)):
        given |= {name: read(configs[name], f"configs.{name}") for name in names if configs.get(name) is not None}
    strategy, tags = configs.get("rack_aware_assignment_strategy"), configs.get("rack_aware_assignment_tags")
    if strategy is not None:
        field = "configs.rack_aware_assignment_strategy"
        given["rack_aware_assignment_strategy"] = one_of(strategy, field, _STRATEGIES)
    if tags is not None:
        given["rack_aware_assignment_tags"] = each(tags, "configs.rack_aware_assignment_tags", text)
    return AssignmentConfigs(**given)


def _racks(racks: Mapping[str, Any]) -> RackFacts:
    consumers = an_object(racks.get("consumer_racks", {}), "rack.consumer_racks")
    return RackFacts(
        consumer_racks={
            process: {
                consumer: text_or_none(rack, f"rack.consumer_racks.{process}.{consumer}")
                for consumer, rack in an_object(of_process, f"rack.consumer_racks.{process}").items()
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
        topic: each(partitions, f"{field}.{topic}", lambda racks, where: each(racks, where, text_or_none))
        for topic, partitions in an_object(topics, field).items()
    }


def _partitions(tasks: Any, field: str) -> dict[TaskId, tuple[TopicPartition, ...]]:
    return {
        task_id(task, field): each(partitions, f"{field}.{task}", topic_partition)
        for task, partitions in an_object(tasks, field).items()
    }


def _task_ids(tasks: Any, field: str) -> tuple[TaskId, ...]:
    return each(tasks, field, task_id)


def _long(value: Any, field: str) -> int:
    return whole(value, field, -LONG_MAX - 1, LONG_MAX)


def _digits(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) <= 10
