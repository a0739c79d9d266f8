"""Which columns give way when a table is wider than its room? Lines of a table, of records, of a paragraph. Pure.

Order, until it fits: heads fold; columns with one value in all rows fold at blanks; so do sentences, the widest first;
what is the same in all rows is told once, above; all but ids fold within words; ids that are longer than most in their
column break their row instead; each row becomes a block of its own. An id is folded only where it is longer than the
whole width. Nothing is cut here: text comes in short and harmless.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from config.foreign_text import is_mark

IDS = frozenset(
    {
        "about", "bootstrap_servers", "broker", "brokers", "client_id", "cluster", "group", "host", "id", "member",
        "name", "partition", "plan", "process", "rack", "setting", "subject", "task", "topic",
    }
)  # fmt: skip
"""Columns that hold what a person copies, or looks for: their cells stay in one piece."""
LEAST = 40
"""No table is laid out for less."""
_GAP = "  "
_SENTENCE = 24
"""A column of sentences is not made narrower while another way is left."""
_FOLDED = 10
"""Nor is one that folds within words."""
_BLANK = re.compile(" (?!%)")
"""Where a line may fold: a number keeps its per cent."""
_PUNCTUATION = frozenset("-_./:,;=()&?")


class Laid(NamedTuple):
    """A table as lines without line ends."""

    same: tuple[str, ...]
    """What is the same in all rows, where there was no room for it in each."""
    heads: tuple[str, ...]
    body: tuple[str, ...]


class _Column(NamedTuple):
    """One column, and how wide it would be, from best to worst."""

    place: int
    name: str
    is_id: bool
    is_constant: bool
    is_right: bool
    cells: int
    """Of its widest cell."""
    words: int
    """Of its widest word, the head's included."""


