"""Kafka's own task assignors on random applications, beside ours: the same answer, tie for tie."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from assignors.cases.streams import RUNNERS
from tests.assignors.kafka.streams_cases import an_application, an_optimization
from tests.assignors.kafka.streams_oracle import StreamsOracle, streams_oracle

HEAP_OUT_OF_ORDER = 107
"""A seed where loads change inside Kafka's heap so that another than the least loaded process is chosen."""


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamsOracle]:
    with streams_oracle(tmp_path_factory.mktemp("oracle")) as started:
        yield started


def same(oracle: StreamsOracle, assignor: str, case: dict[str, Any], **options: int) -> dict[str, Any]:
    theirs = oracle(assignor, case, **options)
    ours = RUNNERS[assignor](case, "4.3.1")
    assert "error" not in theirs, theirs
    assert {name: ours[name] for name in theirs if name != "cpu_s"} == {
        name: value for name, value in theirs.items() if name != "cpu_s"
    }
    return theirs


@pytest.mark.parametrize("seed", [*range(80), HEAP_OUT_OF_ORDER], ids=lambda seed: f"seed {seed}")
def test_applications_are_assigned_as_kafka_assigns_them(seed: int, oracle: StreamsOracle) -> None:
    same(oracle, "streams.ha", an_application(seed))


@pytest.mark.parametrize("strategy", ["min_traffic", "balance_subtopology"])
def test_tasks_move_between_racks_as_kafka_moves_them(strategy: str, oracle: StreamsOracle) -> None:
    for seed in range(6):
        rng = Random(seed)
        case = an_optimization(
            seed,
            rng.randint(20, 90),
            rng.randint(2, 12),
            strategy=strategy,
            racks=rng.randint(2, 6),
            subtopologies=rng.randint(1, 9),
            replicas=rng.randint(1, 2),
        )
        same(oracle, "streams.rack_optimize", case)


@pytest.mark.drill
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10_000, 11_500))
def test_many_applications_are_assigned_as_kafka_assigns_them(seed: int, oracle: StreamsOracle) -> None:
    same(oracle, "streams.ha", an_application(seed))


@pytest.mark.drill
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(12_000, 12_040))
def test_large_applications_are_assigned_as_kafka_assigns_them(seed: int, oracle: StreamsOracle) -> None:
    same(oracle, "streams.ha", an_application(seed, most_clients=40, most_tasks=250), limit_s=300)


@pytest.mark.drill
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("strategy", "tasks", "clients", "racks", "subtopologies", "replicas"),
    [
        ("min_traffic", 400, 40, 3, 20, 2),
        ("min_traffic", 400, 40, 3, 20, 1),
        ("min_traffic", 180, 50, 50, 60, 2),
        ("balance_subtopology", 200, 20, 3, 20, 2),
        ("balance_subtopology", 97, 30, 6, 13, 1),
        ("balance_subtopology", 150, 12, 4, 30, 2),
    ],
)
def test_many_tasks_move_between_racks_as_kafka_moves_them(  # noqa: PLR0917 (a table row)
    strategy: str, tasks: int, clients: int, racks: int, subtopologies: int, replicas: int, oracle: StreamsOracle
) -> None:
    shape = {"racks": racks, "subtopologies": subtopologies, "replicas": replicas}
    for seed in (1, 2):
        case = an_optimization(seed, tasks, clients, strategy=strategy, **shape)
        same(oracle, "streams.rack_optimize", case, limit_s=300)
