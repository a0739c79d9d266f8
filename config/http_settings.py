"""Settings of the HTTP server: where it listens, TLS, and who may sign in with which role.

Defaults are safe: it listens on this machine only, where everyone may look and nothing can be written.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from config.networks import parsed_network
from config.setting_mistake import SettingMistake
from config.value_kinds import FilledText, Millis, Names, NoneWord, Text, at_least, at_most

_STRICT = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_NOT_A_PERSON = frozenset(
    ("authorization", "cookie", "host", "origin", "content-type", "content-length", "transfer-encoding", "connection")
)


class TlsSettings(BaseModel):
    """TLS of the server itself."""

    model_config = _STRICT

    cert_file: Annotated[Text | None, NoneWord] = None
    """Certificate of the server with its chain (PEM); none: plain HTTP."""
    key_file: Annotated[Text | None, NoneWord] = None
    """Private key of that certificate (PEM, without a password); no other user may read it."""
    client_ca_file: Annotated[Text | None, NoneWord] = None
    """CA certificates (PEM) that client certificates are checked against; none: no client certificate is requested."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.cert_file is None) is not (self.key_file is None):
            missing = "cert_file" if self.cert_file is None else "key_file"
            raise SettingMistake(missing, "http.tls.cert_file and http.tls.key_file go together; set both or none")
        if self.client_ca_file is not None and self.cert_file is None:
            raise SettingMistake("client_ca_file", "client certificates need http.tls.cert_file and http.tls.key_file")
        return self


class RoleSettings(BaseModel):
    """Which names have which role; a role includes those before it."""

    model_config = _STRICT

    view: Names = ()
    """Values that may look at everything; ``*``: any."""
    approve: Names = ()
    """Values that may also approve, cancel and roll back plans."""
    operate: Names = ()
    """Values that may also pause and resume."""

    @property
    def is_empty(self) -> bool:
        """Whether no value has any role."""
        return not (self.view or self.approve or self.operate)


class OidcSettings(RoleSettings):
    """Sign-in at an OpenID Connect issuer (authorization code with PKCE); values are those of role_claim."""

    issuer: Annotated[Text | None, NoneWord] = None
    """Issuer, such as https://login.example.org/realms/ops; none: no such sign-in. Plain http only on loopback."""
    client_id: Annotated[Text | None, NoneWord] = None
    """Client id under which rackwise is registered there, with the redirect URI <http.url>/sign-in/oidc/callback."""
    client_secret: Annotated[Text | None, NoneWord] = None
    """Client secret; none: a public client."""
    client_secret_file: Annotated[Text | None, NoneWord] = None
    """File with the client secret instead; no other user may read it."""
    scopes: Names = ("openid", "profile", "email")
    """Scopes that are requested."""
    name_claim: FilledText = "email"
    """Claim of the ID token that is the person's name in the journal; an email counts only when it is verified."""
    role_claim: FilledText = "groups"
    """Claim of the ID token, a text or a list, whose values have the roles below."""
    timeout_ms: Annotated[Millis, at_least("500ms"), at_most("20s")] = Field(default=5_000, alias="timeout")
    """Deadline of one request to the issuer."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.issuer is None:
            if self.model_fields_set - {"issuer"} and (self.client_id or not self.is_empty):
                raise SettingMistake("issuer", "sign-in over OIDC needs it, such as https://login.example.org")
            return self
        _check_issuer(self.issuer)
        if self.client_id is None:
            raise SettingMistake("client_id", "http.auth.oidc.issuer needs the client id that is registered there")
        if self.client_secret is not None and self.client_secret_file is not None:
            raise SettingMistake("client_secret_file", "it contradicts http.auth.oidc.client_secret; give one of them")
        if "openid" not in self.scopes:
            raise SettingMistake("scopes", "openid is missing; without it the issuer gives no ID token")
        if self.is_empty:
            raise SettingMistake("view", "no value of the role claim has a role; set view, approve or operate")
        return self

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Nothing: the client's secret is among the values."""
        return ()


