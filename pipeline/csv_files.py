"""CSV files that settings name: the first line names the columns, and what is wrong is said with its line."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from typing import TypeVar

from agent.errors import ConfigError, reason
from config.plain_file import read_plain

_MOST_BYTES = 64 * 1024 * 1024
T = TypeVar("T")


def csv_rows(file: str, setting: str, names: tuple[str, ...], read: Callable[[Mapping[str, str]], T]) -> tuple[T, ...]:
    """What ``read`` makes of each line, by the names of its columns. Raises ConfigError.

    ``read`` raises ValueError for a line that is invalid. Columns beside ``names`` are ignored.
    """
    lines = csv.DictReader(_lines(file, setting))
    missing = [name for name in names if name not in _head(file, lines)]
    if missing:
        raise ConfigError(f"{file} has no column {missing[0]}", why=f"its first line names {', '.join(names)}")
    found: list[T] = []
    try:
        found.extend(read({name: (row[name] or "").strip() for name in names}) for row in lines)
    except ValueError as error:
        raise ConfigError(f"{file}, line {lines.line_num}, is invalid", why=str(error)) from error
    except csv.Error as error:  # the line was not read, so it is not counted
        raise ConfigError(f"{file}, line {lines.line_num + 1}, is invalid", why=str(error)) from error
    return tuple(found)


def head_of(file: str, setting: str) -> tuple[str, ...]:
    """The names of the columns, empty for an empty file. Raises ConfigError."""
    return _head(file, csv.DictReader(_lines(file, setting)))


def _head(file: str, lines: csv.DictReader[str]) -> tuple[str, ...]:
    try:
        return tuple(lines.fieldnames or ())
    except csv.Error as error:
        raise ConfigError(f"the first line of {file} is invalid", why=str(error)) from error


def _lines(file: str, setting: str) -> list[str]:
    try:
        return read_plain(file, _MOST_BYTES).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}, which {setting} names, cannot be read", why=reason(error)) from error
