"""Queries of external rack locators: the file to read, the command to run, or the entry point to call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

WANTED = "broker.ID, host.NAME, client.id.NAME or group.instance.id.NAME, and a rack"
"""The form of a row of a rack table, as sentences name it."""


class TableForm(StrEnum):
    """The format of a rack table."""

    PROPERTIES = "properties"
    YAML = "yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileQuestion:
    """Read this file."""

    name: str
    """The locator's name in ``rack.locator.class``."""
    path: str
    form: TableForm
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandQuestion:
    """Run this program, without a shell, and read its output."""

    name: str
    argv: tuple[str, ...]
    form: TableForm
    timeout_ms: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPointQuestion:
    """Call this entry point of an installed package, in a process of its own."""

    name: str
    entry_point: str
    timeout_ms: int
    max_bytes: int
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Properties of the entry point; they may hold secrets, and go to it through a pipe."""


LocatorQuestion = FileQuestion | CommandQuestion | EntryPointQuestion
