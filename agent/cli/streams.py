"""Standard output and error that are closed, full, or that nothing reads any more."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress


def mend() -> None:
    """Streams that were closed before the start lead nowhere, and no character makes one fail."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 open as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def lead_nowhere(stream: io.TextIOBase | object) -> None:
    """Drop what is still to be written to a stream, and all that follows."""
    if isinstance(stream, io.TextIOWrapper):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def let_go(stream: io.TextIOBase | object) -> None:
    """What is still to be written and cannot be is dropped: Python itself would fail on it at the very end."""
    if not isinstance(stream, io.TextIOWrapper):
        return
    try:
        stream.flush()
    except OSError:
        lead_nowhere(stream)
    except ValueError:  # it is closed
        pass
