"""A real server on a loopback address, with an agent behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx
from starlette.applications import Starlette
from starlette.routing import BaseRoute

from agent.values.clock import Clock, ClockReading
from agent.web.access.gate import make_gate
from agent.web.agent_view import AgentView
from agent.web.app import ServerBounds, WebServer, make_app
from agent.web.metrics import SeriesCaps
from config.http_settings import HttpSettings

GENEROUS = ServerBounds(per_s=100_000, burst=100_000)


def app_of(view: AgentView, clock: Clock, routes: Sequence[BaseRoute] = ()) -> Starlette:
    """The application of such a server, with routes of the page where they are given."""
    return make_app(
        lambda: view.state,
        clock,
        fresh_ms=30_000,
        stall_ms=60_000,
        caps=SeriesCaps(),
        gate=make_gate(HttpSettings()),
        view=view,
        routes=routes,
    )


@contextmanager
def server_of(view: AgentView, now: ClockReading | None = None, bounds: ServerBounds = GENEROUS) -> Iterator[WebServer]:
    """The server, listening."""
    at = now or ClockReading(view.state.cycle.snapshot.taken_ms if view.state.cycle else 0, 0)
    with WebServer(app_of(view, lambda: at), "127.0.0.1", 0, bounds) as server:
        yield server


@contextmanager
def client_of(view: AgentView, now: ClockReading | None = None) -> Iterator[httpx.Client]:
    """A client of such a server."""
    with server_of(view, now) as server, httpx.Client(base_url=f"http://{server.address}", timeout=20) as client:
        yield client
