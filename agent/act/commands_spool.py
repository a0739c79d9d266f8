"""Commands by a directory beside the journal file: one file each, in the order of their names.

Invariant: a file is there as a whole or not at all, and it goes away only when the journal holds its answer. Whoever
may write the directory may command, so others may not.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.act.inbox import MAX_BYTES, MOST_AT_ONCE, POSITION, Command, command_bytes, command_of, is_answered
from agent.errors import ConfigError
from agent.journal.entry import View, Write

KIND = "file"
_MODE = 0o700
_SUFFIX = ".json"
_BAD = ".bad"


def spool_command(directory: Path, command: Mapping[str, Any], *, at_ms: int) -> str:
    """Lay one command down; its id. Raises BadInput for what is no command, ConfigError when it cannot be written."""
    name, data = command_bytes(command)
    path = directory / f"{at_ms:014d}-{name}{_SUFFIX}"
    try:
        directory.mkdir(mode=_MODE, exist_ok=True)
        new = path.with_suffix(".new")
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise ConfigError(
            f"The command could not be written to {directory}",
            why=error.strerror or str(error),
            todo="Run this as the user of the agent.",
        ) from error
    return name


class SpoolInbox:
    """An `Inbox` over such a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._problem: str | None = None

    def read(self, view: View) -> tuple[Command, ...]:
        """See `Inbox`."""
        self._problem = None
        try:
            if self._directory.stat().st_mode & stat.S_IWOTH:
                self._problem = f"any user may write {self._directory}, so no command is accepted from it: chmod o-w"
                return ()
            paths = sorted(path for path in self._directory.iterdir() if path.suffix == _SUFFIX)
            return tuple(one for path in paths[:MOST_AT_ONCE] if (one := self._readable(path, view)) is not None)
        except FileNotFoundError:
            return ()
        except OSError as error:
            self._problem = f"commands could not be read from {self._directory}: {error.strerror or error}"
            return ()

    def problem(self) -> str | None:
        """See `Inbox`."""
        return self._problem

    def close(self) -> None:
        """See `Inbox`."""

    def _readable(self, path: Path, view: View) -> Command | None:
        """As `_taken`; a file that cannot be read or put away is said and keeps no other one waiting."""
        try:
            return self._taken(path, view)
        except OSError as error:
            self._problem = f"{path} could not be read: {error.strerror or error}"
            return None

    def _taken(self, path: Path, view: View) -> Command | None:
        """The command of a file; None when it is answered, and then gone, or when it is none, and then set aside."""
        with path.open("rb") as file:
            found = command_of(file.read(MAX_BYTES + 1))
        if found is None:
            path.rename(path.with_suffix(_BAD))
            self._problem = f"{path} is not a command and was renamed to {path.stem}{_BAD}"
            return None
        last = view.get(POSITION)
        if is_answered(found[0], view) or (last is not None and last.value.get("name") == path.name):
            path.unlink()
            return None
        return Command(*found, Write(POSITION, KIND, {"name": path.name}))
