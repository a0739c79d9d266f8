"""The folder of the pipeline's reports as the page reads it: plain files of known kinds, bounded, through no link."""

from __future__ import annotations

import csv
import io
import os
import stat
from pathlib import Path
from typing import NamedTuple

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
