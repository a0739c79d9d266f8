"""The OpenAPI document: committed, described, and kept to by every answer."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import jsonschema
import pytest

from tests.docs.openapi import FILE, committed, openapi_text
from tests.web.api.test_api import client

__all__ = ["client"]
DOCUMENT = committed()
PARAMETERS = {"group": "app", "topic": "orders", "subject": "topic/t"}
READ = [path for path, of in DOCUMENT["paths"].items() if "get" in of]
"""The others are commands, of which tests/web/test_commands.py asks."""
LISTS = [path for path in READ if "limit" in str(DOCUMENT["paths"][path]["get"].get("parameters"))]


def test_the_committed_file_is_the_one_of_the_code() -> None:
    assert FILE.read_text() == openapi_text(), "write it anew: make schemas"


def test_a_running_agent_answers_the_same_document(client: httpx.Client) -> None:
    assert client.get("/api/v1/openapi.json").json() == json.loads(FILE.read_text())


def test_every_route_and_parameter_is_described() -> None:
    for path, methods in DOCUMENT["paths"].items():
        for operation in methods.values():
            assert operation["description"], path
            for parameter in operation.get("parameters", ()):
                assert parameter["in"] == "path" or parameter["schema"].get("description"), (path, parameter["name"])


def test_every_document_is_described() -> None:
    plain = {"PageDocument"}
    for name, schema in DOCUMENT["components"]["schemas"].items():
        assert schema.get("description") or name.partition("_")[0] in plain, name


def test_every_problem_has_the_type_of_a_problem() -> None:
    for methods in DOCUMENT["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if status not in {"200", "202", "304"}:
                    assert list(response["content"]) == ["application/problem+json"]


GIVEN: dict[str, dict[str, str]] = {
    "/explain": {"subject": "topic/t"},
    "/simulation": {"remove-rack": "b"},
    "/new-partitions": {"topic": "orders", "partitions": "9"},
}
"""Parameters that a route needs."""


def path_of(path: str, client: httpx.Client) -> str:
    proposal = client.get("/api/v1/proposals").json()["items"][0]["id"]
    for name, value in {**PARAMETERS, "proposal": proposal}.items():
        path = path.replace(f"{{{name}}}", value)
    return path


@pytest.mark.parametrize("path", [path for path in READ if path not in {"/events", "/reports/{name}"}])
def test_every_answer_keeps_to_its_schema(client: httpx.Client, path: str) -> None:
    given = GIVEN.get(path, {})
    answer = client.get(f"/api/v1{path_of(path, client)}", params=given)
    assert answer.status_code == 200, answer.text
    content = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]
    schema: dict[str, Any] = {**content["application/json"]["schema"], "components": DOCUMENT["components"]}
    jsonschema.Draft202012Validator(schema).validate(answer.json())


@pytest.mark.parametrize("path", LISTS)
def test_every_field_that_may_be_sorted_by_is_one_of_the_rows(client: httpx.Client, path: str) -> None:
    given = GIVEN.get(path, {})
    where = f"/api/v1{path_of(path, client)}"
    problem = client.get(where, params={**given, "sort": "no such field"}).json()
    fields = problem["todo"].removeprefix("Sort by one of: ").split(", ")
    content = DOCUMENT["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    page = DOCUMENT["components"]["schemas"][content["$ref"].rpartition("/")[2]]
    row = DOCUMENT["components"]["schemas"][page["properties"]["items"]["items"]["$ref"].rpartition("/")[2]]
    assert set(fields) <= set(row["properties"])
    for field in fields:
        for sort in (field, f"-{field}"):
            assert client.get(where, params={**given, "sort": sort, "q": "a"}).status_code == 200


def test_the_manual_has_every_route_and_no_other() -> None:
    manual = (FILE.parents[1] / "api.md").read_text().partition("## Lists")[0]
    named = {path.partition("?")[0] for path in re.findall(r"`(/[^`]*)`", manual.partition("## Routes")[2])}
    assert named - {"/groups/a%2Fb"} == set(DOCUMENT["paths"])
