"""Telemetry files: one JSON line per event, written in mode ``observe`` and read by replays.

A look's lines are on disk when its cycle ends; a line that a crash cut is skipped by the reader. A full disk becomes a
sentence of the next report, never an error in the loop.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol, TextIO, TypeVar

from agent.errors import BadInput, reason
from agent.telemetry.events import MOST_LINE_BYTES, TelemetryEvent, from_lines
from agent.values.typed_json import UnreadableError
from config.plain_file import open_plain, why_not_appended


class TextLine(Protocol):
    """A line of JSON."""

    @property
    def text(self) -> str:
        """Without its line break."""


Line = TypeVar("Line", bound=TextLine)


class TelemetryFile:
    """Appends events; renames the file to ``<file>.1`` and begins anew at its largest size."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._file: TextIO | None = None
        self._problem: str | None = None
        self.written = 0
        self.dropped = 0

    def copied(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Pass the lines of one look on, and append the text of each on its way."""
        self._problem = None
        count = 0
        self._open()
        for line in lines:
            count += 1
            self._append(line.text)
            yield line
        self._close()
        if self.problem() is None:
            self.written += count
        else:
            self.dropped += count

    def begins_anew(self) -> bool:
        """Whether the next look is the first of a file."""
        try:
            return self._path.stat().st_size >= self._max_bytes
        except OSError:
            return True

    def problem(self) -> str | None:
        """A sentence when the last events could not be written."""
        return self._problem

    def _open(self) -> None:
        if (why := why_not_appended(str(self._path))) is not None:  # a pipe without a reader would hold the loop up
            self._problem = f"{self._path}: {why}"
            return
        try:
            if self._path.exists() and self.begins_anew():
                self._path.replace(self._path.with_name(self._path.name + ".1"))
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
            self._file = os.fdopen(descriptor, "w", encoding="ascii")
        except OSError as error:
            self._failed(error)

    def _append(self, text: str) -> None:
        if self._file is not None:
            try:
                self._file.write(f"{text}\n")
            except OSError as error:
                self._failed(error)

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self._failed(error)

    def _failed(self, error: OSError) -> None:
        self._problem = f"{self._path}: {error.strerror}"
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # the same error again, from what is still in the buffer
                file.close()


def read_events(path: Path) -> Iterator[TelemetryEvent]:
    """Events of a telemetry file. Raises BadInput when it cannot be read or holds something else."""
    try:
        with open_plain(path) as file:
            yield from from_lines(_whole_lines(file))
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read", why=reason(error), todo="Give a file that record.file wrote."
        ) from error
    except UnreadableError as error:
        raise BadInput(
            f"{path} is not a telemetry file", why=str(error), todo="Give a file that record.file wrote."
        ) from error


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """Raises UnreadableError for an overlong line: a sparse file may be one endless line."""
    while line := file.readline(MOST_LINE_BYTES + 1):
        if line.endswith(b"\n"):
            yield line
        elif len(line) > MOST_LINE_BYTES:
            raise UnreadableError(f"a line is longer than {MOST_LINE_BYTES:,} bytes")
