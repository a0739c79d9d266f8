"""Ports of 127.0.0.1 for embedded clusters.

Invariants: no port comes from the kernel's range for outgoing connections: a broker keeps its ports while
it is down, and there a client that tries again and again could be given the very port it dials, and meet itself. And
no two clusters share a port: it stays bound by the process that starts the brokers, listening or not.
"""

from __future__ import annotations

import platform
import random
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from testbed.cluster.errors import ClusterError

LOWEST = 10_000
HIGHEST = 65_535
_KERNEL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_KERNEL_DEFAULT = (32_768, 60_999)
_ATTEMPTS = 2_000
_LENDS = platform.system() == "Linux"


class HeldPorts:
    """Ports that no other process can take while this is open; a context manager."""

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self._sockets = tuple(sockets)
        self.ports = tuple(one.getsockname()[1] for one in sockets)

    def lend(self) -> None:
        """Let servers listen on the ports that are to be used now.

        On Linux a bound socket that allows reuse makes way for one that listens with reuse, as Java's and asyncio's do,
        and for no other. Elsewhere the ports can only be closed.
        """
        for one in self._sockets:
            if _LENDS:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            else:
                one.close()

    def close(self) -> None:
        """Close them; fine when they are closed already."""
        for one in self._sockets:
            one.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def hold_ports(count: int) -> HeldPorts:
    """``count`` free ports, bound. Raises ClusterError when there are fewer."""
    held: list[socket.socket] = []
    for port in _candidates():
        if len(held) == count:
            break
        if (taken := _bound(port)) is not None:
            held.append(taken)
    if len(held) < count:
        HeldPorts(held).close()
        raise ClusterError(
            f"Only {len(held)} of {count} free ports were found on 127.0.0.1", todo="Stop other clusters and try again."
        )
    return HeldPorts(held)


def _candidates() -> Iterator[int]:
    low, high = kernel_range()
    allowed = [*range(LOWEST, min(low, HIGHEST)), *range(max(high + 1, LOWEST), HIGHEST + 1)]
    if not allowed:
        raise ClusterError(
            "No port can be reserved for a broker",
            why=f"the range of ephemeral ports covers {low} to {high}",
            todo="Leave some ports out of net.ipv4.ip_local_port_range.",
        )
    # Random, so that two clusters that start at once seldom look at the same port.
    yield from random.SystemRandom().sample(allowed, min(_ATTEMPTS, len(allowed)))


def kernel_range() -> tuple[int, int]:
    """First and last port the kernel gives to outgoing connections."""
    try:
        first, last = _KERNEL_RANGE.read_text(encoding="ascii").split()
        return int(first), int(last)
    except (OSError, ValueError):
        return _KERNEL_DEFAULT


def _bound(port: int) -> socket.socket | None:
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        taken.bind(("127.0.0.1", port))
    except OSError:
        taken.close()
        return None
    return taken
