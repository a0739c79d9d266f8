"""What ``config show`` and ``config check`` print. ``config schema`` prints a JSON Schema."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class SettingRow(TypedDict):
    """A setting in force."""

    setting: str
    """Its public name, dotted."""
    value: Any
    """As it may be written in a settings file; secrets are stars, null is no value."""
    origin: NotRequired[str]
    """Where it was set; with --origin."""


class LocatorRow(TypedDict):
    """What a rack locator answered."""

    locator: str
    names: int
    """Names of hosts, brokers or clients that it knows."""


class CheckedSettings(TypedDict):
    """Settings that can be used; mistakes end with exit code 2 and sentences on stderr instead."""

    mode: Literal["observe", "propose", "execute"]
    locators: list[LocatorRow]
