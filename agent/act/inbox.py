"""Inbox of operators' commands, and the inbox that reads them from a directory.

Invariant: a command is returned until the journal holds its answer (``command/<id>``) or the position after it; the
leader writes both in one transaction, so a crash or takeover neither loses nor repeats one. Write access to the topic
or directory is the right to command.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from agent.act.own_files import open_regular, own_directory, reason_of, user_at_host
from agent.errors import BadInput, ConfigError, reason
from agent.execute.commands.command_context import CommandOrigin
from agent.journal.entries import JournalState, JournalWrite, json_bytes
from agent.values.typed_json import ForeignJsonError, read_json

POSITION = "command-position"
ANSWERS = "command"
MAX_BYTES = 65_536
MOST_AT_ONCE = 100
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class InboxCommand(NamedTuple):
    """A command that waits for its answer."""

    id: str
    value: Mapping[str, Any]
    after: JournalWrite
    """To be written together with the answer: from where the next leader goes on."""
    came: CommandOrigin = CommandOrigin()
    """How and when the command reached this agent."""


class CommandInbox(Protocol):
    """Source of operators' commands: a topic or a directory."""

    def read(self, view: JournalState) -> tuple[InboxCommand, ...]:
        """Commands without an answer, oldest first, at most `MOST_AT_ONCE`; faults of broker or disk raise nothing."""

    def problem(self) -> str | None:
        """What the last `read` passed over, or why it could read nothing; None without either."""

    def unread(self) -> str | None:
        """Why the last `read` could read nothing; None also where it passed something over."""

    def caught_up(self) -> bool:
        """Whether all that was there when this agent began to lead has been handed out."""

    def close(self) -> None:
        """Close the source."""


def command_bytes(command: Mapping[str, Any]) -> tuple[str, bytes]:
    """The id of a command and its bytes. Raises BadInput for what no inbox would take."""
    try:
        data = json_bytes(command)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput("The command is not JSON", why=reason(error)) from error
    if len(data) > MAX_BYTES:
        raise BadInput("The command is too big", why=f"it has {len(data)} bytes, and at most {MAX_BYTES} are allowed")
    try:
        found = _named(read_json(data, most_bytes=MAX_BYTES))
    except ForeignJsonError as error:
        raise BadInput("The command cannot be sent", why=str(error)) from error
    if found is None:
        raise BadInput("The command has no id", why="it needs one of 1 to 64 letters, digits, dots, dashes")
    return found[0], data


def command_of(data: bytes | None) -> tuple[str, Mapping[str, Any]] | None:
    """The id of a command and its JSON object; None for anything else."""
    if data is None:
        return None
    try:
        return _named(read_json(data, most_bytes=MAX_BYTES))
    except ForeignJsonError:
        return None


def is_answered(command_id: str, view: JournalState) -> bool:
    """Whether the journal holds its answer."""
    return f"{ANSWERS}/{command_id}" in view


def _named(document: Any) -> tuple[str, Mapping[str, Any]] | None:
    if not isinstance(document, dict):
        return None
    name = document.get("id")
    return (name, document) if isinstance(name, str) and _ID.fullmatch(name) else None


# A file is complete or absent, and is removed once the journal holds its answer. Its owner is the sender; the directory
# belongs to the agent's user. Links and pipes are not followed. A journal without a position begins after the files
# that are there.

KIND = "file"
_MODE = 0o700
_FILE_MODE = 0o644
"""The agent may be another user than the one who commands."""
_SUFFIX = ".json"
_BAD = ".bad"
_OLD = ".old"
_MOST_STEM = 200
"""Characters of a name that are kept where it gets another one; a name has 255 bytes at most."""
_NUMBER = re.compile(r"0[0-9]{13}")
"""Milliseconds until the year 2286; what begins otherwise is not from here."""
_NO_FILE = (errno.ELOOP, errno.ENXIO, errno.EINVAL, errno.EISDIR, errno.EPERM, errno.EACCES)
"""What no command can be, or may not be read; it is set aside, so that it takes no other one's turn."""


def spool_command(directory: Path, command: Mapping[str, Any], *, at_ms: int) -> str:
    """Lay one command down; its id. Raises BadInput for what is no command, ConfigError when it cannot be written."""
    name, data = command_bytes(command)
    try:
        directory.mkdir(mode=_MODE, exist_ok=True)
        opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            path = f"{max(at_ms, _last(opened) + 1):014d}-{name}{_SUFFIX}"
            new = f"{path}.new"
            file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE, dir_fd=opened)
            with os.fdopen(file, "wb") as written:
                os.fchmod(file, _FILE_MODE)  # whatever the umask of the one who commands
                written.write(data)
                written.flush()
                os.fsync(written.fileno())
            os.rename(new, path, src_dir_fd=opened, dst_dir_fd=opened)
        finally:
            os.close(opened)
    except OSError as error:
        raise ConfigError(
            f"The command could not be written to {directory}",
            why=reason_of(error),
            todo="Run this as the user of the agent, or as one of the directory's group.",
        ) from error
    return name


