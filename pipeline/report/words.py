"""Figures as text: number, unit and, for a change, its sign. Unknown is written, never shown as 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from agent.values.number_format import sized
from agent.values.number_format import usd as usd_words
from config.foreign_text import shortened
from pipeline.report.document import Cell, ColumnHead, ValueUnit

UNKNOWN = "unknown"
MINUTE_S, HOUR_S, DAY_S = 60.0, 3_600.0, 86_400.0
_MINUS = "\N{MINUS SIGN}"
_LONGEST = 40


def money(usd: float | None, *, sign: bool = False) -> str:
    """``$18.40``, ``$1,234.50``, ``$0.0031``; with a sign ``+$18.40``."""
    return UNKNOWN if usd is None else usd_words(usd, sign=sign)


def volume(size_bytes: float | None, *, sign: bool = False) -> str:
    """``1.9 GB``."""
    return UNKNOWN if size_bytes is None else _signed(size_bytes, sized(abs(size_bytes)), sign=sign)


def per_second(bytes_per_s: float | None, *, sign: bool = False) -> str:
    """``1.9 MB/s``."""
    return UNKNOWN if bytes_per_s is None else volume(bytes_per_s, sign=sign) + "/s"


def share(part: float | None, whole: float | None = 1.0, *, sign: bool = False) -> str:
    """``58 %``, ``0.4 %``; a part of nothing is unknown."""
    if part is None or whole is None or whole == 0:
        return UNKNOWN
    percent = 100 * part / whole
    digits = 1 if 0 < abs(percent) < 10 and round(percent, 1) != round(percent) else 0
    return _signed(percent, f"{abs(percent):,.{digits}f} %", sign=sign)


def duration(seconds: float | None, *, sign: bool = False) -> str:
    """``64 s``, ``12 min``, ``3.2 h``, ``2.0 days``."""
    if seconds is None:
        return UNKNOWN
    size = abs(seconds)
    if size < 10:
        text = f"{size:.1f} s"
    elif size < 2 * MINUTE_S:
        text = f"{size:.0f} s"
    elif size < 2 * HOUR_S:
        text = f"{size / MINUTE_S:.0f} min"
    elif size < 2 * DAY_S:
        text = f"{size / HOUR_S:.1f} h"
    else:
        text = f"{size / DAY_S:,.1f} days"
    return _signed(seconds, text, sign=sign)


def number(count: float | None, unit: str = "", *, sign: bool = False) -> str:
    """``1,234``, ``0.52``; with a unit ``1,234 records/s``."""
    if count is None:
        return UNKNOWN
    size = abs(count)
    text = f"{size:,.0f}" if size >= 100 or size == int(size) else f"{size:.3g}"
    return _signed(count, text, sign=sign) + (f" {unit}" if unit else "")


def short(name: str, longest: int = _LONGEST) -> str:
    """A foreign name on one line, cut in the middle where it is long: names often differ at their ends."""
    text = shortened(name)
    if len(text) <= longest:
        return text
    head = (longest - 1) // 2
    return f"{text[:head]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - (longest - 1 - head) :]}"


def _signed(value: float, text: str, *, sign: bool) -> str:
    if value < 0:
        return _MINUS + text
    return "+" + text if sign and value > 0 else text


_WRITERS: Mapping[ValueUnit, Callable[..., str]] = {
    ValueUnit.TEXT: number,
    ValueUnit.COUNT: number,
    ValueUnit.BYTES: volume,
    ValueUnit.BYTES_PER_S: per_second,
    ValueUnit.USD: money,
    ValueUnit.USD_PER_DAY: lambda usd, *, sign: money(usd, sign=sign) + "/day",
    ValueUnit.SHARE: share,
    ValueUnit.SECONDS: duration,
    ValueUnit.RECORDS_PER_S: partial(number, unit="records/s"),
}


def in_unit(figure: float, unit: ValueUnit, *, sign: bool = False) -> str:
    """The figure with its unit and, for a change, its sign."""
    return _WRITERS[unit](figure, sign=sign)


def written(head: ColumnHead, value: Cell) -> str:
    """A cell of that column; a foreign name in full, on one line."""
    if value is None:
        return UNKNOWN
    return shortened(value) if isinstance(value, str) else in_unit(value, head.unit, sign=head.sign)
