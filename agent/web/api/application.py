"""The application below ``/api/v1``: routes, errors, its OpenAPI document, and Server-Sent Events of each new look.

One encoded message is shared by all listeners. A listener that reads too slowly, or comes when there are enough, is
turned away. One that comes back with ``Last-Event-ID`` gets what it missed, as far as the ring still has it, else the
event ``reset``.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import textwrap
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import structlog
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from typing_extensions import get_original_bases, is_typeddict

from agent.documents import cluster, config, groups, plan, proposals, status
from agent.documents.journal import plan_rows
from agent.propose import codec
from agent.values import plan as plan_values
from agent.values.clock import Clock
from agent.web.access.gate import AccessGate
from agent.web.access.person import AccessRole
from agent.web.access.request_checks import SAFE
from agent.web.agent_view import AgentView, FinishedLook
from agent.web.api import answers, problems, routes_work
from agent.web.api.answers import ApiAnswers
from agent.web.api.problems import EVERYWHERE, ApiProblem, answer_problems, only_known_parameters
from agent.web.api.routes_look import look_routes
from agent.web.api.routes_work import command_routes, work_routes
from agent.web.commands import CommandDesk
from agent.web.page.look_documents import LookDocuments, ShownLooks
from agent.web.page.page_documents import shared_findings

LISTENERS = 100
"""Streams at once."""
_POLL_S = 0.5
_HEARTBEAT_S = 10.0
_LIFETIME_S = 900.0
"""A stream ends after this long: the browser asks again at once."""
_RING = 512
"""Messages that a listener which comes back may have missed."""
_WAITING = 64
"""Looks that a listener may be behind."""
_NAMED = 100
"""Findings, or proposals, of one look that have events of their own; the rest is counted."""
_RETRY_MS = 3_000
_HEARTBEAT = b": still here\n\n"
_STREAMED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}


class EventMessage(NamedTuple):
    """One event as it is sent."""

    number: int
    body: bytes


class _SeenState(NamedTuple):
    """What the last events told."""

    cycle: int
    findings: Mapping[str, Mapping[str, Any]]
    proposals: Mapping[str, Mapping[str, Any]]
    plans: Mapping[str, Mapping[str, Any]]


class EventStream:
    """Watches the agent's view while the server runs, and passes on what has changed. Of one event loop."""

    def __init__(self, view: AgentView, looks: ShownLooks) -> None:
        self._view, self._looks = view, looks
        self._boot = os.urandom(4).hex()
        self._number = 0
        self._ring: deque[EventMessage] = deque(maxlen=_RING)
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self._seen: _SeenState | None = None
        self._watching: asyncio.Task[None] | None = None

    async def open(self, last_id: str, may_listen: Callable[[], bool] = lambda: True) -> AsyncIterator[bytes]:
        """The messages for one listener, as long as it may listen. Raises the problem of one listener too many."""
        if len(self._listeners) >= LISTENERS:
            raise ApiProblem(503, f"{LISTENERS} streams are open", todo="Close other pages.", retry_after_s=30)
        if self._watching is None:
            documents = await self._shown()
            self._seen = None if documents is None else await run_in_threadpool(self._state, documents)
            self._watching = self._watching or asyncio.create_task(self._watch())
        return self._messages(last_id, may_listen)

    async def _messages(self, last_id: str, may_listen: Callable[[], bool]) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING + 1)
        self._listeners.add(queue)
        try:
            yield f"retry: {_RETRY_MS}\n\n".encode()
            for body in self._missed(last_id, await self._shown()):
                yield body
            now_s = asyncio.get_running_loop().time
            until, check_at = now_s() + _LIFETIME_S, now_s() + _HEARTBEAT_S
            while now_s() < until:
                try:
                    chunk = await asyncio.wait_for(queue.get(), _HEARTBEAT_S)
                except TimeoutError:
                    chunk = _HEARTBEAT
                if now_s() >= check_at:
                    if not await run_in_threadpool(may_listen):  # it may read a file
                        return
                    check_at = now_s() + _HEARTBEAT_S
                if chunk is None:
                    return
                yield chunk
        finally:
            self._listeners.discard(queue)

    def _missed(self, last_id: str, documents: LookDocuments | None) -> Iterable[bytes]:
        """What came after the event of that id; where that is not known, the present look and nothing before it."""
        boot, _, number = last_id.partition("-")
        if boot == self._boot and number.isdecimal():
            first = self._ring[0].number if self._ring else self._number + 1
            if first - 1 <= int(number) <= self._number:
                return [one.body for one in self._ring if one.number > int(number)]
        name = "reset" if last_id else "look"
        return [self._encoded(name, {} if documents is None else _look(documents.look), self._number).body]

    async def _shown(self) -> LookDocuments | None:
        """The look that is shown, the newest one once its documents are made; None before the first."""
        documents, prepare = self._looks.now()
        if prepare is not None:
            await run_in_threadpool(prepare)
            documents, _ = self._looks.now()
        return documents

    async def _watch(self) -> None:
        """Look for a new look twice a second, for as long as the server runs."""
        while True:
            await asyncio.sleep(_POLL_S)
            if self._view.state.stopping:
                self._end_all()
                continue
            if self._listeners:
                try:
                    await self._tell()
                except Exception as error:  # noqa: BLE001 the next look is sent all the same
                    structlog.get_logger("rackwise").warning(
                        "events_failed", sentence=f"an event was not sent: {error}"
                    )

    async def _tell(self) -> None:
        """Send an event for a new look once its documents are there: a client asks for them at once."""
        documents, before = await self._shown(), self._seen
        if documents is None or (before is not None and before.cycle == documents.look.cycle):
            return
        self._seen = now = await run_in_threadpool(self._state, documents)
        self._send(("look", _look(documents.look)), *(() if before is None else _changes(before, now)))

    def _state(self, of: LookDocuments) -> _SeenState:
        """What a look has, by id."""
        look = of.look
        findings = {row["id"]: row for row in shared_findings(of)}
        proposals = {
            one.id: {"id": one.id, "kind": one.kind.value, "subject": str(one.subject), "sentence": one.sentence}
            for one in look.evaluation.proposals
        }
        plans = {row["plan"]: row for row in plan_rows(self._view.journal().view)}
        fields = ("plan", "state", "paused", "partitions", "done", "moving", "sentence")
        short = {name: {key: value for key, value in row.items() if key in fields} for name, row in plans.items()}
        return _SeenState(look.cycle, findings, proposals, short)

    def _send(self, *events: tuple[str, Mapping[str, Any]]) -> None:
        """Encode the events of one look once, for all."""
        messages = [self._encoded(name, data, number) for number, (name, data) in enumerate(events, self._number + 1)]
        self._number += len(messages)
        self._ring.extend(messages)
        chunk = b"".join(message.body for message in messages)
        for queue in [*self._listeners]:
            if queue.qsize() >= _WAITING:
                self._cut(queue)
            else:
                queue.put_nowait(chunk)

    def _cut(self, queue: asyncio.Queue[bytes | None]) -> None:
        """It has not taken what it was sent for a long time: the stream ends once it has taken that."""
        self._listeners.discard(queue)
        with suppress(asyncio.QueueFull):
            queue.put_nowait(None)

    def _end_all(self) -> None:
        for queue in [*self._listeners]:
            self._cut(queue)

    def _encoded(self, name: str, data: Mapping[str, Any], number: int) -> EventMessage:
        text = json.dumps(data, separators=(",", ":"), default=str)  # ASCII on one line, whatever the names are
        return EventMessage(number, f"id: {self._boot}-{number}\nevent: {name}\ndata: {text}\n\n".encode("ascii"))