class SpoolInbox:
    """An `CommandInbox` over such a directory."""

    def __init__(self, directory: Path, before: frozenset[str] = frozenset()) -> None:
        """``before`` are the files that were there when this agent began to lead."""
        self._directory = directory
        self._before = before
        self._unread: str | None = None
        self._problem: str | None = None
        """What was passed over."""
        self._has_read = False

    def read(self, view: JournalState) -> tuple[InboxCommand, ...]:
        """See `CommandInbox`."""
        self._unread, self._problem, self._has_read = None, None, True
        try:
            with own_directory(self._directory) as directory:
                return self._read(directory, view)
        except FileNotFoundError:
            return ()
        except OSError as error:
            why = reason_of(error)
            self._unread = f"no command is accepted from {self._directory}: {why}"
            return ()

    def problem(self) -> str | None:
        """See `CommandInbox`."""
        return self._unread or self._problem

    def unread(self) -> str | None:
        """See `CommandInbox`: a file that cannot be read keeps no other one from being read."""
        return self._unread

    def caught_up(self) -> bool:
        """See `CommandInbox`: each read is of the whole directory."""
        return self._has_read

    def close(self) -> None:
        """See `CommandInbox`."""

    def _read(self, directory: int, view: JournalState) -> tuple[InboxCommand, ...]:
        names = _names(directory)
        if POSITION not in view:
            names = self._put_away(directory, names)
        found = (self._readable(directory, name, view) for name in names)
        return tuple(islice((one for one in found if one is not None), MOST_AT_ONCE))

    def _put_away(self, directory: int, names: list[str]) -> list[str]:
        """What was asked of another journal; the others."""
        old = [name for name in names if name in self._before]
        for name in old:
            with suppress(OSError):
                _rename(directory, name, _OLD)
        if old:
            self._problem = f"{len(old)} commands in {self._directory} are older than the journal: renamed to *{_OLD}"
        return [name for name in names if name not in old]

    def _readable(self, directory: int, name: str, view: JournalState) -> InboxCommand | None:
        """As `_taken`; a file that cannot be read or moved is logged and delays no other one."""
        try:
            return self._taken(directory, name, view)
        except OSError as error:
            self._problem = f"{self._directory / name} could not be read: {reason_of(error)}"
            if error.errno in _NO_FILE:
                with suppress(OSError):
                    _rename(directory, name, _BAD)
            return None

    def _taken(self, directory: int, name: str, view: JournalState) -> InboxCommand | None:
        """The command of a file; None when it is answered, and then gone, or when it is none, and then set aside."""
        file, stat = open_regular(name, directory=directory)
        with os.fdopen(file, "rb") as opened:
            found = command_of(opened.read(MAX_BYTES + 1))
        if found is None:
            bad = _rename(directory, name, _BAD)
            self._problem = f"{self._directory / name} is not a command and was renamed to {bad}"
            return None
        last = view.get(POSITION)
        if is_answered(found[0], view) or (last is not None and last.value.get("name") == name):
            os.unlink(name, dir_fd=directory)
            return None
        at_ms = round(stat.st_mtime * 1_000)
        came = CommandOrigin(live=name not in self._before, at_ms=at_ms, owner=user_at_host(stat.st_uid))
        return InboxCommand(*found, JournalWrite(POSITION, KIND, {"name": name}), came)


def spooled(directory: Path) -> frozenset[str]:
    """The files that are there now; none where the directory cannot be read."""
    try:
        return frozenset(path.name for path in directory.iterdir() if path.name.endswith(_SUFFIX))
    except OSError:
        return frozenset()


def _names(directory: int) -> list[str]:
    return sorted(name for name in os.listdir(directory) if name.endswith(_SUFFIX))


def _last(directory: int) -> int:
    """The number of the newest command that waits: a clock that was set back puts no command before another."""
    numbers = (name.partition("-")[0] for name in _names(directory))
    return max((int(number) for number in numbers if _NUMBER.fullmatch(number)), default=0)


def _rename(directory: int, name: str, suffix: str) -> str:
    """Set a file aside under another suffix, and under a name that is free."""
    new = f"{name.removesuffix(_SUFFIX)}{suffix}"
    if _is_there(directory, new):
        new = f"{name.removesuffix(_SUFFIX)[:_MOST_STEM]}-{secrets.token_hex(8)}{suffix}"
    os.rename(name, new, src_dir_fd=directory, dst_dir_fd=directory)
    return new


def _is_there(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
