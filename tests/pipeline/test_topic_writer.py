"""Records that are not written end in a sentence, and those that are keep their bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError

from agent.errors import ClusterUnreachable, NotAllowed, RackwiseError
from config.kafka_client import KafkaClientConfig
from pipeline import topic_writer
from pipeline.topic_writer import KeyedRecord, write

NOWHERE = KafkaClientConfig({"bootstrap.servers": "127.0.0.1:1"})


def test_a_record_that_is_too_large_for_the_client_is_told() -> None:
    with pytest.raises(ClusterUnreachable, match=r"1 of 1 record could not be written to t: .* too large"):
        write(NOWHERE, "t", [KeyedRecord("k", b"x" * 2_000_000)])


class FakeProducer:
    """Takes one record at a time, and answers each with an error or with none."""

    def __init__(self, error: KafkaError | None) -> None:
        self.produced: list[dict[str, Any]] = []
        self._error, self._waiting = error, list[Callable[..., None]]()

    def produce(self, topic: str, *, on_delivery: Callable[..., None], **record: Any) -> None:
        if self._waiting:
            raise BufferError
        self._waiting.append(on_delivery)
        self.produced.append({"topic": topic, **record})

    def poll(self, timeout_s: float) -> None:
        if timeout_s:
            self.flush(timeout_s)

    def flush(self, _timeout_s: float) -> int:
        while self._waiting:
            self._waiting.pop()(self._error, None)
        return 0


@pytest.mark.parametrize(
    ("code", "kind", "todo"),
    [
        pytest.param(KafkaError.TOPIC_AUTHORIZATION_FAILED, NotAllowed, "Grant WRITE on t.", id="no right"),
        pytest.param(KafkaError.NOT_ENOUGH_REPLICAS, ClusterUnreachable, "Run the command again", id="no replicas"),
    ],
)
def test_records_that_brokers_refuse_are_counted(
    monkeypatch: pytest.MonkeyPatch, code: int, kind: type[RackwiseError], todo: str
) -> None:
    monkeypatch.setattr(topic_writer, "Producer", lambda _: FakeProducer(KafkaError(code)))
    with pytest.raises(kind, match="2 of 2 records could not be written to t") as refused:
        write(NOWHERE, "t", [KeyedRecord("a", b"1"), KeyedRecord("b", None)])
    assert refused.value.todo.startswith(todo)


def test_a_full_queue_is_waited_for_and_records_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = FakeProducer(None)
    monkeypatch.setattr(topic_writer, "Producer", lambda _: producer)
    asked: list[int] = []
    told = [KeyedRecord("a", b"1", [("ce_id", b"7")]), KeyedRecord("b\udcff", None), KeyedRecord("\ud800", b"2")]
    assert write(NOWHERE, "t", iter(told), asked.append) == 3
    assert asked == [1, 2, 3]
    assert [(one["key"], one["value"], one["headers"]) for one in producer.produced] == [
        (b"a", b"1", [("ce_id", b"7")]),
        (b"b\xff", None, []),
        (b"?", b"2", []),
    ]
