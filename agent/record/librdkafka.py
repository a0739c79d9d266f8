"""librdkafka: common client configuration, mapping of errors to `agent.errors`, and the producer of own topics.

Invariants: each client has the configured ``client.id``; librdkafka writes nothing to stderr, its log lines become
errors.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from agent.errors import AuthenticationFailed, ClusterUnreachable, ConfigError, NotAllowed, RackwiseError, TlsFailed
from agent.values.kafka import (
    ACKS,
    ALLOW_CREATE_TOPICS,
    AUTO_COMMIT,
    AUTO_OFFSET_STORE,
    CLIENT_ID,
    COMPRESSION_TYPE,
    DELIVERY_TIMEOUT_MS,
    GROUP_ID,
    LINGER_MS,
    MAX_IN_FLIGHT,
    OFFSET_RESET,
)
from agent.values.number_format import unknown_error
from config.kafka_keys import DEFAULT_CLIENT_ID

_KEPT = 8
_MOST_CAUSES = 3
_NOISE = re.compile(r"/bootstrap(?=:)| \(after \d+ms in state (?:[^()]|\(s\))*\)|(?<=Connect to )ipv[46]#")
_CONNECT = re.compile(r"(?:(?P<named>\S+): )?Connect to (?P<address>\S+) failed: (?P<why>.+)", re.DOTALL)
_NO_WORDS = re.compile(r"Err-(-?\d+)\?")
_RESOLVE = re.compile(r".*Failed to resolve '(?P<host>[^']+?)(?::\d+)?':.*", re.DOTALL)
NOT_ALLOWED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
MISSING = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 librdkafka's own public codes begin with an underscore
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 as above
    }
)
_NO_ANSWER = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN})  # noqa: SLF001 as above
_LOGIN_REFUSED = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})  # noqa: SLF001 as above


def client_settings(config: Mapping[str, Any], *more: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of one client: those of the connection, with what else it needs over them."""
    settings: dict[str, Any] = {CLIENT_ID: DEFAULT_CLIENT_ID, **config}
    for part in more:
        settings |= part
    return settings | {"log_level": 0}


class ClientErrors:
    """A client's errors beside its answers, such as failed connections; `settings` go into the client's config."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: tuple[KafkaError, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """The client settings that report errors to this object."""
        return {"error_cb": self._note}

    def errors(self) -> tuple[KafkaError, ...]:
        """The last errors, oldest first. A client reports them only while it is polled."""
        with self._lock:
            return self._errors

    def _note(self, error: KafkaError) -> None:
        with self._lock:
            others = [one for one in self._errors if _clean(one) != _clean(error)]  # it tries again every second
            self._errors = (*others[1 - _KEPT :], error)


def refusal(
    failed: KafkaException | KafkaError, subject: str, logged: Iterable[KafkaError] = (), *, servers: str = ""
) -> RackwiseError:
    """What an error of the library means: a right that is missing, credentials, TLS, a missing topic, or silence.

    ``subject`` is what was asked about, such as ``topic rackwise.proposals``; ``servers`` is where.
    """
    error: KafkaError = failed.args[0] if isinstance(failed, KafkaException) else failed
    for one in (error, *logged):
        if one.code() in NOT_ALLOWED:
            return NotAllowed(
                f"This user may not use {subject}",
                why=error_text(one),
                todo="Grant it Describe and Read (docs/operations.md lists all rights), or use another user.",
            )
        if one.code() in _LOGIN_REFUSED:
            return AuthenticationFailed(
                "The brokers refused the login",
                why=error_text(one),
                todo="Check sasl.mechanism, sasl.username and sasl.password.",
            )
        if one.code() == KafkaError._SSL:  # noqa: SLF001 as above
            return TlsFailed("The TLS handshake failed", why=error_text(one), todo="Check security.protocol and ssl.*.")
    if error.code() in MISSING:
        return ConfigError(
            f"There is no {subject}",
            why="no agent has created it yet, or it has another name",
            todo="Start an agent, or check topics.prefix and the names of the topics.",
        )
    causes = list(dict.fromkeys(_cause(one) for one in logged if one.code() != KafkaError._ALL_BROKERS_DOWN))  # noqa: SLF001 as above
    if not causes:
        why = "no answer" if error.code() in _NO_ANSWER else _clean(error)
        causes = [f"{servers}: {why}" if servers else why]
    return ClusterUnreachable(
        f"No broker answered about {subject}",
        why="; ".join(causes[-_MOST_CAUSES:]),
        todo="Check bootstrap.servers and that the brokers run.",
    )


def error_text(error: KafkaError) -> str:
    """The library's text of an error, in words also where it has none for the broker's code."""
    text = str(error.str())
    return unknown_error(error.code()) if _NO_WORDS.fullmatch(text) else text


def _clean(error: KafkaError) -> str:
    return _NOISE.sub("", error_text(error))


def _cause(error: KafkaError) -> str:
    """A failed connection to one broker in the sentence of rackwise's own client."""
    text = _clean(error)
    if (found := _RESOLVE.fullmatch(text)) is not None:
        return f"host {found['host']} does not resolve"
    if (found := _CONNECT.fullmatch(text)) is not None:
        return f"{found['named'] or found['address']}: {found['why'].lower()}"
    return text


