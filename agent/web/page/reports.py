"""The reports of the pipeline: plain files of one folder, bounded; tables, and predictions against measurements."""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import Response

from agent.money.traffic import bytes_words
from agent.values.number_format import counted, sized, usd
from agent.web.page.environment import address, percent, proposal_link
from agent.web.page.page_request import PageRequest, PageView
from agent.web.page.svg import ScatterPoint, scatter
from agent.web.page.tables import TableCell, TableColumn, TableRow, TableSource, instant_cell

MOST_FILES = 1_000
MOST_CSV_BYTES = 8_000_000
MOST_CSV_ROWS = 20_000
MOST_CSV_COLUMNS = 64
MOST_FIGURE_BYTES = 4_000_000
FIGURES = {".svg": "image/svg+xml", ".png": "image/png"}
"""Kinds of figures, with the type that they are served as."""
KINDS = (".csv", ".html", ".md", *FIGURES)


class FolderFile(NamedTuple):
    """One file of the folder."""

    name: str
    kind: str
    """Its suffix, with the dot."""
    bytes: int
    modified_ms: int
    """Epoch milliseconds."""


class CsvTable(NamedTuple):
    """A table of a report; a field that is None is unknown."""

    columns: tuple[str, ...]
    rows: tuple[dict[str, str | None], ...]
    more: int
    """Rows beyond the bound."""


