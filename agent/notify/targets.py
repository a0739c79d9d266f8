"""Targets of notifications as the settings name them, with their addresses read from the settings or from files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from agent.errors import ConfigError, reason
from agent.notify.notification import NotificationEvent, NotifyTarget, OutboxLimits
from agent.values.finding import FindingSeverity
from config.notify import NotifySettings, NotifyTargetSettings

_LEAST_SECRET = 8
"""Characters of a part of an address that may be a token; a host with dots and a plain word, as of a channel, is none.
"""


ReadLines = Callable[[Path], Sequence[str]]
"""Reads the lines of a file with secrets. Raises OSError, also where other users may read it."""


class TargetAddress(NamedTuple):
    """A target with its address, which is a secret as a whole."""

    target: NotifyTarget
    url: str

    def __repr__(self) -> str:
        return f"TargetAddress({self.target.name})"


def addresses(
    settings: NotifySettings, read: ReadLines, names: Iterable[str] | None = None
) -> tuple[TargetAddress, ...]:
    """The targets of these names, else all that are enabled. Raises ConfigError, also where Apprise is missing."""
    wanted = [name for name, one in settings.targets.items() if one.enabled] if names is None else list(names)
    for name in wanted:
        if name not in settings.targets:
            known = ", ".join(settings.targets) or "none is set"
            raise ConfigError(f"notify.targets has no {name}", why=f"its names are: {known}", todo="Name one of them.")
    if wanted and find_spec("apprise") is None:
        raise ConfigError(
            "notify.targets needs Apprise, which is not installed",
            todo="Install rackwise with its extra: pip install 'rackwise[notify]', or remove the targets.",
        )
    found = [(name, settings.targets[name]) for name in wanted]
    return tuple(TargetAddress(_target(name, one), _url(name, one, read)) for name, one in found)


def outbox_limits(settings: NotifySettings) -> OutboxLimits:
    """The pace of messages."""
    return OutboxLimits(settings.group_for_ms, settings.most_per_hour, settings.give_up_after_ms)


def secrets_of(found: Iterable[TargetAddress]) -> Iterator[str]:
    """The addresses, and their parts that may be tokens: for the log's redaction only."""
    for one in found:
        yield one.url
        scheme, _, rest = one.url.partition("://")
        for part in re.split(r"[/:@?&=,;#]+", rest):
            is_host = "." in part and part in rest.split("/", 1)[0].rpartition("@")[2]
            if (
                len(part) >= _LEAST_SECRET
                and part != scheme
                and not is_host
                and not (part.isalpha() and part.islower())
            ):
                yield part


def _target(name: str, settings: NotifyTargetSettings) -> NotifyTarget:
    return NotifyTarget(
        name=name,
        events=frozenset(map(NotificationEvent, settings.events)),
        severities=frozenset(map(FindingSeverity, settings.severities)),
        topics=settings.topics,
        groups=settings.groups,
    )


def _url(name: str, settings: NotifyTargetSettings, read: ReadLines) -> str:
    if settings.url_file is None:
        return settings.url or ""
    try:
        lines = read(Path(settings.url_file))
    except OSError as error:
        raise _unusable(name, settings.url_file, reason(error)) from error
    if len(lines) != 1:
        raise _unusable(name, settings.url_file, f"it has {len(lines)} lines, and one address is expected")
    if "://" not in lines[0]:
        raise _unusable(name, settings.url_file, "its line is no URL of Apprise, such as slack://... or mailtos://...")
    return lines[0]


def _unusable(name: str, path: str, why: str) -> ConfigError:
    return ConfigError(
        f"notify.targets.{name}.url_file: {path} has no address that can be used",
        why=why,
        todo="Write the address into it as its only line, and let no other user read it: chmod 600 FILE",
    )
