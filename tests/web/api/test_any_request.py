"""Whatever is asked, the API answers with a document or a problem, and never with an error of its own."""

from __future__ import annotations

import string
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.documents import a_cluster
from tests.docs.openapi import committed
from tests.web.api.agents import cycle_of, view_of
from tests.web.api.servers import client_of

GETS = {path: of["get"] for path, of in committed()["paths"].items() if "get" in of}
PATHS = [path for path in GETS if path != "/events"]
SEGMENTS = st.one_of(
    st.sampled_from(["app", "billing", "orders", "t", "p-000000000000", "a%2Fb", "%ff%fe", "%ED%A0%80", "%00", "%0a"]),
    st.text(max_size=40).map(lambda text: quote(text.encode("utf-8", "surrogatepass"), safe="") or "x"),
)
VALUES = st.one_of(
    st.sampled_from(["", "0", "1", "-1", "1000", "1001", "1e3", "nan", "topic/t", "group/app", "broker/1", "p-", "name",
                     "-usd_per_day", "usd_per_day", "group", "topic", "\x00", "x" * 3_000, "W10", "null", "\ud800"]),
    st.text(max_size=30),
    st.text(string.ascii_letters + string.digits + "-_=", max_size=60),
)  # fmt: skip
PARAMETERS = {path: [one["name"] for one in GETS[path].get("parameters", ()) if one["in"] == "query"] for path in PATHS}
ASKED = st.sampled_from(PATHS).flatmap(
    lambda path: st.tuples(
        st.just(path), st.dictionaries(st.sampled_from([*PARAMETERS[path], "other"]), VALUES, max_size=4)
    )
)


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with client_of(view_of(cycle_of(a_cluster().at()))) as client:
        yield client


@given(asked=ASKED, segment=SEGMENTS)
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_request_is_answered(client: httpx.Client, asked: tuple[str, dict[str, str]], segment: str) -> None:
    path, query = asked
    for name in ("group", "topic", "proposal", "name"):
        path = path.replace(f"{{{name}}}", segment)
    pairs = "&".join(
        f"{name}={quote(value.encode('utf-8', 'surrogatepass'), safe='')}" for name, value in query.items()
    )
    answer = client.get(f"/api/v1{path}?{pairs}")
    assert answer.status_code in {200, 202, 404, 422, 503, 504}, (answer.status_code, answer.text)
    is_no_route = answer.status_code == 404 and answer.json()["detail"] in {"there is no such route", "Not Found"}
    assert "other" not in query or is_no_route or answer.status_code == 422, answer.text
    kind = "application/json" if answer.status_code in {200, 202} else "application/problem+json"
    assert answer.headers["content-type"] == kind
    assert answer.content.isascii()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/cluster", "/groups/app", "/events", "/settings"])
def test_nothing_but_get_and_head_is_answered(client: httpx.Client, method: str, path: str) -> None:
    answer = client.request(method, f"/api/v1{path}", headers={"origin": str(client.base_url)})
    assert 400 <= answer.status_code < 500
