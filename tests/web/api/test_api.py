"""The API: the command line's documents, their age, 304 for what the client has, and problems instead of errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI, Request

from agent.documents.status import status_document
from agent.values.clock import ClockReading
from agent.web.api.application import make_api
from agent.web.api.problems import ApiProblem
from config.foreign_text import segment_of
from tests.builders import an_observation, reader
from tests.cli.documents import a_cluster
from tests.web.api.agents import cycle_of, view_of
from tests.web.api.servers import client_of

CYCLE = cycle_of(a_cluster().at())
NOW = ClockReading(CYCLE.snapshot.taken_ms + 2_500, CYCLE.snapshot.monotonic_ms + 2_500)


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with client_of(view_of(CYCLE), NOW) as client:
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
    [("GET", "/api/v1/nothing", 404), ("POST", "/api/v1/pause", 403), ("DELETE", "/api/v1/cluster", 405)],
)
def test_what_is_not_there_or_not_allowed_is_a_problem(
    client: httpx.Client, method: str, path: str, status: int
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["status"] == status
    assert answer.json()["todo"]


@pytest.mark.parametrize(
    ("asked", "detail", "todo"),
    [
        pytest.param(
            "/simulation?remove-rack=c&remove-brokr=2",
            "remove-brokr: this route has no such parameter",
            "Did you mean remove-broker? It has: ",
            id="nearly one",
        ),
        pytest.param("/topics?bogus=1", "bogus: this route has no such parameter", "It has: limit, cursor", id="one"),
        pytest.param("/look?a=1&b=", "a, b: this route has no such parameter", "It has no parameters.", id="of none"),
        pytest.param(
            "/topics?limit=1&limit=2", "limit: it has one value, and 2 are asked for", "Keep one limit.", id="twice"
        ),
        pytest.param("/topics?Limit=1", "Limit: this route has no such parameter", "Did you mean limit?", id="case"),
        pytest.param("/topics?=1", "a parameter without a name: this", "It has: limit", id="no name"),
        pytest.param(f"/topics?{'x' * 5_000}=1&%1b%5b2J%e2%80%ae=1", "xxxx", "It has: limit", id="long and foreign"),
    ],
)
def test_a_parameter_that_a_route_does_not_have_is_refused(
    client: httpx.Client, asked: str, detail: str, todo: str
) -> None:
    answer = client.get(f"/api/v1{asked}")
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert answer.json()["detail"].startswith(detail)
    assert answer.json()["todo"].startswith(todo)
    assert len(answer.json()["detail"]) < 500
    assert client.head(f"/api/v1{asked}").status_code == 422


@pytest.mark.parametrize(
    "asked",
    [
        "/topics?limit=1&q=o&sort=topic",
        "/simulation?remove-rack=c&remove-rack=b",
        "/explain?subject=topic/orders&limit=2",
        "/new-partitions?topic=orders&partitions=9&placer=kip-36&seed=7&limit=1",
        "/look?",
        "/openapi.json",
    ],
)
def test_the_parameters_that_a_route_has_are_taken(client: httpx.Client, asked: str) -> None:
    assert client.get(f"/api/v1{asked}").status_code in {200, 202}


@pytest.mark.parametrize(
    ("asked", "detail"),
    [
        ("/topics?limit=0", "limit is at least 1"),
        ("/topics?limit=1001", "limit is at most 1000"),
        ("/topics?limit=x", "limit is a whole number"),
        ("/explain", "subject is missing"),
        ("/new-partitions?topic=t", "partitions is missing"),
        ("/new-partitions?topic=&partitions=1", "topic has at least 1 characters"),
        ("/new-partitions?topic=orders&partitions=9&placer=x", "placer is one of 'striped' or 'kip-36'"),
        ("/simulation?remove-rack=", "remove-rack has at least 1 characters"),
    ],
)
def test_a_value_that_cannot_be_read_is_named_in_own_words(client: httpx.Client, asked: str, detail: str) -> None:
    answer = client.get(f"/api/v1{asked}")
    assert (answer.status_code, answer.json()["detail"]) == (422, detail)


def test_a_topic_that_is_not_there_needs_a_replication_factor_to_be_placed(client: httpx.Client) -> None:
    answer = client.get("/api/v1/new-partitions?topic=orders2&partitions=6")
    assert (answer.status_code, answer.json()["todo"]) == (
        422,
        "Did you mean orders? For a new topic give replication_factor too. List all topics: GET /api/v1/topics",
    )
    assert client.get("/api/v1/new-partitions?topic=orders2&partitions=6&replication_factor=2").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/api/v1/look", "GET, HEAD"),
        ("POST", "/api/v1/look", "GET, HEAD"),
        ("PUT", "/api/v1/groups/a%2Fb", "GET, HEAD"),
        ("GET", "/api/v1/pause", "POST"),
        ("DELETE", "/api/v1/proposals/p-1/approve", "POST"),
        ("POST", "/api/v1/openapi.json", "GET, HEAD"),
        ("DELETE", "/sign-in", "GET, HEAD, POST"),
    ],
)
def test_another_method_is_answered_with_those_of_the_path(
    client: httpx.Client, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers.get("allow")) == (405, allowed)


def test_health_is_answered_beside_the_api(client: httpx.Client) -> None:
    assert client.get("/livez").status_code == 200
    assert client.get("/readyz").status_code == 200
    assert client.get("/nothing").status_code == 404


def test_an_unknown_host_is_refused_by_the_api_too(client: httpx.Client) -> None:
    assert client.get("/api/v1/cluster", headers={"host": "evil.example"}).status_code == 421


NAMES = [
    "a/b", "a/tasks", "...", "%2F", "a b+c", "\u202ename", "<script>", "grün", "x" * 249, "?q=1", "#", "\ud800",
    "two\nlines\n",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_characters_can_be_asked_for(name: str) -> None:
    world = an_observation(a=(1,), b=(2,)).topic("t", (1, 2))
    world.group(name, reader("c-1", "a", "t-0"))
    with client_of(view_of(cycle_of(world.at()))) as client:
        path = f"/api/v1/groups/{segment_of(name)}"
        assert client.get(path).json()["group"] == name
        assert client.get(f"{path}/tasks").json() == {"items": [], "total": 0, "next": None}


def test_every_route_has_the_dependency_of_who_may_view() -> None:
    asked: list[str] = []

    def refuse(request: Request) -> None:
        asked.append(request.url.path)
        raise ApiProblem(401, "sign in", todo="Send a token.")

    api = make_api(view_of(CYCLE), lambda: NOW, may_view=refuse)
    paths = list(api.openapi()["paths"])
    for path in paths:
        method = "GET" if "get" in api.openapi()["paths"][path] else "POST"
        answer = asyncio.run(_asked(api, method, path.replace("{", "").replace("}", "") + "?subject=x"))
        assert (answer.status_code, answer.json()["detail"]) == (401, "sign in"), path
    assert len(asked) == len(paths) > 15


async def _asked(api: FastAPI, method: str, path: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://localhost") as client:
        return await client.request(method, path)


@pytest.mark.parametrize(
    "path",
    ["/cluster", "/look", "/groups?limit=1", "/topics/orders", "/groups/nothing", "/explain", "/settings", "/nothing",
     "/openapi.json", "/simulation?remove-rack=b"],
)  # fmt: skip
def test_head_is_answered_as_get_without_a_body(client: httpx.Client, path: str) -> None:
    got, head = client.get(f"/api/v1{path}"), client.head(f"/api/v1{path}")
    assert head.status_code == got.status_code
    assert head.content == b""
    named = [{key: of for key, of in one.headers.items() if key != "date"} for one in (got, head)]
    assert named[0] == named[1]
    if "etag" in got.headers:
        again = client.head(f"/api/v1{path}", headers={"if-none-match": got.headers["etag"]})
        assert (again.status_code, again.content) == (
            client.get(f"/api/v1{path}", headers={"if-none-match": got.headers["etag"]}).status_code,
            b"",
        )


def test_head_of_the_stream_of_events_ends_at_once_and_takes_no_place_among_streams(client: httpx.Client) -> None:
    for _ in range(120):  # more than the streams that there may be
        head = client.head("/api/v1/events", timeout=5)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"].startswith("text/event-stream")


def test_head_of_a_command_is_refused(client: httpx.Client) -> None:
    assert client.head("/api/v1/pause").status_code == 405
