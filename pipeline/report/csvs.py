"""A report's grids as CSV: raw values with their unit in the column's name; unknown is an empty field, never 0."""

from __future__ import annotations

import csv
import io
import re

from config.foreign_text import csv_text
from pipeline.report.document import Cell, ColumnHead, ReportDocument, ReportGrid


def to_csvs(report: ReportDocument) -> dict[str, str]:
    """File name -> text, one for each section and one for the first line and the notes."""
    files = {f"{section.name}.csv": to_csv(section.grid) for section in report.sections}
    figures = [(figure.title, f"{figure.text} ({figure.about})") for figure in report.figures]
    rows = [("first", report.first), *figures, ("about", report.about), *(("note", note) for note in report.notes)]
    return {"summary.csv": _text([("what", "sentence"), *rows]), **files}


def to_csv(grid: ReportGrid) -> str:
    """The grid with a head line, lines ending as RFC 4180 has them."""
    return _text([tuple(map(_name, grid.heads)), *(tuple(map(_field, row)) for row in grid.rows)])


def _name(head: ColumnHead) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", head.title.lower()).strip("_")
    unit = head.unit.value
    return words if not unit or unit == "count" else f"{words}_{unit}"


def _field(value: Cell) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return repr(value) if isinstance(value, float) and value != int(value) else f"{value:.0f}"


def _text(rows: list[tuple[str, ...]]) -> str:
    """A spreadsheet takes text that begins like a formula for one, and names are foreign, in sentences too."""
    out = io.StringIO()
    csv.writer(out).writerows([csv_text(text) for text in row] for row in rows)
    return out.getvalue()
