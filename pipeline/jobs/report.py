"""The files of a report: ``report.md``, ``report.html`` and one CSV per table, in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pipeline.errors import not_refreshed
from pipeline.jobs.owners import owners_in_force
from pipeline.output_files import written_whole
from pipeline.owner_rules import OwnerRule
from pipeline.report.collect import collect
from pipeline.report.compose import compose
from pipeline.report.csvs import to_csvs
from pipeline.report.document import FORMATS, ReportDocument
from pipeline.report.html import to_html
from pipeline.report.markdown import to_markdown
from pipeline.report.period import ReportPeriod
from pipeline.schemas.gold import GOLD
from pipeline.tables import TableStore


class WrittenReport(NamedTuple):
    """What was written."""

    first: str
    """The report's first line."""
    files: tuple[Path, ...]


def write_report(
    tables: TableStore,
    period: ReportPeriod,
    folder: Path,
    formats: tuple[str, ...] = FORMATS,
    *,
    owners: tuple[OwnerRule, ...] = (),
    bill: tuple[tuple[str, float], ...] = (),
) -> WrittenReport:
    """Writes the report in these formats. Raises BadInput where there is nothing to report on or no place to write.

    ``owners`` empty: those of the table gold.owners. ``bill`` is `bill_lines.bill_by_day`.
    """
    if not any(tables.exists(table) for table in GOLD):
        raise not_refreshed(tables.root, "gold table")
    facts = collect(tables, period, owners_in_force(tables, owners))
    report = compose(facts._replace(bill=bill))
    return WrittenReport(report.first, _write(folder, texts_of(report, formats)))


def texts_of(report: ReportDocument, formats: tuple[str, ...]) -> dict[str, str]:
    """File name -> text."""
    texts: dict[str, str] = {}
    if "md" in formats:
        texts["report.md"] = to_markdown(report)
    if "html" in formats:
        texts["report.html"] = to_html(report)
    if "csv" in formats:
        texts |= to_csvs(report)
    return texts


def _write(folder: Path, texts: dict[str, str]) -> tuple[Path, ...]:
    with written_whole("the report", folder, texts) as beside:
        for name, text in texts.items():
            beside[name].write_bytes(text.encode())
    return tuple(folder / name for name in texts)
