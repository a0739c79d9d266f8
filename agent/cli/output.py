"""Output of commands: answers on stdout as table, JSON, YAML or CSV; messages and progress on stderr.

A table on a TTY, JSON elsewhere, unless ``-o`` says otherwise. Every table has the same rows as its JSON, but for the
end of a long one, which is counted. All text goes through `config.foreign_text`: names are foreign. Nothing else in
this package writes to a stream.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from enum import Enum, StrEnum
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

from config.foreign_text import MOST_ITEMS, csv_text, harmless, json_text, listed, shortened, yaml_text
from config.secrets import hidden, is_secret_name, masked


def mend() -> None:
    """Streams that were closed before the start lead nowhere, and no character makes one fail."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 open as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def redirect_to_null(stream: io.TextIOBase | object) -> None:
    """Drop what is still to be written to a stream, and all that follows."""
    if isinstance(stream, io.TextIOWrapper):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def let_go(stream: io.TextIOBase | object) -> None:
    """What is still to be written and cannot be is dropped: Python itself would fail on it at the very end."""
    if not isinstance(stream, io.TextIOWrapper):
        return
    try:
        stream.flush()
    except OSError:
        redirect_to_null(stream)
    except ValueError:  # it is closed
        pass


# Commands that a sentence names, with the options of this run, so that they run as they are printed.
#
# Sentences of the product name a command without a cluster. What a person sees of them on the command line gets the
# options that were given to this command: brokers, files, settings. Secrets are never repeated.

_LOOKS = ("status", "racks", "groups", "topics", "doctor", "plan", "explain", "simulate")
"""Commands that take ``--replay``."""
_OTHERS = (
    "top", "proposals approve", "proposals apply", "proposals cancel", "proposals history", "proposals list",
    "proposals", "reassign status", "reassign verify", "reassign cancel", "reassign rollback", "pause", "resume",
    "config check", "config show", "run",
)  # fmt: skip
_COMMAND = re.compile(rf"(?<=\brackwise )(?P<command>{'|'.join((*_OTHERS, *_LOOKS))})(?![\w-])(?! -[bc] )")
_PROGRAMS = re.compile(r"pem|rack\.locator\.properties|\.argv")
"""Settings whose values may hold a secret under any name."""


class _InForce:
    """The options of the command that runs in this process."""

    common: tuple[str, ...] = ()
    replay: tuple[str, ...] = ()
    agent: str | None = None
    """The agent that is asked instead of a cluster."""
    answered: frozenset[str] = frozenset()
    """Commands that it answers."""


def forget() -> None:
    """A new command begins."""
    _InForce.common, _InForce.replay, _InForce.agent = (), (), None


def remember(
    config: Iterable[Path], properties: Iterable[Path], assignments: Iterable[str], bootstrap: str | None
) -> None:
    """The options of this command that lead to its settings."""
    given: list[str] = [] if bootstrap is None else ["-b", bootstrap]
    for option, values in (("-c", config), ("--properties", properties)):
        given += [word for value in values for word in (option, str(value))]
    given += [word for one in assignments if _is_open(one) for word in ("--set", one)]
    _InForce.common = tuple(given)


def _is_open(assignment: str) -> bool:
    name, _, value = assignment.partition("=")
    return not is_secret_name(name) and not _PROGRAMS.search(name) and masked(value) == value


def remember_replay(path: Path) -> None:
    """The telemetry file that this command shows instead of a cluster."""
    _InForce.replay = ("--replay", str(path))


def remember_agent(url: str, answered: frozenset[str]) -> None:
    """The agent that this command asks, and the commands that an agent answers."""
    _InForce.agent, _InForce.answered = url, answered


def runnable(text: str) -> str:
    """The text with the options of this run in every command of rackwise that it names."""
    if not _InForce.common and not _InForce.replay and _InForce.agent is None:
        return text
    return _COMMAND.sub(_with_options, text)


def _with_options(found: re.Match[str]) -> str:
    command = found["command"]
    if _InForce.agent is not None:
        return f"--agent {shlex.quote(_InForce.agent)} {command}" if command in _InForce.answered else command
    options: Sequence[str] = _InForce.common
    if _InForce.replay:
        options = _InForce.replay if command in _LOOKS else ()
    return shlex.join([*command.split(), *options])


MOST_ROWS = 200
"""Rows of a table; the other forms have all of them."""
PIPED_WIDTH = 160
"""Columns of a table that goes to no terminal, unless COLUMNS says otherwise."""
NAMES_SHOWN = 10
"""Names of groups, topics or members in one line; ``--all`` lists the others."""


