"""What applications tell of their own lags, and what they may get wrong. Real HTTP servers on this machine."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.observe.cluster_listing import _lags_of, read_application_lags
from agent.observe.context import ObserveContext, ObserveScope, ask_together
from agent.values.observation import GapCause, RawApplicationLag
from assignors.problem import TaskId

GOOD: dict[str, Any] = {
    "v": 1,
    "application": "shop",
    "observed_ms": 1_730_000_000_000,
    "instances": [
        {
            "process_id": "9f0c5d3e-0000-0000-0000-000000000002",
            "client_id": "shop-2",
            "rack": "b",
            "tasks": [
                {"task": "0_1", "role": "standby", "lag": 123, "unknown field": []},
                {"task": "1_0", "role": "active", "lag": None},
            ],
        },
        {"client_id": "shop-1", "rack": None, "tasks": [{"task": "0_1", "role": "active", "lag": 0}]},
    ],
}


class Server(ThreadingHTTPServer):
    """Answers every request the same way."""

    daemon_threads = True
    body = b""
    status = 200
    location: str | None = None
    pause_s = 0.0
    drip = False
    paths: list[str]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        server.paths.append(self.path)
        time.sleep(server.pause_s)
        with contextlib.suppress(OSError):
            self.send_response(server.status)
            if server.location:
                self.send_header("Location", server.location)
            self.end_headers()
            for piece in (
                (server.body[at : at + 1] for at in range(len(server.body))) if server.drip else (server.body,)
            ):
                self.wfile.write(piece)
                self.wfile.flush()
                time.sleep(0.1 if server.drip else 0)

    def log_message(self, *_args: object) -> None:
        """Keep the test's output clean."""


@contextlib.contextmanager
def serving(**settings: Any) -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    server.paths = []
    for name, value in settings.items():
        setattr(server, name, value)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def url(server: Server, path: str = "/lags") -> str:
    return f"http://127.0.0.1:{server.server_port}{path}"


def test_lags_are_read_and_a_lag_that_is_not_known_is_left_out() -> None:
    with serving(body=json.dumps(GOOD).encode()) as server:
        found = read_application_lags(url(server, "/lags?app=shop"), timeout_ms=2_000, max_bytes=10_000)
        assert server.paths == ["/lags?app=shop"]
    at = 1_730_000_000_000
    assert found.gaps == ()
    assert found.lags == (
        RawApplicationLag("shop", "9f0c5d3e-0000-0000-0000-000000000002", TaskId(0, 1), "standby", 123, at),
        RawApplicationLag("shop", "shop-1", TaskId(0, 1), "active", 0, at),
    )


def changed(**fields: object) -> bytes:
    return json.dumps({**GOOD, **fields}).encode()


def with_task(**fields: object) -> bytes:
    task = {"task": "0_1", "role": "active", "lag": 1, **fields}
    return changed(instances=[{"client_id": "c", "tasks": [task]}])


@pytest.mark.parametrize(
    ("settings", "cause", "sentence"),
    [
        pytest.param({"body": b"<html>"}, GapCause.ERROR, "the answer cannot be read", id="a page instead of JSON"),
        pytest.param({"body": b"[" * 9_000}, GapCause.ERROR, "cannot be read", id="JSON without end or depth"),
        pytest.param({"body": b"\xff\xfe\x00"}, GapCause.ERROR, "the answer cannot be read", id="no text"),
        pytest.param({"body": b"[]"}, GapCause.ERROR, "the answer is not a JSON object", id="a list"),
        pytest.param(
            {"body": changed(v=2)}, GapCause.UNSUPPORTED, "the answer has version 2; version 1 is", id="a newer form"
        ),
        pytest.param(
            {"body": changed(application="")}, GapCause.ERROR, "the answer has no text application", id="no name"
        ),
        pytest.param({"body": changed(instances={})}, GapCause.ERROR, "the answer has no list instances", id="no list"),
        pytest.param({"body": changed(observed_ms=1.5)}, GapCause.ERROR, "observed_ms is 1.5", id="half a millisecond"),
        pytest.param({"body": with_task(lag=-1)}, GapCause.ERROR, "lag is -1; a whole number", id="a negative lag"),
        pytest.param({"body": with_task(lag=2**63)}, GapCause.ERROR, "more than 64 bits", id="a lag beyond Kafka"),
        pytest.param({"body": with_task(lag=True)}, GapCause.ERROR, "lag is True", id="true is no number"),
        pytest.param(
            {"body": with_task(task="1-0")}, GapCause.ERROR, "'1-0' is not a task", id="a task written otherwise"
        ),
        pytest.param(
            {"body": with_task(role="warmup")}, GapCause.ERROR, "'warmup' is not a role", id="an unknown role"
        ),
        pytest.param({"body": b"x" * 20_000}, GapCause.TOO_LARGE, "larger than 10000 bytes", id="too large"),
        pytest.param({"status": 500}, GapCause.ERROR, "it answered 500", id="a server error"),
        pytest.param(
            {"status": 302, "location": "http://127.0.0.1:1/"}, GapCause.ERROR, "it answered 302", id="a redirect"
        ),
        pytest.param({"pause_s": 3.0}, GapCause.TIMED_OUT, "no whole answer in time", id="silence"),
        pytest.param({"body": changed(), "drip": True}, GapCause.TIMED_OUT, "no whole answer in time", id="dripping"),
    ],
)
def test_an_answer_of_another_form_is_a_gap_that_says_where(
    settings: dict[str, Any], cause: GapCause, sentence: str
) -> None:
    with serving(**settings) as server:
        began = time.monotonic()
        found = read_application_lags(url(server), timeout_ms=500, max_bytes=10_000)
        took = time.monotonic() - began
        assert len(server.paths) == 1
        (gap,) = found.gaps
        assert (gap.subject, gap.cause) == (url(server), cause)
    assert found.lags == ()
    assert sentence in gap.detail
    assert took < 1.5


