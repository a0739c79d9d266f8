"""Numbers as people read them, and the few words that all sentences share."""

from __future__ import annotations

from agent.words import counted

__all__ = ["counted", "sized"]

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def sized(size_bytes: float) -> str:
    """``512 B``, ``1.5 MB`` (decimal, as prices are)."""
    size = float(size_bytes)
    for unit in _UNITS:
        if abs(size) < 1000 or unit == _UNITS[-1]:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("the last unit takes every size")
