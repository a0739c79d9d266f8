"""Limits for tests, by the names of the settings."""

from __future__ import annotations

from dataclasses import replace

from agent.values.limits import Limits


def with_limits(limits: Limits, **changes: object) -> Limits:
    """The limits with others: ``gain__min_share`` is ``gain.min_share`` among the settings."""
    for name, value in changes.items():
        section, _, field = name.partition("__")
        new = replace(getattr(limits, section), **{field: value}) if field else value
        limits = replace(limits, **{section: new})  # type: ignore[arg-type] # any of them
    return limits
