"""How Kafka's own tools reach this cluster: the options with which a printed command runs as it is."""

from __future__ import annotations

import shlex

from agent.values.snapshot import Snapshot


def bootstrap_of(snapshot: Snapshot) -> str | None:
    """``host:port`` of a live broker, by its advertised listener; None where no broker shows one."""
    for broker in snapshot.brokers:
        if broker.alive and broker.host and broker.port:
            host = f"[{broker.host}]" if ":" in broker.host else broker.host
            return f"{host}:{broker.port}"
    return None


def tool(name: str, servers: str, command_config: str | None = None) -> str:
    """The beginning of a command of that tool; ``command_config`` is a client's properties file."""
    config = "" if command_config is None else f" --command-config {shlex.quote(command_config)}"
    return f"{name}.sh --bootstrap-server {shlex.quote(servers)}{config}"
