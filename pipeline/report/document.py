"""A report as a value, independent of its format: a first line, sections with grids and plots, notes."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeVar

from agent.values.number_format import counted

Cell = str | int | float | None
"""A raw value. None is unknown."""
FORMATS = ("md", "html", "csv")
"""In which a report is written."""


class ValueUnit(Enum):
    """Unit of a column's values, which decides their format and, in CSV, the column's name."""

    TEXT = ""
    COUNT = "count"
    BYTES = "bytes"
    BYTES_PER_S = "bytes_per_s"
    USD = "usd"
    USD_PER_DAY = "usd_per_day"
    SHARE = "share"
    SECONDS = "s"
    RECORDS_PER_S = "records_per_s"


class ColumnHead(NamedTuple):
    """The head of a column."""

    title: str
    unit: ValueUnit = ValueUnit.TEXT
    sign: bool = False
    """Whether its values are changes, which are written with their sign."""
    names: str = ""
    """What its values name: rows of the page can be reached by these names (`links` of another column)."""
    links: str = ""
    """``names`` of the column to whose rows its values, separated by commas, lead."""
    is_code: bool = False
    """Whether its values are commands or lines of a configuration."""

    @property
    def numeric(self) -> bool:
        """Whether its values are aligned right."""
        return self.unit is not ValueUnit.TEXT


Row = TypeVar("Row")
Columns = tuple[tuple[ColumnHead, Callable[[Row], Cell]], ...]
"""The head of each column, and its value in a row."""


class ReportGrid(NamedTuple):
    """A table: heads and rows of raw values."""

    heads: tuple[ColumnHead, ...]
    rows: tuple[tuple[Cell, ...], ...]


class BarPlot(NamedTuple):
    """Bars that are made of parts: ``sizes[part][bar]``; None is unknown and leaves a mark of its own."""

    bars: tuple[str, ...]
    parts: tuple[str, ...]
    sizes: tuple[tuple[float | None, ...], ...]
    label: str
    unit: ValueUnit
    upright: bool
    hatched: frozenset[str] = frozenset()
    """Parts of which something is not known."""


class HeatMap(NamedTuple):
    """A map of shares from 0 to 1: ``shares[row][column]``; None is unknown, and ``absent`` cells do not exist."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    shares: tuple[tuple[float | None, ...], ...]
    absent: frozenset[tuple[int, int]]


class RangePlot(NamedTuple):
    """Low, middle and high of each row."""

    rows: tuple[str, ...]
    values: tuple[tuple[float, float, float], ...]
    label: str
    unit: ValueUnit


class ScatterPlot(NamedTuple):
    """Predicted against measured values, and the distribution of their errors."""

    points: tuple[tuple[float, float], ...]
    unit: ValueUnit
    errors: tuple[float, ...]
    """Shares: +0.1 is a tenth more than was predicted."""


Plot = BarPlot | HeatMap | RangePlot | ScatterPlot


class HeadlineFigure(NamedTuple):
    """A figure that is read before everything else."""

    title: str
    text: str
    about: str
    """What it means, or why it is unknown."""


class ReportSection(NamedTuple):
    """One question of a report."""

    name: str
    """Its anchor, and the name of its CSV file."""
    title: str
    lead: str
    """The answer in a sentence."""
    grid: ReportGrid
    plot: Plot | None = None
    """Never without rows in the grid."""
    alternative_text: str = ""
    """Text alternative of the plot."""
    notes: tuple[str, ...] = ()
    as_cards: bool = False
    """Whether a narrow screen shows each row as a card."""


class ReportDocument(NamedTuple):
    """The whole."""

    title: str
    first: str
    """What to do first, with its figure."""
    about: str
    """Period, clusters, and how much of it is covered."""
    figures: tuple[HeadlineFigure, ...]
    sections: tuple[ReportSection, ...]
    notes: tuple[str, ...]
    """What is missing from the figures, or that nothing is."""


SHOWN = 10
"""Rows of a table that are seen at once; the rest is folded."""


def beyond(section: ReportSection, most: int = SHOWN) -> str:
    """Where the rows are that a form of the report has no room for; empty when it shows all of them."""
    more = len(section.grid.rows) - most
    return f"{counted(more, 'more row')} in {section.name}.csv" if more > 0 else ""


def notes_of(section: ReportSection, most: int = SHOWN) -> tuple[str, ...]:
    """The sentences below a table that shows so many rows."""
    more = beyond(section, most)
    return (f"{more}.", *section.notes) if more else section.notes
