"""Files that a command reads and writes: JSON, with or without gzip; what cannot be used is one sentence."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from pathlib import Path
from typing import Any

from agent.cli.output import emit_json
from agent.errors import BadInput, reason

STANDARD = Path("-")
"""Standard input or output."""
_GZIP = b"\x1f\x8b"


def read_json(path: Path) -> Any:
    """The JSON document in a file; one that ends in .gz is gzip'ed, any other may be, and ``-`` is standard input."""
    try:
        data = sys.stdin.buffer.read() if path == STANDARD else path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read", why=reason(error), todo="Name a file that can be read.") from error
    if path.suffix == ".gz" or data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise BadInput(
                f"{path} is not a whole gzip file", why=reason(error), todo="Copy or write it again."
            ) from error
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"{path} is not JSON", why=reason(error), todo="Name a file of JSON, with or without gzip."
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
