"""Bytes and dollars as a person reads them: what is known only in part has its bounds, and unknown stays None."""

from __future__ import annotations

from collections.abc import Callable

from agent.money.traffic import Traffic
from agent.values.limits import Limits
from agent.values.words import usd

_UNITS = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"))
_WHOLE = 99.95
"""From here on a figure has three digits without its tenths."""


def bytes_words(rate: float | None, *, at_least: bool = False) -> str | None:
    """``1.2 MB/s``; units are powers of ten, as prices are."""
    if rate is None:
        return None
    for size, unit in _UNITS:
        if rate >= size:
            figure = rate / size
            return f"{'≥ ' if at_least else ''}{figure:,.{0 if figure >= _WHOLE else 1}f} {unit}"
    return f"{'≥ ' if at_least else ''}{rate:,.0f} B/s" if not 0 < rate < 1 else "< 1 B/s"


def usd_words(dollars: float | None, *, at_least: bool = False) -> str | None:
    """``$3.10``."""
    return None if dollars is None else f"{'≥ ' if at_least else ''}{usd(dollars)}"


def saving_words(dollars: float | None) -> str | None:
    """``$3.10``; a saving that is none says so: ``costs $0.02``."""
    if dollars is None:
        return None
    return f"costs {usd(-dollars)}" if dollars < 0 else usd(dollars)


def bytes_between(least: float | None, most: float | None) -> str | None:
    """``1.0 MB/s`` for what is known, ``1.0 MB/s to 2.0 MB/s``, ``≥ 1.0 MB/s`` or ``≤ 2.0 MB/s`` for what is not."""
    return _between(least, most, bytes_words)


def usd_between(least: float | None, most: float | None) -> str | None:
    """The same for dollars."""
    return _between(least, most, usd_words)


def _between(least: float | None, most: float | None, words: Callable[[float | None], str | None]) -> str | None:
    low, high = words(least), words(most)
    if high is None:
        return low if low is None else f"≥ {low}"
    if not least and least != most:
        return f"≤ {high}"
    return high if low == high else f"{low} to {high}"


def traffic_words(traffic: Traffic | None) -> str | None:
    """Bytes per second of that traffic."""
    return None if traffic is None else bytes_between(traffic.bytes_per_s, traffic.at_most_bytes_per_s)


def money_words(traffic: Traffic | None, limits: Limits) -> str | None:
    """Dollars a day of that traffic."""
    if traffic is None:
        return None
    return usd_between(traffic.usd_per_day(limits), traffic.at_most_usd_per_day(limits))


def worst_first(traffic: Traffic | None, limits: Limits) -> tuple[int, float, float]:
    """Sorts by what it may cost at most, then by bytes, the most first; by the least where there is no such bound.

    What may cost anything comes after what has a figure, and before what costs nothing for certain.
    """
    if traffic is None:
        return 1, 0.0, 0.0
    rate, money = traffic.at_most_bytes_per_s, traffic.at_most_usd_per_day(limits)
    if rate is None:
        rate, money = traffic.bytes_per_s, traffic.usd_per_day(limits)
    if rate is None:
        return 1, 0.0, 0.0
    return 0 if rate else 2, -(money or 0.0), -rate
