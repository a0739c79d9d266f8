"""Writes records to rackwise's own topics, and counts what became of each.

Invariants: a call never waits longer than its deadline; what does not fit into the bounded queue is dropped and
counted, never kept in memory; nothing raises because of a broker. acks=all and one request in flight keep the order
without a producer id, so that writing is the only thing this client asks of a broker.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from agent.record.librdkafka import client_settings, in_words
from agent.values.kafka import COMPRESSION_TYPE, DELIVERY_TIMEOUT_MS, LINGER_MS, MAX_IN_FLIGHT

_QUEUE_KBYTES = 65_536
_WAIT_S = 0.05
_BY_KEY = -1
_GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001 librdkafka's own public codes begin with an underscore


class Record(NamedTuple):
    """A record to write."""

    topic: str
    key: str
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()
    partition: int | None = None
    """None leaves it to the key."""


class Counts(NamedTuple):
    """Records since the start."""

    written: int
    failed: int
    dropped: int


class Publisher:
    """One producer for all of rackwise's topics."""

    def __init__(
        self, config: Mapping[str, str | int], *, queue_records: int, on_gone: Callable[[str], None] = lambda _: None
    ) -> None:
        self._lock = threading.Lock()
        self._written = self._failed = self._dropped = 0
        self._problems: dict[str, str] = {}
        self._on_gone = on_gone
        settings = {
            "acks": "all",
            MAX_IN_FLIGHT: 1,
            COMPRESSION_TYPE: "lz4",
            LINGER_MS: 20,
            "queue.buffering.max.messages": queue_records,
            "queue.buffering.max.kbytes": _QUEUE_KBYTES,
            DELIVERY_TIMEOUT_MS: 60_000,
            "partitioner": "murmur2_random",  # the same as Java's, so that any consumer finds a key where it looks
            "error_cb": self._on_error,
        }
        self._producer = Producer(client_settings(config, settings))

    def write(self, records: Iterable[Record], deadline_ms: int) -> None:
        """Queue the records; wait for room no longer than the deadline and drop, counted, what is left then."""
        until = time.monotonic() + deadline_ms / 1_000
        for record in records:
            while not self._queued(record):
                left = until - time.monotonic()
                if left <= 0:
                    self._count(
                        record.topic, dropped=1, problem="the queue is full, because the brokers accept no records"
                    )
                    break
                self._producer.poll(min(_WAIT_S, left))
        self._producer.poll(0)

    def flush(self, deadline_ms: int) -> int:
        """Wait until everything is written, no longer than the deadline; how many records are still waiting."""
        return int(self._producer.flush(deadline_ms / 1_000))

    def close(self, deadline_ms: int) -> int:
        """Flush, then forget what is left; how many records were lost."""
        left = self.flush(deadline_ms)
        if left:
            self._producer.purge()
            self._producer.flush(_WAIT_S)
        return left

    def counts(self) -> Counts:
        """What became of the records so far."""
        with self._lock:
            return Counts(self._written, self._failed, self._dropped)

    def begin(self) -> None:
        """Forget what was wrong with earlier records: from now on `problems` is about those that come."""
        with self._lock:
            self._problems = {name: problem for name, problem in self._problems.items() if not name}

    def problems(self) -> tuple[str, ...]:
        """A sentence for each topic whose last records were not all written, and for the connection itself."""
        with self._lock:
            return tuple(f"{topic}: {problem}" if topic else problem for topic, problem in self._problems.items())

    def _queued(self, record: Record) -> bool:
        """False when there is no room; what can never be written counts as failed and is done with."""
        try:
            self._producer.produce(
                record.topic,
                value=record.value,
                key=record.key.encode("utf-8", "backslashreplace"),
                headers=list(record.headers),
                on_delivery=self._on_delivery,
                partition=_BY_KEY if record.partition is None else record.partition,
            )
        except BufferError:
            return False
        except KafkaException as error:
            self._count(record.topic, failed=1, problem=in_words(error.args[0]))
        return True

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        topic = str(message.topic())
        if error is None:
            self._count(topic, written=1)
            return
        self._count(topic, failed=1, problem=in_words(error))
        if error.code() in _GONE:
            self._on_gone(topic)

    def _on_error(self, error: KafkaError) -> None:
        """The connection itself has a problem; it is over once a record is written."""
        with self._lock:
            self._problems[""] = in_words(error)

    def _count(self, topic: str, *, written: int = 0, failed: int = 0, dropped: int = 0, problem: str = "") -> None:
        with self._lock:
            self._written += written
            self._failed += failed
            self._dropped += dropped
            if problem:
                self._problems[topic] = problem
            else:
                self._problems.pop("", None)
