"""A report as Markdown: what to do first is its first line."""

from __future__ import annotations

import re

from config.foreign_text import harmless
from pipeline.report.document import ReportDocument, ReportGrid, ReportSection, beyond
from pipeline.report.words import written

_MOST_ROWS = 40
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&])")


def to_markdown(report: ReportDocument) -> str:
    """The whole text, ending with a newline."""
    lines = [
        f"**{escaped(report.first)}**",
        "",
        f"# {report.title}",
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
        *(line for sentence in beyond(section, _MOST_ROWS) for line in ("", sentence)),
    ]


def _grid(grid: ReportGrid) -> list[str]:
    return [
        "| " + " | ".join(head.title for head in grid.heads) + " |",
        "|" + "|".join("---:" if head.numeric else "---" for head in grid.heads) + "|",
        *(
            "| " + " | ".join(escaped(written(*cell)) for cell in zip(grid.heads, row, strict=True)) + " |"
            for row in grid.rows[:_MOST_ROWS]
        ),
    ]
