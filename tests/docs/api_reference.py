"""docs/reference/api.md, read off docs/schemas/openapi.json. Write it anew: python -m tests.docs.api_reference"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.docs.reference_pages import ROOT, table, write

OPENAPI = ROOT / "docs" / "schemas" / "openapi.json"
HEAD = """\
# HTTP API

Written from [openapi.json](../schemas/openapi.json), which describes each answer in full.
"""
_METHODS = ("get", "post", "put", "patch", "delete")


def page() -> str:
    """A table of all requests, and the parameters of each."""
    described: dict[str, Any] = json.loads(OPENAPI.read_text())
    requests = list(_requests(described))
    rows = [(f"`{method.upper()} {path}`", _sentence(one)) for method, path, one in requests]
    sections = [text for method, path, one in requests for text in _parameters(method, path, one)]
    return "\n".join([HEAD, table(("request", "answer"), rows), "", *sections])


def _requests(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in sorted(described["paths"].items()):
        for method in _METHODS:
            if method in methods:
                yield method, path, methods[method]


def _sentence(one: dict[str, Any]) -> str:
    told = one.get("description") or one.get("summary") or ""
    return " ".join(str(told).partition("\n\n")[0].split()).replace("<", "&lt;")


def _parameters(method: str, path: str, one: dict[str, Any]) -> Iterator[str]:
    named = [each for each in one.get("parameters", ()) if "name" in each]
    if named:
        yield f"## {method.upper()} {path}\n"
        rows = [(f"`{each['name']}`", each["in"], _sentence(each)) for each in named]
        yield table(("parameter", "in", "meaning"), rows) + "\n"


if __name__ == "__main__":
    if OPENAPI.exists():
        write("api.md", page())
