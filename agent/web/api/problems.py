"""Errors of the API as RFC 9457 problems: type, title, status, detail, and what to do."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NotRequired
from urllib.parse import quote, unquote_to_bytes

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import TypedDict

from agent.errors import RackwiseError, RetryableFailure
from agent.plan.new_partitions import did_you_mean
from config.foreign_text import safe_text

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
CONTENT_TYPE = "application/problem+json"
_MOST_NAME, _MOST_MISTAKES, _MOST_UNKNOWN = 100, 10, 10
_NEXT_STEPS = {
    404: "List the routes: GET /api/v1/openapi.json",
    405: "Use one of the methods that the Allow header names.",
}


class ProblemDocument(TypedDict):
    """Why a request was not answered (RFC 9457)."""

    type: str
    """``about:blank``, or a name of the kind of problem."""
    title: str
    status: int
    detail: str
    todo: NotRequired[str]
    """What to do about it."""


NO_LOOK: dict[int | str, dict[str, Any]] = {
    503: {"model": ProblemDocument, "description": "No look has succeeded yet, or a part of it is missing."}
}
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": ProblemDocument, "description": "There is none."}}
EVERYWHERE: dict[int | str, dict[str, Any]] = {
    422: {"model": ProblemDocument, "description": "A parameter cannot be read."},
    "default": {"model": ProblemDocument, "description": "The request is not answered."},
}


class ApiProblem(Exception):  # noqa: N818 the RFC's word
    """A request that is not answered, with its sentences."""

    def __init__(
        self, status: int, detail: str, *, todo: str = "", kind: str = "about:blank", retry_after_s: int | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.todo, self.kind = status, detail, todo, kind
        self.headers = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}


def no_look_yet() -> ApiProblem:
    """The problem before the first look: it passes by itself."""
    return ApiProblem(
        503,
        "no look at the cluster has succeeded yet",
        todo="Ask again in a few seconds; GET /readyz says what keeps the agent from looking.",
        kind="urn:rackwise:problem:no-look",
        retry_after_s=2,
    )


def only_known_parameters(request: Request) -> None:
    """Raises the problem of parameters that the route lacks, or takes once: one that is ignored changes the answer."""
    if not request.query_params:
        return
    operation = request.app.openapi()["paths"].get(request.scope["route"].path_format, {})
    parameters = operation.get(request.method.lower(), {}).get("parameters", ())
    known = {one["name"]: one["schema"] for one in parameters if one["in"] == "query"}
    unknown = [name for name in request.query_params if name not in known]
    if not unknown:
        _only_once(request, known)
        return
    named = ", ".join(safe_text(name, _MOST_NAME) or "a parameter without a name" for name in unknown[:_MOST_UNKNOWN])
    all_there_are = f"It has: {', '.join(known)}." if known else "It has no parameters."
    raise ApiProblem(
        422,
        f"{named}: this route has no such parameter",
        todo=f"{did_you_mean(unknown[0][:_MOST_NAME], known)}{all_there_are}",
    )


def _only_once(request: Request, known: Mapping[str, Any]) -> None:
    """Raises the problem of a parameter of one value that is there twice."""
    counts = Counter(name for name, _ in request.query_params.multi_items())
    for name, count in counts.items():
        if count > 1 and not _takes_many(known[name]):
            raise ApiProblem(422, f"{name}: it has one value, and {count} are asked for", todo=f"Keep one {name}.")


def _takes_many(schema: Mapping[str, Any]) -> bool:
    return "array" in {one.get("type") for one in (schema, *schema.get("anyOf", ()))}


def of_error(error: RackwiseError) -> ApiProblem:
    """The problem of something that is not in the look: it does not exist, or its part was not read."""
    status, after_s = (503, 10) if isinstance(error, RetryableFailure) else (404, None)
    detail = f"{error.what}: {error.why}" if error.why else error.what
    return ApiProblem(status, detail, todo=error.todo, retry_after_s=after_s)


def afterwards(request: Request) -> BackgroundTask | None:
    """What is to be done once this request is answered; None where nothing is."""
    task = getattr(request.state, "afterwards", None)
    return None if task is None else BackgroundTask(task)


def response_of(
    problem: ApiProblem, headers: Mapping[str, str] | None = None, task: BackgroundTask | None = None
) -> Response:
    """The problem as an answer; ``task``: what is done after it."""
    document: ProblemDocument = {
        "type": problem.kind,
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
    }
    if problem.todo:
        document["todo"] = problem.todo
    body = json.dumps(document).encode()
    every = {**HEADERS, **(headers or {}), **problem.headers, "content-type": CONTENT_TYPE}
    return Response(body, problem.status, every, background=task)


def answer_problems(app: FastAPI) -> None:
    """Every error of the application becomes a problem."""

    def of_api(request: Request, error: Exception) -> Response:
        return response_of(error, task=afterwards(request)) if isinstance(error, ApiProblem) else _unexpected()

    def of_http(_request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            return _unexpected()
        if error.status_code == HTTPStatus.BAD_REQUEST:  # FastAPI's own word for a body that its parser gives up on
            return response_of(_no_json())
        detail = str(error.detail) if error.status_code != 404 else "there is no such route"
        return response_of(
            ApiProblem(error.status_code, detail, todo=_NEXT_STEPS.get(error.status_code, "")), error.headers
        )

    def of_values(request: Request, error: Exception) -> Response:
        mistakes = error.errors() if isinstance(error, RequestValidationError) else ()
        if any(one.get("type") == "json_invalid" for one in mistakes):
            return response_of(_no_json())
        if any(_is_whole_body(one) for one in mistakes):
            return response_of(_no_object(request))
        named = dict.fromkeys(_mistake(one) for one in mistakes[:_MOST_MISTAKES])
        detail = "; ".join(named) or "a value cannot be read"
        return response_of(ApiProblem(422, detail, todo="See the parameters: GET /api/v1/openapi.json"))

    app.add_exception_handler(ApiProblem, of_api)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(RequestValidationError, of_values)
    app.add_exception_handler(Exception, lambda request, _error: _unexpected(afterwards(request)))


_MISTAKES = {
    "missing": "is missing",
    "extra_forbidden": "is no field of a command",
    "greater_than_equal": "is at least {ge}",
    "less_than_equal": "is at most {le}",
    "int_parsing": "is a whole number",
    "int_parsing_size": "is a whole number of at most 64 bits",
    "int_type": "is a whole number",
    "int_from_float": "is a whole number",
    "string_type": "is text",
    "string_unicode": "is text",
    "string_too_short": "has at least {min_length} characters",
    "string_too_long": "has at most {max_length} characters",
    "too_long": "is given at most {max_length} times",
    "literal_error": "is one of {expected}",
}
"""Kind of mistake, as pydantic names it -> what holds of the field or parameter."""


def _mistake(error: Mapping[str, Any]) -> str:
    """``limit is at most 1000``; never the value, which is foreign text."""
    _, *path = error.get("loc") or ("",)
    where = safe_text(str(path[0]), _MOST_NAME) if path else "the body"
    is_one_of_several = len(path) > 1 and isinstance(path[1], str)  # kinds of value that the field may have
    form = "cannot be read" if is_one_of_several else _MISTAKES.get(str(error.get("type")), "cannot be read")
    return f"{where} {form.format_map(error.get('ctx') or {})}"


def _is_whole_body(error: Mapping[str, Any]) -> bool:
    return tuple(error.get("loc", ())) == ("body",) and error.get("type") != "missing"


def _no_object(request: Request) -> ApiProblem:
    """A body that is no JSON object: often one that its Content-Type does not name as JSON."""
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() == "application/json":
        return ApiProblem(422, "the body is no JSON object", todo="Send an object with the fields of the command.")
    named = f"is {safe_text(kind, _MOST_NAME)}" if kind else "is missing"
    return ApiProblem(
        415,
        f"the body is not read as JSON: the header Content-Type {named}",
        todo="Send it with the header Content-Type: application/json.",
    )


def _no_json() -> ApiProblem:
    return ApiProblem(422, "the body is no JSON", todo="Send a JSON object with the fields of the command.")


def _unexpected(task: BackgroundTask | None = None) -> Response:
    problem = ApiProblem(500, "the agent failed to answer", todo="See the agent's log for the error, and report it.")
    return response_of(problem, task=task)


class RawSegments:
    """Routes by the path as it was sent: a percent-encoded slash is part of a name, not a separator.

    Every segment reaches the application in one spelling, percent-encoded; `name_of` is its text. HEAD is answered by
    the route of GET, and the server sends the head of that answer alone.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        await self._app(self._as_sent(scope), receive, send)

    def methods_at(self, scope: Scope) -> frozenset[str]:
        """The methods of the route at the path of this request; empty where there is no route."""
        sent = self._as_sent(scope)
        routes = getattr(self._app, "routes", ())
        found = {
            method
            for method in ("GET", "POST")
            if any(route.matches({**sent, "method": method})[0] is Match.FULL for route in routes)
        }
        return frozenset(found | {"HEAD"} if "GET" in found else found)

    @staticmethod
    def _as_sent(scope: Scope) -> Scope:
        raw = scope.get("raw_path")
        if scope["type"] == "http" and isinstance(raw, bytes):
            path = raw.partition(b"?")[0].decode("ascii", "replace")
            scope = {**scope, "path": "/".join(quote(unquote_to_bytes(one), safe="") for one in path.split("/"))}
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", "state": {**scope.get("state", {}), "is_head": True}}
        return scope


def name_of(segment: str) -> str:
    """The name in a segment; of bytes that are no UTF-8, lone surrogates are kept as the decoders keep them."""
    raw = unquote_to_bytes(segment)
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape")
