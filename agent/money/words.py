"""Bytes and dollars as a person reads them; what is known only in part says "≥", and unknown stays None."""

from __future__ import annotations

from agent.limits import Limits
from agent.money.traffic import Traffic

_UNITS = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"))
_WHOLE = 99.95
"""From here on a figure has three digits without its tenths."""
_LEAST_USD = 0.01


def bytes_words(rate: float | None, *, at_least: bool = False) -> str | None:
    """``1.2 MB/s``; units are powers of ten, as prices are."""
    if rate is None:
        return None
    for size, unit in _UNITS:
        if rate >= size:
            figure = rate / size
            return f"{'≥ ' if at_least else ''}{figure:,.{0 if figure >= _WHOLE else 1}f} {unit}"
    return f"{'≥ ' if at_least else ''}{rate:,.0f} B/s"


def usd_words(usd: float | None, *, at_least: bool = False) -> str | None:
    """``$3.10``."""
    if usd is None:
        return None
    if 0 < usd < _LEAST_USD:
        return f"{'≥ ' if at_least else ''}${usd:.4f}"
    return f"{'≥ ' if at_least else ''}${usd:,.2f}"


def traffic_words(traffic: Traffic | None) -> str | None:
    """Bytes per second of that traffic."""
    return None if traffic is None else bytes_words(traffic.bytes_per_s, at_least=bool(traffic.unknown))


def money_words(traffic: Traffic | None, limits: Limits) -> str | None:
    """Dollars a day of that traffic."""
    return None if traffic is None else usd_words(traffic.usd_per_day(limits), at_least=bool(traffic.unknown))


def worst_first(traffic: Traffic | None, limits: Limits) -> tuple[bool, float, float]:
    """Sorts by dollars, then bytes, the most first; what is unknown comes after what is known."""
    rate = None if traffic is None else traffic.bytes_per_s
    if traffic is None or rate is None:
        return True, 0.0, 0.0
    return False, -(traffic.usd_per_day(limits) or 0.0), -rate
