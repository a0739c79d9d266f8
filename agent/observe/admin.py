"""The everyday admin client (librdkafka): configs of brokers and groups, and why it cannot connect.

librdkafka answers a wrong password or CA with "timed out"; the cause comes only in a callback, and only while somebody
polls. This module polls while it waits, keeps the gravest cause and gives it instead. Two of the client's calls,
`describe_consumer_groups` and `describe_cluster`, are used nowhere in rackwise: either can abort the whole process.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # two of them are documented, but not in __all__
    AdminClient,
    ConfigResource,
    ResourceType,
)

from agent.errors import AuthenticationFailed, ConfigError, RackwiseError, TlsFailed
from agent.observation import Gap, GapCause, Part
from agent.wire import CallFailed

_POLL_S = 0.05
_FORGET_REFUSAL_S = 30.0
_NOT_ALLOWED = {
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
}
_TIMED_OUT = {KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE, KafkaError.REQUEST_TIMED_OUT}  # noqa: SLF001 public names of the library in spite of their dash


class Configs(NamedTuple):
    """Resource name -> key -> value in force; a key without a value is absent."""

    values: dict[str, dict[str, str]]
    gaps: tuple[Gap, ...]


class Admin:
    """One long-lived AdminClient. Nothing is connected before the first call; keep it, and close it at the end."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._refusal: tuple[float, RackwiseError] | None = None
        try:
            # Without this librdkafka pushes its own metrics to brokers that ask, and an observer writes nothing.
            quiet = {**settings, "enable.metrics.push": "false", "error_cb": self._note}
            self._client: AdminClient | None = AdminClient(quiet, logger=_silent_log())
        except KafkaException as error:
            raise ConfigError("The connection settings were refused", why=error.args[0].str()) from error

    @property
    def refusal(self) -> RackwiseError | None:
        """Why brokers refused us in the last half minute; None when nobody did."""
        if self._refusal is None or time.monotonic() - self._refusal[0] > _FORGET_REFUSAL_S:
            return None
        return self._refusal[1]

    def broker_configs(self, brokers: Iterable[int], keys: Iterable[str], timeout_ms: int) -> Configs:
        """Those configs of each broker, from the broker itself; a broker that failed is a gap. Raises CallFailed."""
        resources = [ConfigResource(ResourceType.BROKER, str(broker)) for broker in brokers]
        # One call a broker: only then does one that is silent not hold up the others.
        futures = {str(one.name): self._ask([one], timeout_ms)[str(one.name)] for one in resources}
        return self._collect(Part.BROKER_CONFIGS, futures, frozenset(keys), timeout_ms, prefix="broker ")

    def group_configs(self, groups: Sequence[str], timeout_ms: int) -> Configs:
        """All configs of each KIP-848 or KIP-1071 group; a group that failed is a gap. Raises CallFailed."""
        if not groups:
            return Configs({}, ())
        futures = self._ask([ConfigResource(ResourceType.GROUP, group) for group in groups], timeout_ms)
        return self._collect(Part.GROUP_CONFIGS, futures, None, timeout_ms, prefix="")

    def close(self) -> None:
        """Let go of the client, which ends its threads."""
        self._client = None

    def _ask(self, resources: list[ConfigResource], timeout_ms: int) -> dict[str, Future[Any]]:
        if self._client is None:
            raise CallFailed(GapCause.UNREACHABLE, "the client is closed")
        try:
            asked = self._client.describe_configs(resources, request_timeout=timeout_ms / 1000)
        except KafkaException as error:
            raise CallFailed(GapCause.ERROR, error.args[0].str()) from error
        return {str(resource.name): future for resource, future in asked.items()}

    def _collect(
        self,
        part: Part,
        futures: Mapping[str, Future[Any]],
        keys: frozenset[str] | None,
        timeout_ms: int,
        *,
        prefix: str,
    ) -> Configs:
        self._poll_until_done(futures.values(), timeout_ms)
        values: dict[str, dict[str, str]] = {}
        gaps: list[Gap] = []
        for name, future in futures.items():
            error = future.exception() if future.done() else None
            if not future.done():
                gaps.append(Gap(part, GapCause.TIMED_OUT, f"{prefix}{name}", "no answer in time"))
            elif error is not None:
                gaps.append(self._gap(part, f"{prefix}{name}", error))
            else:
                wanted = future.result().items()
                values[name] = {
                    key: entry.value
                    for key, entry in wanted
                    if entry.value is not None and (keys is None or key in keys)
                }
        return Configs(values, tuple(gaps))

    def _poll_until_done(self, futures: Iterable[Future[Any]], timeout_ms: int) -> None:
        """Wait, and let the client tell its errors meanwhile."""
        until = time.monotonic() + timeout_ms / 1000
        waiting = list(futures)
        while waiting and time.monotonic() < until and self._client is not None:
            waiting = list(wait(waiting, timeout=_POLL_S).not_done)
            self._client.poll(0)

    def _gap(self, part: Part, subject: str, error: BaseException) -> Gap:
        if not isinstance(error, KafkaException):
            raise error
        told: KafkaError = error.args[0]
        if told.code() in _NOT_ALLOWED:
            return Gap(part, GapCause.NOT_ALLOWED, subject, told.name())
        if told.code() == KafkaError.UNSUPPORTED_VERSION:
            return Gap(part, GapCause.UNSUPPORTED, subject, told.str())
        if self.refusal is not None:
            return Gap(part, GapCause.UNREACHABLE, subject, str(self.refusal))
        return Gap(part, GapCause.TIMED_OUT if told.code() in _TIMED_OUT else GapCause.ERROR, subject, told.str())

    def _note(self, error: KafkaError) -> None:
        """Called by librdkafka; keeps what waiting does not cure."""
        refusal: RackwiseError | None = None
        if error.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001 a public name of the library in spite of its dash
            todo = "Check sasl.mechanism, sasl.username and sasl.password."
            refusal = AuthenticationFailed("A broker refused the credentials", why=error.str(), todo=todo)
        elif error.code() == KafkaError._SSL:  # noqa: SLF001 a public name of the library in spite of its dash
            todo = "Check ssl.ca.location and the broker's certificate."
            refusal = TlsFailed("The TLS handshake with a broker failed", why=error.str(), todo=todo)
        if refusal is not None:
            self._refusal = (time.monotonic(), refusal)


def _silent_log() -> logging.Logger:
    """A log that goes nowhere: what matters comes as gaps, and librdkafka would write to standard error."""
    log = logging.Logger("librdkafka")  # noqa: LOG001 not one of the application's loggers, on purpose
    log.addHandler(logging.NullHandler())
    return log
