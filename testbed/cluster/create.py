"""The creation of a cluster: its directory, its ports, its formatted brokers.

Invariant: a cluster's directory is never seen without a manifest, and of two clusters of one name the first wins.
"""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from testbed.cluster import security
from testbed.cluster.broker import BrokerProcesses
from testbed.cluster.errors import ClusterError
from testbed.cluster.launch import format_storage, home, write_shared_files
from testbed.cluster.manifest import ClusterManifest, ManifestBroker, directory_of, write_manifest
from testbed.cluster.ports import hold_ports
from testbed.cluster.processes import ProcessId
from testbed.cluster.settings import BrokerNode
from testbed.cluster.spec import ClusterSpec

_PORTS_PER_BROKER = 6


def new_directory(manifest: ClusterManifest) -> Path:
    """Make the cluster's directory, never without its manifest. Raises ClusterError when the name is in use."""
    name, directory = manifest.name, directory_of(manifest.name)
    home = directory.parent
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=home))
    write_manifest(fresh, manifest)
    try:
        # Renaming onto a directory that holds something fails, so the first of two wins.
        return fresh.rename(directory)
    except OSError as error:
        shutil.rmtree(fresh)
        raise ClusterError(
            f"A cluster named {name} exists already", todo=f"End it with `rackwise cluster down --name {name}`."
        ) from error


def new_manifest(name: str, spec: ClusterSpec, *, detached: bool) -> ClusterManifest:
    """What is known of a cluster before anything of it exists."""
    me = ProcessId.of(os.getpid())
    return ClusterManifest(
        name=name,
        cluster_id=_new_cluster_id(),
        spec=spec,
        members=(),
        owner=None if detached else me,
        starter=me,
    )


def _new_cluster_id() -> str:
    # Kafka's tools would read an id that begins with a dash as an option.
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text


def launch_all(members: BrokerProcesses) -> None:
    """Give every broker its ports, settings and formatted directory, then start all of them; returns at once."""
    spec = members.manifest.spec
    write_shared_files(members.directory)
    if spec.security is not None:
        security.make_certificate(members.directory, members.jars)
    members.held = hold_ports(_PORTS_PER_BROKER * len(spec.racks))
    nodes = tuple(_node(members.directory, spec, broker_id, members.held.ports) for broker_id in spec.broker_ids)
    members.save(replace(members.manifest, members=tuple(ManifestBroker(node=node) for node in nodes)))
    for node in nodes:
        members.configure(node)
    _format_all(members)
    members.held.lend()
    for broker_id in spec.broker_ids:
        members.launch(broker_id)


def _node(directory: Path, spec: ClusterSpec, broker_id: int, ports: tuple[int, ...]) -> BrokerNode:
    first = _PORTS_PER_BROKER * (broker_id - 1)
    internal, controller, client, proxied, proxy, jmx = ports[first : first + _PORTS_PER_BROKER]
    return BrokerNode(
        id=broker_id,
        rack=spec.racks[broker_id - 1],
        internal_port=internal,
        controller_port=controller,
        client_port=client,
        proxied_port=proxied if spec.proxied else None,
        proxy_port=proxy if spec.proxied else None,
        jmx_port=jmx if spec.jmx else None,
        data_directory=str(home(directory, broker_id).data),
    )


def _format_all(members: BrokerProcesses) -> None:
    manifest = members.manifest
    users = security.scram_users(manifest.spec.security)
    with ThreadPoolExecutor(len(manifest.members)) as pool:
        jobs = [
            pool.submit(format_storage, members.directory, members.jars, manifest.cluster_id, one.node.id, users)
            for one in manifest.members
        ]
        for job in jobs:
            job.result()
