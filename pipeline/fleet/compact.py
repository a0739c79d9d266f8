"""Problems of the assignors as compact JSON, and back: sets of racks are written once and named by number.

A fleet has millions of partitions and tasks over a handful of racks, so a table of problems is mostly numbers.
Invariant: `read` of `written` gives an equal problem.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

from agent.values.typed_json import UnreadableError
from assignors.problem import (
    ConsumerMember,
    ConsumerProblem,
    ReplicaBroker,
    ReplicaProblem,
    ReplicaSet,
    StreamsTask,
    TaskId,
    TaskProblem,
    TaskProcess,
    TopicPartition,
)

Problem = ConsumerProblem | TaskProblem | ReplicaProblem
Kind = Literal["consumer", "tasks", "replicas"]
VERSION = 1


class _Numbered:
    """Things that are written once, by number."""

    def __init__(self) -> None:
        self._number: dict[frozenset[str], int] = {}

    def __call__(self, racks: frozenset[str]) -> int:
        return self._number.setdefault(racks, len(self._number))

    def written(self) -> list[list[str]]:
        return [sorted(racks) for racks in self._number]


def kind_of(problem: Problem) -> Kind:
    """Which of the three it is."""
    match problem:
        case ConsumerProblem():
            return "consumer"
        case TaskProblem():
            return "tasks"
        case ReplicaProblem():
            return "replicas"


def size_of(problem: Problem) -> int:
    """Partitions, tasks or replicas to be placed."""
    match problem:
        case ConsumerProblem():
            return sum(map(len, problem.racks.values()))
        case TaskProblem():
            return len(problem.tasks)
        case ReplicaProblem():
            return sum(len(one.replicas) for one in problem.partitions)


def written(problem: Problem) -> bytes:
    """The problem as JSON."""
    match problem:
        case ConsumerProblem():
            data = _consumer(problem)
        case TaskProblem():
            data = _tasks(problem)
        case ReplicaProblem():
            data = _replicas(problem)
    return json.dumps({"v": VERSION, **data}, separators=(",", ":")).encode()


def read(kind: str, body: bytes) -> Problem:
    """The problem. Raises UnreadableError."""
    try:
        data = _data(body)
        match kind:
            case "consumer":
                return _read_consumer(data)
            case "tasks":
                return _read_tasks(data)
            case "replicas":
                return _read_replicas(data)
    except UnreadableError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise UnreadableError(f"not a problem of kind {kind}: {type(error).__name__}: {error}") from error
    raise UnreadableError(f"{kind!r} is not a kind of problem; use consumer, tasks or replicas")


def _data(body: bytes) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(body)
    if data["v"] > VERSION:
        raise UnreadableError(f"a problem of version {data['v']} needs a newer rackwise; this one reads {VERSION}")
    return data


# --- consumer groups --------------------------------------------------------------------------------------------


def _consumer(problem: ConsumerProblem) -> dict[str, Any]:
    sets = _Numbered()
    topics = {topic: [sets(racks) for racks in of] for topic, of in problem.racks.items()}
    weights, prices = problem.weights, problem.prices
    return {
        "members": [[one.id, one.rack, list(one.topics), _by_topic(one.owned)] for one in problem.members],
        "topics": topics,
        "sets": sets.written(),
        "weights": None if weights is None else [[*partition, weight] for partition, weight in weights.items()],
        "prices": None if prices is None else [[*pair, price] for pair, price in prices.items()],
        "copartitioned": problem.copartitioned,
    }


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    return by_topic


def _read_consumer(data: dict[str, Any]) -> ConsumerProblem:
    sets = [frozenset(racks) for racks in data["sets"]]
    weights, prices = data["weights"], data["prices"]
    return ConsumerProblem(
        members=tuple(
            ConsumerMember(
                id=name,
                rack=rack,
                topics=tuple(topics),
                owned=tuple([TopicPartition(topic, number) for topic, of in owned.items() for number in of]),
            )
            for name, rack, topics, owned in data["members"]
        ),
        racks={topic: tuple([sets[number] for number in of]) for topic, of in data["topics"].items()},
        weights=None if weights is None else {TopicPartition(topic, number): w for topic, number, w in weights},
        prices=None if prices is None else {(source, target): price for source, target, price in prices},
        copartitioned=data["copartitioned"],
    )


# --- Streams tasks ----------------------------------------------------------------------------------------------


def _tasks(problem: TaskProblem) -> dict[str, Any]:
    sets = _Numbered()
    tasks = [
        [
            *one.id,
            int(one.stateful),
            [sets(racks) for racks in one.sources],
            [sets(racks) for racks in one.changelogs],
            None if one.weights is None else list(one.weights),
        ]
        for one in problem.tasks
    ]
    return {
        "tasks": tasks,
        "sets": sets.written(),
        "processes": [
            [one.id, one.rack, one.capacity, list(map(list, one.tags)), _ids(one.active), _ids(one.standby)]
            for one in problem.processes
        ],
        "counts": problem.counts,
        "balance": problem.balance,
        "costs": [problem.traffic_cost, problem.non_overlap_cost],
        "standbys": [problem.num_standby_replicas, list(problem.rack_aware_tags)],
    }


def _ids(tasks: Iterable[TaskId]) -> list[list[int | str]]:
    return [list(task) for task in tasks]


def _read_tasks(data: dict[str, Any]) -> TaskProblem:
    sets = [frozenset(racks) for racks in data["sets"]]
    lists: dict[tuple[int, ...], tuple[frozenset[str], ...]] = {}

    def named(numbers: list[int]) -> tuple[frozenset[str], ...]:
        key = tuple(numbers)
        if key not in lists:
            lists[key] = tuple([sets[number] for number in key])
        return lists[key]

    return TaskProblem(
        tasks=tuple(
            [
                StreamsTask(
                    id=TaskId(subtopology, partition),
                    stateful=bool(stateful),
                    sources=named(sources),
                    changelogs=named(changelogs),
                    weights=None if weights is None else tuple(weights),
                )
                for subtopology, partition, stateful, sources, changelogs, weights in data["tasks"]
            ]
        ),
        processes=tuple(
            TaskProcess(
                id=name,
                rack=rack,
                capacity=capacity,
                tags=tuple((key, value) for key, value in tags),
                active=tuple([TaskId(*task) for task in active]),
                standby=tuple([TaskId(*task) for task in standby]),
            )
            for name, rack, capacity, tags, active, standby in data["processes"]
        ),
        counts=data["counts"],
        balance=data["balance"],
        traffic_cost=data["costs"][0],
        non_overlap_cost=data["costs"][1],
        num_standby_replicas=data["standbys"][0],
        rack_aware_tags=tuple(data["standbys"][1]),
    )


# --- replicas ---------------------------------------------------------------------------------------------------


def _replicas(problem: ReplicaProblem) -> dict[str, Any]:
    return {
        "brokers": [[one.id, one.rack, one.accepts] for one in problem.brokers],
        "partitions": [[*one.id, list(one.replicas), one.size_bytes] for one in problem.partitions],
        "balance": problem.balance,
    }


def _read_replicas(data: dict[str, Any]) -> ReplicaProblem:
    return ReplicaProblem(
        brokers=tuple(ReplicaBroker(id=name, rack=rack, accepts=accepts) for name, rack, accepts in data["brokers"]),
        partitions=tuple(
            ReplicaSet(id=TopicPartition(topic, number), replicas=tuple(replicas), size_bytes=size)
            for topic, number, replicas, size in data["partitions"]
        ),
        balance=data["balance"],
    )
