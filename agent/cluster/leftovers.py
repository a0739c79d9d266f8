"""What is left of clusters on this machine, and how it is cleared.

Invariant: clearing ends a cluster's processes first and removes its directory last, so a broken-off clearing is found
again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil

from agent.cluster.errors import ClusterError
from agent.cluster.launch import TAG
from agent.cluster.manifest import read_manifest
from agent.cluster.processes import ProcessId, kill_all


def clear(directory: Path) -> None:
    """End whatever belongs to the cluster and remove its directory; fine when it is gone already."""
    if not directory.is_dir():
        return
    manifest = read_manifest(directory)
    named = manifest.processes if manifest is not None else ()
    if left := kill_all({*named, *tagged(directory)}):
        pids = ", ".join(str(one.pid) for one in left)
        raise ClusterError(f"Processes of cluster {directory.name} do not end, not even by SIGKILL", why=f"pids {pids}")
    shutil.rmtree(directory, ignore_errors=True)


def tagged(directory: Path) -> tuple[ProcessId, ...]:
    """JVMs that carry the cluster's tag: also one that was started right before a crash and is in no manifest."""
    tag = f"{TAG}{directory}"
    return tuple(
        ProcessId(process.pid, process.info["create_time"])
        for process in psutil.process_iter(("cmdline", "create_time"))
        if tag in (process.info["cmdline"] or ())
    )
