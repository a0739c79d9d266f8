"""An embedded Kafka cluster: real brokers on this machine, for the demo, the tests and for trying things out.

Invariants: every broker process belongs to a manifest on disk, is bound to 127.0.0.1 only, and is never left behind.
Exports are loaded on first use, so that the command line stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.cluster.broker import KEEP, Broker
    from agent.cluster.embedded import EmbeddedCluster
    from agent.cluster.errors import ClusterError
    from agent.cluster.spec import ClusterSpec, Security

_HOMES = {
    "KEEP": "broker",
    "Broker": "broker",
    "ClusterError": "errors",
    "ClusterSpec": "spec",
    "EmbeddedCluster": "embedded",
    "Security": "spec",
}

__all__ = ["KEEP", "Broker", "ClusterError", "ClusterSpec", "EmbeddedCluster", "Security"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
