"""Every refusal is an RFC 9457 problem, also one that comes before any route, and one that no route expects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.web.access.gate import AccessGate, make_gate
from agent.web.app import ServerBounds, WebServer, make_app
from agent.web.metrics import SeriesCaps
from config.http_settings import HttpSettings
from tests.web.access.site import FAST, FORM, PLAN, Answer, Site, site
from tests.web.api.agents import view_of
from tests.web.test_app import NOW
from tests.web.test_metrics import CYCLE, state

CLOSE = "Connection: close\r\n"
AUTH = f"Host: localhost\r\nAuthorization: Bearer TOKEN\r\n{CLOSE}"
REFUSED: list[tuple[str, str, int]] = [
    ("no HTTP", "NONSENSE\r\n\r\n", 400),
    ("no host", f"GET /api/v1/look HTTP/1.1\r\n{CLOSE}\r\n", 400),
    ("a control character in a header", f"GET / HTTP/1.1\r\n{AUTH}X: \x00\r\n\r\n", 400),
    ("a length below zero", f"POST {PLAN} HTTP/1.1\r\n{AUTH}Content-Length: -5\r\n\r\n", 400),
    ("headers that do not end", f"GET / HTTP/1.1\r\n{AUTH}X: {'x' * 40_000}", 400),
    ("an unknown host", f"GET /api/v1/look HTTP/1.1\r\nHost: evil.example\r\n{CLOSE}\r\n", 421),
    ("no token", f"GET /api/v1/look HTTP/1.1\r\nHost: localhost\r\n{CLOSE}\r\n", 401),
    ("no route of the API", f"GET /api/v1/nothing HTTP/1.1\r\n{AUTH}\r\n", 404),
    ("the API itself", f"GET /api/v1 HTTP/1.1\r\n{AUTH}\r\n", 404),
    ("a route with a slash more", f"GET /api/v1/cluster/ HTTP/1.1\r\n{AUTH}\r\n", 404),
    ("another version", f"GET /api/v2/cluster HTTP/1.1\r\n{AUTH}\r\n", 404),
    ("no page", f"GET /nothing HTTP/1.1\r\n{AUTH}\r\n", 404),
    ("a method that the route has not", f"POST /api/v1/cluster HTTP/1.1\r\n{AUTH}Content-Length: 0\r\n\r\n", 405),
    ("a method that the server has not", f"PATCH /api/v1/cluster HTTP/1.1\r\n{AUTH}Content-Length: 0\r\n\r\n", 405),
    ("a write of metrics", f"POST /metrics HTTP/1.1\r\n{AUTH}Content-Length: 0\r\n\r\n", 405),
    ("a large body", f"POST {PLAN} HTTP/1.1\r\n{AUTH}Content-Length: 100000\r\n\r\n", 413),
    ("a text", f"POST {PLAN} HTTP/1.1\r\n{AUTH}Content-Type: text/plain\r\nContent-Length: 1\r\n\r\nx", 415),
    ("a parameter", f"GET /api/v1/groups?limit=0 HTTP/1.1\r\n{AUTH}\r\n", 422),
    ("large headers", f"GET / HTTP/1.1\r\n{AUTH}X: {'x' * 17_000}\r\n\r\n", 431),
]


def problem_of(answer: Answer, status: int) -> dict[str, object]:
    """The problem, whose members are those of RFC 9457."""
    assert (answer.status, answer.headers.get("content-type")) == (status, "application/problem+json"), answer.raw
    assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-store")
    problem: dict[str, object] = json.loads(answer.text)
    assert problem["status"] == status
    assert problem["type"]
    assert problem["title"]
    assert problem["detail"]
    assert set(problem) <= {"type", "title", "status", "detail", "todo"}
    return problem


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("problems"), view=view_of(CYCLE)) as running:
        yield running


@pytest.mark.parametrize(("request_", "status"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
def test_a_refusal_is_a_problem(here: Site, request_: str, status: int) -> None:
    problem_of(here.raw(request_.replace("TOKEN", here.tokens["ann"]).encode("latin-1")), status)


def test_a_rate_that_is_too_high_is_a_problem(tmp_path: Path) -> None:
    with site(tmp_path, bounds=FAST._replace(per_s=1e-9, burst=1)) as slow:
        answers = [slow.ask("GET", "/readyz", source="127.0.0.9") for _ in range(2)]
    problem = problem_of(answers[1], 429)
    assert problem["detail"] == "too many requests from this address"
    assert answers[1].headers["retry-after"] == "1"


def test_too_many_requests_at_once_are_a_problem(tmp_path: Path) -> None:
    with site(tmp_path, bounds=FAST._replace(pages=0)) as full:
        answer = full.ask("GET", "/readyz")
        assert full.ask("GET", "/livez").status == 200
    problem_of(answer, 503)
    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("gate", [None, make_gate(HttpSettings())], ids=["health alone", "with pages"])
@pytest.mark.parametrize(
    ("method", "path", "host", "status"),
    [("GET", "/x", "localhost", 404), ("GET", "/metrics/", "localhost", 404), ("POST", "/livez", "localhost", 405),
     ("GET", "/livez", "evil.example", 421)],
)  # fmt: skip
def test_health_alone_refuses_in_the_same_form(
    gate: AccessGate | None, method: str, path: str, host: str, status: int
) -> None:
    app = make_app(state, lambda: NOW, fresh_ms=30_000, stall_ms=60_000, caps=SeriesCaps(), gate=gate)
    with WebServer(app, "127.0.0.1", 0) as server:
        answer = httpx.request(method, f"http://{server.address}{path}", headers={"host": host}, timeout=20)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["status"] == status


def test_a_route_that_fails_is_a_problem_without_its_error() -> None:
    def fails(_: Request) -> Response:
        raise RuntimeError("canary-51fe")

    app = make_app(
        state, lambda: NOW, fresh_ms=30_000, stall_ms=60_000, caps=SeriesCaps(),
        gate=make_gate(HttpSettings()), routes=[Route("/fails", fails)],
    )  # fmt: skip
    with WebServer(app, "127.0.0.1", 0, ServerBounds()) as server:
        answer = httpx.get(f"http://{server.address}/fails", timeout=20)
        page = httpx.get(f"http://{server.address}/fails", headers={"accept": "text/html"}, timeout=20)
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["detail"] == "the agent failed to answer"
    assert (page.status_code, page.headers["content-type"].partition(";")[0]) == (500, "text/html")
    assert "canary" not in answer.text + page.text


def test_a_body_of_a_command_that_cannot_be_read_is_named_in_words(here: Site) -> None:
    json_of = {**here.bearer("opa"), "Content-Type": "application/json"}
    deep, big = "[" * 60_000, '{"max_moves":' + "1" * 6_000 + "}"
    for body in ("abc", deep, big, '{"a":', "\udcff"):
        length = {"Content-Length": str(len(body))}
        answer = here.ask("POST", "/api/v1/resume", {**json_of, **length}, body)
        problem = problem_of(answer, 422)
        assert problem["detail"] == "the body is no JSON"


def test_a_foreign_field_s_name_comes_back_short_and_visible(here: Site) -> None:
    body = json.dumps({"\x1b[2J\u202e" + "k" * 30_000: 1})
    answer = here.ask("POST", "/api/v1/resume", {**here.bearer("opa"), "Content-Type": "application/json"}, body)
    problem = problem_of(answer, 422)
    assert len(answer.text) < 2_000
    assert "\x1b" not in str(problem["detail"])
    assert "\u202e" not in str(problem["detail"])


def test_a_form_is_named_as_what_it_is(here: Site) -> None:
    answer = here.ask("POST", "/api/v1/resume", {**here.bearer("opa"), "Content-Type": FORM}, "reason=x")
    assert "Content-Type: application/json" in str(problem_of(answer, 415)["todo"])
