"""The gate, made once from the settings: tokens, sessions, issuer, proxies, form tokens, and failed sign-ins."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from starlette.requests import Request

from agent.act.own_files import read_key_file, reason_of
from agent.errors import ConfigError
from agent.values.clock import Clock, system_clock
from agent.web.access.credentials import FormTokens, SessionStore, TokenDirectory
from agent.web.access.person import (
    NO_ONE,
    VIEWER,
    AccessRole,
    SignedInPerson,
    TrustedNetworks,
    certified,
    client_address,
    is_from,
    proxied,
    trusted_networks,
)
from agent.web.access.request_checks import AccessRefused, cookie_of, own_origins
from config.http_settings import HttpSettings

if TYPE_CHECKING:
    from agent.web.access.oidc import OidcProvider


BURST = 5
REFILL_S = 10.0
_MOST = 4_096
"""Addresses, and names, that are remembered; the latest stay."""


class AttemptBudgets:
    """Budgets of failed sign-ins by key: an address or a name."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def left(self, key: str) -> float:
        """Failures that the key has left; one comes back every `REFILL_S` seconds."""
        budget, at = self._left.get(key, (float(BURST), 0.0))
        return min(float(BURST), budget + (self._clock_s() - at) / REFILL_S)

    def take(self, key: str) -> None:
        """Count one failed sign-in of the key."""
        left = max(0.0, self.left(key) - 1)
        self._left.pop(key, None)
        self._left[key] = (left, self._clock_s())
        if len(self._left) > _MOST:
            self._left.popitem(last=False)

    def forget(self, key: str) -> None:
        """Drop the key's failures: its sign-in has succeeded."""
        self._left.pop(key, None)


class FailedSignIns:
    """The budgets of addresses and of names; callable from any thread."""

    def __init__(self, clock_s: Callable[[], float] = monotonic) -> None:
        self._lock = threading.Lock()
        self._addresses = AttemptBudgets(clock_s)
        self._names = AttemptBudgets(clock_s)

    def wait_s(self, address: str, name: str = "") -> int:
        """Seconds until this address may try again, 0 for now."""
        with self._lock:
            own = self._addresses.left(address)
            if own < 1:
                return max(1, round((1 - own) * REFILL_S))
            named = self._names.left(name) if name and own < BURST else 1.0
            return 0 if named >= 1 else max(1, round((1 - named) * REFILL_S))

    def failed(self, address: str, name: str = "") -> None:
        """A sign-in failed."""
        with self._lock:
            self._addresses.take(address)
            if name:
                self._names.take(name)

    def succeeded(self, name: str) -> None:
        """A person signed in: the failures under that name were not a stranger's luck. The address keeps its own."""
        with self._lock:
            self._names.forget(name)


