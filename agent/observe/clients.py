"""The two clients of a look, made of one configuration."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Self

from agent.observe.admin import Admin
from agent.wire import WireClient
from config.kafka_client import KafkaClientConfig

_CLIENT_ID = "rackwise"


@dataclass(frozen=True, slots=True)
class Clients:
    """Both clients, opened together and closed together; a context manager."""

    wire: WireClient
    admin: Admin

    @classmethod
    def open(cls, config: KafkaClientConfig) -> Self:
        """Clients of that configuration; connects nothing yet. Raises ConfigError for what cannot be used."""
        named = config if "client.id" in config.root else config.with_overrides({"client.id": _CLIENT_ID})
        return cls(WireClient(named.kafka_python()), Admin(named.confluent()))

    def close(self) -> None:
        """Close all connections of both."""
        self.wire.close()
        self.admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()
