"""Errors of the pipeline beyond the agent's own, and Spark's errors as sentences.

::

    RackwiseError
    └── Fatal
        └── DataLost     exit 1   records were deleted before they were read
"""

from __future__ import annotations

import re

from agent.errors import (
    AuthenticationFailed,
    BadInput,
    ClusterUnreachable,
    ConfigError,
    FatalFailure,
    NotAllowed,
    RackwiseError,
    TlsFailed,
)
from pipeline.store_errors import innermost_cause, store_error

_MOST = 20_000
_ADVICE = {
    ClusterUnreachable: "Check bootstrap.servers and that the brokers run; records read so far are kept.",
    AuthenticationFailed: "Check kafka.sasl.*.",
    NotAllowed: "Grant the user Describe and Read on the topics.",
    TlsFailed: "Check kafka.ssl.*.",
    ConfigError: "Start the agent first, or check topics.prefix and the names of the topics.",
}


class DataLost(FatalFailure):
    """Records were deleted before they were read; going on would hide the hole."""


def data_lost(topic: str, why: str) -> DataLost:
    """The error for records that are gone."""
    return DataLost(
        f"Records of {topic} were deleted before they were read",
        why=why,
        todo="Keep the topic longer (topics.*.retention) or ingest more often. To continue, add "
        "--accept-data-loss: the missing offsets are then recorded in bronze.quarantine.",
    )


def not_refreshed(root: str, table: str) -> BadInput:
    """The error of a command that reads gold tables, of which there is none."""
    return BadInput(
        f"{root} has no {table}",
        why="no refresh has found rows for it yet, or the tables are in another root or format",
        todo="Run `rackwise spark refresh` first, or give --tables and --format.",
    )


def of_spark(topic: str, message: str) -> RackwiseError:
    """What the end of a query means. Only the text is looked at: Spark gives no more."""
    text = message[:_MOST]
    why = innermost_cause(text, "Spark gave no reason")
    if re.search(r"failOnDataLoss|DATA_LOSS|OffsetOutOfRange", text):
        return data_lost(topic, why)
    if (of_store := store_error(text)) is not None:  # first: a store's silence is none of the brokers
        return of_store
    for words, kind, what in _MEANINGS:
        if re.search(words, text):
            return kind(what.format(topic=topic), why=why, todo=_ADVICE[kind])
    return RackwiseError(f"Reading {topic} failed", why=why, todo="Records read so far are kept.")


_SILENCE = "|".join(  # noqa: FLY002 a column of expressions is easier to read and to extend
    (
        r"kafka\.common\.errors\.(Timeout|Disconnect|Network)",
        r"TimeoutException",
        r"No resolvable bootstrap",
        r"Failed to (create new|construct) Kafka",
        r"node assignment",
        r"Connection refused",
        r"LeaderNotAvailable",
        r"NotLeaderOrFollower",
        r"Cannot fetch (record|offset)s? for",
    )
)
_MEANINGS: tuple[tuple[str, type[RackwiseError], str], ...] = (
    (r"SaslAuthenticationException", AuthenticationFailed, "The brokers refused the login"),
    (r"AuthorizationException", NotAllowed, "The brokers do not let this user read {topic}"),
    (r"SslAuthenticationException|SSLHandshakeException", TlsFailed, "The TLS handshake failed"),
    (r"UnknownTopicOrPartition|UnknownTopicId", ConfigError, "Topic {topic} no longer exists"),
    (_SILENCE, ClusterUnreachable, "The brokers no longer answer, so {topic} cannot be read"),
)
