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
    from agent.cluster.leftovers import ClusterState, Found, clear_cluster, find_cluster, find_clusters
    from agent.cluster.proxy import Fault, FaultKind, RecordingProxy
    from agent.cluster.spec import DEFAULT_VERSION, ClusterSpec, Security

_HOMES = {
    "KEEP": "broker",
    "Broker": "broker",
    "ClusterError": "errors",
    "ClusterSpec": "spec",
    "ClusterState": "leftovers",
    "DEFAULT_VERSION": "spec",
    "EmbeddedCluster": "embedded",
    "Fault": "proxy",
    "FaultKind": "proxy",
    "Found": "leftovers",
    "RecordingProxy": "proxy",
    "Security": "spec",
    "clear_cluster": "leftovers",
    "find_cluster": "leftovers",
    "find_clusters": "leftovers",
}

__all__ = [
    "DEFAULT_VERSION",
    "KEEP",
    "Broker",
    "ClusterError",
    "ClusterSpec",
    "ClusterState",
    "EmbeddedCluster",
    "Fault",
    "FaultKind",
    "Found",
    "RecordingProxy",
    "Security",
    "clear_cluster",
    "find_cluster",
    "find_clusters",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
