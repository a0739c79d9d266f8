"""Answers of the API: one look's document as JSON bytes, with its age, and 304 where the client has it already."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from time import monotonic
from typing import Any, NamedTuple

from fastapi import Request, Response

from agent.values.clock import Clock
from agent.web.agent_view import AgentView
from agent.web.api.paging import ListKind, ListQuery, page_of
from agent.web.api.problems import afterwards, no_look_yet
from agent.web.page.look_documents import LookDocuments, shown_looks
from agent.web.page.page_request import stale_after_ms

_HEADERS = {"cache-control": "private, no-cache", "x-content-type-options": "nosniff"}
"""A browser asks whether its copy is still the present one each time."""
_WANTED_S = 120.0
"""A document that was asked for within this time is made of a new look before that is shown."""

DocumentOfLook = Callable[[LookDocuments], Any]


class EncodedDocument(NamedTuple):
    """A document as it is sent."""

    body: bytes
    etag: str


def encoded(document: object) -> EncodedDocument:
    """JSON of ASCII alone: names of any characters lose nothing, and none can steer a terminal."""
    body = json.dumps(document, separators=(",", ":"), default=str).encode("ascii")
    return EncodedDocument(body, f'"{blake2b(body, digest_size=16).hexdigest()}"')


class ApiAnswers:
    """Answers requests from the agent's view."""

    def __init__(self, view: AgentView, clock: Clock) -> None:
        self.view = view
        self.looks = shown_looks(view, (self._prepare,), stale_after_ms(view))
        """Shared with the page: a new look is shown once the documents that are asked for are made."""
        self._clock = clock
        self._wanted: dict[str, tuple[DocumentOfLook, float]] = {}

    def documents(self, request: Request) -> LookDocuments:
        """The documents of the look that is shown. Raises the problem of an agent that has none yet."""
        documents, prepare = self.looks.now()
        if prepare is not None:
            request.state.afterwards = prepare
        if documents is None:
            raise no_look_yet()
        request.state.look = documents.look
        return documents

    def of_look(self, request: Request, name: str, maker: DocumentOfLook) -> Response:
        """A document that one look alone makes, encoded once per look; ``name`` tells it from others."""
        return self.send(request, self._made(self.documents(request), f"json {name}", lambda of: encoded(maker(of))))

    def page(self, request: Request, kind: ListKind, query: ListQuery, name: str, maker: DocumentOfLook) -> Response:
        """A page of a list that one look alone makes; the list is made once per look."""
        return self.send_page(request, kind, query, self._made(self.documents(request), f"rows {name}", maker))

    def send_page(
        self, request: Request, kind: ListKind, query: ListQuery, rows: Sequence[Mapping[str, Any]]
    ) -> Response:
        """A page of a list."""
        page = page_of(rows, kind, query)
        return self.send(request, encoded({"items": page.rows, "total": page.total, "next": page.next}))

    def send(self, request: Request, made: EncodedDocument) -> Response:
        """The document, or 304 where the client's copy is the same; both name the look and its age."""
        headers = {**_HEADERS, **self._freshness(request), "etag": made.etag}
        if _has(request, made.etag):
            return Response(status_code=304, headers=headers, background=afterwards(request))
        return Response(made.body, headers=headers, media_type="application/json", background=afterwards(request))

    def send_kept(self, made: EncodedDocument, taken_ms: int) -> Response:
        """A document of the look of that time, which may not be the one that is shown."""
        age_ms = max(0, self.now_ms - taken_ms)
        headers = {"rackwise-taken-ms": str(taken_ms), "rackwise-age-ms": str(age_ms), "etag": made.etag}
        return Response(made.body, headers={**_HEADERS, **headers}, media_type="application/json")

    @property
    def now_ms(self) -> int:
        """Epoch milliseconds."""
        return self._clock().wall_ms

    def _made(self, of: LookDocuments, name: str, maker: DocumentOfLook) -> Any:
        self._wanted[name] = (maker, monotonic())
        return self._made_of(of, name, maker)

    def _made_of(self, of: LookDocuments, name: str, maker: DocumentOfLook) -> Any:
        return of.made(("api", name), lambda _: maker(of))

    def _prepare(self, of: LookDocuments) -> None:
        """Make of a new look what was asked for of late."""
        since = monotonic() - _WANTED_S
        for name, (maker, asked) in [*self._wanted.items()]:
            if asked >= since:
                self._made_of(of, name, maker)

    def _freshness(self, request: Request) -> dict[str, str]:
        look = getattr(request.state, "look", None) or self.view.look()
        if look is None:
            return {}
        return {
            "rackwise-look": _ascii(look.look),
            "rackwise-cycle": str(look.cycle),
            "rackwise-taken-ms": str(look.taken_ms),
            "rackwise-age-ms": str(max(0, self.now_ms - look.taken_ms)),
        }


def _has(request: Request, etag: str) -> bool:
    """Whether ``If-None-Match`` names this very document."""
    given = request.headers.get("if-none-match", "")
    return given.strip() == "*" or etag in (one.strip().removeprefix("W/") for one in given.split(","))


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")
