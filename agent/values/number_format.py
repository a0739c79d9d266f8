"""Number formats of all sentences and tables: counts, sizes, durations and money. Pure.

Invariants: one of a thing has no plural; a cost above zero is never written as $0.00; zero has no sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.values.snapshot import Range

_CENT = 0.01
_LEAST_USD = 0.000_001
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_NEXT_UNIT, _WHOLE = 999.5, 99.95
"""Bounds from which a figure takes the next unit, and has no tenths."""
_MINUS = "\N{MINUS SIGN}"
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400


def unknown_error(code: int) -> str:
    """An error code of Kafka without a known name, as sentences write it."""
    return f"an unknown error code ({code})"


def counted(number: int, one: str, many: str | None = None) -> str:
    """``1 replica``, ``3 replicas``, ``1,200 replicas``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def few(names: Sequence[object], most: int) -> str:
    """``t-0, t-1, t-2 and 1,200 more``: the first names, and the number of the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(map(str, names[:most]))}{more}"


def lasted(ms: float) -> str:
    """``12 s``, ``31 min``, ``2 h 30 min``, ``3 days 4 h``: rounded down, from twice a unit on; ``0 s`` below zero."""
    seconds = max(0, int(ms // 1_000))
    if seconds < 2 * _MINUTE_S:
        return f"{seconds} s"
    if seconds < 2 * _HOUR_S:
        return f"{seconds // _MINUTE_S} min"
    if seconds < 2 * _DAY_S:
        whole, rest = f"{seconds // _HOUR_S} h", f"{seconds % _HOUR_S // _MINUTE_S} min"
    else:
        whole, rest = counted(seconds // _DAY_S, "day"), f"{seconds % _DAY_S // _HOUR_S} h"
    return whole if rest.startswith("0 ") else f"{whole} {rest}"


def records(lag: Range) -> str:
    """``1 record``, ``12,560 records``, ``0 to 12,560 records``."""
    low, high = round(lag.low), round(lag.high)
    return counted(high, "record") if low == high else f"{low:,} to {counted(high, 'record')}"


def sized(size_bytes: float) -> str:
    """``512 B``, ``1.5 MB`` (decimal, as prices are)."""
    size = float(size_bytes)
    for unit in _UNITS:
        if abs(size) < _NEXT_UNIT or unit == _UNITS[-1]:
            return f"{size:.0f} {unit}" if unit == "B" or abs(size) >= _WHOLE else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("the last unit takes every size")


def sized_apart(one: float, other: float) -> tuple[str, str]:
    """Both as `sized` writes them; in bytes where they differ and would read the same."""
    words = sized(one), sized(other)
    return words if words[0] != words[1] or one == other else (f"{one:,.12g} B", f"{other:,.12g} B")


def usd_per_gb(price: float) -> str:
    """``$0.02/GB``: a configured price in USD per GB, with all its digits."""
    return f"${price:,.10f}".rstrip("0").rstrip(".") + "/GB"


def usd(dollars: float, *, sign: bool = False) -> str:
    """``$3.10``, ``$1,234.50``, ``$0.00``; below a cent two digits that count: ``$0.0012``. With a sign ``+$3.10``."""
    size = abs(dollars)
    if size == 0:
        return "$0.00"
    if size < _LEAST_USD:
        text = f"< ${_LEAST_USD:f}"
    elif (two_digits := float(f"{size:.1e}")) < _CENT:
        text = f"${two_digits:.{1 - floor(log10(two_digits))}f}"
    else:
        text = f"${size:,.2f}"
    return _MINUS + text if dollars < 0 else "+" + text if sign else text


def in_full(names: Iterable[object]) -> str:
    """``a``, ``a and b``, ``a, b and c``: all of them."""
    words = [str(name) for name in names]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


NAMED = 3
"""Names shown in a sentence."""


def listed(names: Iterable[object]) -> str:
    """``a``, ``a and b``, ``a, b, c and 4 more``."""
    words = [*names]
    return few(words, NAMED) if len(words) > NAMED else in_full(words)
