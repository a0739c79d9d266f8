"""``/livez``, ``/readyz`` and ``/metrics``: the loop's health in JSON and its figures for Prometheus.

Every answer is made of the loop's last state; nothing here asks a broker. A request whose Host is a name that is not
known is refused, so that a web page cannot read a loopback address through a name of its own (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import metadata

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

from agent.values.clock import Clock
from agent.values.cycle import sentence
from agent.values.progress import ActingNow
from agent.web.bounds import LIVE
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
