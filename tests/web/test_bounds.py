"""What strangers do to the server, with real sockets: whatever they hold, slow down or flood, health is answered."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Scope

from agent.web.app import RequestLimiter, ServerBounds, WebServer, make_app
from agent.web.metrics import SeriesCaps
from tests.observe.live import wait_for
from tests.web.test_app import NOW
from tests.web.test_metrics import state

HEAD = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
LONG = 60.0
"""Seconds that no test waits for."""
PATIENT = ServerBounds(connections=6, head_s=LONG, answer_s=LONG, per_s=1e6, burst=1e6)
BIG = 64 << 20


@contextmanager
def serving(bounds: ServerBounds, app: Starlette | None = None) -> Iterator[WebServer]:
    app = app or make_app(state, lambda: NOW, fresh_ms=30_000, stall_ms=60_000, caps=SeriesCaps())
    with WebServer(app, "127.0.0.1", 0, bounds) as server:
        yield server


def paged(page: Callable[[Request], Response]) -> Starlette:
    """The agent's ``/livez`` beside a page of a test."""
    app = make_app(state, lambda: NOW, fresh_ms=30_000, stall_ms=60_000, caps=SeriesCaps())
    app.router.routes.insert(0, Route("/page", page))
    return app


def dial(server: WebServer, source: str = "127.0.0.1") -> socket.socket:
    host, port = server.address.split(":")
    return socket.create_connection((host, int(port)), timeout=LONG, source_address=(source, 0))


def status(server: WebServer, path: str = "/livez") -> int:
    return httpx.get(f"http://{server.address}{path}", timeout=LONG).status_code


def ended(raw: socket.socket) -> bool:
    """Waits until the server hangs up."""
    try:
        while raw.recv(65_536):
            pass
    except ConnectionError:
        pass
    return True


def idle(raw: socket.socket) -> None:
    """Says nothing."""


def half(raw: socket.socket) -> None:
    raw.sendall(HEAD)


def served(raw: socket.socket) -> None:
    raw.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert raw.recv(12) == b"HTTP/1.1 200"


def served_and_half(raw: socket.socket) -> None:
    served(raw)
    half(raw)


def body_owed(raw: socket.socket) -> None:
    raw.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nsome")


def chunks_owed(raw: socket.socket) -> None:
    raw.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")


WAYS = [idle, half, served, served_and_half, body_owed, chunks_owed]
Way = Callable[[socket.socket], None]


@pytest.mark.parametrize("way", WAYS)
def test_as_many_connections_as_there_may_be_leave_room_for_health(way: Way) -> None:
    with serving(PATIENT) as server, ExitStack() as held:
        for number in range(4 * PATIENT.connections):
            way(held.enter_context(dial(server)))
            if number >= PATIENT.connections:
                assert status(server) == 200
        assert status(server, "/readyz") == 200
        assert server.connections <= PATIENT.connections + 1


def test_sixty_three_idle_sockets_do_not_take_health_down() -> None:
    with serving(ServerBounds()) as server, ExitStack() as held:
        sockets = [held.enter_context(dial(server)) for _ in range(63)]
        wait_for(lambda: server.connections == len(sockets), "all are taken", LONG)
        assert [status(server, path) for path in ("/livez", "/readyz", "/metrics")] == [200, 200, 200]


def test_the_connection_that_was_idle_for_longest_makes_room() -> None:
    with serving(PATIENT) as server, ExitStack() as held:
        first, *others = [held.enter_context(dial(server)) for _ in range(PATIENT.connections)]
        wait_for(lambda: server.connections == PATIENT.connections, "all are taken", LONG)
        served(others[0])
        held.enter_context(dial(server))
        assert ended(first)
        for one in others[1:]:
            served(one)


