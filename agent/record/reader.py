"""Reads rackwise's own topics without a group and without commits, and the agent's last memory.

Topics are looked up by the admin client: a consumer looks for its group's coordinator, and on a cluster that has never
had a group the brokers would create `__consumer_offsets`. Reads are bounded in time and records; an incomplete answer
is marked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import closing
from typing import NamedTuple

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from agent.record.librdkafka import MISSING, client_settings, error_text, reader_config
from agent.telemetry.events import EventKind, from_lines
from agent.telemetry.looks import restored_memory
from agent.values.clock import ClockReading
from agent.values.memory import Memory, after_restart
from agent.values.number_format import lasted
from agent.values.typed_json import UnreadableError

_POLL_S = 0.5
_BATCH = 500
_LEADERLESS = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 librdkafka's own public codes begin with an underscore
)
_RETRY_S = 0.2
_LEAST_S = 0.1


class ConsumerRecord(NamedTuple):
    """A record that was read."""

    partition: int
    offset: int
    key: str
    value: bytes | None
    headers: Mapping[str, str]
    appended_ms: int | None = None
    """Epoch milliseconds at which a broker appended it; None in a topic with `message.timestamp.type=CreateTime`."""


class OffsetRange(NamedTuple):
    """The offsets that a partition holds."""

    partition: int
    first: int
    end: int


class TopicReader:
    """Reads one topic until ``deadline`` (`time.monotonic`, s); make it with `open_reader`."""

    def __init__(self, config: Mapping[str, str | int], topic: str, prefix: str, deadline: float) -> None:
        self._config = config
        self._topic = topic
        self._prefix = prefix
        self._deadline = deadline
        self._opened: Consumer | None = None

    def spans(self, only: AbstractSet[int] | None = None) -> tuple[OffsetRange, ...]:
        """Offset ranges of the partitions, or of ``only`` those; none without such a topic. Raises KafkaException."""
        partitions = partitions_of(AdminClient(client_settings(self._config)), self._topic, self._left())
        return tuple(self._span(partition) for partition in partitions if only is None or partition in only)

    def read(self, spans: tuple[OffsetRange, ...]) -> Iterator[ConsumerRecord]:
        """Records of those offsets, in order in a partition, until the end or the deadline. Raises KafkaException."""
        wanted = {span.partition: span.end for span in spans if span.end > span.first}
        at = {span.partition: span.first for span in spans}
        self._consumer.assign([TopicPartition(self._topic, s.partition, s.first) for s in spans if s.end > s.first])
        while wanted and self._left() > 0:
            # The library waits for as many as it is asked for: no more than there are, or the last ones come late.
            most = max(1, min(_BATCH, sum(end - at[partition] for partition, end in wanted.items())))
            for message in self._consumer.consume(most, timeout=min(_POLL_S, self._left())):
                error = message.error()
                partition = _number(message.partition())
                if error is not None:
                    if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 as above
                        # Transaction markers and compacted tails hold offsets that no record has.
                        wanted.pop(partition, None)
                        continue
                    raise KafkaException(error)
                yield _read(message)
                at[partition] = _number(message.offset()) + 1
                if at[partition] >= wanted.get(partition, 0):
                    wanted.pop(partition, None)

    @property
    def in_time(self) -> bool:
        """False once the deadline has passed: the records read may not be all."""
        return self._left() > 0

    def close(self) -> None:
        """Close the consumer."""
        if self._opened is not None:
            self._opened.close()

    @property
    def _consumer(self) -> Consumer:
        self._opened = self._opened or Consumer(client_settings(self._config, reader_config(f"{self._prefix}-reader")))
        return self._opened

    def _span(self, partition: int) -> OffsetRange:
        """Raises KafkaException; a partition without leader is retried until the deadline."""
        while True:
            try:
                offsets = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), self._left())
            except KafkaException as error:
                if error.args[0].code() not in _LEADERLESS or self._left() == 0:
                    raise
                time.sleep(_RETRY_S)
                continue
            if offsets is None:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 as above
            return OffsetRange(partition, *offsets)

    def _left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


def open_reader(config: Mapping[str, str | int], topic: str, *, prefix: str, timeout_ms: int) -> closing[TopicReader]:
    """A reader of one topic for at most that long. Raises KafkaException when the brokers do not answer."""
    return closing(TopicReader(config, topic, prefix, time.monotonic() + timeout_ms / 1_000))


def partitions_of(admin: AdminClient, topic: str, timeout_s: float) -> tuple[int, ...]:
    """The topic's partitions, in order; none when there is no such topic. Raises KafkaException; creates nothing."""
    asked = admin.describe_topics(TopicCollection([topic]), request_timeout=max(_LEAST_S, timeout_s))
    try:
        described = asked[topic].result()
    except KafkaException as failed:
        if failed.args[0].code() in MISSING:
            return ()
        raise
    return tuple(sorted(partition.id for partition in described.partitions))