_BEARER = "bearer "
_SIGN_IN = "Send a token as Authorization: Bearer TOKEN; make one with: rackwise token new NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessGate:
    """Everything that a request is judged by."""

    settings: HttpSettings
    tokens: TokenDirectory | None
    oidc: OidcProvider | None
    sessions: SessionStore
    proxies: TrustedNetworks
    clock: Clock
    forms: FormTokens = field(default_factory=FormTokens)
    failures: FailedSignIns = field(default_factory=FailedSignIns)
    now_s: Callable[[], float] = time.time

    @property
    def secure(self) -> bool:
        """Whether browsers reach it over TLS only, so that cookies may say so."""
        return self.settings.tls.cert_file is not None or (self.settings.url or "").startswith("https:")

    @property
    def session_cookie(self) -> str:
        """The name of a session's cookie; with the port, as cookies do not tell ports of a host apart."""
        return self._cookie("rackwise")

    @property
    def visitor_cookie(self) -> str:
        """The name of the cookie that ties a form to a browser without a session."""
        return self._cookie("rackwise-form")

    @property
    def state_cookie(self) -> str:
        """The name of the cookie that ties a sign-in at the issuer to the browser that began it."""
        return self._cookie("rackwise-oidc")

    def identify(self, request: Request, *, used: bool = True) -> SignedInPerson:
        """Who sent it. Raises AccessRefused for a claim that does not hold, which is never taken for no claim.

        ``used``: a session is used by it, and goes on; not so where a request that is under way is looked at again.
        """
        if "authorization" in request.headers:
            return self._bearer(request)
        if (person := self._of_session(request, used=used)) is not None:
            return person
        person = proxied(request, self.settings.auth.proxy, self.proxies)
        person = person or certified(request.scope, self.settings.auth.certificates, self.now_s())
        return person or (NO_ONE if self.settings.auth.is_set else VIEWER)

    def may_still(self, request: Request, role: AccessRole) -> bool:
        """Whether the one who sent it has that role by now."""
        try:
            return self.identify(request, used=False).may(role)
        except AccessRefused:
            return False

    def by_token(self, request: Request, token: str, name: str = "") -> tuple[SignedInPerson, str]:
        """The person with a token, and its credential. ``name``: who it claims to be. Raises AccessRefused.

        A token that counts always does: others behind the same address, or under the same name, keep no one out.
        """
        entry = None if self.tokens is None else self.tokens.entry_of(token, self.clock().wall_ms)
        if entry is None or (name and entry.name != name):
            self.failed(request, "the token is not known", name)
            problem = None if self.tokens is None else self.tokens.problem
            why = "the server cannot read its file of tokens" if problem else "the token is not known, or has expired"
            raise AccessRefused(401, "The token does not count", why=why, todo="Make one with: rackwise token new NAME")
        self.failures.succeeded(entry.name)
        return entry.person, entry.hashed

    def failed(self, request: Request, why: str, name: str = "") -> None:
        """Count and log a sign-in that failed. Raises AccessRefused (429) where too many did, which are not logged."""
        address = self.address_of(request)
        wait_s = self.failures.wait_s(address, name)
        self.failures.failed(address, name)
        if wait_s > 0:
            todo, headers = f"Try again in {wait_s} s.", {"retry-after": str(wait_s)}
            raise AccessRefused(429, "Too many sign-ins have failed", todo=todo, headers=headers)
        sentence = f"a sign-in from {address} failed: {why}"
        structlog.get_logger("rackwise").warning("sign_in_failed", address=address, sentence=sentence)

    def address_of(self, request: Request) -> str:
        """The address of the client, for bounds and the log; behind a trusted proxy, that which the proxy names."""
        return client_address(request.scope, self.proxies)

    def origins(self, request: Request) -> tuple[str, ...]:
        """Origins of this server's own pages."""
        return own_origins(request, self.settings.url, through_proxy=is_from(request.scope, self.proxies))

    def browser_cookie(self, request: Request) -> str:
        """The cookie that a browser's forms are tied to: its session, else that of a visitor; empty for none.

        A session's cookie counts only while there is that session: a browser holds any other that it was given.
        """
        own: str = getattr(request.state, "session", "")
        return own or cookie_of(request, self.visitor_cookie)

    def _bearer(self, request: Request) -> SignedInPerson:
        value = request.headers["authorization"]
        if value.strip().lower() == _BEARER.strip():
            raise AccessRefused(401, "The header Authorization: Bearer has no token", todo=_SIGN_IN)
        if value[: len(_BEARER)].lower() != _BEARER:
            raise AccessRefused(401, "The header Authorization is of another kind than Bearer", todo=_SIGN_IN)
        person, _ = self.by_token(request, value[len(_BEARER) :].strip())
        return person

    def _of_session(self, request: Request, *, used: bool) -> SignedInPerson | None:
        cookie = cookie_of(request, self.session_cookie)
        session = self.sessions.find(cookie, self.clock().monotonic_ms, used=used) if cookie else None
        if session is None:
            return None
        request.state.session = cookie
        if not session.credential:
            return session.person
        entry = None if self.tokens is None else self.tokens.still(session.credential, self.clock().wall_ms)
        if entry is None:  # the token was taken back, or has expired
            self.sessions.end(cookie)
            request.state.session = ""
            return None
        return entry.person

    def _cookie(self, name: str) -> str:
        return f"{'__Host-' if self.secure else ''}{name}-{self.settings.port}"


def make_gate(settings: HttpSettings, clock: Clock = system_clock) -> AccessGate:
    """The gate of a server. Raises ConfigError for a file that cannot be used."""
    auth = settings.auth
    oidc = None
    if auth.oidc.issuer is not None:
        from agent.web.access.oidc import OidcProvider as Provider  # noqa: PLC0415 slow to import, and seldom set

        oidc = Provider(auth.oidc, client_secret(settings), settings.url or "")
    return AccessGate(
        settings=settings,
        tokens=None if auth.tokens_file is None else TokenDirectory(Path(auth.tokens_file)),
        oidc=oidc,
        sessions=SessionStore(idle_ms=auth.session_idle_ms, max_ms=auth.session_max_ms),
        proxies=trusted_networks(auth.proxy.networks),
        clock=clock,
    )


def client_secret(settings: HttpSettings) -> str | None:
    """The client's secret at the issuer; None for a public client. Raises ConfigError."""
    oidc = settings.auth.oidc
    if oidc.client_secret_file is None:
        return oidc.client_secret
    try:
        lines = read_key_file(Path(oidc.client_secret_file))
    except OSError as error:
        lines, why = (), reason_of(error)
    else:
        why = f"it has {len(lines)} lines, and one is expected"
    if len(lines) != 1:
        raise ConfigError(
            f"http.auth.oidc.client_secret_file: {oidc.client_secret_file} has no secret that can be used",
            why=why,
            todo="Write the client's secret into it on one line, and: chmod 600 FILE",
        )
    return lines[0]


def hosts_of(settings: HttpSettings) -> tuple[str, ...]:
    """Accepted Host headers, without ports."""
    own = urlsplit(settings.url).hostname if settings.url else None
    return (*settings.allowed_hosts, own) if own else settings.allowed_hosts
