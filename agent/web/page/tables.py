"""Tables of the page: rows sorted, filtered and paged by the query, their cells and tiles; CSV and JSON of all rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from markupsafe import Markup

from agent.values.number_format import in_full
from agent.web.page.environment import query, rendered
from config.foreign_text import csv_text, json_text, listed, safe_text

TableRow = Mapping[str, Any]
"""One row of a document, as ``-o json`` prints it."""
PAGE_ROWS = 50
MOST_ROWS = 200
LONGEST_FILTER = 256
_MOST_VALUE = 100
_MOST_PAGE = 999_999_999


class TableCell(NamedTuple):
    """What a cell shows."""

    words: str | Markup | None
    """None is unknown."""
    href: Markup | None = None
    tone: str = ""
    """A class of the style sheet: ``bad``, ``warn``, ``good``, ``quiet``, ``code``, ``wide``."""
    mark: str = ""
    """A sign before the words, so that the tone is not the only one."""
    hint: str = ""


class TableColumn(NamedTuple):
    """A column: its name in the query and in CSV, its title, and what of a row it shows."""

    name: str
    title: str
    cell: Callable[[TableRow], TableCell]
    value: Callable[[TableRow], Any] | None = None
    """What it is sorted by, and what CSV holds; None: it cannot be sorted, and is in no CSV."""
    is_number: bool = False
    hint: str = ""
    falls: bool = False
    """Whether the first click sorts the largest first."""
    is_sorted: bool = True
    """Whether rows can be sorted by it, where it has a value."""
    beside: Mapping[str, Callable[[TableRow], Any]] = MappingProxyType({})
    """Further figures that its cell shows, such as a bound; each has a column of its own in CSV."""

    @property
    def fields(self) -> Mapping[str, Callable[[TableRow], Any]]:
        """Its columns in CSV."""
        return {} if self.value is None else {self.name: self.value, **self.beside}


def fields_of(*names: str) -> Mapping[str, Callable[[TableRow], Any]]:
    """These fields of a row, by their names."""
    return {name: itemgetter(name) for name in names}


class TableChoice(NamedTuple):
    """A filter with few values, such as a severity."""

    name: str
    title: str
    values: Sequence[str]
    of: Callable[[TableRow], str]
    is_of_rows: bool = False
    """Whether the values are those of the rows, so that another one may have been there a look ago: it fits no row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """A table before the query is applied. ``key`` is its name in the address: the only table of a page has ``""``."""

    title: str
    columns: Sequence[TableColumn]
    rows: Sequence[TableRow]
    key: str = ""
    text: Callable[[TableRow], str] | None = None
    """What the filter searches; None: no filter."""
    choices: Sequence[TableChoice] = ()
    sort: str = ""
    """The column by which it is sorted at first, with ``-`` for the largest first; empty: as the rows come."""
    empty: str = "nothing to show"
    is_unknown: bool = False
    """Whether its rows could not be read, so that no row is not none."""
    unit: str = "row"
    page_rows: int = PAGE_ROWS
    stacks: bool = False
    """Whether a phone shows its rows as stacks of cells, and not as a table that scrolls."""


class TableHead(NamedTuple):
    """A column's head: its title, the link that sorts by it, and how it is sorted now."""

    column: TableColumn
    href: Markup | None
    sorted: str
    """``ascending``, ``descending`` or ``none``, as ``aria-sort`` has it."""


class TableLink(NamedTuple):
    """A link with its words."""

    words: str
    href: Markup


class ChoiceShown(NamedTuple):
    """A filter with few values, and what is chosen."""

    field: str
    title: str
    values: Sequence[str]
    chosen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShown:
    """A table as a template prints it."""

    source: TableSource
    heads: Sequence[TableHead]
    rows: Sequence[Sequence[TableCell]]
    total: int
    found: int
    first: int
    """The number of its first row, from 1; 0 where there is none."""
    last: int
    filter_field: str
    filter_text: str
    choices: Sequence[ChoiceShown]
    kept: Sequence[tuple[str, str]]
    """Other fields of the query, which the filter's form keeps."""
    before: Markup | None
    after: Markup | None
    downloads: Sequence[TableLink]
    cleared: Markup | None
    """The address without the filter; None where nothing is filtered."""
    beyond: int
    """The page that was asked for, where there are not so many; else 0."""


class QueryFault(NamedTuple):
    """A field of the query that means nothing here, as a sentence, and what there is instead."""

    sentence: str
    remedy: str


_FIELDS = ("sort", "page", "rows")


def fields_of_query(source: TableSource) -> tuple[str, ...]:
    """The fields of the query that are about this table."""
    own = (*_FIELDS, *(("q",) if source.text is not None else ()), *(choice.name for choice in source.choices))
    return tuple(f"{_prefix(source)}{name}" for name in own)