def test_a_request_under_way_does_not_make_room_while_another_connection_is_idle() -> None:
    entered, leave = threading.Event(), threading.Event()

    def page(_: Request) -> Response:
        entered.set()
        leave.wait(LONG)
        return PlainTextResponse("done")

    with serving(PATIENT, paged(page)) as server, ExitStack() as held:
        busy = held.enter_context(dial(server))
        busy.sendall(b"GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert entered.wait(LONG)
        for _ in range(3 * PATIENT.connections):
            held.enter_context(dial(server))
        assert status(server) == 200
        leave.set()
        assert busy.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("way", WAYS)
def test_a_client_that_keeps_the_server_waiting_is_hung_up_on(way: Way) -> None:
    with serving(PATIENT._replace(head_s=0.2)) as server, dial(server) as raw:
        way(raw)
        assert ended(raw)
        wait_for(lambda: server.connections == 0, "nothing of it is left", LONG)


def trickle(raw: socket.socket) -> None:
    """Ten kilobytes in twenty seconds: fewer than a head may have. Raises when the server hangs up."""
    raw.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n")
    for _ in range(1_000):
        raw.sendall(b"x: yyyy\r\n")
        time.sleep(0.02)


def test_bytes_that_complete_no_head_win_no_time() -> None:
    with serving(PATIENT._replace(head_s=0.3)) as server, dial(server) as raw:
        with pytest.raises(ConnectionError):
            trickle(raw)
        assert status(server) == 200


def test_an_answer_that_is_not_taken_is_given_up() -> None:
    app = paged(lambda _: PlainTextResponse("x" * BIG))
    with serving(PATIENT._replace(answer_s=2.0), app) as server, dial(server) as raw:
        raw.sendall(b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert raw.recv(12) == b"HTTP/1.1 200"
        wait_for(lambda: server.connections == 0, "it is given up", LONG)
        assert status(server) == 200


def test_slow_pages_take_no_more_than_their_share_and_none_of_health() -> None:
    entered, leave = threading.Semaphore(0), threading.Event()

    def page(_: Request) -> Response:
        entered.release()
        leave.wait(LONG)
        return PlainTextResponse("done")

    bounds = PATIENT._replace(connections=100, pages=3)
    with serving(bounds, paged(page)) as server, ExitStack() as held:
        sockets = [held.enter_context(dial(server)) for _ in range(60)]
        for one in sockets:
            one.sendall(b"GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        refused = [one for one in sockets[bounds.pages :] if one.recv(12) == b"HTTP/1.1 503"]
        assert len(refused) >= 60 - 2 * bounds.pages
        assert all(entered.acquire(timeout=LONG) for _ in range(bounds.pages))
        assert not entered.acquire(blocking=False), "no more of them were begun"
        assert [status(server), status(server, "/metrics")] == [200, 503]
        leave.set()
    assert leave.is_set()


def test_a_head_beyond_the_limit_is_refused() -> None:
    with serving(PATIENT._replace(head_bytes=1_024)) as server, dial(server) as raw:
        raw.sendall(HEAD + b"x: " + b"y" * 4_096)
        assert raw.recv(12) == b"HTTP/1.1 400"
        assert ended(raw)
        assert status(server) == 200


def asked(turnstile: RequestLimiter, path: str = "/metrics", address: str = "10.0.0.1") -> int:
    """The status of one request."""
    found: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            found.append(message["status"])

    scope: Scope = {"type": "http", "method": "GET", "path": path, "headers": [], "client": (address, 1)}
    run: Awaitable[None] = turnstile(scope, receive, send)
    asyncio.run(run)  # type: ignore[arg-type] # it is a coroutine
    return found[0]


def test_an_address_that_asks_too_fast_is_refused_until_time_has_passed_and_no_other() -> None:
    now = [0.0]
    turnstile = RequestLimiter(PlainTextResponse("done"), ServerBounds(per_s=2, burst=3), lambda: now[0])
    assert [asked(turnstile) for _ in range(5)] == [200, 200, 200, 429, 429]
    assert asked(turnstile, address="10.0.0.2") == 200
    assert [asked(turnstile, "/livez") for _ in range(50)] == [200] * 50
    now[0] += 1.0
    assert [asked(turnstile) for _ in range(3)] == [200, 200, 429]
    now[0] += 1_000.0
    assert [asked(turnstile) for _ in range(4)] == [200, 200, 200, 429], "a long rest wins no more than the burst"


def test_no_number_of_addresses_takes_memory() -> None:
    turnstile = RequestLimiter(PlainTextResponse("done"), ServerBounds(), lambda: 0.0)
    for number in range(5_000):
        turnstile._is_paced(f"10.0.{number // 256}.{number % 256}")
    assert len(turnstile._budgets) <= 1_024


def test_the_server_refuses_by_address() -> None:
    with serving(PATIENT._replace(per_s=1e-9, burst=2)) as server, ExitStack() as held:
        near = [status(server, "/metrics") for _ in range(3)]
        far = held.enter_context(dial(server, "127.0.0.2"))
        far.sendall(HEAD + b"\r\n")
        assert near == [200, 200, 429]
        assert far.recv(12) == b"HTTP/1.1 200"
        assert status(server) == 200


def test_the_manual_has_the_bounds_of_the_server() -> None:
    manual = " ".join((Path(__file__).parents[2] / "docs/operations.md").read_text().split())
    bounds = ServerBounds()
    for words in (
        f"The server takes {bounds.connections} connections",
        f"no whole request head within {bounds.head_s:.0f} s",
        f"does not take an answer within {bounds.answer_s:.0f} s",
        f"A head may have {bounds.head_bytes // 1_024} KiB",
        f"{bounds.pages} requests run at once",
        f"{bounds.per_s:.0f} a second from one address after a burst of {bounds.burst:.0f}",
    ):
        assert words in manual
