"""The weights topic from the pipeline's side: created where it is missing, and read back.

Compacted, one record per topic and group of a cluster. Its replicas are where the brokers' own rack-aware placement
puts them. No group is joined and nothing is committed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from agent.errors import ClusterUnreachable, NotAllowed
from agent.record.librdkafka import NOT_ALLOWED, client_settings, error_text, reader_config, refusal
from agent.values.kafka import CLEANUP_POLICY, COMPACT, MIN_INSYNC_REPLICAS
from config.kafka_client import KafkaClientConfig

READ_S = 120.0
_CALL_S = 15.0
_POLL_S = 1.0
_CONFIGS = {
    CLEANUP_POLICY: COMPACT,
    # An agent that starts reads all of it: what is superseded shall go soon.
    "segment.ms": "3600000",
    "min.cleanable.dirty.ratio": "0.2",
}


def make_topic(kafka: KafkaClientConfig, name: str, *, replicas: int, min_insync: int) -> None:
    """Create the topic with one partition, on as many brokers as there are. Raises what `refusal` returns."""
    admin = AdminClient(client_settings(kafka.confluent()))
    try:
        factor = min(replicas, len(admin.list_topics(timeout=_CALL_S).brokers))
        # One replica must be able to fail without stopping the writer.
        configs = {**_CONFIGS, MIN_INSYNC_REPLICAS: str(max(1, min(min_insync, factor - 1)))}
        topic = NewTopic(name, num_partitions=1, replication_factor=factor, config=configs)
        admin.create_topics([topic], operation_timeout=_CALL_S, request_timeout=_CALL_S)[name].result(_CALL_S + 1)
    except KafkaException as failed:
        error: KafkaError = failed.args[0]
        if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        if error.code() in NOT_ALLOWED:
            raise NotAllowed(
                f"Topic {name} cannot be created",
                why=error_text(error),
                todo=f"Grant CREATE, DESCRIBE, READ and WRITE on {name}, or create it with {CLEANUP_POLICY}={COMPACT}.",
            ) from None
        raise refusal(failed, f"topic {name}") from None


def standing(kafka: KafkaClientConfig, name: str, partitions: Iterable[int], *, group: str) -> dict[str, bytes]:
    """Key -> newest value in the topic. Raises ClusterUnreachable when the topic cannot be read to its end."""
    consumer = Consumer(client_settings(kafka.confluent(), reader_config(group)))
    unread, values = set(partitions), dict[str, bytes]()
    until = time.monotonic() + READ_S
    try:
        consumer.assign([TopicPartition(name, number, 0) for number in sorted(unread)])
        while unread:
            if time.monotonic() > until:
                raise ClusterUnreachable(
                    f"{name} could not be read to its end", why=f"it took longer than {READ_S:g} s"
                )
            for message in consumer.consume(500, timeout=_POLL_S):
                _take(message, values, unread)
    except KafkaException as failed:
        raise refusal(failed, f"topic {name}") from None
    finally:
        consumer.close()
    return values


def _take(message: Message, values: dict[str, bytes], unread: set[int]) -> None:
    error = message.error()
    if error is not None:
        if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 librdkafka's own public codes begin with an underscore
            raise KafkaException(error)
        unread.discard(message.partition() or 0)
        return
    key, value = _bytes(message.key()).decode("utf-8", "surrogateescape"), message.value()
    values.pop(key, None)
    if value is not None:
        values[key] = _bytes(value)


def _bytes(data: str | bytes | None) -> bytes:
    return data.encode() if isinstance(data, str) else data or b""
