"""Follows the weights topic in a thread of its own; a look takes the weights known at its end.

Invariants: only the first look waits for it, at most `FIRST_WAIT_MS`; no record raises; at most `MOST_BYTES` are kept;
no group, commit or topic is made. An unreadable record counts as one, with a sentence, until its key is written anew;
a deleted topic takes its weights along.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from agent.errors import WEIGHTS, thread, unexpected
from agent.record.librdkafka import client_settings, error_text, reader_config
from agent.record.reader import partitions_of
from agent.telemetry.topic_records import UnreadableWeightsError, weights_of
from agent.values.kafka import FETCH_WAIT_MS
from agent.values.observation import Gap, GapCause, Observation, ObservationPart
from agent.values.weights import GroupRates, TopicRates, TopicWeights, WeightsReading, group_rates, topic_rates

if TYPE_CHECKING:
    from config.settings import Settings

FIRST_WAIT_MS = 3_000
"""How long the first look waits until the topic was read to its end once."""
MOST_BYTES = 64 * 1024 * 1024
"""Of values that are kept; 100,000 partitions and as many reads are 20 MB."""
MOST_KEYS = 200_000
MOST_PARTITIONS = 64
_CHECK_S = 30.0
_POLL_S = 0.2
_CLOSE_S = 0.4
_BATCH = 100
_CALL_S = 10.0
_BOUNDS = {"queued.max.messages.kbytes": 8_192, "fetch.message.max.bytes": 1_048_576, FETCH_WAIT_MS: 1_000}
_DENIED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED)


class _Kept(NamedTuple):
    """The newest record of one key."""

    cluster: str
    size: int
    rates: TopicRates | GroupRates | None
    problem: str | None
    """Why it could not be read; None when it could."""


class KeptWeights:
    """The newest record of each key, within bounds. Not safe for several threads by itself."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._kept: dict[bytes, _Kept] = {}
        self._bytes = 0
        self._left_out = 0
        self._readings: dict[str, WeightsReading] = {}

    def put(self, key: bytes, kept: _Kept | None) -> None:
        """Keep one record; None deletes its key."""
        before = self._kept.pop(key, None)
        self._readings.clear()
        if before is not None:
            self._bytes -= before.size
        if kept is None:
            return
        if self._bytes + kept.size > MOST_BYTES or len(self._kept) >= MOST_KEYS:
            self._left_out += 1
            return
        self._kept[key] = kept
        self._bytes += kept.size

    def clear(self) -> None:
        """Forget all: the topic was deleted or recreated."""
        self._kept.clear()
        self._readings.clear()
        self._bytes = self._left_out = 0

    def reading(self, cluster: str) -> WeightsReading:
        """The weights of that cluster; the same object for as long as no record comes."""
        known = self._readings.get(cluster)
        if known is None:
            known = self._readings[cluster] = self._read_out(cluster)
        return known

    def _read_out(self, cluster: str) -> WeightsReading:
        here = [kept for _, kept in sorted(self._kept.items()) if kept.cluster == cluster or kept.problem is not None]
        problems = [kept.problem for kept in here if kept.problem is not None]
        if self._left_out:
            problems.append(f"{self._left_out} more than the {MOST_BYTES // 2**20} MiB that are kept")
        return WeightsReading(
            topic=self._topic,
            topics=tuple([kept.rates for kept in here if isinstance(kept.rates, TopicRates)]),
            groups=tuple([kept.rates for kept in here if isinstance(kept.rates, GroupRates)]),
            others=len(self._kept) - len(here),
            unreadable=len(problems) + max(0, self._left_out - 1),
            example=problems[0] if problems else None,
        )


