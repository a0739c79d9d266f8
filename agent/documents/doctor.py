"""What ``doctor`` prints: one row per check."""

from __future__ import annotations

from typing import Literal, TypedDict


class CheckDocument(TypedDict):
    """One question with its answer."""

    state: Literal["ok", "nothing", "once", "FAULT", "risk", "unknown"]
    """``nothing``: there is nothing to check; ``once``: a fault if it lasts, which one look cannot show."""
    check: str
    """What is asked."""
    sentence: str
    """The answer; parts of it are separated by semicolons."""
    who: list[str]
    """What it concerns: brokers, topics, groups or ``group/member``."""
    line: str | None
    """The line to change, where one line mends it."""
    cross_rack_bytes_per_s: float | None
    """Bytes per second that cross racks because of this fault, at least; null where that is unknown, or no question."""
    usd_per_day: float | None
    """What they cost a day, at least; null in the same way."""
    at_most_usd_per_day: float | None
    """A bound where no more is known, as for members of unknown rack; null elsewhere."""
