"""Networks in CIDR notation: parsing, and which two overlap."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def parsed_network(text: str) -> str:
    """The network in its one form. Raises ValueError with a sentence, also where bits of a host are set."""
    try:
        return str(ipaddress.ip_network(text.strip()))
    except ValueError:
        pass
    try:
        meant = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise ValueError("it is not a network; write it as 10.1.0.0/16 or fd00:1::/32") from None
    raise ValueError(f"it is an address inside a network; the network is {meant}")


def overlapping(racks: Mapping[str, str]) -> tuple[str, str] | None:
    """The first network that is part of one of another rack, and that one; None when addresses are never in doubt."""
    networks = sorted((ipaddress.ip_network(text) for text in racks), key=lambda net: (net.version, net))
    open_ones: list[_Network] = []
    for network in networks:
        while open_ones and not _holds(open_ones[-1], network):
            open_ones.pop()
        if open_ones and racks[str(open_ones[-1])] != racks[str(network)]:
            return str(network), str(open_ones[-1])
        open_ones.append(network)
    return None


def _holds(outer: _Network, inner: _Network) -> bool:
    if outer.version != inner.version:
        return False
    first, last = int(inner.network_address), int(inner.broadcast_address)
    return int(outer.network_address) <= first and last <= int(outer.broadcast_address)
