"""How far has a journal file come? A few bytes beside it (``<file>.reached``), so that one that was cut is noticed.

Written after each transaction, without waiting for the disk: after a crash it says less than the journal, never more.
Invariant: no epoch is given out twice as long as the file or its witness is there.
"""

from __future__ import annotations

import errno
import os
import re
import zlib
from pathlib import Path
from typing import NamedTuple

from agent.act.own_files import open_own

_TEXT = re.compile(rb"((\d{20}) (\d{20}) (\d{20})) ([0-9a-f]{8})\n")

Place = tuple[int, int]
"""(epoch, seq) of an entry; places only grow."""
NOWHERE: Place = (0, -1)


class Reached(NamedTuple):
    """What is known beside the journal."""

    given: int = 0
    """The newest epoch that was given out, whether anything was written under it or not."""
    place: Place = NOWHERE
    """Of the last entry that is surely written."""


class FileWitness:
    """The witness of one journal file, held open by its writer. Every fault is an OSError."""

    def __init__(self, file: int) -> None:
        self._file = file

    @classmethod
    def of(cls, journal: Path) -> FileWitness:
        """Opened, or made."""
        return cls(open_own(witness_path(journal), os.O_RDWR | os.O_CREAT))

    def read(self) -> Reached:
        """What it says; nothing reached while it is empty."""
        data = os.pread(self._file, 256, 0)
        if not data.strip(b"\0"):
            return Reached()
        found = _TEXT.fullmatch(data)
        if found is None or found[5] != _sum(found[1]):
            raise OSError(
                errno.EINVAL, "its witness (.reached) is damaged; remove it if the journal is known to be whole"
            )
        return Reached(int(found[2]), (int(found[3]), int(found[4]) - 1))

    def write(self, reached: Reached, *, durably: bool) -> None:
        """Say how far the journal has come. The same length each time, so that there is never half of one."""
        epoch, seq = reached.place
        text = b"%020d %020d %020d" % (reached.given, epoch, seq + 1)
        os.pwrite(self._file, b"%s %s\n" % (text, _sum(text)), 0)
        if durably:
            os.fsync(self._file)

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)


def witness_path(journal: Path) -> Path:
    """Where the witness of a journal file stands."""
    return journal.with_name(f"{journal.name}.reached")


def _sum(text: bytes) -> bytes:
    return b"%08x" % zlib.crc32(text)
