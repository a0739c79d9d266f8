"""The API: the command line's documents, their age, 304 for what the client has, and problems instead of errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from agent.documents.status import status_document
from agent.values.clock import ClockReading
from agent.web.agent_view import AgentView
from agent.web.app import ServerBounds, WebServer, make_app
from agent.web.metrics import SeriesCaps
from tests.cli.documents import a_cluster
from tests.web.api.agents import cycle_of, state_of, view_of

CYCLE = cycle_of(a_cluster().at())
NOW = ClockReading(CYCLE.snapshot.taken_ms + 2_500, CYCLE.snapshot.monotonic_ms + 2_500)


@contextmanager
def client_of(view: AgentView) -> Iterator[httpx.Client]:
    """A client of a real server on a loopback address."""
    state = state_of(CYCLE)
    app = make_app(lambda: state, lambda: NOW, fresh_ms=30_000, stall_ms=60_000, caps=SeriesCaps(), view=view)
    with (
        WebServer(app, "127.0.0.1", 0, ServerBounds(per_s=1_000, burst=1_000)) as server,
        httpx.Client(base_url=f"http://{server.address}", timeout=10) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with client_of(view_of(CYCLE)) as client:
        yield client


def test_the_cluster_is_the_document_of_status(client: httpx.Client) -> None:
    evaluation = view_of(CYCLE).evaluation()
    assert evaluation is not None
    answer = client.get("/api/v1/cluster")
    assert answer.status_code == 200
    assert answer.json() == json.loads(json.dumps(status_document(evaluation)))


def test_every_answer_names_its_look_and_its_age(client: httpx.Client) -> None:
    headers = client.get("/api/v1/cluster").headers
    assert (headers["rackwise-look"], headers["rackwise-cycle"]) == ("look-1", "1")
    assert (headers["rackwise-taken-ms"], headers["rackwise-age-ms"]) == (str(CYCLE.snapshot.taken_ms), "2500")


@pytest.mark.parametrize("given", ["{}", "W/{}", '"other", {}', "*"])
def test_what_the_client_has_is_not_sent_again(client: httpx.Client, given: str) -> None:
    etag = client.get("/api/v1/cluster").headers["etag"]
    again = client.get("/api/v1/cluster", headers={"if-none-match": given.format(etag)})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)


def test_before_the_first_look_the_answer_says_when_to_ask_again() -> None:
    with client_of(view_of(None)) as client:
        answer = client.get("/api/v1/cluster")
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
    assert answer.headers["retry-after"] == "2"
    problem = answer.json()
    assert (problem["status"], problem["title"]) == (503, "Service Unavailable")
    assert problem["detail"] == "no look at the cluster has succeeded yet"
    assert problem["todo"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/api/v1/nothing", 404), ("POST", "/api/v1/cluster", 405), ("DELETE", "/api/v1/cluster", 405)],
)
def test_what_is_not_there_is_a_problem(client: httpx.Client, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["status"] == status
    assert answer.json()["todo"]


def test_health_is_answered_beside_the_api(client: httpx.Client) -> None:
    assert client.get("/livez").status_code == 200
    assert client.get("/readyz").status_code == 200
    assert client.get("/nothing").status_code == 404


def test_an_unknown_host_is_refused_by_the_api_too(client: httpx.Client) -> None:
    assert client.get("/api/v1/cluster", headers={"host": "evil.example"}).status_code == 421
