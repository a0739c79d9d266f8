"""``/livez``, ``/readyz`` and ``/metrics``: the loop's health in JSON and its figures for Prometheus.

Every answer is made of the loop's last state; nothing here asks a broker. A request whose Host is a name that is not
known is refused, so that a web page cannot read a loopback address through a name of its own (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from importlib import metadata
from typing import Self, cast

import uvicorn
from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.errors import WEB, ConfigError, thread
from agent.values.clock import Clock
from agent.values.cycle import sentence
from agent.values.progress import ActingNow
from agent.web.bounds import LIVE, BoundedConnection, Bounds, Turnstile
from agent.web.loop_state import Health, LoopState, live, ready
from agent.web.metrics import Caps, RackwiseCollector
from agent.web.top import label

_GAPS_SHOWN = 100
_HOST = re.compile(r"(\[(?P<bracketed>[0-9a-f:.]+)\]|(?P<plain>[^\[\]:@/\s]*))(:[0-9]*)?")
"""A host with or without a port; nothing may follow either."""
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


def make_app(
    state: Callable[[], LoopState],
    clock: Clock,
    *,
    fresh_ms: int,
    stall_ms: int,
    caps: Caps,
    allowed_hosts: Iterable[str] = (),
    acting: Callable[[], ActingNow | None] = lambda: None,
) -> Starlette:
    """The ASGI application. ``fresh_ms`` is how old the last look may be, ``stall_ms`` how long no cycle may end.

    ``acting`` tells of mode execute at this moment: that this agent lost its lead does not wait for the next look.
    """

    def now() -> LoopState:
        seen = state()
        return replace(seen, acting=acting() or seen.acting)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(RackwiseCollector(now, version(), caps))
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)

    async def livez(_request: Request) -> Response:  # in the server's own thread: it waits for no other request
        health = live(state(), clock(), stall_ms)
        return _health(health, {"live": health.well, "reasons": _safe(health.reasons)})

    def readyz(_request: Request) -> Response:
        seen = now()
        health = ready(seen, clock(), fresh_ms)
        well = {"ready": health.well, "reasons": _safe(health.reasons)}
        return _health(health, {**well, **_sight(seen), **_acting(seen)})

    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), media_type=None, headers={"content-type": content_type, **_HEADERS})

    routes = [Route(LIVE, livez), Route("/readyz", readyz), Route("/metrics", metrics)]
    hosts = frozenset(host.lower() for host in allowed_hosts) | {"localhost"}
    return Starlette(routes=routes, middleware=[Middleware(KnownHost, hosts=hosts)])


def version() -> str:
    """The installed version of rackwise."""
    try:
        return metadata.version("rackwise")
    except metadata.PackageNotFoundError:
        return "unknown"


class KnownHost:
    """Answers 421 to a request for a host name that is not known; addresses are always known."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and not self._knows(Headers(scope=scope).getlist("host")):
            why = "the Host header names an unknown host; add it to http.allowed_hosts"
            await JSONResponse({"error": why}, status_code=421, headers=_HEADERS)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _knows(self, hosts: list[str]) -> bool:
        if len(hosts) != 1:
            return False
        found = _HOST.fullmatch(hosts[0].strip().lower())
        if found is None:
            return False
        bracketed, plain = found["bracketed"], found["plain"]
        return _is_address(bracketed) if bracketed is not None else plain in self._hosts or _is_address(plain)


def _is_address(name: str) -> bool:
    try:
        return not getattr(ipaddress.ip_address(name), "scope_id", None)  # a scope may be any text
    except ValueError:
        return False


def _health(health: Health, document: dict[str, object]) -> Response:
    return JSONResponse(document, status_code=200 if health.well else 503, headers=_HEADERS)


def _sight(state: LoopState) -> dict[str, object]:
    """What is seen, and what is not, in the words of the last look."""
    cycle, recording = state.cycle, state.recording
    if cycle is None:
        return {"cycle": None, "last_success_ms": None, "not_seen": [], "not_recorded": []}
    gaps = cycle.snapshot.gaps
    named = [
        {"part": gap.part.value, "cause": gap.cause.value, "subject": label(gap.subject), "detail": label(gap.detail)}
        for gap in gaps[:_GAPS_SHOWN]
    ]
    return {
        "cycle": cycle.number,
        "cluster": label(cycle.snapshot.cluster_id),
        "mode": cycle.limits.mode.value,
        "sentence": label(sentence(cycle)),
        "last_success_ms": state.last_success.wall_ms if state.last_success else None,
        "not_seen": named,
        "not_seen_more": max(0, len(gaps) - _GAPS_SHOWN),
        "not_recorded": _safe(recording.problems if recording else ()),
    }


def _acting(state: LoopState) -> dict[str, object]:
    """Mode execute: whether this agent leads, what open plans wait for, and what is no reason not to be ready."""
    now = state.acting
    if now is None:
        return {}
    told = {"leads": now.leads, "plans_open": now.plans, "waits_for": label(now.waits) or None}
    return {"acting": {**told, "notices": _safe(now.notices)}}


def _safe(sentences: Iterable[str]) -> list[str]:
    return [label(sentence) for sentence in sentences]


DEFAULTS = Bounds()

_STOP_S = 1.0


class WebServer:
    """Listens from `start` on; a context manager."""

    def __init__(self, app: ASGIApp, bind: str, port: int, bounds: Bounds = DEFAULTS) -> None:
        self._socket = _listen(bind, port)
        config = uvicorn.Config(
            Turnstile(app, bounds),
            http=cast("type[asyncio.Protocol]", partial(BoundedConnection, bounds=bounds)),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=bounds.head_bytes,
            server_header=False,
        )
        self._server = uvicorn.Server(config)
        self._thread = thread(WEB, partial(self._server.run, sockets=[self._socket]))

    @property
    def address(self) -> str:
        """``host:port`` that it listens on."""
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Answer no more."""
        self._server.should_exit = True
        self._thread.join(_STOP_S)
        self._socket.close()

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._server.server_state.connections)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _listen(bind: str, port: int) -> socket.socket:
    """A listening socket. Raises ConfigError that names the address and what is wrong with it."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(64)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {bind}:{port}",
            why=error.strerror or str(error),
            todo="Set http.bind and http.port to a free address, or http.enabled to false.",
        ) from error
    return listener
