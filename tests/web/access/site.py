"""A server with the gate, people with tokens, and routes of a test that write down what was done; a raw HTTP client."""

from __future__ import annotations

import itertools
import re
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from agent.web.access.credentials import append_entry, new_token
from agent.web.access.gate import AccessGate, hosts_of, make_gate
from agent.web.access.middleware import csrf_token
from agent.web.access.person import AccessRole, person_of, require, tls_context, trusted_networks
from agent.web.access.request_checks import pages
from agent.web.agent_view import AgentView
from agent.web.app import ServerBounds, WebServer, make_app
from agent.web.commands import CommandDesk
from agent.web.metrics import SeriesCaps
from config.http_settings import HttpSettings
from tests.web.test_app import NOW
from tests.web.test_metrics import state

FAST = ServerBounds(per_s=1e6, burst=1e6)
PLAN = "/api/v1/proposals/p-1/approve"
PAUSE = "/api/v1/pause"
FORM = "application/x-www-form-urlencoded"
_ADDRESSES = (f"127.{a}.{b}.{c}" for a, b, c in itertools.product(range(1, 200), range(256), range(1, 255)))


def fresh_address() -> str:
    """A loopback address from which nothing came yet."""
    return next(_ADDRESSES)


class Answer(NamedTuple):
    """What the server sent back."""

    status: int
    """0 where it hung up without an answer."""
    headers: dict[str, str]
    """By their names in lower case; of some that come twice, the last one."""
    cookies: dict[str, str]
    text: str
    raw: bytes


@dataclass
class Site:
    """A server under test."""

    server: WebServer
    gate: AccessGate
    tokens: dict[str, str]
    done: list[tuple[str, str]] = field(default_factory=list)
    """What was carried out: person and path."""
    tls: ssl.SSLContext | None = None

    def raw(self, data: bytes, source: str | None = None, wait_s: float = 10.0) -> Answer:
        """What comes back for these bytes."""
        host, port = self.server.address.split(":")
        with socket.create_connection((host, int(port)), wait_s, (source or fresh_address(), 0)) as plain:
            # A handshake that fails is the test's to expect.
            connection = self.tls.wrap_socket(plain, server_hostname="localhost") if self.tls else plain
            received = b""
            try:
                connection.sendall(data)
                while part := connection.recv(65_536):  # every request closes
                    received += part
            except (ConnectionError, ssl.SSLError):
                pass
        return _parsed(received)

    def ask(
        self, method: str, path: str, headers: dict[str, str] | list[tuple[str, str]] | None = None, body: str = "",
        source: str | None = None,
    ) -> Answer:  # fmt: skip
        """One request, with ``Host: localhost`` unless another is given."""
        given = list(headers.items()) if isinstance(headers, dict) else list(headers or [])
        if not any(name.lower() == "host" for name, _ in given):
            given.insert(0, ("Host", "localhost"))
        if body and not any(name.lower() in ("content-length", "transfer-encoding") for name, _ in given):
            given.append(("Content-Length", str(len(body.encode()))))
        if method == "POST" and not body:
            given.append(("Content-Length", "0"))
        head = "".join(f"{name}: {value}\r\n" for name, value in given)
        text = f"{method} {path} HTTP/1.1\r\n{head}Connection: close\r\n\r\n{body}"
        return self.raw(text.encode("utf-8", "surrogateescape"), source)

    def bearer(self, name: str) -> dict[str, str]:
        """The header of a person's token."""
        return {"Authorization": f"Bearer {self.tokens[name]}"}

    def signed_in(self, name: str, source: str | None = None, cookies: str = "") -> Browser:
        """A browser in which that person signed in with the form."""
        source = source or fresh_address()
        form = self.ask("GET", "/sign-in", {"Cookie": cookies} if cookies else {}, source=source)
        visitor = "; ".join(
            [*([cookies] if cookies else []), *(f"{key}={value}" for key, value in form.cookies.items())]
        )
        token = csrf_in(form)
        body = f"csrf={token}&name={name}&token={self.tokens[name]}&next=/groups"
        answer = self.ask("POST", "/sign-in", {"Cookie": visitor, "Content-Type": FORM}, body, source)
        assert answer.status == 303, answer
        cookie = answer.cookies[self.gate.session_cookie]
        shown = self.ask("GET", "/", {"Cookie": f"{self.gate.session_cookie}={cookie}"}, source=source)
        return Browser(f"{self.gate.session_cookie}={cookie}", csrf_in(shown))


