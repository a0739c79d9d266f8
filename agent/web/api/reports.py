"""Files of the pipeline's reports, from the one folder that ``http.reports`` names."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import quote

from fastapi import Response
from typing_extensions import TypedDict

from agent.web.api.problems import HEADERS, ApiProblem
from config.load import LoadedSettings

MOST_BYTES = 32 * 1024 * 1024
_MOST_FILES = 10_000
_TYPES = {".md": "text/markdown; charset=utf-8", ".html": "text/html; charset=utf-8", ".csv": "text/csv; charset=utf-8"}


class ReportFile(TypedDict):
    """One file of a report."""

    name: str
    bytes: int
    modified_ms: int
    """Epoch milliseconds."""


def report_files(settings: LoadedSettings) -> list[ReportFile]:
    """The reports of the folder by name; empty without a folder. Raises the problem of one that cannot be read."""
    folder = settings.settings.http.reports
    if folder is None:
        return []
    try:
        with os.scandir(folder) as entries:
            found = [_row(one) for one, _ in zip(entries, range(_MOST_FILES), strict=False) if _is_report(one)]
    except OSError as error:
        raise ApiProblem(
            503, f"the folder of reports cannot be read: {error.strerror}", todo="Correct http.reports."
        ) from None
    return sorted(found, key=lambda row: row["name"])


def report_bytes(settings: LoadedSettings, name: str) -> Response:
    """One report as an attachment. Raises the problem of a name that is not in the folder."""
    known = {row["name"]: row for row in report_files(settings)}
    folder = settings.settings.http.reports
    if folder is None or name not in known:
        raise ApiProblem(404, "there is no such report", todo="List the reports: GET /api/v1/reports")
    if known[name]["bytes"] > MOST_BYTES:
        raise ApiProblem(413, f"the report is larger than {MOST_BYTES} bytes", todo="Read it on the agent's host.")
    headers = {
        **HEADERS,
        "content-type": _TYPES[Path(name).suffix],
        "content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    }
    try:
        descriptor = os.open(Path(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return Response(file.read(MOST_BYTES), headers=headers)
    except OSError as error:
        raise ApiProblem(404, f"the report cannot be read: {error.strerror}") from None


def _is_report(entry: os.DirEntry[str]) -> bool:
    """A plain file of a report's format; links lead out of the folder."""
    return Path(entry.name).suffix in _TYPES and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)


def _row(entry: os.DirEntry[str]) -> ReportFile:
    found = entry.stat(follow_symlinks=False)
    return {"name": entry.name, "bytes": found.st_size, "modified_ms": found.st_mtime_ns // 1_000_000}
