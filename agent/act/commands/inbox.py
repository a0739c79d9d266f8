"""What operators ask for, as it arrives: commands, each once, in their order.

Invariant: a command is handed out until the journal holds its answer (``command/<id>``) or the position after it, so
that neither a crash nor a takeover loses one; the leader writes both in one transaction, so that none is carried
out twice. What it says is no part of this: here it is a JSON object with an id. The right to write the topic, or the
directory, is the right to command.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from agent.errors import BadInput, reason
from agent.execute.commands.identity import Came
from agent.values.foreign_json import ForeignJsonError, read_json
from agent.values.journal import View, Write

POSITION = "command-position"
ANSWERS = "command"
MAX_BYTES = 65_536
MOST_AT_ONCE = 100
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Command(NamedTuple):
    """A command that waits for its answer."""

    id: str
    value: Mapping[str, Any]
    after: Write
    """To be written together with the answer: from where the next leader goes on."""
    came: Came = Came()
    """How it came."""


class Inbox(Protocol):
    """Where commands come from."""

    def read(self, view: View) -> tuple[Command, ...]:
        """What is not answered yet, oldest first, at most `MOST_AT_ONCE`; never raises because of a broker or disk."""

    def problem(self) -> str | None:
        """What was passed over, or why nothing could be read, the last time."""

    def unread(self) -> str | None:
        """Why nothing could be read the last time; None also where something was passed over that is no command."""

    def caught_up(self) -> bool:
        """Whether all that was there when this agent began to lead has been handed out."""

    def close(self) -> None:
        """Read no more."""


def command_bytes(command: Mapping[str, Any]) -> tuple[str, bytes]:
    """The id of a command and its bytes. Raises BadInput for what no inbox would take."""
    try:
        data = json.dumps(command, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()
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
    """The id of a command and what it says; None for anything else."""
    if data is None:
        return None
    try:
        return _named(read_json(data, most_bytes=MAX_BYTES))
    except ForeignJsonError:
        return None


def is_answered(command_id: str, view: View) -> bool:
    """Whether the journal holds its answer."""
    return f"{ANSWERS}/{command_id}" in view


def _named(found: Any) -> tuple[str, Mapping[str, Any]] | None:
    if not isinstance(found, dict):
        return None
    name = found.get("id")
    return (name, found) if isinstance(name, str) and _ID.fullmatch(name) else None