def _look(look: FinishedLook) -> dict[str, Any]:
    return {"cycle": look.cycle, "look": look.look, "taken_ms": look.taken_ms}


def _changes(before: _SeenState, now: _SeenState) -> Iterable[tuple[str, dict[str, Any]]]:
    """Findings that began or ended, proposals that are new or gone, plans in another state than before."""
    yield from _differences("finding", before.findings, now.findings, ("begun", "ended"))
    yield from _differences("proposal", before.proposals, now.proposals, ("new", "gone"))
    for name, row in now.plans.items():
        if before.plans.get(name) != row:
            yield "plan", dict(row)


def _differences(
    name: str, before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]], words: tuple[str, str]
) -> Iterable[tuple[str, dict[str, Any]]]:
    for word, rows in (
        (words[0], [row for key, row in now.items() if key not in before]),
        (words[1], [row for key, row in before.items() if key not in now]),
    ):
        for row in rows[:_NAMED]:
            fields = {key: value for key, value in row.items() if key != "evidence"}
            yield name, {"change": word, **fields}
        if len(rows) > _NAMED:
            yield name, {"change": word, "more": len(rows) - _NAMED}


_STREAM_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff", "x-accel-buffering": "no"}


def event_routes(stream: EventStream) -> APIRouter:
    """The one route of the stream."""
    router = APIRouter(tags=["events"])

    @router.get("/events", response_class=StreamingResponse, responses=_STREAMED)
    async def events(request: Request) -> Response:
        """Server-Sent Events: ``look``, ``finding``, ``proposal``, ``plan``, ``reset`` and heartbeats.

        With ``Last-Event-ID`` a client that comes back gets what it missed; ``reset`` says that this is not known any
        more, so everything should be read again.
        """
        if getattr(request.state, "is_head", False):
            return Response(media_type="text/event-stream", headers=_STREAM_HEADERS)
        gate: AccessGate | None = getattr(request.state, "gate", None)
        may_listen = (lambda: True) if gate is None else partial(gate.may_still, request, AccessRole.VIEW)
        messages = await stream.open(request.headers.get("last-event-id", ""), may_listen)
        return StreamingResponse(messages, media_type="text/event-stream", headers=_STREAM_HEADERS)

    return router


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
    for module in (
        cluster,
        config,
        groups,
        plan,
        proposals,
        status,
        codec,
        plan_values,
        problems,
        routes_work,
        answers,
    ):
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
