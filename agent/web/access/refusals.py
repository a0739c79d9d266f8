"""Refusals of requests: an RFC 9457 problem for programs, a short page for browsers; no secret, no foreign markup."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from agent.web.page.assets import asset_url
from config.foreign_text import safe_text

API = "/api/"
_MOST_TEXT = 500
PROBLEM_TYPE = "application/problem+json"
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


class AccessRefused(HTTPException):
    """A request that is not carried out, with the sentences *what*, *why* and *todo*."""

    def __init__(
        self,
        status: int,
        what: str,
        *,
        why: str = "",
        todo: str = "",
        kind: str = "about:blank",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """``kind`` names the kind of problem, for programs."""
        super().__init__(int(status), detail=what, headers=dict(headers or {}))
        self.kind = kind
        self.what = safe_text(what, _MOST_TEXT)
        self.why = safe_text(why, _MOST_TEXT)
        self.todo = safe_text(todo, _MOST_TEXT)


pages = Environment(
    loader=PackageLoader("agent.web.page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
"""Templates of the pages that belong to signing in."""
pages.globals["asset_url"] = asset_url


def is_for_browser(request: Request) -> bool:
    """Whether a page is the answer, not a document."""
    return not str(request.scope["path"]).startswith(API) and "text/html" in request.headers.get("accept", "")


def refusal_answer(request: Request, refused: AccessRefused) -> Response:
    """The answer to a refused request."""
    headers = {**_HEADERS, **(refused.headers or {})}
    status = refused.status_code
    if status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = 'Bearer realm="rackwise"'
    if is_for_browser(request):
        page = pages.get_template("refused.html").render(
            title=HTTPStatus(status).phrase, what=refused.what, why=refused.why, todo=refused.todo
        )
        return HTMLResponse(page, status_code=status, headers=headers)
    return Response(problem_bytes(refused), status, headers, PROBLEM_TYPE)


def problem_bytes(refused: AccessRefused) -> bytes:
    """The problem as JSON of ASCII alone."""
    problem: dict[str, object] = {
        "type": refused.kind,
        "title": HTTPStatus(refused.status_code).phrase,
        "status": refused.status_code,
        "detail": f"{refused.what}: {refused.why}" if refused.why else refused.what,
    }
    if refused.todo:
        problem["todo"] = refused.todo
    return json.dumps(problem, separators=(",", ":")).encode("ascii")


def failed(request: Request, _error: Exception) -> Response:
    """The handler of an error that no route expects; the server logs it."""
    todo = "See the agent's log for the error, and report it."
    return refusal_answer(request, AccessRefused(500, "the agent failed to answer", todo=todo))
