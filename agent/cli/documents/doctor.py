"""What ``doctor`` prints: one row per check."""

from __future__ import annotations

from typing import Literal, TypedDict


class FixDocument(TypedDict):
    """What mends one cause."""

    who: list[str]
    """All that share the cause, each with its kind: ``group orders``, ``broker 1``, ``topic clicks``."""
    lines: list[str]
    """Settings or commands, in their order."""


class CheckDocument(TypedDict):
    """One question with its answer."""

    state: Literal["ok", "nothing", "once", "FAULT", "risk", "unknown"]
    """``nothing``: there is nothing to check; ``once``: a fault if it lasts, which one look cannot show."""
    check: str
    """What is asked."""
    sentence: str
    """The answer; it joins ``sentences`` with semicolons."""
    sentences: list[str]
    """The answer, one entry for each fact."""
    who: list[str]
    """What it concerns: brokers, topics, groups or ``group/member``."""
    line: str | None
    """The line to change, where a single line mends all of it; null where there is none, or ``fixes`` has several."""
    fixes: list[FixDocument]
    """The lines to change, one entry for each cause."""
    cross_rack_bytes_per_s: float | None
    """Bytes per second that cross racks because of this fault, at least; null where that is unknown, or no question."""
    usd_per_day: float | None
    """What they cost a day, at least; null in the same way."""
    at_most_usd_per_day: float | None
    """A bound where more may cross than is known, as for members of unknown rack; null elsewhere."""