@pytest.mark.parametrize(
    ("address", "cause", "subject"),
    [
        pytest.param("http://127.0.0.1:1/lags", GapCause.UNREACHABLE, "http://127.0.0.1:1/lags", id="no listener"),
        pytest.param("file:///etc/passwd", GapCause.ERROR, "file:///etc/passwd", id="a file"),
        pytest.param(
            "http://u:secret@h/lags", GapCause.ERROR, "http://******@h/lags", id="a password, which is not shown"
        ),
        pytest.param("http:///lags", GapCause.ERROR, "http:///lags", id="no host"),
    ],
)
def test_an_address_that_cannot_be_read_is_a_gap(address: str, cause: GapCause, subject: str) -> None:
    found = read_application_lags(address, timeout_ms=500, max_bytes=1_000)
    assert [(gap.subject, gap.cause) for gap in found.gaps] == [(subject, cause)]
    assert "secret" not in repr(found)


TOKEN = "canary-33d0"


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"status": 404}, id="refused"),
        pytest.param({"status": 302, "location": f"http://127.0.0.1:1/?token={TOKEN}"}, id="sent elsewhere"),
        pytest.param({"body": f'{{"v": "{TOKEN}"}}'.encode()}, id="an answer that repeats it"),
        pytest.param({"pause_s": 2.0}, id="too slow"),
    ],
)
def test_a_token_in_the_address_is_in_no_gap(settings: dict[str, Any]) -> None:
    with serving(**settings) as server:
        found = read_application_lags(url(server, f"/lags?a=b&token={TOKEN}"), timeout_ms=300, max_bytes=1_000)
    assert found.gaps
    assert TOKEN not in repr(found)
    assert found.gaps[0].subject == url(server, "/lags?******")


@pytest.mark.parametrize("rest", [f"/lags?token={TOKEN} x", f"/lags?token={TOKEN}%0d%0a", f"/lags?{TOKEN}"])
def test_a_token_in_an_address_that_no_request_can_be_made_of_is_in_no_gap(rest: str) -> None:
    found = read_application_lags(f"http://127.0.0.1:1{rest}", timeout_ms=300, max_bytes=1_000)
    assert found.gaps
    assert TOKEN not in repr(found)


def test_a_look_that_does_not_wait_for_an_endpoint_any_longer_tells_no_token() -> None:
    """As while the name of its host is looked up, which ends by no deadline."""
    asked = SimpleNamespace(timeout_ms=1, scope=ObserveScope(), wants=lambda _part: True, not_asked=lambda _part: ())
    context = cast("ObserveContext", asked)
    ask, ended = _lags_of(f"http://host/lags?token={TOKEN}", context), threading.Event()
    ask.question = lambda: ended.wait(30) and ask.answer
    (gap,) = ask_together(context, [ask], name="test")
    ended.set()
    assert (gap.cause, gap.subject) == (GapCause.TIMED_OUT, "http://host/lags?******")