def folder_files(folder: str) -> list[FolderFile]:
    """The files of known kinds by name. Raises OSError where the folder cannot be read."""
    found = []
    with os.scandir(folder) as entries:
        for entry, _ in zip(entries, range(MOST_FILES * 10), strict=False):
            kind = Path(entry.name).suffix
            if kind not in KINDS or entry.name.startswith("."):
                continue
            state = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(state.st_mode):
                found.append(FolderFile(entry.name, kind, state.st_size, state.st_mtime_ns // 1_000_000))
    return sorted(found)[:MOST_FILES]


def file_bytes(folder: str, file: FolderFile, most_bytes: int) -> bytes:
    """A listed file. Raises OSError, also for one that is larger or has become a link."""
    descriptor = os.open(Path(folder, file.name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        content = opened.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(f"it is larger than {most_bytes:,} bytes")
    return content


def csv_table(content: bytes) -> CsvTable:
    """A CSV of the pipeline, or whatever is in a file of that kind: empty fields are unknown."""
    lines = csv.reader(io.StringIO(content.decode("utf-8", "replace"), newline=""))
    try:
        columns = tuple(dict.fromkeys(name or f"column {at}" for at, name in enumerate(next(lines, []))))
        columns = columns[:MOST_CSV_COLUMNS]
        rows: list[dict[str, str | None]] = []
        more = 0
        for line in lines:
            if len(rows) < MOST_CSV_ROWS:
                rows.append({name: _field(line, at) for at, name in enumerate(columns)})
            else:
                more += 1
    except csv.Error:
        return CsvTable((), (), 0)
    return CsvTable(columns, tuple(rows), more)


def _field(line: list[str], at: int) -> str | None:
    return (line[at] or None) if at < len(line) else None


OUTCOMES, SUMMARY = "outcomes.csv", "summary.csv"
_MOST_DIGITS = 40


class MeasuredQuantity(NamedTuple):
    """Something that is predicted of a proposal and measured after it."""

    key: str
    title: str
    predicted: str
    """Column of outcomes.csv."""
    measured: str
    unit: str


QUANTITIES = (
    MeasuredQuantity(
        "across", "Across racks afterwards", "across_racks_afterwards_predicted_bytes_per_s",
        "across_racks_afterwards_measured_bytes_per_s", "bytes_per_s",
    ),
    MeasuredQuantity("gain", "Gain a day", "gain_predicted_usd_per_day", "gain_measured_usd_per_day", "usd"),
    MeasuredQuantity("copied", "Bytes copied", "bytes_copied_predicted_bytes", "bytes_copied_measured_bytes", "bytes"),
    MeasuredQuantity("time", "Time", "time_predicted_s", "time_measured_s", "seconds"),
    MeasuredQuantity("moves", "Moves", "moves_predicted", "moves_measured", "count"),
)  # fmt: skip
TITLES = {
    "avoidable.csv": "Avoidable cost",
    "owners.csv": "Cost by owner",
    "findings.csv": "Findings behind it",
    "bill.csv": "Reconciliation with the cloud's bill",
    "standing.csv": "Open proposals",
    "cost.csv": "Cost per day by group",
    "ledger.csv": "Ledger by path and pair of racks",
    "locality.csv": "Locality by group and rack",
    "warmups.csv": "Warm-up times",
    "restores.csv": "Restore rates",
    "rebalances.csv": "Rebalances and their causes",
    "drift.csv": "Rack drift",
    OUTCOMES: "Predicted and measured",
    "errors.csv": "Prediction errors",
}


def reports_view(asked: PageRequest) -> Response:
    """The view; ``file`` is the table that is shown, ``of`` the quantity of the scatter."""
    folder = asked.agent.settings.settings.http.reports
    if folder is None:
        return asked.page("reports.html", "Reports", why=_NO_FOLDER, files=[], names=[], summary={})
    try:
        files = folder_files(folder)
    except OSError as error:
        why = f"The folder {folder} (http.reports) cannot be read: {error.strerror or error}."
        return asked.page("reports.html", "Reports", why=why, files=[], names=[], summary={})
    tables = [one for one in files if one.kind == ".csv" and one.name != SUMMARY]
    wanted = asked.query.get("file", "")
    chosen = next((one for one in tables if one.name == wanted), None)
    if wanted and chosen is None:
        return asked.problem(404, "No such table", "The folder of reports has no CSV of that name.", "Open the list.")
    return asked.page(
        "reports.html",
        "Reports",
        tables=_tables(asked, folder, files, chosen),
        why="" if files else f"The folder {folder} has no report yet; rackwise spark report --out {folder} writes one.",
        files=files,
        names=[
            (address("/reports", file=one.name), TITLES.get(one.name, one.name), one == chosen)
            for one in tables
            if one.name != OUTCOMES
        ],
        summary=_summary(folder, files),
        scatter=_scatter(asked, folder, files) if chosen is None else None,
        chosen=None if chosen is None else TITLES.get(chosen.name, chosen.name),
        figures=[(address("/reports/figure", name=one.name), one.name) for one in files if one.kind in FIGURES],
        quantities=[(address("/reports", of=one.key), one) for one in QUANTITIES],
        quantity=_quantity(asked),
    )


_NO_FOLDER = (
    "No folder of reports is set. Set http.reports to the folder that rackwise spark report --out writes, and this "
    "view shows its tables, and what was predicted against what was measured."
)


def _tables(
    asked: PageRequest, folder: str, files: Sequence[FolderFile], chosen: FolderFile | None
) -> tuple[TableSource, ...]:
    listing = file_table(files)
    if chosen is not None:
        return foreign_table(read_table(folder, files, chosen.name), TITLES.get(chosen.name, chosen.name)), listing
    return outcome_table(read_table(folder, files, OUTCOMES), _quantity(asked)), listing


def read_table(folder: str, files: Sequence[FolderFile], name: str) -> CsvTable | str:
    """The table of a listed file, or why it cannot be read."""
    file = next((one for one in files if one.name == name), None)
    if file is None:
        return f"There is no {name}."
    try:
        return csv_table(file_bytes(folder, file, MOST_CSV_BYTES))
    except OSError as error:
        return f"{name} cannot be read: {error.strerror or error}."


def _summary(folder: str, files: Sequence[FolderFile]) -> dict[str, list[str]]:
    """What to do first, what it is about, and the notes, as the report says them."""
    table = read_table(folder, files, SUMMARY)
    found: dict[str, list[str]] = {}
    for row in table.rows if isinstance(table, CsvTable) else ():
        if row.get("what") and row.get("sentence"):
            found.setdefault(str(row["what"]), []).append(str(row["sentence"]))
    return found


def _quantity(asked: PageRequest) -> MeasuredQuantity:
    wanted = asked.query.get("of", "")
    return next((one for one in QUANTITIES if one.key == wanted), QUANTITIES[0])


def _scatter(asked: PageRequest, folder: str, files: Sequence[FolderFile]) -> Markup | None:
    table, quantity = read_table(folder, files, OUTCOMES), _quantity(asked)
    if not isinstance(table, CsvTable):
        return None
    pairs = [
        ScatterPoint(predicted, measured, " ".join(filter(None, (row.get("proposal"), row.get("subject")))))
        for row in table.rows
        if (predicted := number_of(row.get(quantity.predicted))) is not None
        and (measured := number_of(row.get(quantity.measured))) is not None
    ]
    return scatter(
        pairs, title=quantity.title, unknown=len(table.rows) - len(pairs),
        words=lambda value: value_words(value, quantity.unit),
    )  # fmt: skip


def number_of(text: str | None) -> float | None:
    """The number of a field; None where it is none."""
    if text is None or len(text) > _MOST_DIGITS:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def value_words(value: float, unit: str) -> str:
    """A value with its unit."""
    match unit:
        case "bytes_per_s":
            return bytes_words(value) or ""
        case "bytes":
            return sized(value)
        case "usd":
            return usd(value)
        case "seconds":
            return f"{value:,.0f} s"
        case _:
            return f"{value:,.0f}"


def outcome_table(table: CsvTable | str, quantity: MeasuredQuantity) -> TableSource:
    """Predicted and measured of one quantity, one row for each proposal that was carried out."""
    rows = [] if isinstance(table, str) else [_outcome(row, quantity) for row in table.rows]

    def figure(name: str) -> TableColumn:
        return TableColumn(
            name,
            name.capitalize(),
            lambda row: TableCell(None if row[name] is None else value_words(row[name], quantity.unit)),
            lambda row: row[name],
            is_number=True,
            falls=True,
        )

    return TableSource(
        key="outcomes",
        title=f"{quantity.title}, by proposal",
        unit="proposal",
        rows=rows,
        columns=(
            TableColumn("proposal", "Proposal", _proposal, lambda row: row["proposal"]),
            TableColumn("kind", "Kind", lambda row: TableCell(row["kind"]), lambda row: row["kind"]),
            TableColumn("subject", "About", lambda row: TableCell(row["subject"], tone="name"),
                        lambda row: row["subject"]),
            figure("predicted"),
            figure("measured"),
            TableColumn("error_share", "Error", _error, lambda row: row["error_share"], is_number=True),
        ),
        text=lambda row: f"{row['proposal']} {row['kind']} {row['subject']}",
        empty=table if isinstance(table, str) else "No proposal of the report's period was carried out.",
        page_rows=15,
    )  # fmt: skip


def _outcome(row: Mapping[str, str | None], quantity: MeasuredQuantity) -> dict[str, object]:
    predicted, measured = number_of(row.get(quantity.predicted)), number_of(row.get(quantity.measured))
    error = None
    if predicted and measured is not None:
        error = round((measured - predicted) / abs(predicted), 4)
    return {
        "proposal": row.get("proposal"),
        "kind": row.get("kind"),
        "subject": row.get("subject"),
        "predicted": predicted,
        "measured": measured,
        "error_share": error,
    }


def _proposal(row: TableRow) -> TableCell:
    return TableCell(row["proposal"], proposal_link(row["proposal"]) if row["proposal"] else None, tone="code")


def _error(row: TableRow) -> TableCell:
    share = row["error_share"]
    if share is None:
        return TableCell(None)
    return TableCell(f"{'+' if share > 0 else ''}{percent(share)}" if share else "0 %")


def foreign_table(table: CsvTable | str, title: str) -> TableSource:
    """A CSV as it is: text is text, numbers are sorted as numbers, an empty field is unknown."""
    if isinstance(table, str):
        return TableSource(key="table", title=title, columns=(), rows=(), empty=table)
    more = f" (and {counted(table.more, 'more row')} in the file)" if table.more else ""
    return TableSource(
        key="table",
        title=title + more,
        unit="row",
        rows=table.rows,
        columns=tuple(_foreign_column(name, table.rows) for name in table.columns),
        text=lambda row: " ".join(str(value) for value in row.values() if value is not None),
        empty="The table has no row.",
        page_rows=25,
    )


def _foreign_column(name: str, rows: Sequence[TableRow]) -> TableColumn:
    known = [row[name] for row in rows if row[name] is not None]
    is_number = bool(known) and all(number_of(value) is not None for value in known)

    def value(row: TableRow) -> float | str | None:
        text: str | None = row[name]
        return number_of(text) if is_number else text

    def cell(row: TableRow) -> TableCell:
        text: str | None = row[name]
        if text is None or not is_number:
            return TableCell(text)
        number = number_of(text) or 0.0
        return TableCell(f"{number:,.10g}" if abs(number) < 1 else f"{number:,.2f}".rstrip("0").rstrip("."))

    return TableColumn(name, name.replace("_", " "), cell, value, is_number=is_number, falls=is_number)


def file_table(files: Sequence[FolderFile]) -> TableSource:
    """Every file of the folder."""
    return TableSource(
        key="files",
        title="Files",
        unit="file",
        rows=[one._asdict() for one in files],
        columns=(
            TableColumn("name", "Name", _download, lambda row: row["name"]),
            TableColumn("bytes", "Size", lambda row: TableCell(sized(row["bytes"])), lambda row: row["bytes"],
                        is_number=True, falls=True),
            TableColumn("modified_ms", "Written",
                        lambda row: instant_cell(row["modified_ms"]),
                        lambda row: row["modified_ms"], falls=True),
        ),
        text=lambda row: row["name"],
        empty="The folder has no report.",
        page_rows=20,
    )  # fmt: skip


def _download(row: TableRow) -> TableCell:
    if row["kind"] in FIGURES:
        return TableCell(row["name"], address("/reports/figure", name=row["name"]), tone="code")
    name = quote(row["name"], safe="", errors="surrogatepass")
    return TableCell(row["name"], Markup("/api/v1/reports/{}").format(name), tone="code")


def figure_view(asked: PageRequest) -> Response:
    """A figure of the folder, as an image that runs nothing and loads nothing."""
    asked.check_query()
    folder, wanted = asked.agent.settings.settings.http.reports, asked.query.get("name", "")
    try:
        files = [] if folder is None else folder_files(folder)
        file = next((one for one in files if one.name == wanted and one.kind in FIGURES), None)
        content = None if file is None or folder is None else file_bytes(folder, file, MOST_FIGURE_BYTES)
    except OSError:
        content = None
    if content is None or file is None:
        return Response("no such figure\n", status_code=404, media_type="text/plain")
    headers = {
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
    }
    return Response(content, media_type=FIGURES[file.kind], headers=headers)


VIEWS = (
    PageView(
        "/reports",
        reports_view,
        needs_look=False,
        fields={"file": (), "of": [one.key for one in QUANTITIES]},
        at_times=("table", "outcomes", "files"),
    ),
    PageView("/reports/figure", figure_view, needs_look=False, fields={"name": ()}),
)
