"""Rules by which a name or an address tells a rack: patterns and networks; and how hosts are compared.

Names are foreign text, and every member of a group chooses its own. So patterns are matched in linear time, by the
regex engine that pydantic brings along (Rust's), and a rack is never cut out of a name: it is the rule that names it.
"""

from __future__ import annotations

import ipaddress
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from pydantic_core import SchemaValidator, core_schema

from agent.values.limits import RackPattern

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

HOST = "host"


class Host(NamedTuple):
    """A host as it is reported, in the forms in which it is looked for."""

    names: tuple[str, ...]
    """The names and addresses in it."""
    keys: tuple[tuple[str, str], ...]
    """The same as tables hold them."""
    addresses: tuple[Address, ...]


@lru_cache(maxsize=16_384)
def host_of(told: str | None) -> Host:
    """A broker's or client's host: Java writes clients' as ``name/address`` or ``/address``."""
    names = tuple(part for part in (told or "").split("/") if part)
    parsed = [_address(name) for name in names]
    keys = tuple((HOST, name.lower() if one is None else str(one)) for name, one in zip(names, parsed, strict=True))
    return Host(names, keys, tuple(one for one in parsed if one is not None))


def name_key(of: str, name: str) -> tuple[str, str]:
    """How a name is compared: hosts without regard to case, addresses by value, everything else letter by letter."""
    if of != HOST:
        return of, name
    address = _address(name)
    return of, name.lower() if address is None else str(address)


class Patterns:
    """Patterns by what they look at."""

    __slots__ = ("_by_name",)

    def __init__(self, patterns: Iterable[RackPattern]) -> None:
        self._by_name: dict[str, list[tuple[SchemaValidator, str]]] = {}
        for of, pattern, rack in patterns:
            found = SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
            self._by_name.setdefault(of, []).append((found, rack))

    def racks(self, names: Iterable[tuple[str, str]], hosts: Sequence[str]) -> list[str]:
        """The racks of all patterns that are found in one of these names."""
        known = [(self._by_name.get(of, ()), name) for of, name in names]
        known += [(self._by_name.get(HOST, ()), host) for host in hosts]
        return [rack for patterns, name in known for found, rack in patterns if found.isinstance_python(name)]


class Networks:
    """Networks as spans of addresses that do not overlap, so that a look-up is one bisection."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, networks: Iterable[tuple[str, str]]) -> None:
        parsed = [(ipaddress.ip_network(text), rack) for text, rack in networks]
        spans = [((net.version, int(net.network_address), int(net.broadcast_address)), rack) for net, rack in parsed]
        self._starts: list[tuple[int, int]] = []
        self._ends: list[tuple[tuple[int, int], str]] = []
        for (version, first, last), rack in sorted(spans, key=lambda row: (*row[0][:2], -row[0][2])):
            # A network inside another has the same rack (the settings see to that), and tells nothing more.
            if not self._ends or self._ends[-1][0] < (version, first):
                self._starts.append((version, first))
                self._ends.append(((version, last), rack))

    def racks(self, addresses: Iterable[Address]) -> list[str]:
        """The racks of these addresses."""
        found: list[str] = []
        for address in addresses:
            key = (address.version, int(address))
            at = bisect_right(self._starts, key) - 1
            if at >= 0 and key <= self._ends[at][0]:
                found.append(self._ends[at][1])
        return found


def _address(text: str) -> Address | None:
    """The address that a text is; one of IPv4 that is written as IPv6 is itself, and a scope is left aside."""
    bare = text.partition("%")[0].removeprefix("[").removesuffix("]")
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