class Browser(NamedTuple):
    """What a browser holds after signing in."""

    cookie: str
    csrf: str


def csrf_in(page: Answer) -> str:
    """The form token in a page."""
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', page.text)
    assert found is not None, page
    return found[1]


def routes_of(site: list[Site]) -> list[BaseRoute]:
    """A page with a form, and what it does."""

    def page(request: Request) -> Response:
        person = person_of(request)
        shown = pages.from_string(
            '<p>{{ name }}</p><form><input type="hidden" name="csrf" value="{{ csrf }}"></form>'
        ).render(name=person.name, csrf=csrf_token(request))
        return HTMLResponse(shown)

    def act(role: AccessRole) -> Any:
        async def route(request: Request) -> Response:
            person = require(role)(request)
            body = await request.body()
            site[0].done.append((person.name, request.url.path))
            return JSONResponse({"who": person.name, "read": len(body), "fields": request.state.fields})

        return route

    return [
        Route("/", page),
        Route("/groups", page),
        Route("/api/v1/whoami", lambda request: JSONResponse({"name": person_of(request).name})),
        Route(PLAN, act(AccessRole.APPROVE), methods=["POST"]),
        Route(PAUSE, act(AccessRole.OPERATE), methods=["POST"]),
        Route("/static/page.css", lambda _: Response("p{}", media_type="text/css")),
    ]


@contextmanager
def site(
    folder: Path,
    settings: dict[str, Any] | None = None,
    *,
    bounds: ServerBounds = FAST,
    view: AgentView | None = None,
    desk: CommandDesk | None = None,
    proxies: Sequence[str] = (),
) -> Iterator[Site]:
    """A running server; people: vic views, ann approves, opa operates, old has an expired token."""
    file, tokens = folder / "tokens.yaml", {}
    for name, role, expires in (
        ("vic", AccessRole.VIEW, None), ("ann", AccessRole.APPROVE, None),
        ("opa", AccessRole.OPERATE, None), ("old", AccessRole.OPERATE, 1_000),
    ):  # fmt: skip
        tokens[name], entry = new_token(name, role, expires)
        append_entry(file, entry)
    given = {"auth": {"tokens_file": str(file)}, "port": 0, **(settings or {})}
    http = HttpSettings.model_validate(given)
    gate, holder = make_gate(http), []
    app = make_app(
        state, lambda: NOW, fresh_ms=30_000, stall_ms=60_000, caps=SeriesCaps(), allowed_hosts=hosts_of(http),
        gate=gate, routes=routes_of(holder), view=view, desk=desk,
    )  # fmt: skip
    trusted = trusted_networks(proxies)
    with WebServer(app, "127.0.0.1", 0, bounds, tls=tls_context(http.tls), proxies=trusted) as server:
        made = Site(server, gate, tokens)
        holder.append(made)
        _wait(server)
        yield made


def _wait(server: WebServer) -> None:
    host, port = server.address.split(":")
    until = time.monotonic() + 10
    while True:
        try:
            socket.create_connection((host, int(port)), 1).close()
        except OSError:
            assert time.monotonic() < until
        else:
            return


def _parsed(received: bytes) -> Answer:
    head, _, body = received.partition(b"\r\n\r\n")
    first, _, rest = head.partition(b"\r\n")
    if not first.startswith(b"HTTP/1.1 "):
        return Answer(0, {}, {}, "", received)
    message = BytesParser().parsebytes(rest + b"\r\n\r\n", headersonly=True)
    cookies = dict(
        value.partition(";")[0].partition("=")[::2] for name, value in message.items() if name.lower() == "set-cookie"
    )
    return Answer(
        int(first.split()[1]),
        {name.lower(): str(value) for name, value in message.items()},
        cookies,
        body.decode("utf-8", "replace"),
        received,
    )