class WeightsReader:
    """Follows the topic in a thread. Make it with `config` of a Kafka client, and close it."""

    def __init__(self, config: Mapping[str, str | int], topic: str, *, prefix: str) -> None:
        self._config = config
        self._topic = topic
        self._prefix = prefix
        self._lock = threading.Lock()
        self._kept = KeptWeights(topic)
        self._missing: str | None = f"{topic} has not been read yet"
        self._gap: Gap | None = None
        self._first = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def beside(self, look: Callable[[], Observation]) -> Observation:
        """The look's observation with the weights known at its end."""
        self._start()
        observation = look()
        self._first.wait(FIRST_WAIT_MS / 1_000)
        self._first.set()  # it is waited for once
        with self._lock:
            gap = self._gap
            weights = self._kept.reading(observation.cluster_id)
            if self._missing is not None:
                weights = WeightsReading(self._topic, missing=self._missing)
        gaps = observation.gaps if gap is None else (*observation.gaps, gap)
        return replace(observation, weights=weights, gaps=gaps)

    def close(self) -> None:
        """End the thread; one that waits for a silent broker ends with the process."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = thread(WEIGHTS, self._run)
            self._thread.start()

    def _run(self) -> None:
        """Read until `close`; a failure becomes a gap and is retried."""
        while not self._stop.is_set():
            try:
                self._read_once()
            except KafkaException as error:
                self._failed(error_text(error.args[0]), denied=error.args[0].code() in _DENIED)
            except Exception as error:  # noqa: BLE001 what goes wrong beside the looks must not end quietly
                self._failed(unexpected(error), denied=False)
            self._stop.wait(_CHECK_S if self._first.is_set() else _POLL_S)

    def _read_once(self) -> None:
        """Raises KafkaException."""
        admin = AdminClient(client_settings(self._config))
        partitions = self._partitions(admin)
        if not partitions:
            return
        consumer = Consumer(client_settings(self._config, reader_config(f"{self._prefix}-reader"), _BOUNDS))
        try:
            self._follow(consumer, partitions, admin)
        finally:
            consumer.close()

    def _follow(self, consumer: Consumer, partitions: tuple[int, ...], admin: AdminClient) -> None:
        """Read the topic, then follow it for as long as it exists unchanged. Raises KafkaException."""
        consumer.assign([TopicPartition(self._topic, number, 0) for number in partitions])
        unread, kept = set(partitions), KeptWeights(self._topic)
        check = time.monotonic() + _CHECK_S
        while not self._stop.is_set():
            read = [_of_message(message, unread) for message in consumer.consume(_BATCH, timeout=_POLL_S)]
            with self._lock:
                for pair in read:
                    if pair is not None:
                        kept.put(*pair)
                if not unread:  # read to the end once: from now on it is what there is
                    self._kept, self._missing, self._gap = kept, None, None
            if not unread:
                self._first.set()
            if time.monotonic() >= check:
                check = time.monotonic() + _CHECK_S
                if self._partitions(admin) != partitions:
                    return

    def _partitions(self, admin: AdminClient) -> tuple[int, ...]:
        """The topic's partitions; none where it is missing, which is remembered. Raises KafkaException."""
        partitions = partitions_of(admin, self._topic, _CALL_S)
        if partitions:
            return partitions[:MOST_PARTITIONS]
        with self._lock:
            self._kept.clear()
            self._missing, self._gap = f"there is no topic {self._topic}", None
        self._first.set()
        return ()

    def _failed(self, why: str, *, denied: bool) -> None:
        """Records read before stay, and age; without any the failure is a gap."""
        cause = GapCause.NOT_ALLOWED if denied else GapCause.UNREACHABLE
        with self._lock:
            if self._missing is not None:
                self._missing = f"{self._topic} could not be read ({why})"
                self._gap = Gap(ObservationPart.WEIGHTS, cause, "", self._missing)
        self._first.set()


def read_record(key: bytes, value: bytes) -> _Kept:
    """A record's rates, or why it is unreadable. Raises nothing."""
    name = key.decode("utf-8", "replace")
    size = len(key) + len(value)
    try:
        weights = weights_of(name, value)
    except UnreadableWeightsError as error:
        return _Kept(name.partition("/")[0][:64], size, None, str(error)[:300])
    rates = topic_rates(weights) if isinstance(weights, TopicWeights) else group_rates(weights)
    return _Kept(weights.cluster, size, rates, None)


def _of_message(message: Message, unread: set[int]) -> tuple[bytes, _Kept | None] | None:
    """(key, its record); None for the end of a partition, which is then read. Raises KafkaException."""
    error = message.error()
    if error is None:
        key, value = _bytes(message.key()) or b"", _bytes(message.value())
        return key, None if value is None else read_record(key, value)
    if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 librdkafka's own public codes begin with an underscore
        raise KafkaException(error)
    unread.discard(message.partition() or 0)
    return None


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


@contextmanager
def observe_with_weights(settings: Settings) -> Iterator[Callable[[Callable[[], Observation]], Observation]]:
    """A wrapper of looks that adds the pipeline's weights where ``weights.enabled``."""
    if not settings.weights.enabled:
        yield lambda look: look()
        return
    reader = WeightsReader(settings.kafka.confluent(), settings.weights_topic, prefix=settings.topics.prefix)
    with closing(reader):
        yield reader.beside
