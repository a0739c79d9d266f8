"""One request for a view: the look that it shows, its person, and the answer as HTML, CSV or JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agent.documents.journal import ReportedMoves
from agent.plan.new_partitions import did_you_mean
from agent.simulate.evaluation import StageEvaluation
from agent.values.clock import Clock
from agent.values.number_format import in_full, lasted
from agent.web.access.middleware import SIGN_OUT, csrf_token
from agent.web.access.person import AccessRole
from agent.web.access.person import person_of as signed_in_person
from agent.web.access.request_checks import AccessRefused
from agent.web.agent_view import AgentView, FinishedLook, LoopState
from agent.web.commands import CommandDesk
from agent.web.page.environment import address, rendered
from agent.web.page.look_documents import LookDocuments
from agent.web.page.tables import (
    QueryFault,
    TableShown,
    TableSource,
    as_csv,
    as_json,
    fields_of_query,
    query_fault,
    shown,
)
from config.foreign_text import safe_text


class PersonShown(NamedTuple):
    """A person as pages show it."""

    name: str | None
    """None for a visitor without a name."""
    roles: frozenset[AccessRole] = frozenset()
    sign_out: str = ""
    """Where a form signs out; empty where there is no session to end."""

    @property
    def role_words(self) -> str:
        """The highest role, which includes the others."""
        return next((role.value for role in reversed(AccessRole) if role in self.roles), "no role")

    def may(self, role: AccessRole | str) -> bool:
        """Whether the person has this role; templates name it by its word."""
        return AccessRole(role) in self.roles


def person_shown(request: Request) -> PersonShown:
    """The person of the request."""
    person = signed_in_person(request)
    has_session = bool(getattr(request.state, "session", ""))
    return PersonShown(person.name or None, person.roles, SIGN_OUT if has_session else "")


def form_token(request: Request) -> str:
    """The token that a form of this person sends; empty where the server has no gate, and so takes no form."""
    return csrf_token(request) if getattr(request.state, "gate", None) is not None else ""


Made = TypeVar("Made")
THEME_COOKIE = "rackwise_theme"
THEMES = ("light", "dark")
STALE_POLLS = 3
"""A look older than this many poll.interval is marked as old."""
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_LOCAL_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")
"""A path of this server, never another host."""


class NavigationEntry(NamedTuple):
    """A view in the navigation: its path, its name, and the key that follows ``g``."""

    path: str
    title: str
    key: str


NAVIGATION = (
    NavigationEntry("/", "Overview", "o"),
    NavigationEntry("/racks", "Rack map", "r"),
    NavigationEntry("/groups", "Groups", "g"),
    NavigationEntry("/warmups", "Warm-ups", "w"),
    NavigationEntry("/findings", "Findings", "f"),
    NavigationEntry("/proposals", "Proposals", "p"),
    NavigationEntry("/moves", "Moves", "m"),
    NavigationEntry("/timeline", "Time line", "t"),
    NavigationEntry("/whatif", "What if", "i"),
    NavigationEntry("/reports", "Reports", "e"),
)


class PageHeader(NamedTuple):
    """What every page says first."""

    cluster: str | None
    mode: str
    look_age_ms: int | None
    """None before the first look."""
    stale_ms: int
    """The age from which a look is old."""
    warnings: tuple[str, ...]
    """Why what is shown may be old or in part."""
    notices: tuple[str, ...]
    """What the agent says of mode execute; it does not make the page old."""


@dataclass(frozen=True)
class PageRequest:
    """A request with everything that a view needs."""

    request: Request
    agent: AgentView
    clock: Clock
    documents: LookDocuments | None
    """Those of the look that is shown; None before the first."""
    form: Mapping[str, str] = field(default_factory=dict)
    """The fields of a form that was sent; of one that is named twice, the last."""
    desk: CommandDesk | None = None
    """Where commands are sent; None where this server takes none."""
    asks: PageView | None = None
    """The view that was asked for."""

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The query's fields; of one that is named twice, the last."""
        return dict(self.request.query_params.items())

    @cached_property
    def person(self) -> PersonShown:
        """The person of the request."""
        return person_shown(self.request)

    @property
    def csrf_token(self) -> str:
        """The token that a form of this page sends."""
        return form_token(self.request)

    @property
    def path(self) -> str:
        """The path of this page."""
        return self.request.url.path

    @property
    def here(self) -> str:
        """The path and query of this page."""
        return self.path + (f"?{self.request.url.query}" if self.request.url.query else "")

    @property
    def here_link(self) -> Markup:
        """The same, for an attribute."""
        return escape(self.here)

    @property
    def view(self) -> str:
        """``table`` where tables stand for the pictures; else empty."""
        return "table" if self.query.get("view") == "table" else ""

    @property
    def finished(self) -> FinishedLook | None:
        """The look that is shown; None before the first."""
        return None if self.documents is None else self.documents.look

    @property
    def moves(self) -> ReportedMoves:
        """Reassignments and copies of the look that is shown; none before the first."""
        return ReportedMoves(0) if self.finished is None else self.finished.moves

    @property
    def look(self) -> StageEvaluation:
        """The stages' answers for the look that is shown. Raises LookupError before the first."""
        if self.finished is None:
            raise LookupError("no look has finished yet")
        return self.finished.evaluation

    def made(self, key: Hashable, maker: Callable[[StageEvaluation], Made]) -> Made:
        """What ``maker`` makes of the look that is shown, made once per look and key. Raises LookupError before it."""
        if self.documents is None:
            raise LookupError("no look has finished yet")
        return self.documents.made(key, maker)

    def page(
        self, template: str, title: str, *, tables: Sequence[TableSource] = (), status: int = 200, **values: Any
    ) -> Response:
        """The view as HTML; or, where the query asks for a format, one of its tables as CSV or JSON.

        The template gets ``tables`` by their keys, ``asked`` (this) and ``values``. Raises WrongQuery for a field of
        the query that means nothing here.
        """
        self.check_query(tables)
        if (wanted := self.query.get("format")) in _FORMATS:
            return _file(wanted, tables, self.query, title)
        return self._rendered(template, title, {one.key: shown(one, self.query) for one in tables}, status, values)

    def check_query(self, tables: Sequence[TableSource] = ()) -> None:
        """Raises WrongQuery for what the view and these tables of it cannot answer: ignored, it changed the answer."""
        if self.asks is None or self.request.method == "POST":
            return
        found = _unknown_field(self.request, self.asks, tables) or _twice(self.request, self.asks)
        found = found or next(filter(None, (_fault_of(name, self.query[name], self.asks) for name in self.query)), None)
        if found is None and "table" in self.query and "format" not in self.query:
            found = QueryFault("table: it names the table of a file, and format is missing", "Add format=csv or json.")
        found = found or next(filter(None, (query_fault(table, self.query) for table in tables)), None)
        if found is not None:
            raise WrongQuery(found)

    def _rendered(
        self, template: str, title: str, tables: Mapping[str, TableShown], status: int, values: Mapping[str, Any]
    ) -> Response:
        body = rendered(
            template,
            asked=self,
            title=title,
            header=self._header(),
            navigation=NAVIGATION,
            theme=self._theme(),
            tables=tables,
            person=self.person,
            **values,
        )
        return HTMLResponse(str(body), status_code=status, headers={**_HEADERS, "vary": "cookie"})

    def problem(self, status: int, title: str, sentence: str, remedy: str = "") -> Response:
        """A page that says what is wrong, why, and what to do."""
        return self._rendered("problem.html", title, {}, status, {"sentence": sentence, "remedy": remedy})

    def wrong_query(self, fault: QueryFault) -> Response:
        """What is wrong with the query: a page, and one line where a file was asked for."""
        if "format" in self.query:
            return Response(f"{fault.sentence}. {fault.remedy}\n", status_code=400, media_type="text/plain")
        return self.problem(400, "Not understood", f"{fault.sentence}.", fault.remedy)

    def preparing(self, sentence: str) -> Response:
        """A page that says what is being made; it asks again by itself."""
        return self._rendered("preparing.html", "One moment", {}, 200, {"sentence": sentence})

    def link_with(self, **changes: object) -> Markup:
        """This page's address with another query."""
        return address(self.path, **{**self.query, **changes})

    def _theme(self) -> str:
        theme = self.request.cookies.get(THEME_COOKIE, "")
        return theme if theme in THEMES else ""

    def _header(self) -> PageHeader:
        state, now = self.agent.state, self.clock()
        stale_ms = stale_after_ms(self.agent)
        age_ms = None if state.last_success is None else max(0, now.monotonic_ms - state.last_success.monotonic_ms)
        newest = self.agent.look()
        if age_ms is not None and newest is not None and self.finished is not None:
            age_ms += max(0, newest.taken_ms - self.finished.taken_ms)  # while the newest one's documents are made
        return PageHeader(
            cluster=None if self.finished is None else self.finished.evaluation.snapshot.cluster_id,
            mode=self.agent.settings.settings.mode,
            look_age_ms=age_ms,
            stale_ms=stale_ms,
            warnings=_warnings(state, age_ms, stale_ms),
            notices=state.acting.notices if state.acting is not None else (),
        )