def _read(message: Message) -> ConsumerRecord:
    key, value = message.key(), message.value()
    headers = {str(pair[0]): _text(pair[1]) for pair in message.headers() or ()}
    clock, at_ms = message.timestamp()
    return ConsumerRecord(
        _number(message.partition()),
        _number(message.offset()),
        _text(key),
        value.encode() if isinstance(value, str) else value,
        headers,
        at_ms if clock == TIMESTAMP_LOG_APPEND_TIME else None,
    )


def _text(value: str | bytes | None) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""


def _number(value: int | None) -> int:
    return -1 if value is None else value


# Memory events lie in partition 0, which is read from its end in growing steps until a whole memory is found or the
# deadline. It is the memory that went *into* the last look recorded in full, with the findings of that look; without
# one the agent starts empty.

MEMORY_PARTITION = 0
_FIRST_STEP = 500
_GROWTH = 8


class RestoredMemory(NamedTuple):
    """The restored memory, and a sentence with its origin."""

    memory: Memory
    sentence: str
    found: bool


def restore(
    config: Mapping[str, str | int], topic: str, cluster: str, now: ClockReading, *, prefix: str, timeout_ms: int
) -> RestoredMemory:
    """The memory of the telemetry topic on this process's clock; an empty one, with the reason, when there is none."""
    try:
        with open_reader(config, topic, prefix=prefix, timeout_ms=timeout_ms) as reader:
            found, whole, left_out = _last_memory(reader, cluster)
    except KafkaException as error:
        return RestoredMemory(
            Memory(), f"no memory was restored: {topic} could not be read ({error_text(error.args[0])})", found=False
        )
    if found is None:
        why = f"{topic} holds no memory" if whole else f"no memory was found in the last records of {topic} in time"
        if left_out:
            why = f"{why}; {len(left_out)} of its records could not be read: {left_out[-1]}"
        return RestoredMemory(Memory(), f"no memory was restored: {why}", found=False)
    return restored_from(*found, now)


def restored_from(memory: Memory, look_ms: int, now: ClockReading) -> RestoredMemory:
    """The memory that went into the look of that epoch millisecond, on this process's clock."""
    ago = lasted(now.wall_ms - look_ms)
    sentence = f"restored the memory that went into look {memory.cycle + 1}, {ago} ago, and the findings of that look"
    return RestoredMemory(after_restart(memory, now.wall_ms, now.monotonic_ms), sentence, found=True)


def _last_memory(reader: TopicReader, cluster: str) -> tuple[tuple[Memory, int] | None, bool, list[str]]:
    """The newest memory of that cluster, whether the whole partition was read, and why records were unreadable."""
    left_out: list[str] = []
    span = next((span for span in reader.spans() if span.partition == MEMORY_PARTITION), None)
    if span is None:
        return None, True, left_out
    step, start = _FIRST_STEP, span.end
    while start > span.first and reader.in_time:
        start = max(span.first, span.end - step)
        tail = OffsetRange(MEMORY_PARTITION, start, span.end)
        left_out = []
        memory = newest_memory((read.value for read in reader.read((tail,)) if read.value), cluster, left_out.append)
        if memory is not None:
            return memory, True, left_out
        step *= _GROWTH
    return None, start <= span.first, left_out


def newest_memory(values: Iterable[bytes], cluster: str, left_out: Callable[[str], None]) -> tuple[Memory, int] | None:
    """The last readable memory of that cluster with its look's epoch milliseconds; an unreadable one hides no other."""
    memories = [one for one in from_lines(values, left_out) if one.kind is EventKind.MEMORY and one.cluster == cluster]
    for event in reversed(memories):
        try:
            return restored_memory(event), event.taken_ms
        except UnreadableError as error:
            left_out(str(error))
    return None
