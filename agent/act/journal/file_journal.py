"""File journal: an append-only file with a lock, for agents that keep no state in Kafka.

One line per transaction: a checksum, then its entries as JSON. Invariants: an append that returned is on disk; a torn
last line was never acknowledged and is cut; a damaged earlier line is an error; the watermark file detects truncation.
The lock is a separate file because compaction replaces the journal. All files belong to the agent's user.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from agent.act.journal.journal_topic import JournalWatermark
from agent.act.own_files import FileLock, check_parent, open_own, open_regular, refused
from agent.errors import BadInput, FencedOut, JournalUnavailable, RackwiseError
from agent.journal.entries import (
    EncodedWrite,
    Entry,
    JournalPosition,
    JournalState,
    JournalWrite,
    NewerEntryError,
    UnreadableEntryError,
    applied,
    entry_of_json,
    json_bytes,
    numbered,
    record_of,
)
from agent.journal.record_trust import LeaderEntry, check_cluster, leader_write, newest_epoch
from agent.values.clock import Clock, system_clock
from agent.values.typed_json import ForeignJsonError, read_json

# ``<file>.reached`` is written after each transaction without fsync: after a crash it may be behind the journal, never
# ahead. Invariant: no epoch repeats as long as the file or its watermark exists.

_TEXT = re.compile(rb"((\d{20}) (\d{20}) (\d{20})) ([0-9a-f]{8})\n")

NOWHERE: JournalPosition = (0, -1)


class FileWatermark(NamedTuple):
    """Epoch and position that a journal file has surely reached, kept in a file beside it."""

    given: int = 0
    """The newest epoch that was given out, whether anything was written under it or not."""
    place: JournalPosition = NOWHERE
    """Position of the last entry that is surely written."""


class WatermarkFile:
    """The watermark of one journal file, held open by its writer. Every fault is an OSError."""

    def __init__(self, file: int) -> None:
        self._file = file

    @classmethod
    def of(cls, journal: Path) -> WatermarkFile:
        """Opened, or made."""
        return cls(open_own(watermark_path(journal), os.O_RDWR | os.O_CREAT))

    def read(self) -> FileWatermark:
        """Its content; nothing reached while it is empty. Raises OSError: unreadable or damaged."""
        data = os.pread(self._file, 256, 0)
        if not data.strip(b"\0"):
            return FileWatermark()
        match = _TEXT.fullmatch(data)
        if match is None or match[5] != _sum(match[1]):
            raise OSError(
                errno.EINVAL, "its watermark (.reached) is damaged; remove it if the journal is known to be whole"
            )
        return FileWatermark(int(match[2]), (int(match[3]), int(match[4]) - 1))

    def write(self, reached: FileWatermark, *, durably: bool) -> None:
        """Write how far the journal has come. The same length each time, so that there is never half of one."""
        epoch, seq = reached.place
        text = b"%020d %020d %020d" % (reached.given, epoch, seq + 1)
        os.pwrite(self._file, b"%s %s\n" % (text, _sum(text)), 0)
        if durably:
            os.fsync(self._file)

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)


def watermark_path(journal: Path) -> Path:
    """Path of the watermark of a journal file."""
    return journal.with_name(f"{journal.name}.reached")


def _sum(text: bytes) -> bytes:
    return b"%08x" % zlib.crc32(text)


LEAST_BYTES = 16 * 1024 * 1024
"""A file below this is compacted when it is opened, and only then."""
_GROWTH = 4
_SUM_BYTES = 8
_MOST_LINE_BYTES = 128 * 1024 * 1024
"""Of one transaction: twice what plans that have not ended may have together (`agent.journal.targets`)."""
_MOST_LINE_VALUES = 1 << 25
_TORN = re.compile(rb"[0-9a-f]{0,8}|[0-9a-f]{8} (\[.*)?|\0+", re.DOTALL)
"""What a crash can leave of a first line, with or without its end."""


class JournalContents(NamedTuple):
    """Content of a journal file."""

    view: JournalState
    newest: JournalPosition
    """Position of the last entry, a deletion included."""


class FileJournal:
    """A `JournalPort`; make it with `open`."""

    def __init__(
        self, path: Path, lock: FileLock, watermark: WatermarkFile, clock: Clock, found: JournalContents
    ) -> None:
        self._path = path
        self._watermark = watermark
        self._held = lock
        self._clock = clock
        self._lock = threading.RLock()
        self._view, self._newest = found.view, found.newest
        self._epoch = 0
        self._seq = 0
        self._file: int | None = None
        self._size = self._compacted_size = 0
        self._ended: RackwiseError | None = None
        self._closed = False

    @classmethod
    def open(cls, path: Path, leader: LeaderEntry, *, clock: Clock = system_clock) -> Self:
        """Take the lock, read, compact, and write the new epoch as the first transaction.

        Raises FencedOut while another agent has the lock, BadInput for a file that is damaged or a newer rackwise's,
        JournalUnavailable when the disk refuses.
        """
        try:
            check_parent(path)
            lock = FileLock.take(path)
        except OSError as error:
            raise refused(path, error) from error
        try:
            watermark = WatermarkFile.of(path)
        except OSError as error:
            lock.release()
            raise refused(path, error) from error
        try:
            found, reached = read_file(path, own=True), watermark.read()
            _check_whole(path, found.newest, reached.place)
            check_cluster(found.view, leader.cluster, str(path))
            journal = cls(path, lock, watermark, clock, found)
            journal._compact()
            journal._epoch = max(found.newest[0], newest_epoch(found.view), reached.given) + 1
            watermark.write(FileWatermark(journal._epoch, reached.place), durably=True)
            journal.append(leader_write(leader._replace(since_ms=clock().wall_ms)))
        except OSError as error:
            watermark.close()
            lock.release()
            raise refused(path, error) from error
        except BaseException:
            watermark.close()
            lock.release()
            raise
        return journal

    @property
    def epoch(self) -> int:
        """The leadership under which this writer writes."""
        return self._epoch

    @property
    def reached(self) -> JournalWatermark:
        """Epoch and end that the journal has surely reached."""
        return JournalWatermark(self._epoch)

    @property
    def ended(self) -> RackwiseError | None:
        """Why this writer can never write again; None while it can."""
        if self._ended is None and not self._held.is_sure():
            self._ended = _lock_gone(self._path)
        return self._ended

    def view(self) -> JournalState:
        """The journal's present state."""
        with self._lock:
            if self._ended is not None:
                raise self._ended
            return self._view

    def append(self, *writes: JournalWrite) -> None:
        """One line, on the disk when this returns; see `JournalPort`.

        BadInput, before anything is done, for what no journal can hold. After JournalUnavailable nothing was written
        for as long as this process lives; after a crash right then the line may be there.
        """
        with self._lock:
            if (ended := self.ended) is not None:
                raise ended
            changes = numbered(writes, at_ms=self._clock().wall_ms, epoch=self._epoch, first_seq=self._seq)
            if changes:
                self._seq = changes[-1].entry.seq + 1
                self._write(changes)

    def close(self) -> None:
        """Write no more, and release the lock."""
        with self._lock:
            self._ended = self._ended or JournalUnavailable("The journal is closed", why="this agent no longer leads")
            self._drop_file()
            if not self._closed:
                self._closed = True
                self._watermark.close()
            self._held.release()

    def _write(self, changes: Sequence[EncodedWrite]) -> None:
        if self._file is None or self._size > max(LEAST_BYTES, _GROWTH * self._compacted_size):
            self._compact()
        line = _line([_change_json(*change) for change in changes])
        if len(line) > _MOST_LINE_BYTES:
            raise BadInput(
                f"The transaction for the journal {self._path} is too big",
                why=f"{len(line):,} bytes, and a line may have {_MOST_LINE_BYTES:,}",
            )
        try:
            _write_all(self._opened(), line)
            os.fsync(self._opened())
        except OSError as error:
            # After a failed fsync it is unknown what the disk has: the file is written anew, now or before the next.
            self._drop_file()
            with suppress(JournalUnavailable):
                self._compact()
            raise refused(self._path, error) from error
        self._size += len(line)
        self._view = applied(self._view, changes)
        self._newest = changes[-1].entry.epoch, changes[-1].entry.seq
        with suppress(OSError):  # the entries are on the disk; a watermark that lags behind does no harm
            self._watermark.write(FileWatermark(self._epoch, self._newest), durably=False)

    def _compact(self) -> None:
        """Replace the file by its newest entries, so that a crash leaves the old one or the new one."""
        self._drop_file()
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            new.unlink(missing_ok=True)
            with os.fdopen(open_own(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                if self._newest != NOWHERE:
                    file.write(_line([_marker(self._newest)]))
                for entry in self._view.values():
                    file.write(_line([{"key": entry.key, **record_of(entry)}]))
                file.flush()
                os.fsync(file.fileno())
                self._size = self._compacted_size = file.tell()
            new.replace(self._path)
            _sync_directory(self._path.parent)
            self._file = open_own(self._path, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise refused(self._path, error) from error

    def _opened(self) -> int:
        if self._file is None:
            raise OSError(errno.EBADF, "it is not open")
        return self._file

    def _drop_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def read_file(path: Path, *, own: bool = False) -> JournalContents:
    """The file's state, without a lock; empty when there is no file. Raises BadInput, JournalUnavailable.

    ``own`` is for an agent that acts by it: the file is this user's then, and no other user may write it.
    """
    view: dict[str, Entry] = {}
    whole, newest = False, NOWHERE
    torn: int | None = None
    try:
        with os.fdopen(open_own(path, os.O_RDONLY) if own else open_regular(path)[0], "rb") as file:
            for number, line in enumerate(file, 1):
                transaction = _transaction(line)
                if transaction is None:
                    if not (torn or whole or _TORN.fullmatch(line)):
                        raise _foreign(path)
                    torn = torn or number
                    continue
                if torn is not None:
                    raise _damaged(path, torn, "its checksum does not match, and complete lines follow")
                _apply(view, transaction, path, number)
                newest = max(newest, *(_place(one) for one in transaction)) if transaction else newest
                whole = True
    except FileNotFoundError:
        pass
    except OSError as error:
        raise refused(path, error) from error
    return JournalContents(MappingProxyType(view), newest)


def _line(entries: Sequence[Mapping[str, Any]]) -> bytes:
    text = json_bytes(entries)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _transaction(line: bytes) -> list[Any] | None:
    """The entries of a line; None when it is not whole."""
    text = line[_SUM_BYTES + 1 : -1]
    if line[-1:] != b"\n" or line[: _SUM_BYTES + 1] != b"%08x " % zlib.crc32(text):
        return None
    try:
        found = read_json(text, most_bytes=_MOST_LINE_BYTES, most_values=_MOST_LINE_VALUES, as_seen=True)
    except ForeignJsonError:
        return None
    return found if isinstance(found, list) else None


def _apply(view: dict[str, Entry], transaction: Iterable[Any], path: Path, number: int) -> None:
    for one in transaction:
        key = one.get("key") if isinstance(one, dict) else None
        if not isinstance(key, str):
            raise _damaged(path, number, "an entry has no key")
        view.pop(key, None)
        if one.get("value") is None:
            continue
        try:
            view[key] = entry_of_json(key, one)
        except NewerEntryError as error:
            raise BadInput(
                f"The journal {path} is neither read nor written, and nothing is done",
                why=f"a newer rackwise wrote it (line {number}: {error})",
                todo="Upgrade this agent to the same version.",
            ) from error
        except UnreadableEntryError as error:
            raise _damaged(path, number, str(error)) from error


def _change_json(entry: Entry, data: bytes | None) -> Mapping[str, Any]:
    if data is None:
        return {"key": entry.key, "kind": entry.kind, "epoch": entry.epoch, "seq": entry.seq, "value": None}
    return {"key": entry.key, **record_of(entry)}


def _marker(newest: JournalPosition) -> Mapping[str, Any]:
    """Entry that deletes nothing and records the newest position: the last entry may have been a deletion."""
    return {"key": "reached", "kind": "reached", "epoch": newest[0], "seq": newest[1], "value": None}


def _place(one: Any) -> JournalPosition:
    """Of an entry in a line; nowhere without one."""
    epoch, seq = (one.get("epoch"), one.get("seq")) if isinstance(one, dict) else (None, None)
    return (epoch, seq) if isinstance(epoch, int) and isinstance(seq, int) else NOWHERE


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _sync_directory(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _foreign(path: Path) -> BadInput:
    return BadInput(
        f"{path} is not a journal of rackwise",
        why="its first line is not a journal entry",
        todo="Set execute.journal_file to another file; this file stays unchanged.",
    )


def _damaged(path: Path, number: int, why: str) -> BadInput:
    return BadInput(
        f"The journal {path} is damaged in line {number}",
        why=why,
        todo="Restore a copy; or make sure that no reassignment runs and no throttle is left, and move the file away.",
    )


def _check_whole(path: Path, newest: JournalPosition, before: JournalPosition) -> None:
    """Raises BadInput for a file that ends before the position of its watermark."""
    if newest >= before:
        return
    ends = f"it ends with entry {_name(newest)}, and {_name(before)} was written before"
    raise BadInput(
        f"The journal {path} has lost records: {ends}",
        why="it was cut, deleted, or replaced by an older copy",
        todo=(
            "Restore the newest copy; or make sure that no reassignment runs and no throttle is left, then remove it"
            f" and {watermark_path(path).name}."
        ),
    )


def _name(place: JournalPosition) -> str:
    return "none" if place == NOWHERE else f"{place[0]}-{place[1]}"


def _lock_gone(path: Path) -> FencedOut:
    return FencedOut(
        f"The lock of the journal {path} is not this agent's any more",
        why="its file was removed or replaced, so another agent may hold a lock as well",
        todo="Start this agent again.",
    )
