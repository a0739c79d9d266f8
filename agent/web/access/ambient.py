"""People whom each request names by itself: the header of a trusted proxy, and client certificates.

Invariants: a proxy's header counts only on a connection from that proxy's own address, once, and with a whole name. A
certificate was checked by TLS against the CA; its end is checked with each request, as connections stay open.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.types import Scope

from agent.web.access.person import SignedInPerson, SignInWay, person_name, roles_of
from agent.web.access.request_checks import AccessRefused
from config.http_settings import ProxySettings, RoleSettings

CERTIFICATE = "rackwise.certificate"
"""Where the server puts the checked client certificate of a connection, in the ASGI scope."""
_MOST_GROUPS = 200
_MOST_HOPS = 16
_SHORT = {"commonName": "CN", "organizationalUnitName": "OU", "organizationName": "O", "countryName": "C",
          "localityName": "L", "stateOrProvinceName": "ST", "emailAddress": "emailAddress"}  # fmt: skip

TrustedNetworks = Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]


def trusted_networks(texts: Sequence[str]) -> TrustedNetworks:
    """The networks of the settings."""
    return tuple(ipaddress.ip_network(text) for text in texts)


def is_from(scope: Scope, networks: TrustedNetworks) -> bool:
    """Whether the connection comes from one of these networks."""
    client = scope.get("client")
    if not client or not networks:
        return False
    return is_in(client[0], networks)


def is_in(address: str, networks: TrustedNetworks) -> bool:
    """Whether an address is in one of these networks; also an IPv4 address in its IPv6 form."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return any((mapped or found) in network for network in networks)


def client_address(scope: Scope, networks: TrustedNetworks) -> str:
    """The address that a request comes from: of a connection from a trusted proxy, the last one that it did not add.

    Each proxy appends the address of its own client to ``X-Forwarded-For``; all before the last address that no proxy
    has may be forged.
    """
    client = scope.get("client")
    address = str(client[0]) if client else ""
    if not is_from(scope, networks):
        return address
    given = ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for")
    for one in reversed([part.strip() for part in given.split(",")][-_MOST_HOPS:]):
        if not is_address(one):
            return address
        address = one
        if not is_in(one, networks):
            return address
    return address


def is_address(text: str) -> bool:
    """Whether that is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def proxied(request: Request, rules: ProxySettings, networks: TrustedNetworks) -> SignedInPerson | None:
    """The person that a trusted proxy names; None where none is named, or the connection is no proxy's.

    Raises AccessRefused for headers that name no one person.
    """
    if not is_from(request.scope, networks):
        return None
    names, groups = request.headers.getlist(rules.name_header), request.headers.getlist(rules.role_header)
    if not names:
        return None
    name = person_name(_text(names[0])) if len(names) == 1 else None
    if name is None or len(groups) > 1:
        raise AccessRefused(
            400,
            f"the headers {rules.name_header} and {rules.role_header} do not name one person",
            why="each is sent once, with a short visible text",
            todo="Have the proxy remove these headers from what clients send.",
        )
    values = _text(groups[0]).split(",")[:_MOST_GROUPS] if groups else []
    return SignedInPerson(name, roles_of((one.strip() for one in values), rules), SignInWay.PROXY)


def certified(scope: Scope, rules: RoleSettings, now_s: float) -> SignedInPerson | None:
    """The person of the connection's client certificate; None without one. Raises AccessRefused once it has ended."""
    certificate = scope.get(CERTIFICATE)
    if not certificate or rules.is_empty:
        return None
    until = certificate.get("notAfter")
    if not isinstance(until, str) or ssl.cert_time_to_seconds(until) <= now_s:
        raise AccessRefused(401, "the client certificate has expired", headers={"connection": "close"})
    names = tuple(_names(certificate))
    first = names[0] if names else ""
    name = person_name(first.removeprefix("CN=") if first.startswith("CN=") else first.partition(":")[2])
    if name is None:
        raise AccessRefused(401, "the client certificate names no person", why="it has no usable CN or SAN")
    return SignedInPerson(name, roles_of(names, rules), SignInWay.CERTIFICATE)


def _names(certificate: Mapping[str, Any]) -> Iterator[str]:
    """The forms in which settings name it: its CN or first SAN comes first."""
    rows = [(key, _escaped(value)) for part in certificate.get("subject", ()) for key, value in part]
    yield from (f"CN={value}" for key, value in rows if key == "commonName")
    yield from (f"{kind}:{value}" for kind, value in certificate.get("subjectAltName", ()) if kind != "DirName")
    yield ",".join(f"{_SHORT.get(key, key)}={value}" for key, value in rows)


def _escaped(value: str) -> str:
    """A value of a subject as RFC 4514 writes it, so that a comma in a name is no second part of the subject."""
    return "".join(f"\\{char}" if char in ',+"\\<>;=' else char for char in value)


def _text(value: str) -> str:
    """A header as UTF-8, which proxies send; Starlette reads Latin-1."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return ""