def stale_after_ms(agent: AgentView) -> int:
    """The age from which a look is old."""
    return STALE_POLLS * agent.settings.settings.poll.interval_ms


class PageView(NamedTuple):
    """A view: its path and what answers a request for it."""

    path: str
    answer: Callable[[PageRequest], Response]
    methods: tuple[str, ...] = ("GET",)
    needs_look: bool = True
    """Whether it has nothing to show before the first look."""
    is_of_all: bool = False
    """Whether it shows all groups, racks or topics, so that the documents of very many groups are made first."""
    fields: Mapping[str, Sequence[str]] = MappingProxyType({})
    """Fields of the query that it has, besides those of any view, with the values that each takes; none: any."""
    at_times: Sequence[str] = ()
    """Keys of tables that it has at times: fields about one that is not there now are right."""
    has_questions: bool = False
    """Whether other fields are questions, which the view judges itself, and which may be there several times."""


class WrongQuery(Exception):  # noqa: N818 (it is an answer)
    """A query that a view cannot answer."""

    def __init__(self, fault: QueryFault) -> None:
        super().__init__(fault.sentence)
        self.fault = fault


_ANY_VIEW: Mapping[str, Sequence[str]] = {"format": ("csv", "json"), "table": (), "view": ("table",), "told": ()}
"""Fields that every view has, with their values."""
_MOST_NAME = 100


