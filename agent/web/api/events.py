"""Server-Sent Events: each new look, and what began or ended with it. One encoded message is shared by all listeners.

A listener that reads too slowly, or comes when there are enough, is turned away. One that comes back with
``Last-Event-ID`` gets what it missed, as far as the ring still has it, else the event ``reset``.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import structlog
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from agent.documents.journal import plan_rows
from agent.web.access.gate import AccessGate
from agent.web.access.person import AccessRole
from agent.web.agent_view import AgentView, FinishedLook
from agent.web.api.problems import ApiProblem
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
