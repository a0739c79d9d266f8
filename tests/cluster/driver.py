"""Harm to brokers, said once for every cluster whose brokers can be reached: embedded, or in containers.

`EmbeddedCluster` is a `ClusterDriver` as it is; `ComposeDriver` does the same to the brokers of `docker-compose.yml`.
Invariant: after `start` or `restart` has returned, the broker serves and the others know its rack.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, assert_never

from testbed.cluster.broker import KEEP, KeepRack
from testbed.cluster.errors import BadSpec, ClusterError
from testbed.cluster.readiness import known_brokers

COMPOSE_PORTS: Mapping[int, int] = {1: 19092, 2: 29092, 3: 39092}
"""Broker -> port of 127.0.0.1 that the compose file publishes for it."""
COMPOSE_RACKS: Mapping[int, str] = {1: "a", 2: "b", 3: "c"}
"""Broker -> the rack it has when `RACK_<id>` is not set."""

_START_TIMEOUT_S = 60.0
_COMMAND_TIMEOUT_S = 120.0
_PAUSE_S = 0.2


class BrokerDriver(Protocol):
    """What may be done to one broker."""

    @property
    def id(self) -> int:
        """Broker id."""

    @property
    def rack(self) -> str | None:
        """The rack it was last started in."""

    def stop(self) -> None:
        """Controlled shutdown."""

    def kill(self) -> None:
        """As a machine that loses power."""

    def freeze(self) -> None:
        """Connections stay open and nothing answers."""

    def thaw(self) -> None:
        """Let a frozen broker run on."""

    def start(
        self, rack: str | KeepRack | None = KEEP, *, wait: bool = True, timeout_s: float = _START_TIMEOUT_S
    ) -> None:
        """On its old data, in another rack when one is given."""

    def restart(
        self, rack: str | KeepRack | None = KEEP, *, wait: bool = True, timeout_s: float = _START_TIMEOUT_S
    ) -> None:
        """Controlled shutdown, then start."""

    def wait_ready(self, timeout_s: float = _START_TIMEOUT_S) -> None:
        """Return once it serves."""


class ClusterDriver(Protocol):
    """A cluster whose brokers may be harmed."""

    @property
    def bootstrap_servers(self) -> str:
        """For clients on this machine."""

    @property
    def brokers(self) -> Sequence[BrokerDriver]:
        """All brokers, running or not, by id."""

    def broker(self, broker_id: int) -> BrokerDriver:
        """The broker with this id; BadSpec when there is none."""


class ComposeDriver:
    """The brokers of the compose file, through `docker compose`."""

    def __init__(self, compose_file: Path) -> None:
        self._compose_file = compose_file
        self.racks = dict(COMPOSE_RACKS)

    @property
    def bootstrap_servers(self) -> str:
        """For clients on this machine."""
        return ",".join(f"127.0.0.1:{port}" for port in COMPOSE_PORTS.values())

    @property
    def brokers(self) -> tuple[ComposeBroker, ...]:
        """All brokers, running or not, by id."""
        return tuple(ComposeBroker(self, broker_id) for broker_id in COMPOSE_PORTS)

    def broker(self, broker_id: int) -> ComposeBroker:
        """The broker with this id; BadSpec when there is none."""
        if broker_id not in COMPOSE_PORTS:
            raise BadSpec(f"The compose file has no broker {broker_id}", why=f"its brokers are {sorted(COMPOSE_PORTS)}")
        return ComposeBroker(self, broker_id)

    def run(self, *arguments: str) -> None:
        """One `docker compose` command, with the racks the brokers are to have; ClusterError with Docker's words."""
        command = ("docker", "compose", "-f", str(self._compose_file), *arguments)
        racks = {f"RACK_{broker_id}": rack for broker_id, rack in self.racks.items()}
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_COMMAND_TIMEOUT_S,
                env={**os.environ, **racks},
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ClusterError(
                f"`{' '.join(command)}` could not be run",
                why=str(error),
                todo="Install Docker with its compose plugin.",
            ) from error
        if done.returncode:
            raise ClusterError(f"`{' '.join(command)}` failed", why=done.stderr.strip()[-500:])


class ComposeBroker:
    """One broker of the compose file."""

    def __init__(self, driver: ComposeDriver, broker_id: int) -> None:
        self._driver = driver
        self.id = broker_id

    @property
    def rack(self) -> str | None:
        """The rack it was last started in."""
        return self._driver.racks[self.id]

    def stop(self) -> None:
        """Controlled shutdown."""
        self._driver.run("stop", "--timeout", "20", self._service)

    def kill(self) -> None:
        """SIGKILL; the file has no restart policy that would bring it back."""
        self._driver.run("kill", "--signal", "SIGKILL", self._service)

    def freeze(self) -> None:
        """The container's processes are halted; connections stay open."""
        self._driver.run("pause", self._service)

    def thaw(self) -> None:
        """Let a frozen broker run on."""
        self._driver.run("unpause", self._service)

    def start(
        self, rack: str | KeepRack | None = KEEP, *, wait: bool = True, timeout_s: float = _START_TIMEOUT_S
    ) -> None:
        """On its old data; a new rack makes compose put a new container in the place of the old one.

        BadSpec for None: the compose file gives every broker a rack.
        """
        match rack:
            case KeepRack():
                pass
            case str():
                self._driver.racks[self.id] = rack
            case None:
                raise BadSpec("A broker of the compose file cannot be without a rack", todo="Use an embedded cluster.")
            case _:
                assert_never(rack)
        self._driver.run("up", "--detach", "--no-deps", self._service)
        if wait:
            self.wait_ready(timeout_s)

    def restart(
        self, rack: str | KeepRack | None = KEEP, *, wait: bool = True, timeout_s: float = _START_TIMEOUT_S
    ) -> None:
        """Controlled shutdown, then start; see `start`."""
        self.stop()
        self.start(rack, wait=wait, timeout_s=timeout_s)

    def wait_ready(self, timeout_s: float = _START_TIMEOUT_S) -> None:
        """Return once every broker that answers knows it in its rack; ClusterError when that takes longer."""
        until = time.monotonic() + timeout_s
        while not self._is_known():
            if time.monotonic() > until:
                raise ClusterError(
                    f"Broker {self.id} accepted no requests within {timeout_s:.0f} s",
                    todo=f"Look into `docker compose logs {self._service}`.",
                )
            time.sleep(_PAUSE_S)

    @property
    def _service(self) -> str:
        return f"kafka-{self.id}"

    def _is_known(self) -> bool:
        answers = {broker_id: known_brokers(port) for broker_id, port in COMPOSE_PORTS.items()}
        own = answers[self.id]
        if own is None or self.id not in own:
            return False
        return all(self.id in one and one[self.id] == self.rack for one in answers.values() if one is not None)
