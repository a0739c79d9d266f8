"""A report as one file of HTML: styles and plots inside, no script, nothing fetched from anywhere.

It is well-formed XML too, so that a strict parser can judge it. Names are foreign: every text is escaped.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from config.foreign_text import harmless
from pipeline.report.document import Cell, ColumnHead, Plot, ReportDocument, ReportGrid, ReportSection, beyond
from pipeline.report.plots import to_svg
from pipeline.report.words import written

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --page: #ffffff; --soft: #5b5b5b; --line: #d6d6d6; --band: #f4f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --page: #16181b; --soft: #b0b0b0; --line: #3a3d42; --band: #1f2226; }
}
body { margin: 0 auto; max-width: 1180px; padding: 1.2rem; font: 15px/1.45 system-ui, sans-serif;
  color: var(--ink); background: var(--page); }
.first { font-size: 1.35rem; font-weight: 600; border-left: 6px solid #0072B2; padding: .6rem 1rem; margin: 0 0 1rem;
  background: var(--band); }
h1 { font-size: 1.25rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
.about, nav, figcaption, .more { color: var(--soft); font-size: .9rem; }
nav a { margin-right: 1rem; white-space: nowrap; }
a { color: inherit; }
.table { overflow-x: auto; max-height: 34rem; overflow-y: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { position: sticky; top: 0; background: var(--band); }
td { white-space: nowrap; }
td.long { white-space: normal; min-width: 16rem; overflow-wrap: anywhere; }
td.n, th.n { text-align: right; }
td.unknown { color: var(--soft); font-style: italic; }
figure { margin: .8rem 0; }
figure svg { max-width: 100%; height: auto; background: #ffffff; border-radius: 4px; stroke-linejoin: round; }
@media print { .table { max-height: none; } }
"""
_LONG = 36
_MOST_ROWS = 1_000
"""Most rows of a table: browsers grow slow beyond that."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def to_html(report: ReportDocument) -> str:
    """The whole page, ending with a newline."""
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
            f"<style>{_STYLE}</style>",
            "</head>",
            "<body>",
            f'<p class="first">{_text(report.first)}</p>',
            "<main>",
            f"<h1>{_text(report.title)}</h1>",
            f'<p class="about">{_text(report.about)}</p>',
            f'<nav aria-label="Sections">{links} <a href="#notes">What is missing</a></nav>',
            *(line for section in report.sections for line in _section(section)),
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


def _section(section: ReportSection) -> list[str]:
    return [
        f'<section id="{section.name}">',
        f"<h2>{_text(section.title)}</h2>",
        f"<p>{_text(section.lead)}</p>",
        *(_figure(section, section.plot) if section.plot is not None else []),
        *(_table(section.title, section.grid) if section.grid.rows else []),
        *(f'<p class="more">{_text(note)}</p>' for note in (*beyond(section, _MOST_ROWS), *section.notes)),
        "</section>",
    ]


def _figure(section: ReportSection, plot: Plot) -> list[str]:
    svg = to_svg(plot, section.name).replace(
        "<svg ", f'<svg role="img" aria-label="{_text(section.alternative_text)}" ', 1
    )
    return [
        "<figure>",
        svg,
        f"<figcaption>{_text(section.alternative_text)} The figures are in the table.</figcaption>",
        "</figure>",
    ]


def _table(title: str, grid: ReportGrid) -> list[str]:
    """Focusable, because what scrolls must be reachable without a mouse."""
    numeric = [' class="n"' if head.numeric else "" for head in grid.heads]
    heads = "".join(
        f'<th scope="col"{kind}>{_text(head.title)}</th>' for head, kind in zip(grid.heads, numeric, strict=True)
    )
    lines = [f'<div class="table" tabindex="0" role="region" aria-label="{_text(title)}"><table>', "<thead><tr>"]
    lines += [heads, "</tr></thead>", "<tbody>"]
    for row in grid.rows[:_MOST_ROWS]:
        lines.append(f"<tr>{''.join(map(_cell, grid.heads, row))}</tr>")
    return [*lines, "</tbody>", "</table></div>"]


def _cell(head: ColumnHead, value: Cell) -> str:
    text = written(head, value)
    marks = {"n": head.numeric, "unknown": value is None, "long": len(text) > _LONG}
    kinds = " ".join(kind for kind, is_so in marks.items() if is_so)
    return f'<td class="{kinds}">{_text(text)}</td>' if kinds else f"<td>{_text(text)}</td>"


def _text(text: str) -> str:
    return escape(harmless(text), {'"': "&quot;"})
