"""Readers of one consumer group, some of librdkafka and some of Java, that note each offset, move and error."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from testbed.demo.workload.java import JavaHost

GROUP, TOPIC = "readers", "orders"
_SETTLES_WITHIN_S = 90.0
_PAUSE_S = 0.2

Offsets = dict[int, set[int]]


class PythonReader:
    """A member of librdkafka that names no assignor; it polls in a thread of its own until it is closed."""

    def __init__(self, bootstrap_servers: str, rack: str) -> None:
        self.rack, self.errors, self.events = rack, list[str](), 0
        self.held: frozenset[int] = frozenset()
        self.offsets: Offsets = {}
        self._ends = threading.Event()
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap_servers, "group.id": GROUP, "group.protocol": "consumer",
            "client.rack": rack, "auto.offset.reset": "earliest", "error_cb": self._told,
        })  # fmt: skip
        self._consumer.subscribe([TOPIC], on_assign=self._given, on_revoke=self._taken, on_lost=self._taken)
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        self._consumer.close()

    def _poll(self) -> None:
        while not self._ends.is_set():
            try:
                messages = self._consumer.consume(500, 0.2)
            except KafkaException as failed:
                self.errors.append(str(failed))
                return
            for message in messages:
                if (error := message.error()) is not None:
                    self.errors.append(str(error))
                else:
                    self.offsets.setdefault(message.partition(), set()).add(message.offset())

    def _told(self, error: KafkaError) -> None:
        if error.fatal():  # that a broker is being restarted is no error of the group
            self.errors.append(str(error))

    def _given(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.events += 1
        self.held |= {each.partition for each in partitions}

    def _taken(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.events += 1
        self.held -= {each.partition for each in partitions}


class LiveProducer:
    """Writes into all partitions until it is stopped."""

    def __init__(self, bootstrap_servers: str, partitions: int) -> None:
        self.written: Offsets = {}
        self._delivered_to: Counter[int] = Counter()
        self.errors: list[str] = []
        self._partitions, self._ends = partitions, threading.Event()
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "linger.ms": 5})
        self._thread = threading.Thread(target=self._produce, daemon=True)
        self._thread.start()

    def stop(self) -> Offsets:
        """The offsets of all records: of a record whose acknowledgement was lost the producer learns none.

        It is the only one, and idempotent: each record is in its partition once, from offset 0 on.
        """
        self._ends.set()
        self._thread.join()
        assert self._producer.flush(60) == 0
        assert self.errors == []
        every = {partition: set(range(count)) for partition, count in self._delivered_to.items()}
        assert all(offsets <= every[partition] for partition, offsets in self.written.items())
        return every

    def _produce(self) -> None:
        while not self._ends.wait(0.05):
            for partition in range(self._partitions):
                self._producer.produce(TOPIC, b"x", partition=partition, on_delivery=self._delivered)
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: object) -> None:
        if error is not None:
            self.errors.append(str(error))
            return
        partition, offset = message.partition(), message.offset()  # type: ignore[attr-defined]
        self._delivered_to[partition] += 1
        if offset >= 0:
            self.written.setdefault(partition, set()).add(offset)


class ReadingGroup:
    """One group with a reader of each library in each rack, and what is written for it."""

    def __init__(self, bootstrap_servers: str, version: str, racks: Iterable[str], partitions: int) -> None:
        self._servers, self._partitions = bootstrap_servers, partitions
        self.python: list[PythonReader] = []
        self._left: list[PythonReader] = []
        self._java = JavaHost(bootstrap_servers, version)
        self.racks: dict[str, str] = {}
        self._producer = LiveProducer(bootstrap_servers, partitions)
        for rack in racks:
            name = f"java-{rack}"
            self.racks[name] = rack
            self._java.start_consumer(name, GROUP, TOPIC, rack=rack, settings={"group.protocol": "consumer"})
            self.join(rack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self.python:
            reader.close()
        self._java.close()

    def join(self, rack: str) -> None:
        self.python.append(PythonReader(self._servers, rack))

    def leave(self) -> None:
        """The reader that joined last leaves."""
        reader = self.python.pop()
        reader.close()
        self._left.append(reader)

    def held(self) -> Mapping[str, frozenset[int]]:
        """Reader -> partitions that it holds; readers of librdkafka are numbered."""
        java = {
            one["id"]: frozenset(int(name.rpartition("-")[2]) for name in one["partitions"])
            for one in self._java.assignment()["consumers"]
        }
        return {**java, **{f"python-{n}": reader.held for n, reader in enumerate(self.python)}}

    def rack(self, name: str) -> str:
        return self.racks[name] if name in self.racks else self.python[int(name.removeprefix("python-"))].rack

    def moves(self) -> int:
        """How often a reader was given partitions, or had to give some back, so far."""
        return sum(one.events for one in (*self.python, *self._left)) + len(self._java.rebalances())

    def errors(self) -> list[str]:
        java = [one["error"] for one in self._java.assignment()["consumers"] if one["error"]]
        return java + [error for reader in (*self.python, *self._left) for error in reader.errors]

    def settled(self) -> Mapping[str, frozenset[int]]:
        """What each holds once every partition has one reader, evenly, for two seconds."""
        until, since, before = time.monotonic() + _SETTLES_WITHIN_S, time.monotonic(), None
        while True:
            held = self.held()
            sizes = sorted(map(len, held.values()))
            whole = sorted(each for one in held.values() for each in one) == list(range(self._partitions))
            if held != before or not whole or sizes[-1] - sizes[0] > 1:
                since = time.monotonic()
            if time.monotonic() - since > 2:
                return held
            assert time.monotonic() < until, held
            before = held
            time.sleep(_PAUSE_S)

    def unread(self) -> dict[int, set[int]]:
        """Partition -> offsets that were written and that no reader has read; call it once, at the end."""
        written = self._producer.stop()
        until = time.monotonic() + _SETTLES_WITHIN_S
        while True:
            read = self._read()
            missing = {number: offsets - read.get(number, set()) for number, offsets in written.items()}
            left = {number: offsets for number, offsets in missing.items() if offsets}
            if not left or time.monotonic() > until:
                assert len(written) == self._partitions
                return left
            time.sleep(_PAUSE_S)

    def _read(self) -> Offsets:
        read: Offsets = {}
        for reader in (*self.python, *self._left):
            for number, offsets in reader.offsets.items():
                read.setdefault(number, set()).update(offsets)
        for runs in self._java.offsets().values():
            for name, spans in runs.items():
                for first, last in spans:
                    read.setdefault(int(name.rpartition("-")[2]), set()).update(range(first, last + 1))
        return read
