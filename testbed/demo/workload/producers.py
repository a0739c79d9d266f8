"""Producers of the workload: bounded rates, skewed over the partitions, the same with the same seed.

Invariant: no more than the planned records a second, also after a pause: what was missed is not made up for.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Collection, Sequence
from itertools import accumulate

from confluent_kafka import Producer

from agent.values.number_format import counted
from testbed.demo.workload.clientlog import LOG
from testbed.demo.workload.errors import WorkloadError
from testbed.demo.workload.plan import LoadPlan

_TICK_S = 0.2
_FLUSH_WITHIN_S = 60.0


def partition_weights(partitions: int, skew: float) -> tuple[float, ...]:
    """Cumulative weights of Zipf's law: partition p has a weight of 1 / (p + 1) ** skew."""
    return tuple(accumulate(1 / (partition + 1) ** skew for partition in range(partitions)))


class LoadGenerator:
    """A thread that writes the planned records until it is closed."""

    def __init__(
        self, bootstrap_servers: str, loads: Sequence[tuple[LoadPlan, int]], *, linger_ms: int = 500, seed: int = 1
    ) -> None:
        """`loads` are plans with their topics' partition counts."""
        self._tick_s = min(_TICK_S, linger_ms / 1_000)
        self._streams = [
            _Stream(load, partitions, random.Random(seed + at))  # noqa: S311 - load, not secrets
            for at, (load, partitions) in enumerate(loads)
        ]
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "client.id": "workload-producer",
                "linger.ms": linger_ms,
                "acks": "all",
                "queue.buffering.max.messages": 100_000,
                "on_delivery": self._delivered,
            },
            logger=LOG,
        )
        self._ending = threading.Event()
        self._paused: set[str] = set()
        self._failures = 0
        self._last_failure: str | None = None
        self._thread = threading.Thread(target=self._run, name="workload-load", daemon=True)

    def preload(self, topics: Collection[str]) -> int:
        """Write the preloads of these topics; the number of records. Raises WorkloadError when some failed."""
        count = 0
        for stream in (one for one in self._streams if one.load.topic in topics):
            for at in range(stream.load.preload_records):
                self._send(stream, at % stream.partitions)
                count += 1
        left = self._producer.flush(_FLUSH_WITHIN_S)
        if left or self._failures:
            raise WorkloadError(
                f"{left + self._failures} of {counted(count, 'record')} could not be written",
                why=self._last_failure or f"the brokers did not take them within {_FLUSH_WITHIN_S:.0f} s",
            )
        return count

    def start(self) -> None:
        """Begin with the steady load."""
        self._thread.start()

    def pause(self, topic: str) -> None:
        """Stop writing to a topic until `resume`."""
        self._paused.add(topic)

    def resume(self, topic: str) -> None:
        """Write to a paused topic again."""
        self._paused.discard(topic)

    @property
    def failures(self) -> int:
        """Records the brokers did not take."""
        return self._failures

    def close(self) -> None:
        """Stop writing; what is still buffered gets a moment, then is dropped."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        self._producer.purge(in_queue=True, in_flight=True, blocking=False)
        self._producer.close()

    def _run(self) -> None:
        before = time.monotonic()
        while not self._ending.wait(self._tick_s):
            now = time.monotonic()
            # A tick that came late (a busy machine) must not become a burst.
            elapsed_s = min(now - before, 2 * self._tick_s)
            before = now
            for stream in self._streams:
                if stream.load.topic not in self._paused:
                    for _ in range(stream.due(elapsed_s)):
                        self._send(stream, stream.any_partition())
            self._producer.poll(0)

    def _send(self, stream: _Stream, partition: int) -> None:
        key, value = stream.record(partition)
        while True:
            try:
                self._producer.produce(stream.load.topic, value, key, partition)
            except BufferError:
                # The queue is full: brokers are slow or away. Waiting here is what bounds the memory.
                if self._ending.is_set():
                    return
                self._producer.poll(0.1)
            else:
                return

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self._failures += 1
            self._last_failure = str(error)


class _Stream:
    """The records of one load plan."""

    def __init__(self, load: LoadPlan, partitions: int, chance: random.Random) -> None:
        self.load = load
        self.partitions = partitions
        self._chance = chance
        self._weights = partition_weights(partitions, load.skew)
        self._value = chance.randbytes(load.value_bytes)
        self._owed = 0.0

    def due(self, elapsed_s: float) -> int:
        self._owed += elapsed_s * self.load.records_per_s
        count = int(self._owed)
        self._owed -= count
        return count

    def any_partition(self) -> int:
        return self._chance.choices(range(self.partitions), cum_weights=self._weights)[0]

    def record(self, partition: int) -> tuple[bytes, bytes]:
        """A key that always belongs to this partition, and the value."""
        key = self._chance.randrange(max(1, self.load.keys // self.partitions))
        return f"{partition}-{key}".encode(), self._value