def query_fault(source: TableSource, asked: Mapping[str, str]) -> QueryFault | None:
    """The first field about this table whose value means nothing; None where all can be answered."""
    prefix = _prefix(source)
    sorts = [column.name for column in source.columns if column.value is not None and column.is_sorted]
    by = asked.get(f"{prefix}sort", "")
    if by and by.removeprefix("-") not in sorts:
        columns = f"It can be sorted by {in_full(sorts)}, and with - before it the other way round."
        return _fault(f"{prefix}sort", by, f"{source.title} cannot be sorted by that", columns)
    for name, most in (("page", None), ("rows", MOST_ROWS)):
        text = asked.get(f"{prefix}{name}", "")
        if text and not _is_number(text, most):
            bounds = "a number from 1 on" if most is None else f"a number from 1 to {most}"
            return _fault(f"{prefix}{name}", text, f"it is {bounds}", f"Leave {prefix}{name} out, or ask for another.")
    for choice in source.choices:
        wanted = asked.get(f"{prefix}{choice.name}", "")
        if wanted and wanted not in choice.values and not choice.is_of_rows:
            return _fault(
                f"{prefix}{choice.name}", wanted, "there is no such value", f"Its values: {in_full(choice.values)}."
            )
    if len(text := asked.get(f"{prefix}q", "")) > LONGEST_FILTER:
        return QueryFault(
            f"{prefix}q: it has {len(text):,} characters, and at most {LONGEST_FILTER} are searched for",
            "Ask for less.",
        )
    return None


def _fault(name: str, value: str, why: str, remedy: str) -> QueryFault:
    return QueryFault(f"{name}={safe_text(value, _MOST_VALUE)}: {why}", remedy)


def _is_number(text: str, most: int | None) -> bool:
    """Whether it is a number from 1 on; one of very many digits is a page that there is not."""
    return (
        text.isascii()
        and text.isdigit()
        and int(text[:9]) >= 1
        and (most is None or (len(text) < 9 and int(text) <= most))
    )


def _prefix(source: TableSource) -> str:
    return f"{source.key}." if source.key else ""


