"""``/livez``, ``/readyz`` and ``/metrics``: health as JSON, metrics for Prometheus; the API; the server's bounds.

Answers are made from the loop's last state, never from a broker. An unknown Host is refused, against DNS rebinding.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib import metadata
from time import monotonic
from typing import Any, NamedTuple, Self, cast

import h11
import uvicorn
from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import CollectorRegistry
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from agent.errors import WEB, ConfigError, thread
from agent.values.clock import Clock
from agent.values.cycle import sentence
from agent.values.plan import ExecuteState
from agent.web.access.gate import AccessGate
from agent.web.access.middleware import AccessControl, refuse, sign_in_routes
from agent.web.access.person import BOUNDED_LOOP, AccessRole, TrustedNetworks, client_address, require, with_certificate
from agent.web.access.request_checks import (
    METHODS,
    PROBLEM_TYPE,
    AccessRefused,
    AllowedHosts,
    failed,
    problem_bytes,
    refusal_answer,
)
from agent.web.agent_view import AgentView, HealthStatus, LoopState, live, ready
from agent.web.commands import CommandDesk
from agent.web.metrics import RackwiseCollector, SeriesCaps
from agent.web.money_metrics import label

# Bounds of the server: a new connection is always taken, for which the longest idle one is closed; ``/livez`` waits for
# no other request and is never refused; every other wait for a client ends.

LIVE = "/livez"
STREAM = "/api/v1/events"
"""A stream has no end: it takes no place among the pages, and only bytes that its client does not take end it."""
_ADDRESSES = 1_024
_REFUSED_HEADERS = {"connection": "close", "retry-after": "1"}


class ServerBounds(NamedTuple):
    """Bounds of connections, sizes, times and rates."""

    connections: int = 256
    head_s: float = 5.0
    """A whole request head must come within this time of the connection, or of the answer before."""
    head_bytes: int = 16_384
    answer_s: float = 30.0
    """An answer must be made and taken within this time."""
    pages: int = 8
    """Requests at once, ``/livez`` not counted: each takes a thread."""
    per_s: float = 20.0
    """Requests per second and client address, ``/livez`` not counted ..."""
    burst: float = 40.0
    """... and how many may come at once after a rest."""
    streams: int = 100
    """Streams of events at once: each takes a connection, and no thread."""


class BoundedConnection(H11Protocol):
    """A connection that is closed when its client is too slow, or a new one needs its place."""

    def __init__(self, *, bounds: ServerBounds, **more: Any) -> None:
        super().__init__(**more)
        self._bounds = bounds
        self._timer: asyncio.TimerHandle | None = None
        self._answer_until = 0.0
        self.since = self.loop.time()
        """When it last began, was asked or had answered."""

    @property
    def is_busy(self) -> bool:
        """Whether a request of it is being answered, or the answer is being taken."""
        return self.cycle is not None and (not self.cycle.response_complete or self._is_taken_slowly)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Accept it; above the bound the longest idle connection is closed, else the oldest."""
        super().connection_made(transport)
        self.app = with_certificate(cast("ASGIApp", self.app), transport)
        self._wait(self._bounds.head_s)
        others = [one for one in self.connections if isinstance(one, BoundedConnection) and one is not self]
        if len(others) >= self._bounds.connections:
            min(others, key=lambda one: (one.is_busy, one.since)).end()

    def handle_events(self) -> None:
        """Handle received bytes; bytes that complete no head extend no deadline."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._answer_until = self.loop.time() + self._bounds.answer_s
            self._wait(self._bounds.answer_s)
            if self.scope is not None and self.scope["path"] == STREAM:
                self._watch_stream()

    def _watch_stream(self) -> None:
        """Look every now and then whether the client takes what it is sent, instead of waiting for an end."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(self._bounds.answer_s, self._check_stream)

    def _check_stream(self) -> None:
        if self._is_taken_slowly:
            self.end()
        elif self.cycle is not None and not self.cycle.response_complete:
            self._watch_stream()

    def on_response_complete(self) -> None:
        """Start the deadline of the next head once the client has taken the answer."""
        self._wait(self._answer_until - self.loop.time() if self._is_taken_slowly else self._bounds.head_s)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer of a closed connection."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request of HTTP, then hang up."""
        body = problem_bytes(AccessRefused(400, msg.rstrip(".")))
        headers = [("content-type", PROBLEM_TYPE), ("content-length", str(len(body))), ("connection", "close")]
        answer = h11.Response(status_code=400, headers=[*headers, *_HEADERS.items()], reason=b"Bad Request")
        for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def end(self) -> None:
        """Hang up at once; what the client has not taken is lost."""
        self.connections.discard(self)
        self.transport.abort()

    @property
    def _is_taken_slowly(self) -> bool:
        return self.transport.get_write_buffer_size() > 0

    def _wait(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.since = self.loop.time()
        self._timer = self.loop.call_later(seconds, self.end)


class RequestLimiter:
    """Refuses too many requests at once (503) or from one address (429); never ``/livez``."""

    def __init__(
        self,
        app: ASGIApp,
        bounds: ServerBounds,
        clock_s: Callable[[], float] = monotonic,
        proxies: TrustedNetworks = (),
    ) -> None:
        """``proxies`` name the address of the client, for which they ask."""
        self._app = app
        self._proxies = proxies
        self._bounds = bounds
        self._clock_s = clock_s
        self._inside = {"pages": 0, "streams": 0}
        self._budgets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Client address -> requests that it may still make, and when that was reckoned; the latest last."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] == LIVE:
            await self._app(scope, receive, send)
            return
        if not self._is_paced(client_address(scope, self._proxies)):
            await self._refuse(429, "too many requests from this address", scope, receive, send)
            return
        place = "streams" if scope["path"] == STREAM else "pages"
        if self._inside[place] >= getattr(self._bounds, place):
            await self._refuse(503, "too many requests at once", scope, receive, send)
            return
        self._inside[place] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._inside[place] -= 1

    async def _refuse(self, status: int, what: str, scope: Scope, receive: Receive, send: Send) -> None:
        refused = AccessRefused(status, what, todo="Ask again in a second.", headers=_REFUSED_HEADERS)
        await refusal_answer(Request(scope), refused)(scope, receive, send)

    def _is_paced(self, address: str) -> bool:
        """Whether this address may ask again now. The addresses that asked last are remembered."""
        bounds, now = self._bounds, self._clock_s()
        left, at = self._budgets.pop(address, (bounds.burst, now))
        left = min(bounds.burst, left + (now - at) * bounds.per_s)
        self._budgets[address] = (max(0.0, left - 1) if left >= 1 else left, now)
        if len(self._budgets) > _ADDRESSES:
            self._budgets.popitem(last=False)
        return left >= 1


_GAPS_SHOWN = 100
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


def make_app(
    state: Callable[[], LoopState],
    clock: Clock,
    *,
    fresh_ms: int,
    stall_ms: int,
    caps: SeriesCaps,
    allowed_hosts: Iterable[str] = (),
    acting: Callable[[], ExecuteState | None] = lambda: None,
    gate: AccessGate | None = None,
    view: AgentView | None = None,
    desk: CommandDesk | None = None,
    routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """The ASGI application. ``fresh_ms`` is how old the last look may be, ``stall_ms`` how long no cycle may end.

    ``acting`` returns the present state of mode execute, so a lost leadership shows before the next look. ``gate``
    decides about access to the API, which reads ``view`` and sends commands over ``desk``, and to ``routes``; without
    one there are health and metrics only.
    """

    def now() -> LoopState:
        seen = state()
        return replace(seen, acting=acting() or seen.acting)

    registry = CollectorRegistry(auto_describe=False)
    collector = RackwiseCollector(now, version(), caps)
    registry.register(collector)
    for of_process in (ProcessCollector, PlatformCollector, GCCollector):
        of_process(registry=registry)

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
        answer = Response(encode(registry), media_type=None, headers={"content-type": content_type, **_HEADERS})
        if collector.is_behind:
            answer.background = BackgroundTask(collector.catch_up)
        return answer

    every: list[BaseRoute] = [Route(LIVE, livez), Route("/readyz", readyz), Route("/metrics", metrics)]
    hosts = frozenset(host.lower() for host in allowed_hosts) | {"localhost"}
    around = [Middleware(AllowedHosts, hosts=hosts)]
    handlers = {HTTPException: refuse, Exception: failed}
    if gate is None:
        return _plain(Starlette(routes=every, middleware=around, exception_handlers=handlers))
    if view is not None:
        every.append(_api(view, clock, desk))
    every += [*sign_in_routes(), *routes]
    served = Starlette(
        routes=every,
        middleware=[*around, Middleware(AccessControl, gate=gate, methods_at=partial(_methods_at, every))],
        exception_handlers=handlers,
    )
    return _plain(served)


def _plain(app: Starlette) -> Starlette:
    """The application without redirects to a path with or without a slash: behind TLS of a proxy they lead to http."""
    app.router.redirect_slashes = False
    return app


def _methods_at(routes: Sequence[BaseRoute], scope: Scope) -> frozenset[str]:
    """The methods of the routes at the path of this request; those of the server where no route says."""
    found: set[str] = set()
    for route in routes:
        match, child = route.matches(scope)
        if match is not Match.NONE:
            inner = getattr(getattr(route, "app", None), "methods_at", None)  # of the API below its prefix
            found |= (getattr(route, "methods", None) or METHODS) if inner is None else inner({**scope, **child})
    return frozenset(found or METHODS)


def _api(view: AgentView, clock: Clock, desk: CommandDesk | None) -> Mount:
    from agent.web.api.application import PREFIX, make_api  # noqa: PLC0415 slow, and not needed for health
    from agent.web.api.problems import RawSegments  # noqa: PLC0415

    api = make_api(view, clock, desk, may_view=require(AccessRole.VIEW))
    api.add_exception_handler(AccessRefused, refuse)
    mount = Mount(PREFIX, app=RawSegments(api))
    # Starlette's own expression ends at a line feed, which the name of a group may hold.
    mount.path_regex = re.compile(mount.path_regex.pattern, re.DOTALL)
    return mount


def version() -> str:
    """The installed version of rackwise."""
    try:
        return metadata.version("rackwise")
    except metadata.PackageNotFoundError:
        return "unknown"


def _health(health: HealthStatus, document: dict[str, object]) -> Response:
    return JSONResponse(document, status_code=200 if health.well else 503, headers=_HEADERS)


def _sight(state: LoopState) -> dict[str, object]:
    """The last cycle and its gaps."""
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
    """Mode execute: leadership, open plans and their wait, and notices, which do not affect readiness."""
    now = state.acting
    if now is None:
        return {}
    acting = {"leads": now.leads, "plans_open": now.plans, "waits_for": label(now.waits) or None}
    return {"acting": {**acting, "notices": _safe(now.notices)}}


def _safe(sentences: Iterable[str]) -> list[str]:
    return [label(sentence) for sentence in sentences]


DEFAULTS = ServerBounds()
_STOP_S = 1.0


class WebServer:
    """Listens from `start` on; a context manager."""

    def __init__(
        self,
        app: ASGIApp,
        bind: str,
        port: int,
        bounds: ServerBounds = DEFAULTS,
        *,
        tls: ssl.SSLContext | None = None,
        proxies: TrustedNetworks = (),
    ) -> None:
        """``tls``: it answers over TLS. ``proxies``: networks of proxies whose ``X-Forwarded-For`` is trusted."""
        self.scheme = "http" if tls is None else "https"
        self._socket = _listen(bind, port)
        config = uvicorn.Config(
            RequestLimiter(app, bounds, proxies=proxies),
            http=cast("type[asyncio.Protocol]", partial(BoundedConnection, bounds=bounds)),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=bounds.head_bytes,
            server_header=False,
            ws="none",
            proxy_headers=False,  # else any client on this machine would name its own address
            loop="auto" if tls is None else BOUNDED_LOOP,
            ssl_context_factory=None if tls is None else lambda _config, _default: tls,
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
    def is_running(self) -> bool:
        """Whether its thread still answers."""
        return self._thread.is_alive()

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
