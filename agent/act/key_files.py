"""Reads keys from their files: those of the executors, and those of people. No error has a key in its text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from agent.act.own_files import read_key_file, reason_of
from agent.errors import ConfigError
from agent.execute.commands.identity import People, Signer
from agent.journal.trust import LEAST_KEY, JournalKey

_MOST_KEYS = 8


def journal_keys(path: str | None) -> tuple[JournalKey, ...]:
    """The key in force, then former ones; none without a file. Raises ConfigError."""
    return () if path is None else _keys("execute.journal_key_file", path)


def people(files: Mapping[str, str]) -> People:
    """The keys of people by name. Raises ConfigError, also where two people have the same key."""
    found = {name: _one(f"approve.people.{name}", path) for name, path in files.items()}
    by_key: dict[bytes, str] = {}
    for name, key in found.items():
        other = by_key.setdefault(key.secret, name)
        if other != name:
            raise ConfigError(
                f"approve.people: {other} and {name} have the same key",
                why="a key stands for one person",
                todo="Make a key for each: openssl rand -hex 32 > FILE; chmod 600 FILE",
            )
    return MappingProxyType(found)


def signer(name: str | None, path: str | None) -> Signer | None:
    """Who signs commands here; None where no person is set. Raises ConfigError."""
    return None if name is None or path is None else Signer(name, _one("operator.key_file", path))


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
