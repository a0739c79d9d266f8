"""Small applications by hand for tests of Kafka's sticky Streams assignors, and what makes their results valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from assignors.kafka.fallback_prior import fallback_prior
from assignors.kafka.legacy_sticky import legacy_sticky
from assignors.kafka.sticky_kip924 import sticky_kip924
from assignors.kafka.streams_problem import AssignmentConfigs, RackFacts, StreamsClient, StreamsProblem, StreamsResult
from assignors.kafka.task_assignment_utils import AssignmentError, validate_task_assignment
from assignors.problem import TaskId

Assignor = Callable[[StreamsProblem], StreamsResult]
STICKY = pytest.mark.parametrize(
    "assign", [pytest.param(legacy_sticky, id="legacy"), pytest.param(sticky_kip924, id="KIP-924")]
)
ALL = pytest.mark.parametrize(
    "assign",
    [
        pytest.param(legacy_sticky, id="legacy"),
        pytest.param(fallback_prior, id="fallback"),
        pytest.param(sticky_kip924, id="KIP-924"),
    ],
)


def process_id(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012}"


def t(text: str) -> TaskId:
    subtopology, partition = text.split("_")
    return TaskId(int(subtopology), int(partition))


def ts(texts: str) -> tuple[TaskId, ...]:
    return tuple(t(text) for text in texts.split())


def a_client(number: int, active: str = "", standby: str = "", capacity: int = 1, **tags: str) -> StreamsClient:
    return StreamsClient(
        id=process_id(number), capacity=capacity, tags=tags, prev_active=ts(active), prev_standby=ts(standby)
    )


def an_application(
    tasks: str, *clients: StreamsClient, stateful: str | None = None, racks: RackFacts | None = None, **configs: Any
) -> StreamsProblem:
    return StreamsProblem(
        tasks=ts(tasks),
        stateful=ts(tasks if stateful is None else stateful),
        clients=clients,
        configs=AssignmentConfigs(**configs),
        racks=racks,
    )


def active_on(result: StreamsResult, number: int) -> tuple[TaskId, ...]:
    return result.active[process_id(number)]


def assert_valid(problem: StreamsProblem, result: StreamsResult) -> None:
    assert list(result.active) == list(result.standby) == [client.id for client in problem.clients]
    assert Counter(task for mine in result.active.values() for task in mine) == Counter(problem.tasks)
    standbys = Counter(task for mine in result.standby.values() for task in mine)
    wanted = min(problem.configs.num_standby_replicas, len(problem.clients) - 1)
    assert standbys == Counter({task: wanted for task in problem.stateful if wanted})
    for process in result.active:
        assert not set(result.active[process]) & set(result.standby[process])
        assert len(set(result.standby[process])) == len(result.standby[process])
    assert validate_task_assignment(problem, result) == AssignmentError.NONE
