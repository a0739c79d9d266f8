"""Kafka's own classes read what the drop-in assignors send, and write the same bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assignors.clients import aiokafka, kafka_python
from assignors.clients.user_data import RackwiseUserData, user_data
from assignors.problem import TopicPartition
from tests.clients.client_classes import give
from tests.decode.oracle import Oracle, kafka_oracle

OWNED = (TopicPartition("in", 1), TopicPartition("in", 2), TopicPartition("out", 0))
PAIRS = [["in", 1], ["in", 2], ["out", 0]]


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    with kafka_oracle(tmp_path_factory.mktemp("oracle")) as started:
        yield started


SENT = [
    pytest.param(kafka_python, ("cooperative-sticky",), PAIRS, 7, id="kafka-python, cooperative-sticky"),
    pytest.param(kafka_python, ("optimal",), PAIRS, 7, id="kafka-python, optimal alone is cooperative"),
    pytest.param(kafka_python, ("range",), [], 7, id="kafka-python, range has revoked"),
    pytest.param(kafka_python, ("sticky",), [], 7, id="kafka-python, sticky has revoked"),
    pytest.param(kafka_python, ("optimal", "range"), [], 7, id="kafka-python, optimal beside range has revoked"),
    pytest.param(aiokafka, ("range",), [], None, id="aiokafka, range"),
    pytest.param(aiokafka, ("sticky",), [], None, id="aiokafka, sticky"),
    pytest.param(aiokafka, ("optimal",), [], None, id="aiokafka, optimal"),
]


@pytest.mark.parametrize(("client", "protocols", "owned", "generation"), SENT)
def test_kafka_reads_the_subscription_and_writes_the_same_bytes(
    client: object, protocols: tuple[str, ...], owned: list[list[object]], generation: int | None, oracle: Oracle
) -> None:
    strategy = client.Strategy(*protocols, client_rack="r1")  # type: ignore[attr-defined]
    sent = give(strategy[0], OWNED, generation=7).subscription({"out", "in"})
    (read,) = oracle.read([("subscription", sent)])
    assert read["topics"] == ["in", "out"]
    assert (read["owned"], read["generation"], read["rack"]) == (owned, generation, "r1")
    assert read["again"] == sent.hex()


@pytest.mark.parametrize(
    ("protocol", "owned"),
    [
        pytest.param("sticky", PAIRS, id="sticky: Kafka does not reach the note behind its own layout"),
        pytest.param("cooperative-sticky", [], id="cooperative-sticky: the generation"),
    ],
)
def test_kafka_reads_the_user_data_under_its_own_names(
    protocol: str, owned: list[list[object]], oracle: Oracle
) -> None:
    told = RackwiseUserData(rack="r1", instance_id="i", owned=OWNED, generation=7, held=True)
    (read,) = oracle.read([(protocol, user_data(protocol, told))])
    assert (read["owned"], read["generation"]) == (owned, 7)
