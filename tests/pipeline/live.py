"""Real traffic for the ledger: paced producers, consumers with and without a rack, and what brokers counted of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from testbed.cluster import EmbeddedCluster

RECORD_BYTES = 1_000
PATIENT = {"broker.session.timeout.ms": "120000", "replica.lag.time.max.ms": "120000"}
"""A machine that has no time for a broker takes no leader from it: who no longer leads forgets its counters."""
RACK_OF = {1: "a", 2: "b", 3: "c", 4: "a"}


class Counted(NamedTuple):
    """What brokers have counted since they started."""

    taken: Mapping[tuple[str, str], int]
    """(topic, rack) -> bytes from producers."""
    given: Mapping[tuple[str, str], int]
    """(topic, rack) -> bytes to consumers."""
    sent: Mapping[str, int]
    """Rack -> bytes to followers."""
    fetched: Mapping[str, int]
    """Rack -> bytes as a follower."""


def counted(cluster: EmbeddedCluster) -> Counted:
    """The brokers' own counters by rack; racks have one broker each."""
    taken, given, sent, fetched = {}, {}, {}, {}
    for broker in cluster.brokers:
        rack, counters = RACK_OF[broker.id], broker.jmx_counters()
        sent[rack], fetched[rack] = counters.replication_bytes_out, counters.replication_bytes_in
        for topic, bytes_ in counters.by_topic.items():
            taken[topic, rack], given[topic, rack] = bytes_.bytes_in, bytes_.bytes_out
    return Counted(taken, given, sent, fetched)


def since(before: Mapping[Any, int], after: Mapping[Any, int]) -> dict[Any, int]:
    """What was added, where anything was."""
    return {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}


class Paced:
    """A producer that writes so many bytes a second, evenly over partitions, until the context is left."""

    def __init__(
        self, servers: str, partitions: Sequence[tuple[str, int]], bytes_per_s: int, record: int = 1_000
    ) -> None:
        # Batches as Java's producers make them: what is cut at the end of an answer, brokers send again.
        batches = {"linger.ms": 50, "batch.size": 16_384}
        self._producer = Producer({"bootstrap.servers": servers, "acks": "all", "log_level": 0, **batches})
        self._partitions = list(partitions)
        self._value = bytes(RECORD_BYTES)
        self._per_s = bytes_per_s / RECORD_BYTES
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._produce, name="paced", daemon=True)
        self.records = 0
        self.acked: list[tuple[int, int]] = [(0, 0)]
        """(epoch ms, records that brokers have taken by then)."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(120)
        assert self._producer.flush(240) == 0

    def _produce(self) -> None:
        began = time.monotonic()
        while not self._stop.wait(0.02):
            due = int((time.monotonic() - began) * self._per_s)
            while self.records < due:
                topic, partition = self._partitions[self.records % len(self._partitions)]
                try:
                    self._producer.produce(topic, self._value, partition=partition, on_delivery=self._on_delivery)
                except BufferError:
                    break
                self.records += 1
            self._producer.poll(0)

    def _on_delivery(self, error: Any, _message: Any) -> None:
        assert error is None, error
        self.acked.append((round(time.time() * 1000), self.acked[-1][1] + 1))


def bytes_per_s(acked: Sequence[tuple[int, int]], from_ms: int, to_ms: int) -> float:
    """What brokers took meanwhile, by the acknowledgements of a `Paced` producer."""
    first, last = (max(records for at_ms, records in acked if at_ms <= edge) for edge in (from_ms, to_ms))
    return (last - first) * RECORD_BYTES * 1000 / (to_ms - from_ms)


class Reading:
    """A consumer that reads on in a thread of its own until the context is left; it commits every half second."""

    def __init__(self, servers: str, group: str, topic: str, rack: str | None, *, paused: bool = False) -> None:
        self._consumer = Consumer({
            "bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest", "log_level": 0,
            "enable.auto.commit": False, **({"client.rack": rack} if rack else {}),
        })  # fmt: skip
        self._topic = topic
        self._stop = threading.Event()
        self._go = threading.Event()
        self.assigned = threading.Event()
        self.records = 0
        if not paused:
            self._go.set()
        self._thread = threading.Thread(target=self._read, name=group, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(60)

    def go(self) -> None:
        """Read from now on, where it began paused."""
        self._go.set()

    def _read(self) -> None:
        self._consumer.subscribe([self._topic], on_assign=self._on_assign)
        paused, committed_at = False, 0.0
        while not self._stop.is_set():
            if self._consumer.assignment() and not self._go.is_set() and not paused:
                self._consumer.pause(self._consumer.assignment())
                paused = True
            if paused and self._go.is_set():
                self._consumer.resume(self._consumer.assignment())
                paused = False
            messages = self._consumer.consume(500, 0.2)
            self.records += sum(message.error() is None for message in messages)
            if self.assigned.is_set() and time.monotonic() - committed_at > 0.5:
                committed_at = time.monotonic()
                if self._consumer.position(self._consumer.assignment()) and self.records:
                    self._consumer.commit(asynchronous=True)
        self._consumer.close()

    def _on_assign(self, consumer: Consumer, positions: list[Position]) -> None:
        # Committed before anything is read, so that looks can tell what was read from the first record on.
        begin = [Position(one.topic, one.partition, 0) for one in positions]
        consumer.commit(offsets=begin, asynchronous=False)
        consumer.assign(begin)
        self.assigned.set()
