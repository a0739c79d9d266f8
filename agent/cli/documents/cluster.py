"""What ``cluster up`` and ``cluster status`` print."""

from __future__ import annotations

from typing import TypedDict


class LocalBroker(TypedDict):
    """One broker of a cluster on this machine."""

    id: int
    rack: str | None
    """broker.rack; null for a broker without one."""
    pid: int | None
    """Process id; null where the process has ended."""
    jmx_port: int | None
    """Port of its byte counters; null without --jmx."""


class LocalCluster(TypedDict):
    """A cluster on this machine."""

    name: str
    state: str
    """starting, running, partly running or left behind."""
    why: str
    """Why it is in that state."""
    directory: str
    version: str | None
    """Kafka's version; this and the following are null where the cluster's manifest cannot be read."""
    brokers_running: int | None
    brokers: list[LocalBroker] | None
    bootstrap_servers: str | None
    memory_mib: int | None
    """Resident memory of all its processes, MiB."""
    proxied_bootstrap_servers: str | None
    """Addresses of the recording proxy; null without --proxied."""
    cluster_id: str | None
