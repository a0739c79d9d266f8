"""Answers of the API: one look's document as JSON bytes, with its age, and 304 where the client has it already."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from fastapi import Request, Response

from agent.money.costs import CrossRackCosts, costs_of
from agent.simulate.evaluation import StageEvaluation
from agent.values.clock import Clock
from agent.web.agent_view import AgentView, FinishedLook
from agent.web.api.paging import ListKind, ListQuery, page_of
from agent.web.api.problems import no_look_yet

_HEADERS = {"cache-control": "private, no-cache", "x-content-type-options": "nosniff"}
"""A browser asks whether its copy is still the present one each time."""


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
        self._clock = clock

    def look(self) -> FinishedLook:
        """The last finished look. Raises the problem of an agent that has none yet."""
        look = self.view.look()
        if look is None:
            raise no_look_yet()
        return look

    def of_look(self, request: Request, key: Hashable, maker: Callable[[StageEvaluation], object]) -> Response:
        """A document that the last finished look alone makes, encoded once per look."""
        self.look()
        made = self.view.made(("json", key), lambda evaluation: encoded(maker(evaluation)))
        return self.send(request, made)

    def costs(self) -> CrossRackCosts:
        """What crosses racks in the last finished look, by group and topic; made once per look."""
        return self.view.made("costs", lambda seen: costs_of(seen.snapshot))

    def page(
        self,
        request: Request,
        kind: ListKind,
        query: ListQuery,
        key: Hashable,
        maker: Callable[[StageEvaluation], Sequence[Mapping[str, Any]]],
    ) -> Response:
        """A page of a list that the last finished look alone makes; the list is made once per look."""
        self.look()
        return self.send_page(request, kind, query, self.view.made(("rows", key), maker))

    def send_page(
        self, request: Request, kind: ListKind, query: ListQuery, rows: Sequence[Mapping[str, Any]]
    ) -> Response:
        """A page of a list."""
        look = self.view.look()
        page = page_of(rows, kind, query, 0 if look is None else look.cycle)
        return self.send(request, encoded({"items": page.rows, "total": page.total, "next": page.next}))

    @property
    def now_ms(self) -> int:
        """Epoch milliseconds."""
        return self._clock().wall_ms

    def send(self, request: Request, made: EncodedDocument) -> Response:
        """The document, or 304 where the client's copy is the same; both name the look and its age."""
        headers = {**_HEADERS, **self._freshness(), "etag": made.etag}
        if _has(request, made.etag):
            return Response(status_code=304, headers=headers)
        return Response(made.body, headers=headers, media_type="application/json")

    def _freshness(self) -> dict[str, str]:
        look = self.view.look()
        if look is None:
            return {}
        age_ms = max(0, self._clock().wall_ms - look.taken_ms)
        return {
            "rackwise-look": _ascii(look.look),
            "rackwise-cycle": str(look.cycle),
            "rackwise-taken-ms": str(look.taken_ms),
            "rackwise-age-ms": str(age_ms),
        }


def _has(request: Request, etag: str) -> bool:
    """Whether ``If-None-Match`` names this very document."""
    given = request.headers.get("if-none-match", "")
    return given.strip() == "*" or etag in (one.strip().removeprefix("W/") for one in given.split(","))


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")
