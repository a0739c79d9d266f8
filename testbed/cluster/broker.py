"""One broker of an embedded cluster: stop, kill, freeze, thaw, start and restart.

Invariant: ports, directory and id stay the same over every stop and start; the manifest names the process before
anything else is done with it.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from threading import RLock
from typing import Final

from testbed.cluster.errors import BadSpec, ClusterError
from testbed.cluster.jars import JarSet, kafka_jars
from testbed.cluster.jmx import ByteCounters, read_counters
from testbed.cluster.launch import BrokerDirectory, home, launch, write_settings
from testbed.cluster.manifest import ClusterManifest, ManifestBroker, write_manifest
from testbed.cluster.ports import HeldPorts
from testbed.cluster.processes import ProcessId, kill_all, wait_gone
from testbed.cluster.readiness import known_brokers
from testbed.cluster.security import broker_security
from testbed.cluster.settings import BrokerNode, broker_settings

_STOP_TIMEOUT_S = 20.0
_START_TIMEOUT_S = 60.0
_FREEZE_TIMEOUT_S = 10.0
_PROBE_TIMEOUT_S = 1.0
_PAUSE_S = 0.05
_LAST_LINES = 400
"""A start that fails writes no more after its cause."""
_FAULT = re.compile(r"^\d{4}-\S+ (?:\S+ )?(?:ERROR|FATAL) .*(?:\n[a-z][\w.$]+: .*)?", re.MULTILINE)
"""A line of the log as `launch` has it written, with the first line of a stack trace."""


class KeepRack(Enum):
    """The type of `KEEP`."""

    KEEP = "the rack it has"


KEEP: Final = KeepRack.KEEP
"""The broker keeps the rack it has; None takes its rack away."""


class BrokerProcesses:
    """The brokers of one cluster as processes; shared by its handles, safe to use from several threads."""

    def __init__(
        self, directory: Path, manifest: ClusterManifest, jars: JarSet | None = None, options: Sequence[str] = ()
    ) -> None:
        self.directory = directory
        self._jars = jars
        self._options = tuple(options)
        self.manifest = manifest
        self.lock = RLock()
        self.held: HeldPorts | None = None
        """Keeps the ports of brokers that are down from others; None in a process that did not start the cluster."""
        # Kept so that ended children are reaped and never stay zombies.
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def jars(self) -> JarSet:
        """Jars the brokers run from; looked up only when a broker is to be started."""
        if self._jars is None:
            spec = self.manifest.spec
            self._jars = replace(kafka_jars(spec.version), plugins=spec.plugins)
        return self._jars

    def save(self, manifest: ClusterManifest) -> None:
        """Take over what the cluster is now and put it on disk."""
        with self.lock:
            self.manifest = manifest
            write_manifest(self.directory, manifest)

    def member(self, broker_id: int) -> ManifestBroker:
        """The broker with this id. Raises BadSpec when there is none."""
        for one in self.manifest.members:
            if one.node.id == broker_id:
                return one
        known = ", ".join(str(one.node.id) for one in self.manifest.members)
        raise BadSpec(f"There is no broker {broker_id} in cluster {self.manifest.name}", why=f"its brokers are {known}")

    def configure(self, node: BrokerNode) -> None:
        """Write the settings the broker starts with next time."""
        voters = ",".join(f"{one.node.id}@127.0.0.1:{one.node.controller_port}" for one in self.manifest.members)
        spec = self.manifest.spec
        security = broker_security(spec, self.directory)
        write_settings(home(self.directory, node.id), broker_settings(spec, node, voters, security))

    def launch(self, broker_id: int) -> None:
        """Start its JVM and note the process; returns at once."""
        with self.lock:
            member = self.member(broker_id)
            child = launch(self.directory, self.jars, self.manifest.spec, member.node, self._options)
            self._children[broker_id] = child
            self.save(self.manifest.with_member(replace(member, process=ProcessId.of(child.pid))))

    def reap(self) -> None:
        """Take the exit codes of ended children."""
        for child in self._children.values():
            child.poll()

    def exit_reason(self, broker_id: int) -> str | None:
        """Why the broker is not running any more; None while it runs."""
        self.reap()
        process = self.member(broker_id).process
        if process is not None and process.alive:
            return None
        where = home(self.directory, broker_id)
        lines = _fault(where.log) or _tail(where.output) or _tail(where.log)
        return "\n".join(lines) or "nothing was written"


class EmbeddedBroker:
    """A handle on one broker; it stays good over stops and starts."""

    def __init__(self, members: BrokerProcesses, broker_id: int) -> None:
        self._members = members
        self.id = broker_id

    @property
    def node(self) -> BrokerNode:
        """Ports, rack and directory."""
        return self._members.member(self.id).node

    @property
    def rack(self) -> str | None:
        """The rack it was last started in."""
        return self.node.rack

    @property
    def address(self) -> str:
        """`host:port` of the client listener."""
        return f"127.0.0.1:{self.node.client_port}"

    @property
    def pid(self) -> int | None:
        """Process id while it runs or is frozen."""
        process = self._process()
        return process.pid if process and process.alive else None

    @property
    def alive(self) -> bool:
        """True while the process runs or is frozen."""
        return self.pid is not None

    @property
    def files(self) -> BrokerDirectory:
        """Its settings, logs and data."""
        return home(self._members.directory, self.id)

    @property
    def log_path(self) -> Path:
        """Kafka's own log."""
        return self.files.log

    @property
    def jmx_url(self) -> str | None:
        """Page of its byte counters; None unless the cluster was started with `jmx`."""
        return None if self.node.jmx_port is None else f"http://127.0.0.1:{self.node.jmx_port}/metrics"

    def jmx_counters(self) -> ByteCounters:
        """Its byte counters. Raises ClusterError when the cluster has no `jmx` or the broker does not answer."""
        if self.jmx_url is None:
            raise ClusterError(f"Broker {self.id} has no JMX counters", todo="Start the cluster with jmx=True.")
        return read_counters(self.jmx_url)

    def stop(self, timeout_s: float = _STOP_TIMEOUT_S) -> None:
        """Controlled shutdown: leaders move away first. SIGKILL when the time is over; fine when it is down."""
        self._signal_and_wait(signal.SIGTERM, timeout_s)

    def kill(self) -> None:
        """SIGKILL, as a machine that loses power; fine when it is down."""
        self._signal_and_wait(signal.SIGKILL, _STOP_TIMEOUT_S)

    def freeze(self) -> None:
        """SIGSTOP: connections stay open and nothing answers. Raises ClusterError when it does not run.

        Returns once every thread is stopped: a thread on another processor answers a request after the signal.
        """
        process = self._signal_running(signal.SIGSTOP)
        until = time.monotonic() + _FREEZE_TIMEOUT_S
        while not process.stopped:
            if time.monotonic() > until:
                raise ClusterError(f"Broker {self.id}, pid {process.pid}, is not stopped by SIGSTOP")
            time.sleep(_PAUSE_S / 10)

    def thaw(self) -> None:
        """Let a frozen broker run on. Raises ClusterError when it does not run."""
        self._signal_running(signal.SIGCONT)

    def start(
        self, rack: str | KeepRack | None = KEEP, *, wait: bool = True, timeout_s: float = _START_TIMEOUT_S
    ) -> None:
        """Start it on its old ports and data, in another rack when one is given; None means without a rack.

        With `wait` returns once it serves and the others know its rack. Raises ClusterError when it runs already, or
        does not come up in time.
        """
        with self._members.lock:
            if self.alive:
                raise ClusterError(
                    f"Broker {self.id} is already running, as pid {self.pid}", todo="Stop it first, or restart it."
                )
            member = self._members.member(self.id)
            if not isinstance(rack, KeepRack):
                member = replace(member, node=replace(member.node, rack=rack))
                self._members.save(self._members.manifest.with_member(member))
            self._members.configure(member.node)
            self._members.launch(self.id)
        if wait:
            self.wait_ready(timeout_s)

    def restart(
        self, rack: str | KeepRack | None = KEEP, *, wait: bool = True, timeout_s: float = _START_TIMEOUT_S
    ) -> None:
        """Controlled shutdown, then start; see `stop` and `start`."""
        self.stop()
        self.start(rack, wait=wait, timeout_s=timeout_s)

    def wait_ready(self, timeout_s: float = _START_TIMEOUT_S) -> None:
        """Return once it serves and every broker that answers knows its rack. Raises ClusterError when it does not."""
        until = time.monotonic() + timeout_s
        while not self._is_known():
            if (why := self._members.exit_reason(self.id)) is not None:
                raise ClusterError(f"Broker {self.id} ended while it was starting", why=why)
            if time.monotonic() > until:
                raise ClusterError(
                    f"Broker {self.id} accepted no requests within {timeout_s:.0f} s",
                    why="its log ends with: " + "\n".join(_tail(self.log_path)),
                )
            time.sleep(_PAUSE_S)

    def _is_known(self) -> bool:
        own = self._known_at(self.node)
        if own is None or self.id not in own:
            return False
        answers = (self._known_at(one.node) for one in self._members.manifest.members if one.node.id != self.id)
        return all(self.id in one and one[self.id] == self.rack for one in (own, *answers) if one is not None)

    def _known_at(self, node: BrokerNode) -> Mapping[int, str | None] | None:
        return known_brokers(node.internal_port, _PROBE_TIMEOUT_S)

    def _process(self) -> ProcessId | None:
        self._members.reap()
        return self._members.member(self.id).process

    def _signal_running(self, number: signal.Signals) -> ProcessId:
        process = self._process()
        if process is None or not process.send(number):
            raise ClusterError(
                f"Broker {self.id} cannot be sent {number.name}", why="it is not running", todo="Start it."
            )
        return process

    def _signal_and_wait(self, number: signal.Signals, timeout_s: float) -> None:
        process = self._process()
        if process is None:
            return
        # A frozen process takes no other signal than SIGKILL.
        process.send(signal.SIGCONT)
        process.send(number)
        if wait_gone((process,), timeout_s) and kill_all((process,)):
            raise ClusterError(f"Broker {self.id}, pid {process.pid}, does not end, not even by SIGKILL")
        self._members.reap()


def _fault(path: Path) -> list[str]:
    """The last ERROR or FATAL line near the end of a log, and the line of its exception; empty without."""
    found = _FAULT.findall("\n".join(_tail(path, _LAST_LINES)))
    return found[-1].splitlines() if found else []


def _tail(path: Path, lines: int = 8) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()][-lines:]
