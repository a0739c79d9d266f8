"""Which ports of 127.0.0.1 a cluster may have.

Invariant: no port comes from the range the kernel hands out to outgoing connections. A broker keeps its ports while
it is down, and there a client that tries again and again could be given the very port it dials, and meet itself.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.cluster.errors import ClusterError

LOWEST = 10_000
HIGHEST = 65_535
_KERNEL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_KERNEL_DEFAULT = (32_768, 60_999)
_ATTEMPTS = 2_000


@contextmanager
def held_ports(count: int) -> Iterator[tuple[int, ...]]:
    """So many free ports, kept bound until the block is left; ClusterError when there are not so many."""
    held: list[socket.socket] = []
    try:
        for port in _candidates():
            if len(held) == count:
                break
            if (taken := _bound(port)) is not None:
                held.append(taken)
        if len(held) < count:
            raise ClusterError(
                f"Only {len(held)} of {count} free ports were found on 127.0.0.1",
                todo="Stop other clusters and try again.",
            )
        yield tuple(one.getsockname()[1] for one in held)
    finally:
        for one in held:
            one.close()


def _candidates() -> Iterator[int]:
    low, high = kernel_range()
    allowed = [*range(LOWEST, min(low, HIGHEST)), *range(max(high + 1, LOWEST), HIGHEST + 1)]
    if not allowed:
        raise ClusterError(
            "No port can be kept for a broker",
            why=f"the kernel hands out all ports from {low} to {high}",
            todo="Leave some out of net.ipv4.ip_local_port_range.",
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