def _unknown_field(request: Request, view: PageView, tables: Sequence[TableSource]) -> QueryFault | None:
    known = {*_ANY_VIEW, *view.fields, *(name for table in tables for name in fields_of_query(table))}
    keys, there = {*view.at_times, *(table.key for table in tables)}, {table.key for table in tables}
    for name in request.query_params:
        key, dot, _ = name.partition(".")
        if name in known or (dot and key in keys - there) or (view.has_questions and not (dot and key in there)):
            continue
        shown_name = safe_text(name, _MOST_NAME) or "a field without a name"
        near = did_you_mean(name[:_MOST_NAME], known)
        return QueryFault(f"{shown_name}: this page has no such field", f"{near}It has {in_full(sorted(known))}.")
    return None


def _twice(request: Request, view: PageView) -> QueryFault | None:
    counts = Counter(name for name, _ in request.query_params.multi_items())
    once = (*_ANY_VIEW, *view.fields) if view.has_questions else counts
    found = next((name for name in once if counts[name] > 1), None)
    if found is None:
        return None
    return QueryFault(f"{found}: it has one value, and {counts[found]} are asked for", f"Keep one {found}.")


def _fault_of(name: str, value: str, view: PageView) -> QueryFault | None:
    """Of a field with few values; an empty one is as none."""
    values = {**_ANY_VIEW, **view.fields}.get(name, ())
    if not values or not value or value in values:
        return None
    return QueryFault(
        f"{name}={safe_text(value, _MOST_NAME)}: there is no such value", f"Its values: {in_full(values)}."
    )


def _warnings(state: LoopState, age_ms: int | None, stale_ms: int) -> tuple[str, ...]:
    found = []
    if age_ms is None:
        found.append("No look has finished yet, so nothing is known of the cluster.")
    elif age_ms > stale_ms:
        found.append(f"The last finished look was {lasted(age_ms)} ago. Everything below is that old.")
    if state.failure is not None:
        found.append(f"The last look failed: {state.failure.sentence}")
    if state.stopping:
        found.append("The agent is stopping.")
    return tuple(found)


_FORMATS = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
_FILE_NAME = re.compile(r"[^a-z0-9]+")


def _file(wanted: str, tables: Sequence[TableSource], asked: Mapping[str, str], title: str) -> Response:
    """One table of the page as a file."""
    table = next((one for one in tables if one.key == asked.get("table", "")), None)
    if table is None:
        return Response(f"{_no_table(tables)}\n", status_code=404, media_type="text/plain")
    content = as_csv(table, asked) if wanted == "csv" else as_json(table, asked)
    name = _FILE_NAME.sub("-", f"{title} {table.key}".lower()).strip("-")
    headers = {**_HEADERS, "content-disposition": f'attachment; filename="rackwise-{name}.{wanted}"'}
    return Response(content, media_type=_FORMATS[wanted], headers=headers)


def _no_table(tables: Sequence[TableSource]) -> str:
    """Why there is no such file; a table without a key is that of the address without ``table``."""
    if not tables:
        return "this page has no table"
    keys = [one.key for one in tables if one.key]
    named = f"its tables are {', '.join(keys)}" if keys else "leave table out, as it has only one"
    return f"this page has no such table; {named}"


def theme_answer(request: Request) -> Response:
    """Keeps the wanted theme in a cookie and leads back; without script, too. Raises AccessRefused for no theme."""
    back = request.query_params.get("back", "/")
    wanted = request.query_params.get("set", "")
    if wanted not in (*THEMES, "auto"):
        raise AccessRefused(
            400, f"set={wanted}: there is no such theme", todo=f"Its values: {in_full((*THEMES, 'auto'))}."
        )
    answer = RedirectResponse(back if _LOCAL_PATH.fullmatch(back) else "/", status_code=303, headers=_HEADERS)
    if wanted in THEMES:
        answer.set_cookie(THEME_COOKIE, wanted, max_age=31_536_000, path="/", samesite="lax")
    else:
        answer.delete_cookie(THEME_COOKIE, path="/")
    return answer
