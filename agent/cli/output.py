"""Answers on stdout in the form that was asked for; talk and progress on stderr.

A table on a TTY, JSON elsewhere, unless ``-o`` says otherwise. Every table has the same rows as its JSON.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any


class Format(StrEnum):
    """The forms of an answer."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"


Row = Mapping[str, Any]


def chosen(asked: Format | None) -> Format:
    """What was asked for; else a table on a TTY and JSON elsewhere."""
    return asked or (Format.TABLE if sys.stdout.isatty() else Format.JSON)


def emit(
    rows: Sequence[Row],
    columns: Sequence[str],
    asked: Format | None,
    *,
    title: str | None = None,
    empty: str = "nothing to show",
) -> None:
    """Print rows; ``columns`` names and orders what a table and CSV show, the other forms carry every field."""
    match chosen(asked):
        case Format.TABLE:
            _table(rows, columns, title, empty)
        case Format.JSON:
            print(json.dumps(list(rows), indent=2, ensure_ascii=False, default=str))
        case Format.JSONL:
            for row in rows:
                print(json.dumps(row, ensure_ascii=False, default=str))
        case Format.YAML:
            _yaml(list(rows))
        case Format.CSV:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([cell(row.get(column)) for column in columns] for row in rows)


def emit_one(document: Row, asked: Format | None, columns: Sequence[str] = ()) -> None:
    """Print one document; as a table it is a list of its fields."""
    form = chosen(asked)
    if form in {Format.TABLE, Format.CSV}:
        names = columns or tuple(document)
        emit([{"field": name, "value": cell(document.get(name))} for name in names], ("field", "value"), form)
    elif form is Format.YAML:
        _yaml(document)
    else:
        print(json.dumps(document, indent=2 if form is Format.JSON else None, ensure_ascii=False, default=str))


def say(text: str) -> None:
    """Talk to the person: on stderr, so that stdout stays data."""
    print(text, file=sys.stderr, flush=True)


def cell(value: object) -> str:
    """One value as a table or CSV shows it; unknown is a question mark, never a zero."""
    match value:
        case None:
            return "?"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:,.1f}" if value != int(value) else f"{int(value):,}"
        case list() | tuple() | set() | frozenset():
            return ", ".join(cell(item) for item in value) or "-"
        case Mapping():
            return ", ".join(f"{key}={cell(item)}" for key, item in value.items()) or "-"
        case _:
            return str(value)


def _table(rows: Sequence[Row], columns: Sequence[str], title: str | None, empty: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        say(empty)
        return
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        numeric = all(isinstance(row.get(column), int | float) or row.get(column) is None for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        # Text, not markup: names of groups and members are foreign and may hold brackets.
        table.add_row(*(Text(cell(row.get(column))) for column in columns))
    console = Console(width=None if sys.stdout.isatty() else 160, soft_wrap=False)
    console.print(table)


def _yaml(document: object) -> None:
    import yaml

    plain = json.loads(json.dumps(document, default=str))
    print(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).rstrip())
