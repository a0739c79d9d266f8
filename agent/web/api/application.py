"""The application below ``/api/v1``: its routes, the dependency that every one of them has, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from fastapi import Depends, FastAPI, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.documents.cluster import StatusDocument
from agent.documents.status import status_document
from agent.values.clock import Clock
from agent.web.agent_view import AgentView
from agent.web.api.answers import ApiAnswers
from agent.web.api.problems import ProblemDocument, answer_problems

PREFIX = "/api/v1"
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    503: {"model": ProblemDocument, "description": "No look has succeeded yet."}
}


def anybody(request: Request) -> None:
    """Lets every request in; the place of the check of who may view."""
    del request


def make_api(view: AgentView, clock: Clock, *, version: str, may_view: Callable[[Request], None] = anybody) -> FastAPI:
    """The API of one running agent, to be mounted at `PREFIX`. ``may_view`` raises where a request may not read."""
    api = FastAPI(
        title="rackwise",
        summary="What a running agent sees, finds and proposes.",
        version=version,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(may_view)],
        separate_input_output_schemas=False,
    )
    answers = ApiAnswers(view, clock)
    answer_problems(api)

    @api.get("/cluster", response_model=StatusDocument, responses=_PROBLEMS, tags=["look"])
    def cluster(request: Request) -> Response:
        """The size of the cluster, traffic across racks, its cost and all findings, as ``rackwise status`` has it."""
        return answers.of_look(request, "cluster", status_document)

    return api


class RawSegments:
    """Routes by the path as it was sent: a percent-encoded slash is part of a name, not a separator.

    Every segment reaches the application in one spelling, percent-encoded; `name_of` is its bytes as text.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        raw = scope.get("raw_path")
        if scope["type"] == "http" and isinstance(raw, bytes):
            path = raw.partition(b"?")[0].decode("ascii", "replace")
            scope = {**scope, "path": "/".join(quote(unquote_to_bytes(one), safe="") for one in path.split("/"))}
        await self._app(scope, receive, send)


def name_of(segment: str) -> str:
    """The name in a segment; of bytes that are no UTF-8, lone surrogates are kept as the decoders keep them."""
    raw = unquote_to_bytes(segment)
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape")