def shown(source: TableSource, asked: Mapping[str, str]) -> TableShown:
    """The part of a table that the query asks for, in which `query_fault` finds none."""
    prefix = _prefix(source)
    rows, by, page, size = _cut(source, asked, prefix)
    pages = max(1, -(-len(rows) // size))
    part = rows[(page - 1) * size : page * size]
    text, own = _wanted(asked, f"{prefix}q"), _own_fields(source, prefix)
    return TableShown(
        source=source,
        heads=tuple(_head(column, by, asked, prefix) for column in source.columns),
        rows=tuple(tuple(column.cell(row) for column in source.columns) for row in part),
        total=len(source.rows),
        found=len(rows),
        first=(page - 1) * size + 1 if part else 0,
        last=(page - 1) * size + len(part),
        filter_field=f"{prefix}q",
        filter_text=text,
        choices=tuple(_choice(one, asked, prefix) for one in source.choices),
        kept=tuple((name, value) for name, value in asked.items() if name not in own),
        before=_changed(asked, {f"{prefix}page": page - 1 if page > 2 else None}) if page > 1 else None,
        after=_changed(asked, {f"{prefix}page": page + 1}) if page < pages else None,
        downloads=tuple(
            TableLink(words, _changed(asked, {"format": words.lower(), "table": source.key or None}))
            for words in ("CSV", "JSON")
        ),
        cleared=_cleared(asked, own, prefix),
        beyond=wanted if (wanted := _within(asked.get(f"{prefix}page"), 1, _MOST_PAGE)) > pages else 0,
    )


def page_rows(source: TableSource, asked: Mapping[str, str]) -> Sequence[TableRow]:
    """The rows of the page that the query asks for: those that a picture beside the table shows."""
    rows, _, page, size = _cut(source, asked, _prefix(source))
    return rows[(page - 1) * size : page * size]


def _cut(source: TableSource, asked: Mapping[str, str], prefix: str) -> tuple[Sequence[TableRow], str, int, int]:
    """(the rows that the filter leaves in their order, the order, the page, its size)."""
    rows, by = _ordered(source, _filtered(source, asked, prefix), asked.get(f"{prefix}sort") or source.sort)
    size = _within(asked.get(f"{prefix}rows"), source.page_rows, MOST_ROWS)
    return rows, by, _within(asked.get(f"{prefix}page"), 1, max(1, -(-len(rows) // size))), size


def as_csv(source: TableSource, asked: Mapping[str, str]) -> str:
    """All rows that the filter leaves, in their order: figures with all their digits, no formula, unknown as empty."""
    fields = {name: of for column in source.columns for name, of in column.fields.items()}
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow(fields)
    for row in chosen_rows(source, asked):
        writer.writerow([_plain(of(row)) for of in fields.values()])
    return written.getvalue()


def as_json(source: TableSource, asked: Mapping[str, str]) -> str:
    """The same rows as documents, which lose nothing."""
    return json_text(list(chosen_rows(source, asked)), indent=2)


def chosen_rows(source: TableSource, asked: Mapping[str, str]) -> Sequence[TableRow]:
    """All rows that the query's filter leaves, in its order."""
    return _cut(source, asked, _prefix(source))[0]


def _filtered(source: TableSource, asked: Mapping[str, str], prefix: str) -> Sequence[TableRow]:
    rows: Iterable[TableRow] = source.rows
    for choice in source.choices:
        if wanted := asked.get(f"{prefix}{choice.name}"):
            rows = [row for row in rows if choice.of(row) == wanted]
    words = _wanted(asked, f"{prefix}q").casefold().split()
    if not words or source.text is None:
        return list(rows)
    text = source.text
    return [row for row in rows if all(word in text(row).casefold() for word in words)]


def _ordered(source: TableSource, rows: Sequence[TableRow], wanted: str) -> tuple[Sequence[TableRow], str]:
    """The rows in the wanted order, unknown values last in both directions; and the order."""
    name, falls = wanted.removeprefix("-"), wanted.startswith("-")
    column = next((one for one in source.columns if one.name == name and one.is_sorted), None)
    if column is None or column.value is None:
        return rows, ""
    keyed = [(column.value(row), row) for row in rows]
    known = [(value, row) for value, row in keyed if value is not None]
    known.sort(key=lambda one: _sort_key(one[0]), reverse=falls)
    return [row for _, row in known] + [row for value, row in keyed if value is None], wanted


def _sort_key(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


def _head(column: TableColumn, by: str, asked: Mapping[str, str], prefix: str) -> TableHead:
    if column.value is None or not column.is_sorted:
        return TableHead(column, None, "none")
    up, down = column.name, f"-{column.name}"
    order = {up: "ascending", down: "descending"}.get(by, "none")
    following = {up: down, down: up}.get(by, down if column.falls else up)
    return TableHead(column, _changed(asked, {f"{prefix}sort": following, f"{prefix}page": None}), order)


def _choice(choice: TableChoice, asked: Mapping[str, str], prefix: str) -> ChoiceShown:
    field = f"{prefix}{choice.name}"
    wanted = asked.get(field, "")
    gone = (wanted,) if wanted and wanted not in choice.values else ()
    return ChoiceShown(field, choice.title, (*choice.values, *gone), wanted)


def _own_fields(source: TableSource, prefix: str) -> frozenset[str]:
    """Fields that the filter's form sets itself, or that another filter makes void."""
    return frozenset((f"{prefix}q", f"{prefix}page", *(f"{prefix}{choice.name}" for choice in source.choices)))


def _cleared(asked: Mapping[str, str], own: frozenset[str], prefix: str) -> Markup | None:
    if not any(_wanted(asked, name) for name in own - {f"{prefix}page"}):
        return None
    return _changed(asked, dict.fromkeys(own))


def _changed(asked: Mapping[str, str], changes: Mapping[str, object]) -> Markup:
    """The query with these changes; a lone ``?`` where nothing is left, so that the link still leads to this page."""
    return query({**asked, **changes}) or Markup("?")


def _wanted(asked: Mapping[str, str], field: str) -> str:
    return asked.get(field, "").strip()


def _within(text: str | None, otherwise: int, most: int) -> int:
    """A number of the query between 1 and ``most``."""
    return min(int(text[:9]) if text and _is_number(text, None) else otherwise, most)


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value)
    return csv_text(" ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))


def instant_cell(epoch_ms: int) -> TableCell:
    """A time in UTC."""
    return TableCell(rendered("instant.html", ms=epoch_ms))


def severity_cell(word: str) -> TableCell:
    """``critical``, ``warning`` or ``info``."""
    return TableCell(rendered("severity.html", word=word))


MOST_SHOWN = 24
_MOST_WORDS = 12


def replica_tiles(
    brokers: Sequence[object], others: Sequence[object], racks: Mapping[int, str | None], *, is_after: bool
) -> Markup:
    """The list; a broker that the other list does not have is marked as coming or going."""
    tiles = [
        {
            "broker": broker,
            "rack": racks.get(broker) if isinstance(broker, int) else None,
            "new": broker not in others,
            "leads": at == 0,
            "led": bool(others) and others[0] == broker,
        }
        for at, broker in enumerate(brokers[:MOST_SHOWN])
    ]
    return rendered("replica_tiles.html", tiles=tiles, more=max(0, len(brokers) - MOST_SHOWN), is_after=is_after)


def value_words(values: Sequence[object]) -> str:
    """A row of another kind, such as the partitions of a member."""
    return listed([str(value) for value in values], _MOST_WORDS) if values else "none"
