"""Files that a command reads and writes: JSON, with or without gzip; what cannot be used is one sentence."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

from agent.cli.output import emit_json
from agent.errors import BadInput, reason
from agent.values import foreign_json
from config.plain_file import read_plain

STANDARD = Path("-")
"""Standard input or output."""
_GZIP = b"\x1f\x8b"
_MOST_BYTES = 256 * 1024 * 1024
"""Also of what a gzip file unfolds to."""
_MOST_VALUES = 1 << 24


def read_json(path: Path) -> Any:
    """The JSON document in a file; one that ends in .gz is gzip'ed, any other may be, and ``-`` is standard input."""
    try:
        data = sys.stdin.buffer.read(_MOST_BYTES + 1) if path == STANDARD else read_plain(path, _MOST_BYTES)
    except OSError as error:
        raise BadInput(f"{path} cannot be read", why=reason(error), todo="Name a file that can be read.") from error
    if path.suffix == ".gz" or data.startswith(_GZIP):
        try:
            with gzip.GzipFile(fileobj=BytesIO(data)) as file:
                data = file.read(_MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise BadInput(
                f"{path} is not a whole gzip file", why=reason(error), todo="Copy or write it again."
            ) from error
    try:
        return foreign_json.read_json(data, most_bytes=_MOST_BYTES, most_values=_MOST_VALUES)
    except foreign_json.ForeignJsonError as error:
        raise BadInput(
            f"{path} cannot be used", why=reason(error), todo="Name a file of JSON, with or without gzip."
        ) from error


def write_json(path: Path | None, document: Any) -> None:
    """Write a document as one line of JSON; without a path, or to ``-``, on standard output."""
    if path is None or path == STANDARD:
        emit_json(document)
        return
    write_text(path, json.dumps(document) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file anew. Raises ``BadInput`` where that cannot be."""
    try:
        path.write_text(text)
    except OSError as error:
        raise BadInput(f"{path} cannot be written", why=reason(error), todo="Name another file.") from error
