"""A report as one file of HTML: styles and plots inside, no script, nothing fetched from anywhere.

It is well-formed XML too, so that a strict parser can judge it. Names are foreign: every text is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from xml.sax.saxutils import escape

from config.foreign_text import harmless, shortened
from pipeline.report.document import (
    SHOWN,
    Cell,
    ColumnHead,
    HeadlineFigure,
    Plot,
    ReportDocument,
    ReportSection,
    beyond,
    notes_of,
)
from pipeline.report.plots import to_svg
from pipeline.report.style import STYLE
from pipeline.report.words import written

_LONG = 36
_MOST_ROWS = 1_000
"""Most rows of a table: browsers grow slow beyond that."""
_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
"""What can be the name of a place in the page as it is; of other text it is a digest."""
_Row = tuple[Cell, ...]
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def to_html(report: ReportDocument) -> str:
    """The whole page, ending with a newline."""
    page = _Page(report)
    links = " ".join(f'<a href="#{section.name}">{_text(section.title)}</a>' for section in report.sections)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html xmlns="http://www.w3.org/1999/xhtml" lang="en">',
            "<head>",
            '<meta charset="utf-8" />',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}" />',
            '<meta name="viewport" content="width=device-width, initial-scale=1" />',
            f"<title>{_text(report.title)}</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            f'<p class="first">{_text(report.first)}</p>',
            "<main>",
            f"<h1>{_text(report.title)}</h1>",
            '<dl class="figures">',
            *map(_headline, report.figures),
            "</dl>",
            f'<p class="about">{_text(report.about)}</p>',
            f'<nav aria-label="Sections">{links} <a href="#notes">What is missing</a></nav>',
            *(line for section in report.sections for line in page.section(section)),
            '<section id="notes">',
            "<h2>What is missing from these figures</h2>",
            "<ul>",
            *(f"<li>{_text(note)}</li>" for note in report.notes),
            "</ul>",
            "</section>",
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


class _Page:
    """The sections of a page, and the places in it that links may lead to: each once."""

    def __init__(self, report: ReportDocument) -> None:
        self._places: set[str] = set()
        self._taken: set[str] = set()
        for section in report.sections:
            named = [(at, head) for at, head in enumerate(section.grid.heads) if head.names]
            rows = section.grid.rows[:_MOST_ROWS]
            self._places |= {_place(head.names, row[at]) for at, head in named for row in rows} - {""}

    def section(self, section: ReportSection) -> list[str]:
        """A heading, the answer, the plot, ten rows, and the others folded."""
        rows = section.grid.rows
        kind = ' class="cards"' if section.as_cards else ""
        return [
            f'<section id="{section.name}"{kind}>',
            f"<h2>{_text(section.title)}</h2>",
            f"<p>{_text(section.lead)}</p>",
            *(_figure(section, section.plot) if section.plot is not None else []),
            *(self._table(section, rows[:SHOWN]) if rows else []),
            *(self._folded(section, rows[SHOWN:_MOST_ROWS]) if len(rows) > SHOWN else []),
            *(f'<p class="more">{_text(note)}</p>' for note in notes_of(section, _MOST_ROWS)),
            "</section>",
        ]

    def _folded(self, section: ReportSection, rows: Sequence[_Row]) -> list[str]:
        return [f"<details><summary>{_text(beyond(section))}</summary>", *self._table(section, rows), "</details>"]

    def _table(self, section: ReportSection, rows: Sequence[_Row]) -> list[str]:
        """Focusable, because what scrolls must be reachable without a mouse."""
        heads = section.grid.heads
        head_cells = "".join(f'<th scope="col"{_numeric(head)}>{_text(head.title)}</th>' for head in heads)
        cells = ([self._cell(section, *cell) for cell in zip(heads, row, strict=True)] for row in rows)
        return [
            f'<div class="table" tabindex="0" role="region" aria-label="{_text(section.title)}"><table>',
            "<thead><tr>",
            head_cells,
            "</tr></thead>",
            "<tbody>",
            *(f"<tr>{''.join(row)}</tr>" for row in cells),
            "</tbody>",
            "</table></div>",
        ]

    def _cell(self, section: ReportSection, head: ColumnHead, value: Cell) -> str:
        text = written(head, value)
        marks = {"n": head.numeric, "unknown": value is None, "long": len(text) > _LONG}
        kinds = " ".join(kind for kind, is_so in marks.items() if is_so)
        attributes = f' class="{kinds}"' if kinds else ""
        if section.as_cards:
            attributes += f' data-head="{_text(head.title)}"'
        place = _place(head.names, value) if head.names else ""
        if place and place not in self._taken:
            self._taken.add(place)
            attributes += f' id="{place}"'
        return f"<td{attributes}>{self._content(head, value, text)}</td>"

    def _content(self, head: ColumnHead, value: Cell, text: str) -> str:
        if head.is_code and text:
            return f"<code>{_text(text)}</code>"
        if head.links and isinstance(value, str):
            links = ", ".join(self._link(head.links, one) for one in value.split(", "))
            return f"<span>{links}</span>" if ", " in value else links  # on a phone a cell is a grid of its children
        return _text(text)

    def _link(self, names: str, text: str) -> str:
        place = _place(names, text)
        label = _text(shortened(text))
        return f'<a href="#{place}">{label}</a>' if place in self._places else label


def _place(names: str, value: Cell) -> str:
    """The name of a row's place; empty for a value that names nothing."""
    if not isinstance(value, str) or not value:
        return ""
    return f"{names}-{value if _NAME.fullmatch(value) else sha256(value.encode('utf-8', 'replace')).hexdigest()[:16]}"


def _headline(figure: HeadlineFigure) -> str:
    about = f"<dd class='about'>{_text(figure.about)}</dd>"
    return f"<div><dt>{_text(figure.title)}</dt><dd>{_text(figure.text)}</dd>{about}</div>"


def _figure(section: ReportSection, plot: Plot) -> list[str]:
    svg = to_svg(plot, section.name).replace(
        "<svg ", f'<svg role="img" aria-label="{_text(section.alternative_text)}" ', 1
    )
    return [
        "<figure>",
        f'<div class="plot" tabindex="0" role="region" aria-label="{_text(section.title)}, plot">{svg}</div>',
        f"<figcaption>{_text(section.alternative_text)} The figures are in the table.</figcaption>",
        "</figure>",
    ]


def _numeric(head: ColumnHead) -> str:
    return ' class="n"' if head.numeric else ""


def _text(text: str) -> str:
    return escape(harmless(text), {'"': "&quot;"})