def reader_config(group: str) -> dict[str, str | int | float | bool]:
    """The settings of every consumer of rackwise's own topics: it joins no group, commits nothing and creates nothing.

    Partitions are assigned by hand, and the end of a partition is an error of its own. Other values go on top of these.
    """
    return {
        GROUP_ID: group,  # the library wants one; without subscription and commits none is made
        AUTO_COMMIT: False,
        AUTO_OFFSET_STORE: False,
        "enable.partition.eof": True,
        OFFSET_RESET: "earliest",
        ALLOW_CREATE_TOPICS: False,
        "isolation.level": "read_committed",
    }


# Invariants of the producer: no call outlasts its deadline; records that do not fit the bounded queue are dropped and
# counted; no broker makes it raise. acks=all with one request in flight keeps the order without a producer id, so the
# client needs no right but to write.

PRODUCER: Mapping[str, str | int] = {
    ACKS: "all",
    MAX_IN_FLIGHT: 1,
    COMPRESSION_TYPE: "zstd",
    LINGER_MS: 20,
    "queue.buffering.max.kbytes": 65_536,
    DELIVERY_TIMEOUT_MS: 60_000,
    "partitioner": "murmur2_random",  # the same as Java's, so that any consumer finds a key where it looks
}
"""Settings of the producer beside those of the connection."""
_WAIT_S = 0.05
_BY_KEY = -1


class ProducerRecord(NamedTuple):
    """A record to write."""

    topic: str
    key: str
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()
    partition: int | None = None
    """None leaves it to the key."""


class RecordCounts(NamedTuple):
    """Records since the start."""

    written: int
    failed: int
    dropped: int


class TopicPublisher:
    """One producer for all of rackwise's topics."""

    def __init__(
        self, config: Mapping[str, str | int], *, queue_records: int, on_gone: Callable[[str], None] = lambda _: None
    ) -> None:
        self._lock = threading.Lock()
        self._written = self._failed = self._dropped = 0
        self._problems: dict[str, str] = {}
        self._on_gone = on_gone
        settings = {**PRODUCER, "queue.buffering.max.messages": queue_records, "error_cb": self._on_error}
        self._producer = Producer(client_settings(config, settings))

    def write(self, records: Iterable[ProducerRecord], deadline_ms: int) -> None:
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

    def counts(self) -> RecordCounts:
        """Records so far, by outcome."""
        with self._lock:
            return RecordCounts(self._written, self._failed, self._dropped)

    def begin(self) -> None:
        """Clear the problems of earlier records."""
        with self._lock:
            self._problems = {name: problem for name, problem in self._problems.items() if not name}

    def problems(self) -> tuple[str, ...]:
        """A sentence for each topic whose last records were not all written, and for the connection itself."""
        with self._lock:
            return tuple(f"{topic}: {problem}" if topic else problem for topic, problem in self._problems.items())

    def _queued(self, record: ProducerRecord) -> bool:
        """False when the queue is full; a record that can never be written counts as failed."""
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
            self._count(record.topic, failed=1, problem=error_text(error.args[0]))
        return True

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        topic = str(message.topic())
        if error is None:
            self._count(topic, written=1)
            return
        self._count(topic, failed=1, problem=error_text(error))
        if error.code() in MISSING:
            self._on_gone(topic)

    def _on_error(self, error: KafkaError) -> None:
        """The connection itself has a problem; it is over once a record is written."""
        with self._lock:
            self._problems[""] = error_text(error)

    def _count(self, topic: str, *, written: int = 0, failed: int = 0, dropped: int = 0, problem: str = "") -> None:
        with self._lock:
            self._written += written
            self._failed += failed
            self._dropped += dropped
            if problem:
                self._problems[topic] = problem
            else:
                self._problems.pop("", None)