class ProxySettings(RoleSettings):
    """A reverse proxy that signs people in and names them in a header; values are those of role_header."""

    networks: Names = ()
    """Networks of the proxies, such as 10.1.2.3/32; empty: no proxy is trusted. From any other address the headers
    count for nothing."""
    name_header: Text = "X-Forwarded-User"
    """Header with the person's name; the proxy must remove one that a client sends."""
    role_header: Text = "X-Forwarded-Groups"
    """Header with the person's groups, separated by commas, whose values have the roles below."""

    @field_validator("networks")
    @classmethod
    def _parsed(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        found = tuple(parsed_network(network) for network in networks)
        if any(network.endswith("/0") for network in found):
            raise ValueError("it covers every address, so any client could name any person; name the proxies alone")
        return found

    @field_validator("name_header", "role_header")
    @classmethod
    def _usable(cls, name: str) -> str:
        if not _HEADER.fullmatch(name) or name.lower() in _NOT_A_PERSON:
            raise ValueError("it is no header that can name a person; write it as X-Forwarded-User")
        return name

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.networks and self.is_empty:
            raise SettingMistake("view", "no group of the proxy has a role; set view, approve or operate")
        if not self.networks and not self.is_empty:
            raise SettingMistake("networks", "it is empty, so no proxy is trusted; name the networks of the proxies")
        if self.name_header.lower() == self.role_header.lower():
            raise SettingMistake("role_header", "it is the same as http.auth.proxy.name_header")
        return self


class CertificateSettings(RoleSettings):
    """Client certificates (mTLS): values are CN=ann, the whole subject, email:ann@example.org, DNS:… or URI:…."""


class AuthSettings(BaseModel):
    """How people sign in; without any of these every user of this machine may look, and nothing can be written."""

    model_config = _STRICT

    tokens_file: Annotated[Text | None, NoneWord] = None
    """File with hashes of tokens, names and roles, written by ``rackwise token new``; read again when it changes."""
    session_idle_ms: Annotated[Millis, at_least("1m"), at_most("1d")] = Field(default=3_600_000, alias="session_idle")
    """A session ends when nothing was requested for this long ..."""
    session_max_ms: Annotated[Millis, at_least("1m"), at_most("7d")] = Field(default=43_200_000, alias="session_max")
    """... and in any case after this long."""
    oidc: OidcSettings = Field(default_factory=OidcSettings)
    proxy: ProxySettings = Field(default_factory=ProxySettings)
    certificates: CertificateSettings = Field(default_factory=CertificateSettings)

    @property
    def is_set(self) -> bool:
        """Whether anyone can sign in."""
        ways = (self.tokens_file, self.oidc.issuer, self.proxy.networks)
        return any(ways) or not self.certificates.is_empty


class HttpSettings(BaseModel):
    """Health, metrics, pages and API over HTTP."""

    model_config = _STRICT

    enabled: bool = True
    """Whether anything is served over HTTP."""
    pages: bool = True
    """Whether pages and API are served; false: only /livez, /readyz and /metrics, which need no sign-in."""
    bind: Text = "127.0.0.1"
    """Address to listen on; another than a loopback address needs http.auth, or http.pages false."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 9464
    """Port to listen on; 0 takes a free one, which is logged."""
    url: Annotated[Text | None, NoneWord] = None
    """URL at which people open the page, such as https://rackwise.example.org, where it is not the address itself."""
    allowed_hosts: Names = ()
    """Accepted Host headers besides localhost, the host of http.url and IP addresses (against DNS rebinding)."""
    reports: Annotated[Text | None, NoneWord] = None
    """Folder with reports of the pipeline (rackwise spark report --out), which the API lists; none by default."""
    tls: TlsSettings = Field(default_factory=TlsSettings)
    auth: AuthSettings = Field(default_factory=AuthSettings)

    @field_validator("url")
    @classmethod
    def _origin(cls, url: str | None) -> str | None:
        return None if url is None else _origin_of(url)

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        if not self.auth.certificates.is_empty and self.tls.client_ca_file is None:
            raise SettingMistake("tls.client_ca_file", "http.auth.certificates needs the CA of client certificates")
        if self.auth.oidc.issuer is not None and self.url is None:
            raise SettingMistake("url", "http.auth.oidc needs it: the issuer sends people back to it")
        if self.enabled and self.pages and not is_loopback(self.bind) and not self.auth.is_set:
            raise SettingMistake(
                "bind",
                f"other machines reach {self.bind}, and no way to sign in is set; set"
                " http.auth.tokens_file (rackwise token new), http.auth.oidc, http.auth.proxy or"
                " http.auth.certificates, or http.pages false for health and metrics alone, or bind 127.0.0.1",
            )
        return self


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; of names, only localhost does."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _check_issuer(issuer: str) -> None:
    """Raises SettingMistake for what is no URL of an issuer."""
    try:
        parts = urlsplit(issuer)
        host = parts.hostname or ""
    except ValueError:
        raise SettingMistake("issuer", "it is no URL; write it as https://login.example.org") from None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or "@" in parts.netloc:
        raise SettingMistake("issuer", "it is no URL of an issuer; write it as https://login.example.org")
    if parts.scheme == "http" and not is_loopback(host):
        raise SettingMistake(
            "issuer", "it is plain http, so any machine on the way could sign in under any name; use https"
        )


def _origin_of(url: str) -> str:
    """The URL as browsers write an origin. Raises ValueError for one that has more."""
    what = "scheme and host are expected, and nothing after them, such as https://rackwise.example.org"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError(what) from None
    if parts.scheme not in ("http", "https") or not re.fullmatch(r"[a-z0-9.-]+|[0-9a-f:.]+", host):
        raise ValueError(what)
    if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(what)
    name = f"[{host}]" if ":" in host else host
    own = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{name}" if port in (None, own) else f"{parts.scheme}://{name}:{port}"
