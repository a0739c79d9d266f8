"""Clusters on this machine, those without an owner, and their removal.

Invariant: clearing ends a cluster's processes first and removes its directory last, so a broken-off clearing is found
again. A cluster that is starting, or whose owner runs, is never called left behind.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from agent.values.number_format import counted
from testbed.cluster.errors import ClusterError
from testbed.cluster.launch import TAG
from testbed.cluster.manifest import NAME, ClusterManifest, clusters_home, directory_of, read_manifest
from testbed.cluster.processes import ProcessId, kill_all


class ClusterState(StrEnum):
    """State of a cluster, by its directory and its processes."""

    STARTING = "starting"
    RUNNING = "running"
    PARTLY_RUNNING = "partly running"
    LEFT_BEHIND = "left behind"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCluster:
    """One cluster's directory."""

    directory: Path
    state: ClusterState
    why: str
    """The reason of the state, as a clause."""
    manifest: ClusterManifest | None
    """None when it cannot be read."""

    @property
    def name(self) -> str:
        """Name of the cluster."""
        return self.directory.name

    @property
    def held(self) -> bool:
        """True while the process it belongs to, or the one that starts it, runs."""
        if self.manifest is None:
            return False
        owner = self.manifest.owner
        return self.state is ClusterState.STARTING or (owner is not None and owner.alive)

    @property
    def alive_brokers(self) -> tuple[int, ...]:
        """Ids of brokers whose process runs or is frozen."""
        members = self.manifest.members if self.manifest else ()
        return tuple(one.node.id for one in members if one.process is not None and one.process.alive)


def find_clusters() -> tuple[FoundCluster, ...]:
    """All clusters of this user on this machine, by name."""
    home = clusters_home()
    names = sorted(one for one in home.iterdir() if one.is_dir()) if home.is_dir() else ()
    return tuple(found for one in names if NAME.fullmatch(one.name) and (found := find_cluster(one.name)) is not None)


def find_cluster(name: str) -> FoundCluster | None:
    """The cluster of this name; None when there is none. Raises BadSpec."""
    directory = directory_of(name)
    if not directory.is_dir():
        return None
    try:
        manifest = read_manifest(directory)
    except ClusterError as error:
        return FoundCluster(directory=directory, state=ClusterState.LEFT_BEHIND, why=str(error), manifest=None)
    if manifest is None:
        return FoundCluster(
            directory=directory, state=ClusterState.LEFT_BEHIND, why="it has no manifest", manifest=None
        )
    state, why = _state(manifest)
    return FoundCluster(directory=directory, state=state, why=why, manifest=manifest)


def clear_cluster(directory: Path) -> None:
    """End the cluster's processes and remove its directory, if any. Raises ClusterError when a process does not end."""
    if not directory.is_dir():
        return
    try:
        manifest = read_manifest(directory)
    except ClusterError:
        # The tag finds its brokers without the manifest.
        manifest = None
    named = manifest.processes if manifest is not None else ()
    if left := kill_all({*named, *tagged(directory)}):
        pids = ", ".join(str(one.pid) for one in left)
        raise ClusterError(f"Processes of cluster {directory.name} do not end, not even by SIGKILL", why=f"pids {pids}")
    shutil.rmtree(directory, ignore_errors=True)


def tagged(directory: Path) -> tuple[ProcessId, ...]:
    """Processes that carry the cluster's tag: also one that was started right before a crash and is in no manifest."""
    tag = f"{TAG}{directory}"
    found = []
    for process in psutil.process_iter(("cmdline",)):
        if tag in (process.info["cmdline"] or ()):
            with suppress(psutil.NoSuchProcess):
                found.append(ProcessId.of(process.pid))
    return tuple(found)


def _state(manifest: ClusterManifest) -> tuple[ClusterState, str]:
    if manifest.owner is not None and not manifest.owner.alive:
        return ClusterState.LEFT_BEHIND, f"process {manifest.owner.pid}, its owner, has ended"
    if not manifest.ready:
        if manifest.starter.alive:
            return ClusterState.STARTING, f"process {manifest.starter.pid} is starting it"
        return ClusterState.LEFT_BEHIND, "its start was interrupted"
    return _state_of_ready(manifest)


def _state_of_ready(manifest: ClusterManifest) -> tuple[ClusterState, str]:
    alive = [one.process is not None and one.process.alive for one in manifest.members]
    if all(alive):
        return ClusterState.RUNNING, "all brokers run"
    if any(alive):
        return ClusterState.PARTLY_RUNNING, f"running: {alive.count(True)} of {counted(len(alive), 'broker')}"
    if manifest.owner is not None:
        return ClusterState.PARTLY_RUNNING, f"no broker runs, but process {manifest.owner.pid} owns it"
    return ClusterState.LEFT_BEHIND, "none of its brokers runs"
