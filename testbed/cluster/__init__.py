"""An embedded Kafka cluster: real brokers on this machine, for the demo, the tests and experiments.

Invariants: every broker process belongs to a manifest on disk, is bound to 127.0.0.1 only, and is never left behind.
Exports are loaded on first use, so that the command line stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testbed.cluster.broker import KEEP, EmbeddedBroker
    from testbed.cluster.embedded import EmbeddedCluster
    from testbed.cluster.errors import ClusterError
    from testbed.cluster.leftovers import ClusterState, FoundCluster, clear_cluster, find_cluster, find_clusters
    from testbed.cluster.proxy import RecordingProxy
    from testbed.cluster.spec import DEFAULT_VERSION, ClusterSecurity, ClusterSpec, ConnectionFault, ConnectionFaultKind
    from testbed.cluster.tools import kafka_tools

_NAMES = {
    "broker": ("KEEP", "EmbeddedBroker"),
    "embedded": ("EmbeddedCluster",),
    "errors": ("ClusterError",),
    "leftovers": ("ClusterState", "FoundCluster", "clear_cluster", "find_cluster", "find_clusters"),
    "proxy": ("RecordingProxy",),
    "spec": ("DEFAULT_VERSION", "ClusterSpec", "ConnectionFault", "ConnectionFaultKind", "ClusterSecurity"),
    "tools": ("kafka_tools",),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = [
    "DEFAULT_VERSION",
    "KEEP",
    "ClusterError",
    "ClusterSecurity",
    "ClusterSpec",
    "ClusterState",
    "ConnectionFault",
    "ConnectionFaultKind",
    "EmbeddedBroker",
    "EmbeddedCluster",
    "FoundCluster",
    "RecordingProxy",
    "clear_cluster",
    "find_cluster",
    "find_clusters",
    "kafka_tools",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
