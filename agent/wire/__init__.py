"""The fenced package on kafka-python: calls that librdkafka lacks or cannot make safely, each with a hard deadline."""

from agent.wire.client import WireClient
from agent.wire.failure import CallFailed

__all__ = ["CallFailed", "WireClient"]
