"""The recording proxy as a process of its own, for a cluster that runs on after the command that started it.

Requests are appended to `proxy.jsonl` in the cluster's directory; the faults of its `faults.json` are put on the
connections. Invariant: disk use is bounded, and the process ends by itself once the directory is gone.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from testbed.cluster.errors import ClusterError
from testbed.cluster.launch import TAG
from testbed.cluster.manifest import read_manifest
from testbed.cluster.processes import ProcessId
from testbed.cluster.proxy import RecordingProxy
from testbed.cluster.requests import RecordedRequest
from testbed.cluster.settings import ProxyRoute
from testbed.cluster.spec import PASS, ConnectionFault, ConnectionFaultKind

RECORDS_FILE = "proxy.jsonl"
FAULTS_FILE = "faults.json"
_LONGEST_RECORDS_BYTES = 32 * 1024 * 1024
_PAUSE_S = 0.2
_START_TIMEOUT_S = 30.0


def start_proxy_process(cluster_directory: Path) -> ProcessId:
    """Start it detached; it reads its routes from the manifest."""
    with (cluster_directory / "proxy.log").open("ab") as output:
        child = subprocess.Popen(
            (sys.executable, "-m", __name__, f"{TAG}{cluster_directory}"),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return ProcessId.of(child.pid)


def wait_for_proxy(cluster_directory: Path, process: ProcessId, routes: Mapping[int, ProxyRoute]) -> None:
    """Return once it listens for every broker. Raises ClusterError when it ends or takes too long."""
    until = time.monotonic() + _START_TIMEOUT_S
    while not all(_listens(route.listen_port) for route in routes.values()):
        if not process.alive or time.monotonic() > until:
            lines = (cluster_directory / "proxy.log").read_text(encoding="utf-8", errors="replace").splitlines()
            raise ClusterError("The recording proxy does not listen", why=lines[-1] if lines else "it printed nothing")
        time.sleep(_PAUSE_S)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def write_faults(cluster_directory: Path, faults: Mapping[int, ConnectionFault]) -> None:
    """Tell a proxy process which broker has which fault; the others have none."""
    lines = {str(broker_id): {"kind": one.kind.value, "delay_ms": one.delay_ms} for broker_id, one in faults.items()}
    temporary = cluster_directory / f".{FAULTS_FILE}"
    temporary.write_text(json.dumps(lines), encoding="utf-8")
    temporary.replace(cluster_directory / FAULTS_FILE)


def read_faults(cluster_directory: Path) -> dict[int, ConnectionFault] | None:
    """The faults of `faults.json`; empty when there is none, None when it cannot be read."""
    try:
        lines = json.loads((cluster_directory / FAULTS_FILE).read_bytes())
        return {
            int(broker): ConnectionFault(ConnectionFaultKind(one["kind"]), int(one["delay_ms"]))
            for broker, one in lines.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def main(cluster_directory: Path) -> None:
    """Pass and record until the cluster's directory is gone. Raises ClusterError when it has no manifest."""
    manifest = read_manifest(cluster_directory)
    if manifest is None:
        raise ClusterError(f"{cluster_directory} is not the directory of a cluster")
    brokers = [one.node.id for one in manifest.members]
    put: dict[int, ConnectionFault] = {}
    written = 0
    with RecordingProxy(manifest.proxy_routes) as proxy:
        while cluster_directory.is_dir():
            new = proxy.records(since=written)
            if new:
                written = new[-1].number
                _append(cluster_directory / RECORDS_FILE, new)
            # A file that cannot be read changes nothing: the faults stay as they are.
            requested = read_faults(cluster_directory)
            if requested is not None and requested != put:
                for broker_id in brokers:
                    proxy.inject(requested.get(broker_id, PASS), broker_id)
                put = requested
            time.sleep(_PAUSE_S)


def _append(path: Path, records: Iterable[RecordedRequest]) -> None:
    try:
        if path.exists() and path.stat().st_size > _LONGEST_RECORDS_BYTES:
            path.replace(path.with_suffix(".1.jsonl"))
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(_line(one)) + "\n" for one in records)
    except FileNotFoundError:
        # The directory went between two looks: the cluster is being cleared.
        return


def _line(one: RecordedRequest) -> dict[str, object]:
    subjects = None if one.subjects is None else [list(subject) for subject in one.subjects]
    return {**one._asdict(), "subjects": subjects}


if __name__ == "__main__":
    main(Path(sys.argv[1].removeprefix(TAG)))
