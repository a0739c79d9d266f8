"""A report as Markdown: what to do first is its first line."""

from __future__ import annotations

import re

from config.foreign_text import harmless
from pipeline.report.document import SHOWN, Cell, ColumnHead, ReportDocument, ReportGrid, ReportSection, notes_of
from pipeline.report.words import written

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&])")


def to_markdown(report: ReportDocument) -> str:
    """The whole text, ending with a newline."""
    lines = [
        f"**{escaped(report.first)}**",
        "",
        f"# {report.title}",
        "",
        *(f"- {escaped(f'{figure.title}: {figure.text} ({figure.about})')}" for figure in report.figures),
        "",
        escaped(report.about),
        *(line for section in report.sections for line in _section(section)),
        "",
        "## What is missing from these figures",
        "",
        *(f"- {escaped(note)}" for note in report.notes),
        "",
    ]
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Text that nothing in it makes anything but text."""
    return _SPECIAL.sub(r"\\\1", harmless(text))


def _section(section: ReportSection) -> list[str]:
    return [
        "",
        f"## {section.title}",
        "",
        escaped(section.lead),
        *(["", *_grid(section.grid)] if section.grid.rows else []),
        *(line for note in notes_of(section) for line in ("", escaped(note))),
    ]


def _grid(grid: ReportGrid) -> list[str]:
    return [
        "| " + " | ".join(head.title for head in grid.heads) + " |",
        "|" + "|".join("---:" if head.numeric else "---" for head in grid.heads) + "|",
        *(
            "| " + " | ".join(_cell(*cell) for cell in zip(grid.heads, row, strict=True)) + " |"
            for row in grid.rows[:SHOWN]
        ),
    ]


def _cell(head: ColumnHead, value: Cell) -> str:
    """A command in a span of code, unless it holds what would end the span or the cell."""
    text = written(head, value)
    if head.is_code and text and not set(text) & {"`", "|"}:
        return f"`{harmless(text)}`"
    return escaped(text)
