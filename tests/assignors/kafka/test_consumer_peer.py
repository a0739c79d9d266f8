"""Kafka's own client-side assignors on the same random rebalances: the same answer, or a failure in both."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from assignors.cases.consumer import RUNNERS, classic_problem
from assignors.kafka.consumer_problem import AssignorFailedError
from assignors.kafka.cooperative_sticky import cooperative_sticky_assign
from assignors.kafka.sticky import sticky_assign
from tests.assignors.kafka.consumer_cases import random_case
from tests.assignors.kafka.consumer_oracle import KAFKA, ConsumerOracle, consumer_oracle

HIGHEST_GENERATION = {"consumer.sticky": sticky_assign, "consumer.cooperative_sticky": cooperative_sticky_assign}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsumerOracle]:
    with consumer_oracle(tmp_path_factory.mktemp("consumer-oracle"), "-XX:TieredStopAtLevel=1") as started:
        yield started


def ours(assignor: str, case: dict[str, Any]) -> dict[str, Any]:
    try:
        output = RUNNERS[assignor](case, KAFKA)
        if assignor in HIGHEST_GENERATION:
            output["max_generation"] = HIGHEST_GENERATION[assignor](classic_problem(case)).max_generation
    except AssignorFailedError as failure:
        return {"error": str(failure)}
    return output


@pytest.mark.parametrize(
    ("assignor", "large", "count"),
    [
        pytest.param("consumer.range", False, 150, id="range, small groups"),
        pytest.param("consumer.range", True, 10, id="range, large groups"),
        pytest.param("consumer.roundrobin", False, 80, id="round-robin, small groups"),
        pytest.param("consumer.sticky", False, 300, id="sticky, small groups"),
        pytest.param("consumer.sticky", True, 25, id="sticky, large groups"),
        pytest.param("consumer.cooperative_sticky", False, 300, id="cooperative-sticky, small groups"),
        pytest.param("consumer.cooperative_sticky", True, 25, id="cooperative-sticky, large groups"),
    ],
)
def test_kafka_gives_the_same(kafka: ConsumerOracle, assignor: str, large: bool, count: int) -> None:
    failures = 0
    for seed in range(count):
        case = random_case(Random(f"{assignor} {large} {seed}"), large=large)
        theirs, mine = kafka(assignor, case), ours(assignor, case)
        if "error" in theirs:
            failures += 1
            assert "NullPointerException" in theirs["error"], f"seed {seed}: {theirs}"
            assert "NullPointerException" in mine.get("error", ""), f"seed {seed}: Kafka throws, we give {mine}"
        else:
            assert mine == theirs, f"seed {seed}"
    assert failures < count / 4, "most of these rebalances are meant to succeed"
