"""Commands that a sentence names, with the options of this run, so that they run as they are printed.

Sentences of the product name a command without a cluster. What a person sees of them on the command line gets the
options that were given to this command: brokers, files, settings. Secrets are never repeated.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from config.secrets import is_secret_name, masked

_LOOKS = ("status", "racks", "groups", "topics", "doctor", "plan", "explain", "simulate")
"""Commands that take ``--replay``."""
_OTHERS = (
    "top", "proposals approve", "proposals apply", "proposals cancel", "proposals history", "proposals list",
    "proposals", "reassign status", "reassign verify", "reassign cancel", "reassign rollback", "pause", "resume",
    "config check", "config show", "run",
)  # fmt: skip
_COMMAND = re.compile(rf"(?<=\brackwise )(?P<command>{'|'.join((*_OTHERS, *_LOOKS))})(?![\w-])(?! -[bc] )")
_PROGRAMS = re.compile(r"pem|rack\.locator\.properties|\.argv")
"""Settings whose values may hold a secret under any name."""


class _InForce:
    """The options of the command that runs in this process."""

    common: tuple[str, ...] = ()
    replay: tuple[str, ...] = ()


def forget() -> None:
    """A new command begins."""
    _InForce.common, _InForce.replay = (), ()


def remember(
    config: Iterable[Path], properties: Iterable[Path], assignments: Iterable[str], bootstrap: str | None
) -> None:
    """The options of this command that lead to its settings."""
    given: list[str] = [] if bootstrap is None else ["-b", bootstrap]
    for option, values in (("-c", config), ("--properties", properties)):
        given += [word for value in values for word in (option, str(value))]
    given += [word for one in assignments if _is_open(one) for word in ("--set", one)]
    _InForce.common = tuple(given)


def _is_open(assignment: str) -> bool:
    name, _, value = assignment.partition("=")
    return not is_secret_name(name) and not _PROGRAMS.search(name) and masked(value) == value


def remember_replay(path: Path) -> None:
    """The telemetry file that this command shows instead of a cluster."""
    _InForce.replay = ("--replay", str(path))


def runnable(text: str) -> str:
    """The text with the options of this run in every command of rackwise that it names."""
    if not _InForce.common and not _InForce.replay:
        return text
    return _COMMAND.sub(_with_options, text)


def _with_options(found: re.Match[str]) -> str:
    command = found["command"]
    options: Sequence[str] = _InForce.common
    if _InForce.replay:
        options = _InForce.replay if command in _LOOKS else ()
    return shlex.join([*command.split(), *options])
