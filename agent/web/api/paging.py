"""Lists in pages: search, sort, and a cursor that names the last row sent. Pure; the work is bounded by the rows.

A cursor goes on after the row that it names, wherever that is by now: while the rows are the same, none comes twice
and none is missed. Where the row is gone, the page begins with the one that came after it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from fastapi import Query
from typing_extensions import TypedDict

from agent.web.api.problems import ApiProblem

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
