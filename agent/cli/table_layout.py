"""Layout of tables, records and paragraphs within a width: the order in which columns fold. Pure.

Order, until it fits and no text is narrow: heads fold; columns with one value in all rows fold at blanks; so do others,
the widest first; sentences and long texts get the lines below their row; what is the same in all rows is said once,
above; the column with the longest words goes below the row; all but ids and figures fold within words; ids that are
longer than most in their column break their row instead; each row becomes a block of its own. An id is folded only
where it is longer than the whole width, a figure never parts from its unit. Nothing is cut here: text comes in short
and harmless.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from config.foreign_text import is_mark

IDS = frozenset(
    {
        "about", "at", "bootstrap_servers", "broker", "brokers", "client_id", "cluster", "group", "host", "id",
        "member", "name", "partition", "plan", "process", "rack", "setting", "subject", "task", "topic",
    }
)  # fmt: skip
"""Columns that hold what a person copies, or looks for: their cells stay in one piece."""
PROSE = {"note": "", "sentence": "", "worth": "", "readers": "readers: "}
"""Columns of sentences and long lists, and how they begin where they leave the table for the lines below their row."""
LEAST = 40
"""No table is laid out for less."""
_GAP = "  "
_SENTENCE = 24
"""A column of several words is not made narrower while another way is left."""
_READABLE = 36
_LINES = 4
"""Nor is one of sentences, nor has a sentence more lines in its column: they go below their rows."""
_SHORT = 2
"""Lines that a text has at most in a column that is narrower than `_SENTENCE`."""
_LONG = 2 * _READABLE
"""A text that is longer is laid out as a sentence, whatever its column is called."""
_INDENT = 4
_NOTHING = ("", "-")
"""Cells of which nothing is written below a row."""
_FOLDED = 10
"""Nor is one that folds within words."""
_UNIT = r"(?:%|[kMGTP]?B(?:/s)?|(?:bytes|records)(?:/s)?|[mµn]?s|min|h|days?)"
_BLANK = re.compile(rf"(?<![≥≤<]) (?!%)(?!(?<=\d )(?:\(|{_UNIT}(?![\w/])))(?!ago$)")
"""Where a line may fold: a number keeps its unit, the sign before it, and what is in brackets, as a broker its rack."""
_FIGURE = re.compile(rf"(?:[≥≤<] ?)?\$?[\d.,]*\d(?: ?{_UNIT})?(?:/day)?,?")
_PUNCTUATION = frozenset("-_./:,;=()&?")
_CLOSING = frozenset(",;:.)")


class TableLayout(NamedTuple):
    """A table as lines without line ends."""

    same: tuple[str, ...]
    """What is the same in all rows, where there was no room for it in each."""
    heads: tuple[str, ...]
    body: tuple[str, ...]


class _Arranged(NamedTuple):
    """The same with the lines of each row apart."""

    same: tuple[str, ...]
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


class _Column(NamedTuple):
    """One column, and how wide it would be, from best to worst."""

    place: int
    name: str
    is_id: bool
    is_constant: bool
    is_right: bool
    figures: int
    """Of its widest number with its unit."""
    cells: int
    """Of its widest cell."""
    words: int
    """Of its widest word, the head's included."""

    @property
    def is_text(self) -> bool:
        """Whether it may fold at blanks, and is to be read."""
        return not self.is_id and not self.is_right

    @property
    def is_prose(self) -> bool:
        """Whether it may leave the table for the lines below its row before any other column gives way."""
        return self.name in PROSE or (self.is_text and self.cells > max(_LONG, self.words))

    @property
    def label(self) -> str:
        """How it begins there."""
        return PROSE.get(self.name, f"{_head(self.name)}: ")


def lay_out(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], width: int) -> TableLayout:
    """The lines of a table in ``width`` columns; ``right``: whether a column stands at the right, as numbers do."""
    same, heads, body = _arranged(columns, rows, right, max(width, LEAST))
    return TableLayout(same, tuple(heads), tuple(line for lines in body for line in lines))


