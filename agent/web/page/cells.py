"""Cells that several tables have: an instant, and a severity with its sign."""

from __future__ import annotations

from agent.web.page.environment import rendered
from agent.web.page.tables import TableCell


def instant_cell(epoch_ms: int) -> TableCell:
    """A time in UTC."""
    return TableCell(rendered("instant.html", ms=epoch_ms))


def severity_cell(word: str) -> TableCell:
    """``critical``, ``warning`` or ``info``."""
    return TableCell(rendered("severity.html", word=word))
