"""The embedded cluster: starts, holds and ends all its brokers.

Invariant: between `start` and `stop` the manifest on disk names everything that runs. A cluster that is not detached
has a watchdog, and so ends with its owner even when the owner is killed.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from agent.values.number_format import counted
from pipeline.maven import Progress
from testbed.cluster import security
from testbed.cluster.archive import do_without_archive, keep_archive, needs_archive, recording
from testbed.cluster.broker import BrokerProcesses, EmbeddedBroker
from testbed.cluster.create import launch_all, new_directory, new_manifest
from testbed.cluster.errors import BadSpec, ClusterError
from testbed.cluster.jars import JarSet, kafka_jars
from testbed.cluster.leftovers import clear_cluster
from testbed.cluster.manifest import directory_of, read_manifest
from testbed.cluster.proxy import RecordingProxy
from testbed.cluster.proxy_process import read_faults, start_proxy_process, wait_for_proxy, write_faults
from testbed.cluster.spec import ClusterSpec, ConnectionFault

_READY_TIMEOUT_S = 90.0


class EmbeddedCluster:
    """A running cluster of real brokers; a context manager that ends it."""

    def __init__(self, members: BrokerProcesses) -> None:
        self._members = members
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._proxy: RecordingProxy | None = None

    @classmethod
    def start(
        cls,
        spec: ClusterSpec | None = None,
        *,
        name: str | None = None,
        detached: bool = False,
        on_progress: Progress | None = None,
        timeout_s: float = _READY_TIMEOUT_S,
    ) -> Self:
        """Resolve, format, start, and return once every broker serves.

        A detached cluster runs on after this process; any other ends with it. Raises ClusterError when a broker does
        not start, or a tool is missing; then nothing is left behind.
        """
        spec = spec or ClusterSpec()
        say = on_progress or (lambda _line: None)
        jars = kafka_jars(spec.version, on_progress)
        if needs_archive(jars):
            say(f"preparing Kafka {spec.version} for quick starts (once per version)")
            cls._make_archive(spec.version, jars)
        jars = replace(jars, plugins=spec.plugins)
        return cls._begin(spec, jars, name=name, detached=detached, say=say, timeout_s=timeout_s)

    @classmethod
    def _make_archive(cls, version: str, jars: JarSet) -> None:
        try:
            with cls._begin(ClusterSpec(version=version, racks=("a",)), jars, options=recording(jars)) as one:
                keep_archive(jars, one.broker(1))
        except ClusterError:
            # Faults of this machine are errors of the start itself; Java may only lack archives.
            do_without_archive(jars)

    @classmethod
    def _begin(
        cls,
        spec: ClusterSpec,
        jars: JarSet,
        *,
        options: Sequence[str] = (),
        name: str | None = None,
        detached: bool = False,
        say: Progress = lambda _line: None,
        timeout_s: float = _READY_TIMEOUT_S,
    ) -> Self:
        began = time.monotonic()
        manifest = new_manifest(name or f"run-{os.getpid()}-{secrets.token_hex(3)}", spec, detached=detached)
        directory = new_directory(manifest)
        members = BrokerProcesses(directory, manifest, jars, options)
        cluster = cls(members)
        try:
            if not detached:
                cluster._watchdog = _start_watchdog(directory)
            say(f"starting {counted(len(spec.racks), 'broker')} of Kafka {spec.version} in {directory}")
            launch_all(members)
            cluster._start_proxy()
            cluster.wait_ready(timeout_s)
        except BaseException:
            cluster.stop()
            raise
        members.save(replace(members.manifest, ready=True))
        say(f"ready after {time.monotonic() - began:.1f} s: {cluster.bootstrap_servers}")
        return cluster

    @classmethod
    def open(cls, name: str) -> Self:
        """A handle on a cluster that another process started; leaving its context ends the cluster.

        Raises BadSpec when there is none of this name.
        """
        directory = directory_of(name)
        manifest = read_manifest(directory)
        if manifest is None:
            raise BadSpec(
                f"There is no cluster named {name}", todo=f"Start it with `rackwise cluster up --name {name}`."
            )
        return cls(BrokerProcesses(directory, manifest))

    @property
    def spec(self) -> ClusterSpec:
        """Its specification."""
        return self._members.manifest.spec

    @property
    def name(self) -> str:
        """Name of its directory below the state directory."""
        return self._members.manifest.name

    @property
    def directory(self) -> Path:
        """Manifest, settings, logs and data."""
        return self._members.directory

    @property
    def jars(self) -> JarSet:
        """Jars the brokers run from; clients and tools of the same version are in it."""
        return self._members.jars

    @property
    def cluster_id(self) -> str:
        """Kafka's cluster id."""
        return self._members.manifest.cluster_id

    @property
    def bootstrap_servers(self) -> str:
        """Of the client listeners."""
        return self._members.manifest.bootstrap_servers

    @property
    def proxied_bootstrap_servers(self) -> str:
        """Of the recording proxy; ClusterError unless the cluster was started with `proxied`."""
        servers = self._members.manifest.proxied_bootstrap_servers
        if servers is None:
            raise _not_proxied()
        return servers

    @property
    def proxy(self) -> RecordingProxy:
        """The proxy of a cluster this process started with `proxied`. Raises ClusterError when it has none here."""
        if self._proxy is None:
            raise _not_proxied()
        return self._proxy

    def inject(self, fault: ConnectionFault, broker_id: int | None = None) -> None:
        """Put a fault on one broker's connections through the proxy, or on all; `PASS` lifts it.

        Works for a detached cluster too, within a fraction of a second. Raises ClusterError when it has no proxy.
        """
        if self._proxy is not None:
            self._proxy.inject(fault, broker_id)
            return
        routes = self._members.manifest.proxy_routes
        if not routes or self._members.manifest.owner is not None:
            raise _not_proxied()
        if broker_id is not None:
            self._members.member(broker_id)
        before = {} if broker_id is None else read_faults(self.directory) or {}
        write_faults(self.directory, before | dict.fromkeys(routes if broker_id is None else (broker_id,), fault))

    @property
    def brokers(self) -> tuple[EmbeddedBroker, ...]:
        """All brokers, running or not, by id."""
        return tuple(EmbeddedBroker(self._members, one.node.id) for one in self._members.manifest.members)

    def broker(self, broker_id: int) -> EmbeddedBroker:
        """The broker with this id. Raises BadSpec when there is none."""
        self._members.member(broker_id)
        return EmbeddedBroker(self._members, broker_id)

    def client_properties(self, user: str = "admin", *, proxied: bool = False) -> Mapping[str, str]:
        """What clients need in addition to the bootstrap servers, in Kafka's dotted names; empty in plain text."""
        return security.client_settings(self.spec, self.directory, user, proxied=proxied)

    @property
    def authority_file(self) -> Path | None:
        """PEM file to trust; None in plain text."""
        return security.authority_file(self.directory) if self.spec.security else None

    def wait_ready(self, timeout_s: float = _READY_TIMEOUT_S) -> None:
        """Return once every broker serves and knows the racks of all. Raises ClusterError when it takes longer."""
        until = time.monotonic() + timeout_s
        for broker in self.brokers:
            broker.wait_ready(max(0.0, until - time.monotonic()))

    def stop(self) -> None:
        """End every broker at once and remove the directory; fine when it is stopped already."""
        if self._proxy is not None:
            self._proxy.stop()
            self._proxy = None
        clear_cluster(self.directory)
        self._members.reap()
        if self._members.held is not None:
            self._members.held.close()
        if self._watchdog is not None and self._watchdog.stdin is not None:
            # The directory is gone, so the watchdog finds nothing to do.
            with suppress(BrokenPipeError):
                self._watchdog.stdin.close()
            self._watchdog.wait(10)
            self._watchdog = None

    def _start_proxy(self) -> None:
        manifest = self._members.manifest
        routes = manifest.proxy_routes
        if not routes:
            return
        if manifest.owner is None:
            process = start_proxy_process(self.directory)
            self._members.save(replace(manifest, helpers=(process,)))
            wait_for_proxy(self.directory, process, routes)
        else:
            self._proxy = RecordingProxy(routes)
            self._proxy.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _start_watchdog(directory: Path) -> subprocess.Popen[bytes]:
    # By path and isolated: it must not load the package, nor anything from the working directory.
    program = Path(__file__).with_name("watchdog.py")
    return subprocess.Popen(
        (sys.executable, "-I", str(program), str(directory)),
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def _not_proxied() -> ClusterError:
    return ClusterError(
        "This cluster has no recording proxy here", todo="Start it in this process with ClusterSpec(proxied=True)."
    )
