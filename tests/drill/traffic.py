"""A producer that waits for all replicas, and a checker that finds every record which was acknowledged."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from assignors.problem import TopicPartition

_PER_S = 100
_PADDING = b"x" * 400
_MARK = b"seq:"


class Traffic:
    """Writes to every partition of some topics until the context is left."""

    def __init__(self, servers: str, partitions: Sequence[TopicPartition]) -> None:
        self._servers = servers
        self._partitions = list(partitions)
        self._producer = Producer({
            "bootstrap.servers": servers, "acks": "all", "enable.idempotence": True, "linger.ms": 5,
            "delivery.timeout.ms": 180_000, "log_level": 0,
        })  # fmt: skip
        self.acked: dict[TopicPartition, set[int]] = {partition: set() for partition in partitions}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._produce, name="traffic", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(60)
        self._producer.flush(60)

    def lost(self, partitions: Sequence[TopicPartition]) -> tuple[int, int]:
        """Of how many acknowledged records of these partitions how many cannot be read any more."""
        wanted = {partition: set(self.acked[partition]) for partition in partitions}
        checker = Consumer({
            "bootstrap.servers": self._servers, "group.id": "drill-checker", "enable.auto.commit": False,
            "enable.partition.eof": True, "auto.offset.reset": "earliest",
        })  # fmt: skip
        checker.assign([Position(partition.topic, partition.partition, 0) for partition in partitions])
        ended: set[TopicPartition] = set()
        until = time.monotonic() + 120
        try:
            while len(ended) < len(wanted) and time.monotonic() < until:
                for message in checker.consume(500, 1.0):
                    partition = TopicPartition(message.topic() or "", message.partition() or 0)
                    if message.error() is not None:
                        if message.error().name() == "_PARTITION_EOF":
                            ended.add(partition)
                        continue
                    value = message.value() or b""
                    if value.startswith(_MARK):
                        wanted[partition].discard(int(value[len(_MARK) :].split(b" ")[0]))
        finally:
            checker.close()
        assert len(ended) == len(wanted), "the checker could not read to the end"
        return sum(len(self.acked[partition]) for partition in partitions), sum(map(len, wanted.values()))

    def _produce(self) -> None:
        number = 0
        while not self._stop.is_set():
            for partition in self._partitions:
                self._send(partition, number)
                number += 1
            self._producer.poll(0)
            self._stop.wait(len(self._partitions) / _PER_S)

    def _send(self, partition: TopicPartition, number: int) -> None:
        def acknowledged(error: Any, _message: Any) -> None:
            if error is None:
                self.acked[partition].add(number)

        value = _MARK + str(number).encode() + b" " + _PADDING
        try:
            self._producer.produce(partition.topic, value, partition=partition.partition, on_delivery=acknowledged)
        except BufferError:
            self._producer.poll(0.1)
