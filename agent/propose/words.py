"""Numbers as people read them, and the few words that all sentences share."""

from __future__ import annotations

from agent.model.snapshot import Range
from agent.words import counted, sized

__all__ = ["counted", "records", "sized"]


def records(lag: Range) -> str:
    """``1 record``, ``12,560 records``, ``0 to 12,560 records``."""
    low, high = round(lag.low), round(lag.high)
    return counted(high, "record") if low == high else f"{low:,} to {counted(high, 'record')}"
