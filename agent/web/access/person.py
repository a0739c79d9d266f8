"""The person of an HTTP request: roles, and people whom a proxy or a client certificate names; TLS of the server.

Invariants: a role includes those before it. A name is short, on one line and visible; two spellings that look alike to
Unicode (NFKC) are one name, so that one person is not two. A trusted proxy's header counts only on a connection from
that proxy's own address, once, and with a whole name. A client certificate was checked by TLS against the CA; its end
is checked with each request, as connections stay open. Handshakes of TLS are bounded.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import ssl
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, cast

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.act.own_files import check_secret, reason_of
from agent.errors import ConfigError, reason
from agent.web.access.request_checks import AccessRefused
from config.foreign_text import is_mark, is_unsafe
from config.http_settings import ProxySettings, RoleSettings, TlsSettings
from config.plain_file import open_plain, why_not_plain

MOST_NAME = 128
"""Characters of a name."""
ANY = "*"


class AccessRole(StrEnum):
    """What a person may do, the least first."""

    VIEW = "view"
    """Look at everything."""
    APPROVE = "approve"
    """Also approve, cancel and roll back plans."""
    OPERATE = "operate"
    """Also pause and resume."""


class SignInWay(StrEnum):
    """The way in which a person was identified."""

    NONE = "none"
    """Not signed in."""
    TOKEN = "token"  # noqa: S105 the name of a way
    OIDC = "oidc"
    PROXY = "proxy"
    CERTIFICATE = "certificate"


class SignedInPerson(NamedTuple):
    """The person of a request, with its roles."""

    name: str
    """As the journal names the person; empty for someone who is not signed in."""
    roles: frozenset[AccessRole]
    via: SignInWay

    @property
    def signed_in(self) -> bool:
        """Whether the person is identified."""
        return self.via is not SignInWay.NONE

    def may(self, role: AccessRole) -> bool:
        """Whether the person has that role."""
        return role in self.roles


NO_ONE = SignedInPerson("", frozenset(), SignInWay.NONE)
"""Not signed in where people sign in: sees nothing."""
VIEWER = SignedInPerson("", frozenset((AccessRole.VIEW,)), SignInWay.NONE)
"""Everyone on the machine, where the server listens on loopback and no sign-in is set."""


def up_to(role: AccessRole | None) -> frozenset[AccessRole]:
    """A role with those that it includes; none for None."""
    every = list(AccessRole)
    return frozenset() if role is None else frozenset(every[: every.index(role) + 1])


def roles_of(values: Iterable[str], rules: RoleSettings) -> frozenset[AccessRole]:
    """The roles of someone with these values, such as groups."""
    held = {*values, ANY}
    lists = ((AccessRole.OPERATE, rules.operate), (AccessRole.APPROVE, rules.approve), (AccessRole.VIEW, rules.view))
    return up_to(next((role for role, wanted in lists if held.intersection(wanted)), None))


def person_name(text: object) -> str | None:
    """The name in its one form; None for what is no name: empty, long, with controls, bidirectional or unseen marks."""
    if not isinstance(text, str) or not text or len(text) > MOST_NAME:
        return None
    name = unicodedata.normalize("NFKC", text).strip()
    if not name or len(name) > MOST_NAME or any(is_unsafe(char) or is_mark(char) for char in name):
        return None
    return name


def person_of(request: Request) -> SignedInPerson:
    """The person of this request, as the access middleware has identified them."""
    return cast("SignedInPerson", getattr(request.state, "person", NO_ONE))


def require(role: AccessRole) -> Callable[[Request], SignedInPerson]:
    """A check for routes: the person, or AccessRefused. As ``Depends(require(role))`` or ``require(role)(request)``."""

    def check(request: Request) -> SignedInPerson:
        person = person_of(request)
        if not person.may(role):
            raise not_allowed(person, role)
        return person

    return check


def not_allowed(person: SignedInPerson, role: AccessRole) -> AccessRefused:
    """The refusal where a person lacks a role: 401 where signing in may help, else 403."""
    if not person.signed_in and person.may(AccessRole.VIEW):
        return AccessRefused(
            403,
            "No sign-in is set up, so nothing can be written",
            why="every user of this machine may look, and none of them is known by name",
            todo="Set http.auth.tokens_file (rackwise token new), or use the command line.",
        )
    if not person.signed_in:
        return AccessRefused(401, "Sign in first", todo="Sign in, or send a token as Authorization: Bearer.")
    return AccessRefused(
        403,
        f"{person.name} lacks the role {role.value}",
        why=f"roles of {person.name}: {', '.join(one for one in AccessRole if one in person.roles) or 'none'}",
        todo="Ask an administrator of rackwise for the role (docs/access.md).",
    )


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


HANDSHAKE_S = 5.0
"""Until then a connection counts as none of the server's, so nothing else bounds it."""


def tls_context(settings: TlsSettings) -> ssl.SSLContext | None:
    """The context; None for plain HTTP. Raises ConfigError that names the file."""
    if settings.cert_file is None or settings.key_file is None:
        return None
    _check_key(settings.key_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _check_plain("http.tls.cert_file", settings.cert_file)
    try:
        # Without a password of its own the library would ask for one on the terminal.
        context.load_cert_chain(settings.cert_file, settings.key_file, password=lambda: "")
    except (OSError, ValueError) as error:
        raise _unusable("http.tls.cert_file", settings.cert_file, reason(error)) from error
    if settings.client_ca_file is not None:
        _check_plain("http.tls.client_ca_file", settings.client_ca_file)
        try:
            context.load_verify_locations(settings.client_ca_file)
        except (OSError, ValueError) as error:
            raise _unusable("http.tls.client_ca_file", settings.client_ca_file, reason(error)) from error
        context.verify_mode = ssl.CERT_OPTIONAL  # probes have none, and people may sign in otherwise
    return context


BOUNDED_LOOP = "agent.web.access.person:HandshakeBoundLoop"
"""As uvicorn takes an event loop of its user's."""


class HandshakeBoundLoop(asyncio.SelectorEventLoop):
    """An event loop whose servers end a TLS handshake in time; the library's own bound is a minute."""

    async def create_server(self, *arguments: Any, **named: Any) -> asyncio.Server:
        """See `asyncio.loop.create_server`."""
        if named.get("ssl") is not None:
            named.setdefault("ssl_handshake_timeout", HANDSHAKE_S)
        return await super().create_server(*arguments, **named)


def with_certificate(app: ASGIApp, transport: asyncio.Transport) -> ASGIApp:
    """The application that finds the connection's checked client certificate in its scope."""
    tls = transport.get_extra_info("ssl_object")
    certificate = tls.getpeercert() if tls is not None else None
    if not certificate:
        return app

    async def passing(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, CERTIFICATE: certificate}, receive, send)

    return passing


def _check_key(path: str) -> None:
    try:
        with open_plain(path) as file:
            check_secret(os.fstat(file.fileno()))
    except OSError as error:
        raise _unusable("http.tls.key_file", path, reason_of(error)) from error


def _check_plain(setting: str, path: str) -> None:
    why = why_not_plain(path)
    if why is not None:
        raise _unusable(setting, path, why)


def _unusable(setting: str, path: str, why: str) -> ConfigError:
    return ConfigError(
        f"{setting}: {path} cannot be used",
        why=why,
        todo="Name PEM files that this user may read; the key has mode 600 and no password.",
    )