def _arranged(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], width: int) -> _Arranged:
    found = [
        _column(place, name, [row[place] for row in rows], is_right=right[place]) for place, name in enumerate(columns)
    ]
    widths = _fitting(found, width)
    if widths is not None and not _is_narrow(found, widths):
        return _Arranged((), *_table(found, rows, widths))
    prose = [column for column in found if column.is_prose]
    if prose and len(prose) < len(found):
        return _with_long_ids(found, rows, width, readable=True) or _with_prose_below(found, prose, rows, width)
    if widths is not None:
        return _more_readable(found, rows, width) or _Arranged((), *_table(found, rows, widths))
    same = sorted((column for column in found if column.is_constant), key=lambda column: (-column.cells, column.place))
    for last in range(1, len(same) + 1):
        varying = [column for column in found if column not in same[:last]]
        widths = _fitting(varying, width, within_words=last == len(same))
        if varying and widths is not None:
            return _Arranged(tuple(_same(sorted(same[:last]), rows, width)), *_table(varying, rows, widths))
    if not same and (widths := _fitting(found, width, within_words=True)) is not None:
        return _Arranged((), *_table(found, rows, widths))
    return _with_long_ids(found, rows, width) or _Arranged((), (), _blocks(found, rows, width))


def _more_readable(columns: Sequence[_Column], rows: Sequence[Sequence[str]], width: int) -> _Arranged | None:
    """A table that would fit with narrow texts: without what is the same in all rows, or one column below its row."""
    same = sorted(
        (column for column in columns if column.is_constant), key=lambda column: (-column.cells, column.place)
    )
    for last in range(1, len(same) + 1):
        varying = [column for column in columns if column not in same[:last]]
        widths = _fitting(varying, width) if varying else None
        if widths is not None and not _is_narrow(varying, widths):
            return _Arranged(tuple(_same(sorted(same[:last]), rows, width)), *_table(varying, rows, widths))
    texts = [column for column in columns if column.is_text and column.cells > _FOLDED]
    for below in sorted(texts, key=lambda column: (-column.words, -column.cells, column.place)):
        others = [column for column in columns if column is not below]
        widths = _fitting(others, width) if others else None
        if widths is not None and not _is_narrow(others, widths):
            return _with_prose_below(columns, [below], rows, width)
    return None


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
    wide = {char: 0 if is_mark(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in set(text)}
    return sum(map(wide.__getitem__, text))


def _column(place: int, name: str, cells: Sequence[str], *, is_right: bool) -> _Column:
    words = {word for text in (*set(cells), _head(name)) for word in _BLANK.split(text)}
    return _Column(
        place,
        name,
        is_id=name in IDS,
        is_constant=len(cells) > 1 and len(set(cells)) == 1,
        is_right=is_right,
        figures=max((text_width(word) for word in words if _FIGURE.fullmatch(word)), default=0),
        cells=max(map(text_width, cells), default=0),
        words=max(map(text_width, words), default=0),
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
        [_least(column, head) if column.is_constant else head for column, head in both],
        [_least(column, head) for column, head in both],
        [head if column.is_id else min(head, column.words) for column, head in both],
    ]
    if within_words:
        folded = [min(head, max(_FOLDED, column.figures)) for column, head in both]
        rows = zip(columns, heads, folded, strict=True)
        steps.append([head if column.is_id or column.is_right else size for column, head, size in rows])
    for least in steps:
        widths = _squeezed(widths, least, room)
        if sum(widths) <= room:
            return _with_whole_heads(columns, widths, room)
    return None


def _with_whole_heads(columns: Sequence[_Column], widths: Sequence[int], room: int) -> list[int]:
    """The widths with heads that fold without need made whole, those that lack least first.

    Of what is left of the room, and of columns that fold anyway: such a one gets narrower while it has no more lines.
    """
    found, left = list(widths), room - sum(widths)
    spare = [_spare(column, size) for column, size in zip(columns, widths, strict=True)]
    lacking = [text_width(_head(column.name)) - size for column, size in zip(columns, widths, strict=True)]
    for more, place in sorted(zip(lacking, range(len(found)), strict=True)):
        others = [other for other in range(len(found)) if other != place and spare[other]]
        if not 0 < more <= left + sum(spare[other] for other in others):
            continue
        found[place], left = found[place] + more, left - more
        for other in others:
            taken = min(spare[other], max(0, -left))
            found[other], spare[other], left = found[other] - taken, spare[other] - taken, left + taken
    return found


def _spare(column: _Column, size: int) -> int:
    """By how much a column may become narrower without one more line in any cell, as far as its widths tell."""
    if not column.is_text or column.is_prose or size >= column.cells:
        return 0
    lines = -(-column.cells // size)
    return max(0, size - max(column.words, -(-column.cells // lines)))


def _is_narrow(columns: Sequence[_Column], widths: Sequence[int]) -> bool:
    """Whether a sentence, or another text, has less room than it needs to be read."""
    rows = list(zip(columns, widths, strict=True))
    prose = [(column.cells, size) for column, size in rows if column.is_prose]
    texts = [(column.cells, size) for column, size in rows if column.is_text]
    return any(size < min(cells, _READABLE) or cells > _LINES * size for cells, size in prose) or any(
        cells > (_LINES if size >= _SENTENCE else _SHORT) * size for cells, size in texts
    )


def _with_prose_below(
    columns: Sequence[_Column], prose: Sequence[_Column], rows: Sequence[Sequence[str]], width: int
) -> _Arranged:
    """The table without its sentences, each of which follows its row."""
    short = [column for column in columns if column not in prose]
    names, right = [column.name for column in short], [column.is_right for column in short]
    arranged = _arranged(names, [[row[column.place] for column in short] for row in rows], right, width)
    full = []
    for row, lines in zip(rows, arranged.rows, strict=True):
        below = [column.label + row[column.place] for column in prose if row[column.place] not in _NOTHING]
        full.append([*lines, *(line for text in below for line in paragraph(text, width, indent=" " * _INDENT))])
    return arranged._replace(rows=full)


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
) -> tuple[list[str], list[list[str]]]:
    heads = list(_lines(columns, [_head(column.name) for column in columns], widths))
    return heads, [list(_lines(columns, [row[column.place] for column in columns], widths)) for row in rows]


def _with_long_ids(
    columns: Sequence[_Column], rows: Sequence[Sequence[str]], width: int, *, readable: bool = False
) -> _Arranged | None:
    """A table for most ids; the row of a longer one breaks after it. None where most ids are too long.

    ``readable``: also None where words would fold, or sentences be narrow.
    """
    fewest = len(rows) - 1 - (len(rows) - 1) * 3 // 4
    tried = [_usual(columns, rows, broken) for broken in range(min(1, fewest), fewest + 1)]
    same = [column for column in columns if column.is_constant]
    varying = [[column for column in usual if not column.is_constant] for usual in tried]
    for shown in tried if readable else (*tried, *varying):
        widths = _fitting(shown, width, within_words=not readable) if shown else None
        if widths is not None and not (readable and _is_narrow(shown, widths)):
            heads = list(_lines(shown, [_head(column.name) for column in shown], widths))
            body = [list(_broken(shown, row, widths, width)) for row in rows]
            return _Arranged(() if len(shown) == len(columns) else tuple(_same(same, rows, width)), heads, body)
    return None


def _usual(columns: Sequence[_Column], rows: Sequence[Sequence[str]], broken: int) -> list[_Column]:
    """The columns without so many of the widest ids of each; what else is in rows that break counts by its words."""
    ids = {column.place: _usual_id(column, rows, broken) for column in columns if column.is_id}
    whole = [row for row in rows if all(text_width(row[place]) <= one.cells for place, one in ids.items())]
    return [ids.get(column.place) or _usual_cells(column, whole) for column in columns]


def _usual_id(column: _Column, rows: Sequence[Sequence[str]], broken: int) -> _Column:
    sizes = sorted(text_width(row[column.place]) for row in rows)
    widest = sizes[len(sizes) - 1 - broken]
    return column._replace(cells=widest, words=min(column.words, widest))


def _usual_cells(column: _Column, whole: Sequence[Sequence[str]]) -> _Column:
    if column.is_prose:
        return column
    return column._replace(cells=max([column.words, *(text_width(row[column.place]) for row in whole)]))


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
        column_at, left = sum(widths[:place]) + len(_GAP) * place, width - text_width(cell)
        indent = min(column_at, left if left >= 0 else _INDENT)
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
    prose = [f"{_head(column.name)} {rows[0][column.place]}" for column in columns if rows[0][column.place]]
    if prose:
        yield from paragraph(f"in every row: {'; '.join(prose)}", width)


def _blocks(columns: Sequence[_Column], rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Each row by itself, a line for each of its cells that says something."""
    label = max(text_width(_head(column.name)) for column in columns)
    return [
        ([""] if number else [])
        + [
            f"{'' if place else _head(column.name):<{label}}{_GAP}{line}".rstrip()
            for column in columns
            if row[column.place]
            for place, line in enumerate(wrap(row[column.place], width - label - len(_GAP)))
        ]
        for number, row in enumerate(rows)
    ]


def _pieces(word: str, width: int) -> list[str]:
    """A word in parts that fit; a list between its items, so that each stays in one piece."""
    parts: list[str] = []
    while text_width(word) > width:
        size = _longest(word, width)
        comma = word.rfind(",", size // 4, size) + 1
        cut = comma or next((end for end in range(size, size // 2, -1) if word[end - 1] in _PUNCTUATION), size)
        if cut > 1 and word[cut] in _CLOSING:
            cut -= 1  # no line begins with what closes the one before
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
