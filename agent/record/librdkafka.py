"""What every client of librdkafka is given, and what its errors mean: each in one place, for agent and pipeline.

Invariants: each client goes out under the configured ``client.id``, and none writes lines of its own to stderr; what
it would write there comes as an error, and an error becomes one of `agent.errors` here.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from agent.errors import AuthenticationFailed, ClusterUnreachable, ConfigError, NotAllowed, RackwiseError, TlsFailed
from agent.values.kafka import ALLOW_CREATE_TOPICS, AUTO_COMMIT, AUTO_OFFSET_STORE, CLIENT_ID, GROUP_ID, OFFSET_RESET
from agent.values.words import unknown_error
from config.kafka_keys import DEFAULT_CLIENT_ID

_KEPT = 8
_MOST_CAUSES = 3
_NOISE = re.compile(r"/bootstrap(?=:)| \(after \d+ms in state [^)]*\)|(?<=Connect to )ipv[46]#")
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


class Heard:
    """What a client told beside its answers, such as why it has no connection; give `settings` to the client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: tuple[KafkaError, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """What makes the client tell it here."""
        return {"error_cb": self._note}

    def errors(self) -> tuple[KafkaError, ...]:
        """The last ones, oldest first. A client tells only while it is polled."""
        with self._lock:
            return self._errors

    def _note(self, error: KafkaError) -> None:
        with self._lock:
            others = [one for one in self._errors if _clean(one) != _clean(error)]  # it tries again every second
            self._errors = (*others[1 - _KEPT :], error)


def refusal(
    failed: KafkaException | KafkaError, subject: str, heard: Iterable[KafkaError] = (), *, servers: str = ""
) -> RackwiseError:
    """What an error of the library means: a right that is missing, credentials, TLS, a missing topic, or silence.

    ``subject`` is what was asked about, such as ``topic rackwise.proposals``; ``servers`` is where.
    """
    error: KafkaError = failed.args[0] if isinstance(failed, KafkaException) else failed
    for one in (error, *heard):
        if one.code() in NOT_ALLOWED:
            return NotAllowed(
                f"This user may not use {subject}",
                why=in_words(one),
                todo="Grant it Describe and Read (docs/operations.md lists all rights), or use another user.",
            )
        if one.code() in _LOGIN_REFUSED:
            return AuthenticationFailed(
                "The brokers refused the login",
                why=in_words(one),
                todo="Check sasl.mechanism, sasl.username and sasl.password.",
            )
        if one.code() == KafkaError._SSL:  # noqa: SLF001 as above
            return TlsFailed("The TLS handshake failed", why=in_words(one), todo="Check security.protocol and ssl.*.")
    if error.code() in MISSING:
        return ConfigError(
            f"There is no {subject}",
            why="no agent has created it yet, or it has another name",
            todo="Start an agent, or check topics.prefix and the names of the topics.",
        )
    causes = list(dict.fromkeys(_cause(one) for one in heard if one.code() != KafkaError._ALL_BROKERS_DOWN))  # noqa: SLF001 as above
    if not causes:
        why = "no answer" if error.code() in _NO_ANSWER else _clean(error)
        causes = [f"{servers}: {why}" if servers else why]
    return ClusterUnreachable(
        f"No broker answered about {subject}",
        why="; ".join(causes[-_MOST_CAUSES:]),
        todo="Check bootstrap.servers and that the brokers run.",
    )


def in_words(error: KafkaError) -> str:
    """What the library says of an error, in words also where it has none for the broker's code."""
    text = str(error.str())
    return unknown_error(error.code()) if _NO_WORDS.fullmatch(text) else text


def _clean(error: KafkaError) -> str:
    return _NOISE.sub("", in_words(error))


def _cause(error: KafkaError) -> str:
    """What kept the library from one broker, as rackwise's own client words it."""
    said = _clean(error)
    if (found := _RESOLVE.fullmatch(said)) is not None:
        return f"host {found['host']} does not resolve"
    if (found := _CONNECT.fullmatch(said)) is not None:
        return f"{found['named'] or found['address']}: {found['why'].lower()}"
    return said


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
