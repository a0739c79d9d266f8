"""What strangers may take of the server: connections, time, size and rate are bounded, and health always has room.

Invariants: a new connection is always taken, as the one that has been idle for longest makes room for it; ``/livez``
waits for no other request and is never refused; every other wait for a client has an end.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

LIVE = "/livez"
_ADDRESSES = 1_024
_HEADERS = {"cache-control": "no-store", "connection": "close"}


class Bounds(NamedTuple):
    """How much at once, how long and how often."""

    connections: int = 64
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


class BoundedConnection(H11Protocol):
    """A connection that ends when its client keeps it waiting, or another one needs its place."""

    def __init__(self, *, bounds: Bounds, **more: Any) -> None:
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
        """Take it; where it is one too many, the one that has been idle for longest goes, or else the oldest."""
        super().connection_made(transport)
        self._wait(self._bounds.head_s)
        others = [one for one in self.connections if isinstance(one, BoundedConnection) and one is not self]
        if len(others) >= self._bounds.connections:
            min(others, key=lambda one: (one.is_busy, one.since)).end()

    def handle_events(self) -> None:
        """Go on with what was received; bytes that complete no head win no time."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._answer_until = self.loop.time() + self._bounds.answer_s
            self._wait(self._bounds.answer_s)

    def on_response_complete(self) -> None:
        """An answer was made; once the client has taken it, the next head is waited for."""
        left_s = self._answer_until - self.loop.time()
        self._wait(left_s if self._is_taken_slowly else self._bounds.head_s)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

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


class Turnstile:
    """Refuses what is too much at once (503) or comes too fast from one address (429); never ``/livez``."""

    def __init__(self, app: ASGIApp, bounds: Bounds, clock_s: Callable[[], float] = monotonic) -> None:
        self._app = app
        self._bounds = bounds
        self._clock_s = clock_s
        self._inside = 0
        self._budgets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Client address -> requests that it may still make, and when that was reckoned; the latest last."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] == LIVE:
            await self._app(scope, receive, send)
            return
        if not self._is_paced(scope["client"][0] if scope.get("client") else ""):
            await _refusal(429, "too many requests from this address")(scope, receive, send)
            return
        if self._inside >= self._bounds.pages:
            await _refusal(503, "too many requests at once")(scope, receive, send)
            return
        self._inside += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._inside -= 1

    def _is_paced(self, address: str) -> bool:
        """Whether this address may ask once more now. The addresses that asked last are remembered."""
        bounds, now = self._bounds, self._clock_s()
        left, at = self._budgets.pop(address, (bounds.burst, now))
        left = min(bounds.burst, left + (now - at) * bounds.per_s)
        self._budgets[address] = (max(0.0, left - 1) if left >= 1 else left, now)
        if len(self._budgets) > _ADDRESSES:
            self._budgets.popitem(last=False)
        return left >= 1


def _refusal(status: int, why: str) -> JSONResponse:
    return JSONResponse({"error": why}, status_code=status, headers={**_HEADERS, "retry-after": "1"})
