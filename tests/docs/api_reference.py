"""docs/reference/api.md, read off docs/schemas/openapi.json. Write it anew: python -m tests.docs.api_reference"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.docs.reference_pages import ROOT, table, write

OPENAPI = ROOT / "docs" / "schemas" / "openapi.json"
HEAD = """\
# HTTP API

Written from [openapi.json](../schemas/openapi.json), which describes each answer in full. A document of the API is the
one that the command of the same name prints with `-o json` ([schemas](../operations.md#documents-for-machines)).
"""
_METHODS = ("get", "post", "put", "patch", "delete")
_PAGED = ("limit", "cursor", "q", "sort")
"""Parameters of every list, described once."""


def page() -> str:
    """A table of all requests with the parameters of each, and those of every list."""
    described: dict[str, Any] = json.loads(OPENAPI.read_text())
    base = described.get("servers", [{"url": ""}])[0]["url"].rstrip("/")
    requests = list(_requests(described))
    rows = [(f"`{method.upper()} {base}{path}`", _sentence(one), _parameters(one)) for method, path, one in requests]
    lists = {each["name"]: each for _, _, one in requests for each in _named(one) if each["name"] in _PAGED}
    paged = [(f"`{name}`", _sentence(lists[name])) for name in _PAGED if name in lists]
    return "\n".join(
        [
            HEAD, table(("request", "answer", "parameters"), rows), "",
            "## Lists", "", "*paged*: the list takes these too.", "", table(("parameter", "meaning"), paged), "",
        ]
    )  # fmt: skip


def _requests(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in sorted(described["paths"].items()):
        for method in _METHODS:
            if method in methods:
                yield method, path, methods[method]


def _named(one: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in one.get("parameters", ()) if "name" in each]


def _parameters(one: dict[str, Any]) -> str:
    told = [each for each in _named(one) if each["name"] not in _PAGED and each["in"] != "path"]
    own = [f"`{each['name']}`: {_sentence(each)}" for each in told]
    paged = ["*paged*"] if any(each["name"] == "cursor" for each in _named(one)) else []
    return "<br>".join([*own, *paged])


def _sentence(one: dict[str, Any]) -> str:
    told = one.get("description") or one.get("summary") or ""
    return " ".join(str(told).partition("\n\n")[0].split()).replace("<", "&lt;").replace("``", "`")


if __name__ == "__main__":
    if OPENAPI.exists():
        write("api.md", page())
