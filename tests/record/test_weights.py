"""What is kept of the weights topic, whatever stands in it."""

from __future__ import annotations

import json
import time
from contextlib import closing

import pytest

import agent.record.weights as reading
from agent.record.weights import KeptWeights, WeightsReader, observe_with_weights, read_record
from agent.telemetry.topic_records import to_records
from agent.values.weights import (
    GroupRates,
    GroupWeights,
    PartitionWeight,
    ReadRates,
    ReadWeight,
    RestoreWeight,
    TopicRates,
    TopicWeights,
    Weights,
    WeightsReading,
)
from config.load import load_settings
from tests.builders import an_observation

TOPIC = "rackwise.weights"
SEEN = an_observation().at(0)
RESTORE = RestoreWeight(0, 1.0, 2.0, 3.0, 4, None)


def of_topic(name: str, cluster: str = "C1", *rates: float | None) -> TopicWeights:
    rows = tuple(PartitionWeight(number, rate, 1.0, None, "measured") for number, rate in enumerate(rates or (5.0,)))
    return TopicWeights(cluster, name, 30, 10, 20, rows)


GROUP = GroupWeights("C1", "g", 30, 10, 20, (ReadWeight("b", 1, 2.0), ReadWeight("a", 0, 1.0)), (RESTORE,))


def put(kept: KeptWeights, *all_weights: Weights) -> None:
    for weights in all_weights:
        for key, value in to_records(weights):
            kept.put(key.encode(), read_record(key.encode(), value))


def test_rates_are_kept_by_cluster_as_columns_without_what_is_unknown() -> None:
    kept = KeptWeights(TOPIC)
    put(kept, of_topic("t", "C1", 5.0, None, 7.0), GROUP, of_topic("u", "C2"))
    assert kept.reading("C1") == WeightsReading(
        TOPIC,
        (TopicRates("t", 10, 20, (0, 2), (5.0, 7.0)),),
        (GroupRates("g", 10, 20, (ReadRates("a", (0,), (1.0,)), ReadRates("b", (1,), (2.0,))), (RESTORE,)),),
        others=1,
    )
    assert kept.reading("C3") == WeightsReading(TOPIC, others=3)


def test_the_newest_record_of_a_key_counts_and_one_without_value_deletes() -> None:
    kept = KeptWeights(TOPIC)
    put(kept, of_topic("t", "C1", 5.0), of_topic("u"))
    first = kept.reading("C1")
    assert kept.reading("C1") is first
    put(kept, of_topic("t", "C1", 6.0))
    kept.put(b"C1/topic/u", None)
    assert kept.reading("C1").topics == (TopicRates("t", 10, 20, (0,), (6.0,)),)
    kept.put(b"C1/topic/never", None)
    kept.clear()
    assert kept.reading("C1") == WeightsReading(TOPIC)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(b"", b"", id="nothing"),
        pytest.param(b"\xff\xfe", b"\x00" * 100, id="no text"),
        pytest.param(b"C1/topic/t", b"[" * 50_000, id="nested without end"),
        pytest.param(b"C1/topic/t", json.dumps({"v": 1, "kind": "topic"}).encode(), id="half a record"),
        pytest.param(b"C1/topic/t", b'{"v":1,"kind":"topic","partitions":' + b"9" * 5_000 + b"}", id="a long number"),
    ],
)
def test_a_foreign_record_is_counted_with_a_sentence_and_harms_no_other(key: bytes, value: bytes) -> None:
    kept = KeptWeights(TOPIC)
    put(kept, of_topic("u"))
    kept.put(key, read_record(key, value))
    told = kept.reading("C1")
    assert [one.topic for one in told.topics] == ["u"]
    assert told.unreadable == 1
    assert told.example is not None
    assert len(told.example) <= 300
    put(kept, of_topic("t"))
    kept.put(key, None)
    assert kept.reading("C1").unreadable == 0


def test_a_look_waits_for_a_silent_broker_once_and_not_for_long() -> None:
    with closing(WeightsReader({"bootstrap.servers": "127.0.0.1:1"}, TOPIC, prefix="rackwise")) as reader:
        began = time.monotonic()
        first = reader.beside(lambda: SEEN)
        between = time.monotonic()
        again = reader.beside(lambda: SEEN)
        ended = time.monotonic()
    assert between - began < reading.FIRST_WAIT_MS / 1_000 + 1
    assert ended - between < 0.5
    assert time.monotonic() - ended < 1
    for seen in (first, again):
        assert seen.weights is not None
        assert seen.weights.missing is not None
        assert seen.weights.missing.startswith(TOPIC)
        assert seen.weights.topics == ()


def test_weights_that_are_not_asked_for_are_not_looked_for() -> None:
    settings = load_settings(
        files=(), assignments=["weights.enabled=false", "kafka.bootstrap.servers=127.0.0.1:1"], environ={}
    ).settings
    with observe_with_weights(settings) as beside:
        assert beside(lambda: SEEN) is SEEN
    assert SEEN.weights is None


def test_no_more_is_kept_than_the_bound_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 2_000)
    kept = KeptWeights(TOPIC)
    for number in range(100):
        put(kept, of_topic(f"t{number}"))
    told = kept.reading("C1")
    assert 1 <= len(told.topics) <= 12
    assert told.unreadable == 100 - len(told.topics)
    assert told.example is not None
    assert "more than the" in told.example
    kept.put(b"C1/topic/t0", None)
    put(kept, of_topic("late"))
    assert "late" in [one.topic for one in kept.reading("C1").topics]


def test_keys_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_KEYS", 3)
    kept = KeptWeights(TOPIC)
    put(kept, *(of_topic(f"t{number}") for number in range(5)))
    assert len(kept.reading("C1").topics) == 3
    put(kept, of_topic("t0", "C1", 9.0))
    assert kept.reading("C1").topics[0].bytes_per_s == (9.0,)
