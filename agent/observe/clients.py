"""The client of a look, made of the user's one configuration."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Self

from agent.wire.client import WireClient
from config.kafka_client import KafkaClientConfig


@dataclass(frozen=True, slots=True)
class Clients:
    """What a look asks with; a context manager that closes all connections."""

    wire: WireClient

    @classmethod
    def open(cls, config: KafkaClientConfig) -> Self:
        """The client of that configuration; connects nothing yet. Raises ConfigError for what cannot be used."""
        return cls(WireClient(config.kafka_python()))

    def close(self) -> None:
        """Close all connections."""
        self.wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()