def lay_out(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], width: int) -> Laid:
    """The lines of a table in ``width`` columns; ``right``: whether a column stands at the right, as numbers do."""
    width = max(width, LEAST)
    found = [
        _column(place, name, [row[place] for row in rows], is_right=right[place]) for place, name in enumerate(columns)
    ]
    widths = _fitting(found, width)
    if widths is not None:
        return Laid((), *_table(found, rows, widths))
    same = sorted((column for column in found if column.is_constant), key=lambda column: (-column.cells, column.place))
    for last in range(1, len(same) + 1):
        varying = [column for column in found if column not in same[:last]]
        widths = _fitting(varying, width, within_words=last == len(same))
        if varying and widths is not None:
            return Laid(tuple(_same(sorted(same[:last]), rows, width)), *_table(varying, rows, widths))
    if not same and (widths := _fitting(found, width, within_words=True)) is not None:
        return Laid((), *_table(found, rows, widths))
    return _with_long_ids(found, rows, width) or Laid((), (), tuple(_blocks(found, rows, width)))


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` columns, folded at blanks; a word that is longer is folded at its punctuation."""
    if text_width(text) <= width:
        return [text]
    lines: list[str] = []
    line: str | None = None
    for word in _BLANK.split(text):
        if line is not None and text_width(line) + 1 + text_width(word) <= width:
            line = f"{line} {word}"
            continue
        if line is not None:
            lines.append(line)
        *whole, line = _pieces(word, width)
        lines += whole
    return [*lines, line or ""]


def paragraph(text: str, width: int, *, indent: str = "") -> list[str]:
    """A sentence as lines, all of them indented."""
    return [f"{indent}{line}".rstrip() for line in wrap(text, max(width, LEAST) - len(indent))]


def text_width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if is_mark(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _column(place: int, name: str, cells: Sequence[str], *, is_right: bool) -> _Column:
    head = _head(name)
    return _Column(
        place,
        name,
        is_id=name in IDS,
        is_constant=len(cells) > 1 and len(set(cells)) == 1,
        is_right=is_right,
        cells=max(map(text_width, cells), default=0),
        words=max((text_width(word) for text in (*set(cells), head) for word in _BLANK.split(text)), default=0),
    )


def _head(name: str) -> str:
    return name.replace("_", " ")


def _fitting(columns: Sequence[_Column], width: int, *, within_words: bool = False) -> list[int] | None:
    """The widths of the columns so that they fit side by side; None where they cannot."""
    room = width - len(_GAP) * (len(columns) - 1)
    widths = [max(column.cells, text_width(_head(column.name))) for column in columns]
    heads = [max(column.cells, *map(text_width, _head(column.name).split(" "))) for column in columns]
    both = list(zip(columns, heads, strict=True))
    steps = [
        heads,
        [min(head, column.words) if column.is_constant and not column.is_id else head for column, head in both],
        [_least(column, head) for column, head in both],
        [head if column.is_id else min(head, column.words) for column, head in both],
    ]
    if within_words:
        steps.append([head if column.is_id or column.is_right else min(head, _FOLDED) for column, head in both])
    for least in steps:
        widths = _squeezed(widths, least, room)
        if sum(widths) <= room:
            return widths
    return None


def _least(column: _Column, head: int) -> int:
    """How narrow a column may become where it folds at blanks."""
    if column.is_id:
        return head
    return min(head, max(column.words, _SENTENCE if column.cells > _SENTENCE else 0))


def _squeezed(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths, the widest made narrower until they fit or none can become narrower."""
    found = list(widths)
    while (excess := sum(found) - room) > 0:
        able = [place for place, size in enumerate(found) if size > least[place]]
        if not able:
            return found
        widest = max(able, key=lambda place: (found[place], place))
        others = [found[place] for place in able if place != widest]
        next_to = min(max(others, default=0), found[widest] - 1)
        found[widest] = max(found[widest] - excess, least[widest], next_to)
    return found


def _table(
    columns: Sequence[_Column], rows: Sequence[Sequence[str]], widths: Sequence[int]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    heads = _lines(columns, [_head(column.name) for column in columns], widths)
    body = (line for row in rows for line in _lines(columns, [row[column.place] for column in columns], widths))
    return tuple(heads), tuple(body)


def _with_long_ids(columns: Sequence[_Column], rows: Sequence[Sequence[str]], width: int) -> Laid | None:
    """A table for most ids; the row of a longer one breaks after it. None where most ids are too long."""
    usual = [_usual(column, rows) for column in columns]
    same = [column for column in usual if column.is_constant]
    for shown in (usual, [column for column in usual if not column.is_constant]):
        widths = _fitting(shown, width, within_words=True) if shown else None
        if widths is not None:
            heads = tuple(_lines(shown, [_head(column.name) for column in shown], widths))
            body = (line for row in rows for line in _broken(shown, row, widths, width))
            return Laid(() if shown is usual else tuple(_same(same, rows, width)), heads, tuple(body))
    return None


def _usual(column: _Column, rows: Sequence[Sequence[str]]) -> _Column:
    """The column without the widest quarter of its ids."""
    if not column.is_id:
        return column
    sizes = sorted(text_width(row[column.place]) for row in rows)
    widest = sizes[(len(sizes) - 1) * 3 // 4]
    return column._replace(cells=widest, words=min(column.words, widest))


def _broken(columns: Sequence[_Column], row: Sequence[str], widths: Sequence[int], width: int) -> Iterator[str]:
    """The lines of a row: a new one begins after each id that has no room in its column."""
    cells = [row[column.place] for column in columns]
    begun = [""] * len(cells)
    for place, (column, cell) in enumerate(zip(columns, cells, strict=True)):
        if not column.is_id or text_width(cell) <= widths[place]:
            begun[place] = cell
            continue
        yield from (line for line in _lines(columns, begun, widths) if line)
        begun = [""] * len(cells)
        indent = min(sum(widths[:place]) + len(_GAP) * place, max(0, width - text_width(cell)))
        yield from (f"{' ' * indent}{line}" for line in wrap(cell, width - indent))
    yield from (line for line in _lines(columns, begun, widths) if line)


def _lines(columns: Sequence[_Column], cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """The lines of one row: as many as its highest cell has."""
    folded = [wrap(cell, size) for cell, size in zip(cells, widths, strict=True)]
    for number in range(max(map(len, folded), default=0)):
        parts = [lines[number] if number < len(lines) else "" for lines in folded]
        yield _GAP.join(
            " " * (size - text_width(part)) + part if column.is_right else part + " " * (size - text_width(part))
            for part, size, column in zip(parts, widths, columns, strict=True)
        ).rstrip()


def _same(columns: Iterable[_Column], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    told = [f"{_head(column.name)} {rows[0][column.place]}" for column in columns if rows[0][column.place]]
    if told:
        yield from paragraph(f"in every row: {'; '.join(told)}", width)


def _blocks(columns: Sequence[_Column], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Each row by itself, a line for each of its cells that says something."""
    label = max(text_width(_head(column.name)) for column in columns)
    for number, row in enumerate(rows):
        if number:
            yield ""
        for column in columns:
            for place, line in enumerate(wrap(row[column.place], width - label - len(_GAP))):
                if row[column.place]:
                    yield f"{'' if place else _head(column.name):<{label}}{_GAP}{line}".rstrip()


def _pieces(word: str, width: int) -> list[str]:
    """A word in parts that fit."""
    parts: list[str] = []
    while text_width(word) > width:
        size = _longest(word, width)
        cut = next((end for end in range(size, size // 2, -1) if word[end - 1] in _PUNCTUATION), size)
        parts.append(word[:cut])
        word = word[cut:]
    return [*parts, word]


def _longest(word: str, width: int) -> int:
    """How many of its first characters fit; at least one, whatever there is room for."""
    taken = 0
    for number, char in enumerate(word):
        taken += text_width(char)
        if taken > width:
            return max(number, 1)
    return len(word)
