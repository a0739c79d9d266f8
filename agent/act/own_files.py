"""Files that only the agent's user may have written, and the lock of a journal file.

The open file is checked, not its name, without following links or waiting for pipes (open(2), fstat(2)). Every fault is
an OSError whose text is the reason.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Self

from agent.errors import ConfigError, FencedOut, JournalUnavailable
from agent.execute.commands.command_context import CommandSigner, CommandWitness, OperatorKeys
from agent.journal.entries import JournalKey
from agent.journal.record_trust import LEAST_KEY

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KEY_BYTES = 65_536


def open_own(path: Path | str, flags: int) -> int:
    """A regular file of this user, or one that is made now, that no other user may write; a file descriptor."""
    file = os.open(path, flags | _SAFE, 0o600)
    try:
        status = os.fstat(file)
        _check_regular(status)
        _check_owned(status)
        _refuse(status, stat.S_IWGRP | stat.S_IWOTH, "other users may write it: chmod go-w")
    except BaseException:
        os.close(file)
        raise
    return file


def open_regular(path: Path | str, *, directory: int | None = None) -> tuple[int, os.stat_result]:
    """A regular file for reading, of any owner, and what it is; it has one name only."""
    file = os.open(path, os.O_RDONLY | _SAFE, dir_fd=directory)
    try:
        status = os.fstat(file)
        _check_regular(status)
        _check_named_once(status)
    except BaseException:
        os.close(file)
        raise
    return file, status


def check_parent(path: Path) -> None:
    """Checks that no other user may rename or remove a file of ours in its directory. Raises PermissionError.

    That is this user's or root's, and only its owner may write it, or it is sticky, as /tmp is.
    """
    directory = path.parent
    status = directory.stat()
    shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
    if shared:
        raise PermissionError(errno.EPERM, f"other users may replace files in {directory}: chmod go-w")
    if status.st_uid not in (os.geteuid(), 0):
        raise PermissionError(errno.EPERM, f"{directory} belongs to {user_at_host(status.st_uid)}")


@contextmanager
def own_directory(path: Path) -> Iterator[int]:
    """A directory of this user, in which no other user but its group may write; a file descriptor."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _SAFE)
    try:
        status = os.fstat(directory)
        _check_owned(status)
        _refuse(status, stat.S_IWOTH, f"any user may write {path}: chmod o-w")
        yield directory
    finally:
        os.close(directory)


def read_key_file(path: Path) -> tuple[str, ...]:
    """The lines of a file with secrets; a link, as orchestrators mount them, is followed. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        check_secret(os.fstat(file))
        text = os.read(file, _KEY_BYTES).decode("ascii")
    except UnicodeDecodeError as error:
        raise OSError(errno.EINVAL, "it is not ASCII text") from error
    finally:
        os.close(file)
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def check_secret(status: os.stat_result) -> None:
    """Checks that it is a regular file that no other user may read or write. Raises OSError."""
    _check_regular(status)
    _refuse(status, stat.S_IROTH | stat.S_IWOTH | stat.S_IWGRP, "other users may read or write it: chmod 600")


def user_at_host(uid: int) -> str:
    """A user of this machine as ``user@host``."""
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid{uid}"
    return f"{name}@{socket.gethostname()}"


def reason_of(error: OSError) -> str:
    """Why a file could not be had, for people."""
    if error.errno == errno.ELOOP:
        return "it is a symbolic link"
    if error.errno == errno.ENXIO:
        return "it is a pipe or a socket, not a file"
    return error.strerror or str(error)


def _check_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


def _refuse(status: os.stat_result, mode: int, why: str) -> None:
    if status.st_mode & mode:
        raise PermissionError(errno.EPERM, why)


def _check_named_once(status: os.stat_result) -> None:
    if status.st_nlink != 1:
        raise PermissionError(errno.EPERM, "it has more than one name (hard link)")


def _check_owned(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f"it belongs to {user_at_host(status.st_uid)}, not to this agent's user")


# The lock is a file of its own (``<file>.lock``) because compaction replaces the journal. It ends with the process.

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
        """Release it."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def holder(path: Path) -> str | None:
    """The holder of the lock of this journal, as it wrote itself; None when there is none or it is unknown."""
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


_MOST_KEYS = 8


def journal_keys(path: str | None) -> tuple[JournalKey, ...]:
    """The key in force, then former ones; none without a file. Raises ConfigError."""
    return () if path is None else _keys("execute.journal_key_file", path)


def witness_keys(journal_key_file: str | None) -> tuple[JournalKey, ...]:
    """The keys by which agents vouch for people who sign in: the journal's, else one that this process alone has.

    Raises ConfigError.
    """
    return journal_keys(journal_key_file) or (_process_key(),)


@cache
def _process_key() -> JournalKey:
    return JournalKey(os.urandom(32))


def command_witness(agent: str, journal_key_file: str | None) -> CommandWitness:
    """The agent of that name as a witness of commands, with its keys. Raises ConfigError."""
    return CommandWitness(agent, witness_keys(journal_key_file))


def people(files: Mapping[str, str]) -> OperatorKeys:
    """The keys of people by name. Raises ConfigError, also where two people have the same key."""
    found = {name: _one(f"approve.people.{name}", path) for name, path in files.items()}
    by_key: dict[bytes, str] = {}
    for name, key in found.items():
        other = by_key.setdefault(key.secret, name)
        if other != name:
            raise ConfigError(
                f"approve.people: {other} and {name} have the same key",
                why="a key identifies one person",
                todo="Make a key for each: openssl rand -hex 32 > FILE; chmod 600 FILE",
            )
    return MappingProxyType(found)


def signer(name: str | None, path: str | None) -> CommandSigner | None:
    """Name and key with which this process signs commands; None where no person is set. Raises ConfigError."""
    return None if name is None or path is None else CommandSigner(name, _one("operator.key_file", path))


def _one(setting: str, path: str) -> JournalKey:
    keys = _keys(setting, path)
    if len(keys) != 1:
        raise _mistake(setting, path, f"it has {len(keys)} lines, and one key is expected")
    return keys[0]


def _keys(setting: str, path: str) -> tuple[JournalKey, ...]:
    try:
        lines = read_key_file(Path(path))
    except OSError as error:
        raise _mistake(setting, path, reason_of(error)) from error
    if not lines:
        raise _mistake(setting, path, "it is empty")
    if len(lines) > _MOST_KEYS:
        raise _mistake(setting, path, f"it has {len(lines)} keys, and at most {_MOST_KEYS} are kept")
    for number, line in enumerate(lines, 1):
        if len(line) < LEAST_KEY:
            raise _mistake(
                setting, path, f"line {number} has {len(line)} characters, and a key has at least {LEAST_KEY}"
            )
    return tuple(JournalKey(line.encode()) for line in dict.fromkeys(lines))


def _mistake(setting: str, path: str, why: str) -> ConfigError:
    return ConfigError(
        f"{setting}: {path} has no key that can be used",
        why=why,
        todo="Make one with: openssl rand -hex 32 > FILE; chmod 600 FILE",
    )
