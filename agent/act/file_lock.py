"""The lock of a journal file: a file beside it (``<file>.lock``) that the kernel lets go of with the process.

It is a file of its own because the journal is replaced by its compaction. Invariant: its holder may write the journal,
as long as the file that is locked is the one that others would lock.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from agent.act.own_files import open_own, open_regular, reason_of
from agent.errors import FencedOut, JournalUnavailable

_MOST_HOLDER = 200


class FileLock:
    """The lock file, held for as long as the process lives."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file: int | None = file

    @classmethod
    def take(cls, journal: Path) -> Self:
        """Raises FencedOut while another process has it, JournalUnavailable when there can be no lock."""
        path = _lock_path(journal)
        try:
            file = open_own(path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise refused(journal, error) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(file, 0)
            os.pwrite(file, f"process {os.getpid()} of {os.uname().nodename}\n".encode(), 0)
        except BlockingIOError as error:
            os.close(file)
            raise FencedOut(
                f"Another agent holds the journal {journal}",
                why=holder(journal) or "its lock is taken",
                todo="Stop that agent, or keep this one as a standby.",
            ) from error
        except OSError as error:
            os.close(file)
            raise refused(journal, error) from error
        return cls(path, file)  # if it was replaced meanwhile, it is not sure and nothing is ever written

    def is_sure(self) -> bool:
        """Whether the file that is locked is the one that others would lock."""
        if self._file is None:
            return False
        try:
            own, there = os.fstat(self._file), self._path.stat()
        except OSError:
            return False
        return (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)

    def release(self) -> None:
        """Let go of it."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def holder(path: Path) -> str | None:
    """The holder of the lock of this journal, as it says itself; None when there is none or it is unknown."""
    try:
        file, _ = open_regular(_lock_path(path))
        with os.fdopen(file, "rb") as opened:
            return opened.read(_MOST_HOLDER).decode("utf-8", "replace").strip() or None
    except OSError:
        return None


def refused(path: Path, error: OSError) -> JournalUnavailable:
    """The error for a disk, or a file that is not as it has to be."""
    return JournalUnavailable(
        f"The journal {path} could not be read or written",
        why=reason_of(error),
        todo="Check the disk, and the owner and permissions of the directory and its files.",
    )


def _lock_path(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}.lock")
