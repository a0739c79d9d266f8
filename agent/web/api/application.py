"""The application below ``/api/v1`` and its OpenAPI document: routes, errors, and fields from their docstrings."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from typing_extensions import get_original_bases, is_typeddict

from agent.documents import cluster, config, groups, plan, proposals, status
from agent.propose import codec
from agent.values import progress
from agent.values.clock import Clock
from agent.web.access.request_checks import SAFE
from agent.web.agent_view import AgentView
from agent.web.api import paging, problems, routes_work
from agent.web.api.answers import ApiAnswers
from agent.web.api.events import EventStream, event_routes
from agent.web.api.problems import EVERYWHERE, answer_problems, only_known_parameters
from agent.web.api.routes_look import look_routes
from agent.web.api.routes_work import command_routes, work_routes
from agent.web.commands import CommandDesk

_HEADERS = {
    "etag": "Changes with the document, and with nothing else.",
    "rackwise-look": "Id of the look that the document is of.",
    "rackwise-cycle": "Number of its cycle since the start of the agent.",
    "rackwise-taken-ms": "Epoch milliseconds of the look.",
    "rackwise-age-ms": "Age of the look.",
}


def describe(app: FastAPI) -> None:
    """Let the application answer with the described document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(
                get_openapi(
                    title=app.title,
                    version=app.version,
                    summary=app.summary,
                    routes=app.routes,
                    servers=app.servers,
                    separate_input_output_schemas=False,
                )
            )
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign] # the way that FastAPI names for it


def _described(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for name, kind in _documents():
        for field, text in field_docstrings(kind):
            for schema in (one for key, one in schemas.items() if key == name or key.startswith(f"{name}_")):
                schema["properties"].get(field, {})["description"] = text
    _without_titles(schemas)
    for path in document["paths"].values():
        for operation in path.values():
            _describe_responses(operation["responses"])
    return document


def _describe_responses(responses: dict[str, Any]) -> None:
    """Problems have a content type of their own; answers have headers, and may be 304."""
    for response in responses.values():
        content = response.get("content", {})
        problem = next((one for one in content.values() if "ProblemDocument" in str(one)), None)
        if problem is not None:
            response["content"] = {problems.CONTENT_TYPE: problem}
    good = responses.get("200", {})
    if "application/json" in good.get("content", {}):
        good["headers"] = {name: {"description": text, "schema": {"type": "string"}} for name, text in _HEADERS.items()}
        responses["304"] = {"description": "The document is the one that If-None-Match names."}


def _documents() -> Iterator[tuple[str, Any]]:
    for module in (cluster, config, groups, plan, proposals, status, codec, progress, problems, routes_work, paging):
        for name, kind in vars(module).items():
            if is_typeddict(kind) and kind.__module__ == module.__name__:
                yield name, kind


def field_docstrings(kind: Any) -> Iterator[tuple[str, str]]:
    """Field -> the docstring below it, of the type and of what it derives from."""
    for base in get_original_bases(kind):
        if is_typeddict(base):
            yield from field_docstrings(base)
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    for field, below in pairwise(definition.body if isinstance(definition, ast.ClassDef) else ()):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split())


def _without_titles(schemas: dict[str, Any]) -> None:
    """Pydantic makes a title of each field's name, which says nothing."""
    for schema in schemas.values():
        for field in schema.get("properties", {}).values():
            field.pop("title", None)


PREFIX = "/api/v1"


def no_check(request: Request) -> None:
    """Lets every request in; the place of the check of who may view."""
    del request


def _known_where_read(request: Request) -> None:
    """Of commands the routes check it, after the role of the person."""
    if request.method not in SAFE:
        return
    only_known_parameters(request)


def make_api(
    view: AgentView, clock: Clock, desk: CommandDesk | None = None, *, may_view: Callable[[Request], object] = no_check
) -> FastAPI:
    """The API of one running agent, to be mounted at `PREFIX`. ``may_view`` raises where a request may not read.

    ``desk`` takes commands; without one none is sent.
    """
    api = FastAPI(
        title="rackwise",
        summary="What a running agent sees, finds and proposes.",
        version="v1",
        servers=[{"url": PREFIX}],
        root_path_in_servers=False,
        generate_unique_id_function=lambda route: route.name,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(may_view), Depends(_known_where_read)],
        responses=EVERYWHERE,
        separate_input_output_schemas=False,
    )
    answers = ApiAnswers(view, clock)
    answer_problems(api)
    stream = EventStream(view, answers.looks)
    reading = (look_routes(answers), work_routes(answers), event_routes(stream))
    for router in (*reading, command_routes(desk or CommandDesk())):
        api.include_router(router)
    describe(api)
    return api
