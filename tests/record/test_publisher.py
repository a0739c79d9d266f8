"""Writing without a broker: bounded in time and memory, counted, and never an error in the loop."""

from __future__ import annotations

import time

from agent.record.librdkafka import ProducerRecord, RecordCounts, TopicPublisher

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


def records(count: int, **given: object) -> list[ProducerRecord]:
    return [ProducerRecord("t", f"key-{n}", b"value")._replace(**given) for n in range(count)]  # type: ignore[arg-type] # a builder's keywords


def test_what_does_not_fit_into_the_queue_is_dropped_and_counted_within_the_deadline() -> None:
    publisher = TopicPublisher(NOWHERE, queue_records=10)
    began = time.monotonic()
    publisher.write(records(1_000), 300)
    assert time.monotonic() - began < 3
    assert publisher.counts() == RecordCounts(0, 0, 990)
    assert "t: the queue is full, because the brokers accept no records" in publisher.problems()
    assert publisher.close(100) == 10


def test_flushing_and_closing_keep_their_deadlines_and_tell_what_is_left() -> None:
    publisher = TopicPublisher(NOWHERE, queue_records=100)
    publisher.write(records(3), 100)
    began = time.monotonic()
    assert publisher.flush(200) == 3
    assert publisher.close(200) == 3
    assert time.monotonic() - began < 3
    assert publisher.close(200) == 0, "what was given up is given up once"


def test_the_cause_is_told_and_forgotten_only_once_something_is_written() -> None:
    publisher = TopicPublisher(NOWHERE, queue_records=100)
    publisher.write(records(1), 100)
    until = time.monotonic() + 20
    while not publisher.problems() and time.monotonic() < until:
        publisher.flush(200)
    (problem,) = publisher.problems()
    assert "brokers" in problem or "refused" in problem
    publisher.begin()
    assert publisher.problems() == (problem,)
    publisher.close(0)


def test_a_record_that_can_never_be_written_is_counted_and_the_next_goes_on() -> None:
    publisher = TopicPublisher(NOWHERE, queue_records=100)
    publisher.write([*records(1, value=b"x" * 2_000_000), *records(1)], 100)
    assert publisher.counts().failed == 1
    assert "Message size too large" in " ".join(publisher.problems())
    assert publisher.close(100) == 1


def test_a_key_of_foreign_text_is_always_a_key() -> None:
    publisher = TopicPublisher(NOWHERE, queue_records=100)
    publisher.write(records(1, key="group/\ud800"), 100)
    assert publisher.counts() == RecordCounts(0, 0, 0)
    assert publisher.close(0) == 1
