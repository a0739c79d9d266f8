"""Answers of the API: one look's document as JSON bytes, with its age, and 304 where the client has it; lists in pages.

A page is searched, sorted, and ended by a cursor that names its last row. A cursor goes on after that row, wherever it
is by now: while the rows are the same, none comes twice and none is missed. Where the row is gone, the page begins with
the one that came after it. The work is bounded by the rows.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from time import monotonic
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from fastapi import Query, Request, Response
from typing_extensions import TypedDict

from agent.values.clock import Clock
from agent.web.agent_view import AgentView
from agent.web.api.problems import ApiProblem, afterwards, no_look_yet
from agent.web.page.look_documents import LookDocuments, shown_looks
from agent.web.page.page_request import stale_after_ms

MOST_ROWS = 1_000
ROWS = 100
_LONGEST = 2_000
"""Characters of a search or a cursor."""
_BEGIN_AGAIN = "Ask again without a cursor, or with the search and sort that it was given for."

Row = Mapping[str, Any]


class ListKind(NamedTuple):
    """How rows of one kind are distinguished, searched and sorted."""

    identity: tuple[str, ...]
    """Fields that no two rows share."""
    searched: tuple[str, ...]
    """Fields in which a search looks; texts, lists of texts, or null."""
    sorted_by: tuple[str, ...]
    """Fields that may be sorted by; null comes last, both ways."""


class ListQuery(NamedTuple):
    """Search text, sort order, page size and cursor of a request for a list."""

    limit: int
    cursor: str | None
    q: str
    sort: str

    @property
    def digest(self) -> str:
        """Sort order and search text: a cursor holds for these alone."""
        return f"{self.sort}\n{self.q}"


class RowPage(NamedTuple):
    """One page."""

    rows: list[Row]
    total: int
    """Rows that the search found, on all pages."""
    next: str | None
    """The cursor of the following page; None on the last one."""


def list_query(
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS, description="Rows of the page.")] = ROWS,
    cursor: Annotated[
        str | None, Query(max_length=_LONGEST, description="Field `next` of the page before; opaque.")
    ] = None,
    q: Annotated[
        str, Query(max_length=_LONGEST, description="Only rows with this text in their names, whatever the case.")
    ] = "",
    sort: Annotated[
        str, Query(max_length=100, description="Field to sort by; with - before it, descending. Null comes last.")
    ] = "",
) -> ListQuery:
    """The parameters that every list has."""
    return ListQuery(limit, cursor, q, sort)


def page_of(rows: Sequence[Row], kind: ListKind, query: ListQuery) -> RowPage:
    """The page that was asked for. Raises `ApiProblem` for a field that is no sort, and a cursor that is none."""
    found = _sorted(_searched(rows, kind, query.q), kind, query.sort)
    begin = 0 if query.cursor is None else _after(found, kind, query)
    page = list(found[begin : begin + query.limit])
    end = begin + len(page)
    more = end < len(found) and page
    return RowPage(page, len(found), _cursor(query, end, _identity(page[-1], kind)) if more else None)


def _searched(rows: Sequence[Row], kind: ListKind, text: str) -> Sequence[Row]:
    wanted = text.casefold()
    return rows if not wanted else [row for row in rows if any(_holds(row.get(name), wanted) for name in kind.searched)]


def _holds(value: object, wanted: str) -> bool:
    if isinstance(value, list | tuple):
        return any(_holds(one, wanted) for one in value)
    if isinstance(value, Mapping):
        return any(_holds(one, wanted) for one in value.values())
    return value is not None and wanted in str(value).casefold()


def _sorted(rows: Sequence[Row], kind: ListKind, sort: str) -> Sequence[Row]:
    if not sort:
        return rows
    name = sort.removeprefix("-")
    if name not in kind.sorted_by:
        todo = f"Sort by one of: {', '.join(kind.sorted_by)}"
        raise ApiProblem(422, f"sort: {name[:100]!r} is no field to sort by", todo=todo)
    known = [row for row in rows if row.get(name) is not None]
    unknown = [row for row in rows if row.get(name) is None]
    known.sort(key=lambda row: row[name], reverse=sort.startswith("-"))
    return known + unknown


def _identity(row: Row, kind: ListKind) -> str:
    return json.dumps([row.get(name) for name in kind.identity], default=str)


def _cursor(query: ListQuery, end: int, last: str) -> str:
    text = json.dumps([end, last, query.digest], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _after(rows: Sequence[Row], kind: ListKind, query: ListQuery) -> int:
    """Where the page of a cursor begins."""
    end, last = _read_cursor(query)
    if 0 < end <= len(rows) and _identity(rows[end - 1], kind) == last:
        return end
    place = next((at for at, row in enumerate(rows, 1) if _identity(row, kind) == last), None)
    return min(max(0, end - 1), len(rows)) if place is None else place  # what came after it has moved up by one


def _read_cursor(query: ListQuery) -> tuple[int, str]:
    given = query.cursor or ""
    try:
        text = base64.b64decode(given + "=" * (-len(given) % 4), b"-_", validate=True)
        found = json.loads(text)
    except (binascii.Error, ValueError, RecursionError):
        raise ApiProblem(422, "cursor: it is none of this API", todo=_BEGIN_AGAIN) from None
    match found:
        case [int(end), str(last), str(digest)] if end >= 0:
            if digest != query.digest:
                raise ApiProblem(422, "cursor: it is of another search or sort", todo=_BEGIN_AGAIN)
            return end, last
        case _:
            raise ApiProblem(422, "cursor: it is none of this API", todo=_BEGIN_AGAIN)


Item = TypeVar("Item")


class PageDocument(TypedDict, Generic[Item]):
    """One page of a list."""

    items: list[Item]
    total: int
    """Rows that the search found, on all pages."""
    next: str | None
    """Cursor of the following page; null on the last one."""


_PRICED = ("cross_rack_bytes_per_s", "usd_per_day", "at_most_cross_rack_bytes_per_s", "at_most_usd_per_day")
RACKS = ListKind(
    ("rack",),
    ("rack",),
    ("rack", "replicas", "leaders", "members", "active_tasks", "standby_tasks", "cross_rack_in_bytes_per_s",
     "cross_rack_out_bytes_per_s", "usd_per_day"),
)  # fmt: skip
BROKERS = ListKind(
    ("broker",),
    ("broker", "host", "rack"),
    ("broker", "rack", "replicas", "leaders", "preferred_leaders", "in_bytes_per_s", "led_bytes"),
)
TOPICS = ListKind(
    ("topic",), ("topic",), ("topic", "partitions", "in_bytes_per_s", "replicate_bytes_per_s", "read_bytes_per_s",
    "read_usd_per_day", "replicate_usd_per_day", *_PRICED),
)  # fmt: skip
PARTITIONS = ListKind(("topic", "partition"), ("topic",), ("topic", "partition", "leader"))
PLACEMENTS = ListKind(("placement",), ("placement",), ("placement",))
COMPARISONS = ListKind(("group",), ("group", "assignor", "kind"), ("group", "kind"))
GROUPS = ListKind(
    ("group",),
    ("group", "assignor", "kind"),
    ("group", "kind", "state", "members", "local_share", "best_local_share", "unknown_share", "gap_partitions",
     "reads", "unknown_reads", "lag_records", "lag_worst_records", "max_task_lag_records", *_PRICED),
)  # fmt: skip
TASKS = ListKind(
    ("task", "role", "process"),
    ("task", "process", "rack", "role"),
    ("task", "role", "process", "rack", "lag_age_ms"),
)
FINDINGS = ListKind(
    ("id",), ("id", "finding", "subject", "sentence", "severity"), ("severity", "finding", "subject", "since_ms", "id")
)
PROPOSALS = ListKind(
    ("id",), ("id", "kind", "sentence", "subject", "reason_text"), ("id", "kind", "created_ms", "expires_ms")
)
VERDICTS = ListKind(("proposal",), ("proposal", "verdict", "reason", "sentence"), ("proposal", "verdict", "until_ms"))
HISTORY = ListKind(
    ("at_ms", "what", "about", "who", "state"),
    ("what", "about", "who", "state", "sentence"),
    ("at_ms", "what", "about", "who", "state"),
)
SETTINGS = ListKind(("setting",), ("setting", "origin"), ("setting", "origin"))
CHECKS = ListKind(
    ("check",), ("check", "sentence", "state"), ("state", "check", "cross_rack_bytes_per_s", "usd_per_day")
)
RULES = ListKind(("about", "rule", "sentence"), ("about", "rule", "answer", "sentence"), ("about", "rule", "answer"))
REPORTS = ListKind(("name",), ("name",), ("name", "bytes", "modified_ms"))


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
