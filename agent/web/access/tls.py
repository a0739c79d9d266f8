"""TLS of the server: its context, a bound on handshakes, and the client certificate of a connection."""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from agent.act.own_files import check_secret, reason_of
from agent.errors import ConfigError, reason
from agent.web.access.ambient import CERTIFICATE
from config.http_settings import TlsSettings
from config.plain_file import open_plain, why_not_plain

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


BOUNDED_LOOP = "agent.web.access.tls:HandshakeBoundLoop"
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
