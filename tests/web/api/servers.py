"""A real server on a loopback address, with an agent behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from agent.values.clock import ClockReading
from agent.web.access.gate import make_gate
from agent.web.agent_view import AgentView
from agent.web.app import ServerBounds, WebServer, make_app
from agent.web.metrics import SeriesCaps
from config.http_settings import HttpSettings

GENEROUS = ServerBounds(per_s=100_000, burst=100_000)


@contextmanager
def server_of(view: AgentView, now: ClockReading | None = None, bounds: ServerBounds = GENEROUS) -> Iterator[WebServer]:
    """The server, listening."""
    at = now or ClockReading(view.state.cycle.snapshot.taken_ms if view.state.cycle else 0, 0)
    app = make_app(
        lambda: view.state,
        lambda: at,
        fresh_ms=30_000,
        stall_ms=60_000,
        caps=SeriesCaps(),
        gate=make_gate(HttpSettings()),
        view=view,
    )
    with WebServer(app, "127.0.0.1", 0, bounds) as server:
        yield server


@contextmanager
def client_of(view: AgentView, now: ClockReading | None = None) -> Iterator[httpx.Client]:
    """A client of such a server."""
    with server_of(view, now) as server, httpx.Client(base_url=f"http://{server.address}", timeout=20) as client:
        yield client
