"""The OpenAPI document of the API in docs/schemas/openapi.json. Write it anew: make schemas"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent.values.clock import system_clock
from agent.web.api.application import make_api
from tests.web.api.agents import view_of

FILE = Path(__file__).parents[2] / "docs" / "schemas" / "openapi.json"


def committed() -> dict[str, Any]:
    """The committed document; to make it anew takes half a second."""
    document: dict[str, Any] = json.loads(FILE.read_text())
    return document


def openapi_text() -> str:
    """The text of the committed file: the document that a running agent answers at /api/v1/openapi.json."""
    document = make_api(view_of(None), system_clock).openapi()
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(openapi_text())