class OutputFormat(StrEnum):
    """The forms of an answer."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"


class CellMark(Enum):
    """The mark of a table cell without a value. In JSON and YAML all of them are null.

    None is unknown, and a field that a row does not have is not applicable; else ``emit(..., absent=...)`` says what
    None means in a column, or the row itself holds a mark.
    """

    NONE = "-"
    """It is known that there is none: no leader, no throttle, no defect."""
    NOT_APPLICABLE = ""
    """The question does not arise: the assignor of a group that assigns no partitions."""


UNKNOWN = "?"
"""How a table shows None: there is a value, and it is not known. Never a zero. In CSV the field is empty."""
OutputRow = Mapping[str, Any]


def chosen(asked: OutputFormat | None) -> OutputFormat:
    """The requested format; else a table on a TTY and JSON elsewhere."""
    return asked or (OutputFormat.TABLE if sys.stdout.isatty() else OutputFormat.JSON)


def emit(
    rows: Sequence[OutputRow],
    columns: Sequence[str],
    asked: OutputFormat | None,
    *,
    title: str | None = None,
    empty: str = "nothing to show",
    absent: Mapping[str, CellMark] = MappingProxyType({}),
    every: bool = False,
    most: int = MOST_ROWS,
) -> None:
    """Print rows; ``columns`` names and orders what a table and CSV show, the other forms carry every field.

    A table has at most ``most`` rows, and short texts and lists in them; it names what is left out. With ``every`` it
    is whole.
    """
    match chosen(asked):
        case OutputFormat.TABLE:
            _table(rows, columns, absent, title, empty, None if every else most)
        case OutputFormat.JSON:
            _write(json_text(list(rows), 2, _plain))
        case OutputFormat.JSONL:
            for row in rows:
                _write(json_text(row, None, _plain))
        case OutputFormat.YAML:
            _write(_yaml(list(rows)))
        case OutputFormat.CSV:
            page = StringIO()
            writer = csv.writer(page, lineterminator="\n")
            writer.writerow([csv_text(column) for column in columns])
            writer.writerows([_csv_cell(_value(row, column, absent)) for column in columns] for row in rows)
            _write(page.getvalue().removesuffix("\n"))


def emit_one(
    document: OutputRow,
    asked: OutputFormat | None,
    columns: Sequence[str] = (),
    *,
    absent: Mapping[str, CellMark] = MappingProxyType({}),
    every: bool = False,
) -> None:
    """Print one document; as a table it is a list of its fields."""
    form = chosen(asked)
    if form in {OutputFormat.TABLE, OutputFormat.CSV}:
        names = columns or tuple(document)
        words = names if form is OutputFormat.CSV else [name.replace("_", " ") for name in names]
        fields = [
            {"field": word, "value": _value(document, name, absent)} for word, name in zip(words, names, strict=True)
        ]
        emit(fields, ("field", "value"), form, every=every)
    elif form is OutputFormat.YAML:
        _write(_yaml(document))
    else:
        _write(json_text(document, 2 if form is OutputFormat.JSON else None, _plain))


def emit_line(text: str = "") -> None:
    """Print one line of an answer that is no table."""
    _write(shortened(text))


def emit_gap(rows: Sized) -> None:
    """Print an empty line before rows, where there are any."""
    if rows:
        emit_line()


_COPIED = 10
"""Blanks before a line that is to be copied."""


def emit_command(command: str) -> None:
    """Print a command or a setting as one whole line, to be copied: cut it would be another one."""
    _write(f"{' ' * _COPIED}> {harmless(runnable(command))}")


def emit_text(text: str = "", *, indent: int = 0, mark: str = "") -> None:
    """Print a sentence of an answer that is no table: folded at blanks, all its lines indented.

    ``mark`` is written into the indent of the first line.
    """
    from agent.cli.table_layout import paragraph

    for number, line in enumerate(paragraph(shortened(runnable(text)), _width(), indent=" " * indent)):
        _write(line if number else mark + line[len(mark) :])


def emit_document(text: str) -> None:
    """Print a text of many lines that rackwise itself wrote: an example, a table of the documentation."""
    for line in text.rstrip("\n").split("\n"):
        _write(harmless(line))


def emit_json(document: object, indent: int | None = None) -> None:
    """Print one document as JSON, whatever form was asked for."""
    _write(json_text(document, indent, _plain))


def say(text: str) -> None:
    """Talk to the person: on stderr, so that stdout stays data. Folded in a terminal."""
    line = shortened(hidden(runnable(text)))
    if _talks_to_a_terminal():
        from agent.cli.table_layout import paragraph

        words = line.lstrip(" ")
        line = "\n".join(paragraph(words, _columns(sys.stderr), indent=" " * (len(line) - len(words))))
    _print(line, sys.stderr, flush=True)


def _talks_to_a_terminal() -> bool:
    return sys.stderr.isatty()


def cell(value: object) -> str:
    """One value as a table shows it, harmless and short: of a list the first items."""
    return _shown(value, shortened, MOST_ITEMS)


def _write(line: str) -> None:
    _print(line, sys.stdout)


def _print(text: str, stream: TextIO, *, flush: bool = False) -> None:
    """What reads it (`| head`) may have enough: then the command goes on, as its exit code is an answer too."""
    try:
        print(text, file=stream, flush=flush)
    except BrokenPipeError:
        redirect_to_null(stream)


def _value(row: OutputRow, column: str, absent: Mapping[str, CellMark]) -> object:
    value = row.get(column, CellMark.NOT_APPLICABLE)
    return absent.get(column) if value is None else value


def _plain(value: object) -> str | None:
    """What JSON has no word for: a mark is null, everything else its text."""
    return None if isinstance(value, CellMark) else str(value)


def _yaml(document: object) -> str:
    return yaml_text(json.loads(json.dumps(document, default=_plain)))


def _csv_cell(value: object) -> str:
    """One value as CSV has it: whole, a number as a machine reads it, text that is no formula; without one, empty."""
    if value is None or isinstance(value, CellMark) or (isinstance(value, Collection) and not value):
        return ""
    return repr(value) if isinstance(value, float) else csv_text(_shown(value, str, None))


def _shown(value: object, text: Callable[[str], str], most: int | None) -> str:
    match value:
        case None:
            return UNKNOWN
        case CellMark():
            return value.value
        case bool():
            return "yes" if value else "no"
        case float():
            return _number(value)
        case list() | tuple() | set() | frozenset() | Mapping():
            return _listed(value, text, most) or CellMark.NONE.value
    return text(str(value))


def _number(value: float) -> str:
    if 0 < abs(value) < 1:
        return f"{value:.3g}"  # a price of $0.02 is not 0.0
    return f"{value:,.1f}" if not value.is_integer() else f"{int(value):,}"


def _listed(values: Collection[object], text: Callable[[str], str], most: int | None) -> str:
    if isinstance(values, Mapping):
        pairs = [f"{text(str(key))}: {_shown(item, text, most)}" for key, item in values.items()]
        return listed(pairs, most, between="; ")
    return listed([_shown(item, text, most) for item in values], most)


def _table(
    rows: Sequence[OutputRow],
    columns: Sequence[str],
    absent: Mapping[str, CellMark],
    title: str | None,
    empty: str,
    most: int | None,
) -> None:
    from agent.cli.table_layout import lay_out

    if not rows:
        say(empty)
        return
    values = [[_value(row, column, absent) for column in columns] for row in rows[:most]]
    cells = [[_table_cell(value, whole=most is None) for value in row] for row in values]
    right = [_is_numeric(column) for column in zip(*values, strict=True)]
    laid = lay_out([harmless(column) for column in columns], cells, right, _width())
    bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    if title:
        emit_text(title)
    for line in laid.same:
        _write(line)
    for line in laid.heads:
        _write(f"\x1b[1m{line}\x1b[0m" if bold else line)
    for line in laid.body:
        _write(line)
    if len(values) < len(rows):
        say(f"… {len(rows) - len(values):,} more: --all or -o json")


def _is_numeric(column: Sequence[object]) -> bool:
    """Whether it stands at the right: it has numbers and nothing else."""
    values = [value for value in column if not isinstance(value, CellMark | None)]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def _table_cell(value: object, *, whole: bool) -> str:
    if isinstance(value, str):
        value = runnable(value)
    return _shown(value, harmless, None) if whole else shortened(cell(value))


def _width() -> int:
    """Columns of the terminal, or what COLUMNS says; `PIPED_WIDTH` where there is neither."""
    return _columns(sys.stdout)


def _columns(stream: TextIO) -> int:
    """Columns of the terminal that a stream leads to; what COLUMNS says comes first."""
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named):
        return int(named)
    try:
        return os.get_terminal_size(stream.fileno()).columns or PIPED_WIDTH
    except (OSError, ValueError):  # no terminal, or no file at all
        return PIPED_WIDTH
