"""The manifest of a cluster: the processes and ports of its directory.

Invariant: the manifest is written whole (temporary file, rename) right after a process is started, so that a
later command, after a crash too, finds what is left and ends it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pipeline.maven import home
from testbed.cluster.errors import BadSpec, ClusterError
from testbed.cluster.processes import ProcessId
from testbed.cluster.settings import BrokerNode, ProxyRoute
from testbed.cluster.spec import ClusterSpec

FILE_NAME = "manifest.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")
"""Of a cluster: a path is none."""


def directory_of(name: str) -> Path:
    """The directory of the cluster of this name. Raises BadSpec, so that no path leads out of the clusters' home."""
    if not NAME.fullmatch(name):
        raise BadSpec(f"{name!r} is not a cluster name", todo="Give letters, digits, dots and dashes, at most 61.")
    return clusters_home() / name


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestBroker:
    """One broker of a cluster and the process it last ran as."""

    node: BrokerNode
    process: ProcessId | None = None
    """None before the first start and after an orderly stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterManifest:
    """A cluster on this machine, as its directory records it."""

    name: str
    cluster_id: str
    spec: ClusterSpec
    members: tuple[ManifestBroker, ...]
    owner: ProcessId | None
    """The process the cluster must not outlive; None for a detached one."""
    starter: ProcessId
    """The process that starts it, for telling a start in progress from one that was broken off."""
    ready: bool = False
    """True once all brokers have answered."""
    helpers: tuple[ProcessId, ...] = ()
    """Watchdog and proxy."""

    @property
    def processes(self) -> tuple[ProcessId, ...]:
        """Everything that was started for this cluster, alive or not."""
        return (*(one.process for one in self.members if one.process), *self.helpers)

    @property
    def bootstrap_servers(self) -> str:
        """Of the client listeners."""
        return ",".join(f"127.0.0.1:{one.node.client_port}" for one in self.members)

    @property
    def proxied_bootstrap_servers(self) -> str | None:
        """Of the recording proxy; None when the cluster has none."""
        routes = self.proxy_routes.values()
        return ",".join(f"127.0.0.1:{route.listen_port}" for route in routes) or None

    @property
    def proxy_routes(self) -> Mapping[int, ProxyRoute]:
        """Broker -> its way through the proxy; empty when the cluster has none."""
        return {one.node.id: one.node.route for one in self.members if one.node.route is not None}

    def with_member(self, member: ManifestBroker) -> ClusterManifest:
        """The same cluster with this member in the place of the one with its id."""
        changed = tuple(member if one.node.id == member.node.id else one for one in self.members)
        return replace(self, members=changed)


_ADAPTER = TypeAdapter(ClusterManifest)


def clusters_home() -> Path:
    """The directory that has one directory per cluster: in `$RACKWISE_STATE`, else in `rackwise` in XDG's for state."""
    return home("RACKWISE_STATE", "XDG_STATE_HOME", Path(".local") / "state") / "clusters"


def write_manifest(directory: Path, manifest: ClusterManifest) -> None:
    """Put it into the cluster's directory, whole or not at all; only the user may read it, it may hold passwords."""
    temporary = directory / f".{FILE_NAME}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(manifest), file, indent=1)
    temporary.replace(directory / FILE_NAME)


def read_manifest(directory: Path) -> ClusterManifest | None:
    """The directory's manifest; None when it has none. Raises ClusterError when it cannot be read."""
    path = directory / FILE_NAME
    try:
        return _ADAPTER.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ClusterError(
            f"{path} cannot be read",
            why=str(error).splitlines()[0],
            todo=f"Clear the cluster with `rackwise cluster down --name {directory.name}`.",
        ) from error
