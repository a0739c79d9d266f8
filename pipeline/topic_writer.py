"""Writes records to a topic from the driver: weights and proposals, each confirmed by all replicas in sync.

One request is in flight, which keeps the order without a producer id: the client needs no right but to write. A record
whose confirmation is lost may be there twice; the topics are compacted, and a key's newest record counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from agent.errors import ClusterUnreachable, NotAllowed
from agent.record.librdkafka import NOT_ALLOWED, client_settings, error_text
from agent.values.kafka import ACKS, COMPRESSION_TYPE, DELIVERY_TIMEOUT_MS, LINGER_MS, MAX_IN_FLIGHT
from agent.values.number_format import counted
from config.kafka_client import KafkaClientConfig

_WRITE_S = 120.0
_POLL_S = 1.0
_SETTINGS = {
    ACKS: "all",
    "enable.idempotence": False,
    MAX_IN_FLIGHT: 1,
    COMPRESSION_TYPE: "lz4",
    LINGER_MS: 20,
    "queue.buffering.max.kbytes": 65_536,
    DELIVERY_TIMEOUT_MS: int(_WRITE_S * 1_000),
    "partitioner": "murmur2_random",  # the same as Java's, so that a key stays in its partition
}


class KeyedRecord(NamedTuple):
    """A record to write."""

    key: str
    value: bytes | None
    """None deletes the key."""
    headers: Sequence[tuple[str, bytes]] = ()


def write(
    kafka: KafkaClientConfig, name: str, records: Iterable[KeyedRecord], on_sent: Callable[[int], None] = lambda _: None
) -> int:
    """Write the records, of which a bounded queue is kept; their number.

    Raises NotAllowed when the user lacks the right to write, and ClusterUnreachable when some are not confirmed.
    """
    producer = Producer(client_settings(kafka.confluent(), _SETTINGS))
    failures: list[KafkaError] = []

    def done(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    number = 0
    for record in records:
        while True:
            try:
                producer.produce(
                    name, key=_key(record.key), value=record.value, headers=list(record.headers), on_delivery=done
                )
                break
            except BufferError:
                producer.poll(_POLL_S)
            except KafkaException as refused:  # by the client itself, such as a record that is too large
                failures.append(refused.args[0])
                break
        number += 1
        producer.poll(0)
        on_sent(number)
    left = producer.flush(_WRITE_S)
    if left or failures:
        what = f"{len(failures) + left} of {counted(number, 'record')} could not be written to {name}"
        why = error_text(failures[0]) if failures else "the brokers did not confirm them in time"
        if failures and failures[0].code() in NOT_ALLOWED:
            raise NotAllowed(what, why=why, todo=f"Grant WRITE on {name}.")
        raise ClusterUnreachable(what, why=why, todo="Run the command again: it writes the missing records.")
    return number


def _key(key: str) -> bytes:
    """The bytes that were read, where they are no text, too."""
    try:
        return key.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a surrogate pair out of JSON, as a name of a group may have
        return key.encode("utf-8", "replace")
