"""Reads rackwise's own topics back, without joining a group and without committing anything.

Whether a topic is there is asked without a consumer: the library's consumers look for their group's coordinator, and on
a cluster that has never had a group the brokers would make `__consumer_offsets` for it.

Every read is bounded in time and in records; what could not be read in that time is missing from the answer, which says
so. Used after a restart, by `proposals` and by commands that show what was published.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
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

from agent.record.librdkafka import client_settings, reader_config

_POLL_S = 0.5
_BATCH = 500
_MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001 librdkafka's own public codes begin with an underscore
_LEADERLESS = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 as above
)
_RETRY_S = 0.2
_LEAST_S = 0.1


class Read(NamedTuple):
    """A record that was read."""

    partition: int
    offset: int
    key: str
    value: bytes | None
    headers: Mapping[str, str]
    appended_ms: int | None = None
    """Epoch milliseconds at which a broker appended it; None in a topic with `message.timestamp.type=CreateTime`."""


class Span(NamedTuple):
    """The offsets that a partition holds."""

    partition: int
    first: int
    end: int


class TopicReader:
    """Reads one topic; make it with `open_reader`."""

    def __init__(self, config: Mapping[str, str | int], topic: str, prefix: str, deadline: float) -> None:
        self._config = config
        self._topic = topic
        self._prefix = prefix
        self._deadline = deadline
        self._opened: Consumer | None = None

    def spans(self, only: AbstractSet[int] | None = None) -> tuple[Span, ...]:
        """The partitions, or ``only`` those, with what they hold; none without such a topic. Raises KafkaException."""
        partitions = partitions_of(AdminClient(client_settings(self._config)), self._topic, self._left())
        return tuple(self._span(partition) for partition in partitions if only is None or partition in only)

    def read(self, spans: tuple[Span, ...]) -> Iterator[Read]:
        """Records of those offsets, in order within a partition, until all are read or the time is over."""
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
        """False once the time is over: what was read may not be everything."""
        return self._left() > 0

    def close(self) -> None:
        """Let the brokers go."""
        if self._opened is not None:
            self._opened.close()

    @property
    def _consumer(self) -> Consumer:
        self._opened = self._opened or Consumer(client_settings(self._config, reader_config(f"{self._prefix}-reader")))
        return self._opened

    def _span(self, partition: int) -> Span:
        """Raises KafkaException; a partition whose leader is just being chosen is asked again while there is time."""
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
            return Span(partition, *offsets)

    def _left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


@contextmanager
def open_reader(config: Mapping[str, str | int], topic: str, *, prefix: str, timeout_ms: int) -> Iterator[TopicReader]:
    """A reader of one topic for at most that long. Raises KafkaException when the brokers do not answer."""
    reader = TopicReader(config, topic, prefix, time.monotonic() + timeout_ms / 1_000)
    try:
        yield reader
    finally:
        reader.close()


def partitions_of(admin: AdminClient, topic: str, timeout_s: float) -> tuple[int, ...]:
    """The topic's partitions, in order; none when there is no such topic. Raises KafkaException; creates nothing."""
    asked = admin.describe_topics(TopicCollection([topic]), request_timeout=max(_LEAST_S, timeout_s))
    try:
        described = asked[topic].result()
    except KafkaException as failed:
        if failed.args[0].code() in _MISSING:
            return ()
        raise
    return tuple(sorted(partition.id for partition in described.partitions))


def _read(message: Message) -> Read:
    key, value = message.key(), message.value()
    headers = {str(pair[0]): _text(pair[1]) for pair in message.headers() or ()}
    clock, at_ms = message.timestamp()
    return Read(
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
