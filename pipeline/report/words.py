"""Figures as text: number, unit and, for a change, its sign. Unknown is written, never shown as 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent.values.number_format import sized
from agent.values.number_format import usd as usd_words
from config.foreign_text import shortened
from pipeline.report.document import Cell, ColumnHead, ValueUnit

UNKNOWN = "unknown"
SECONDS_PER_HOUR, SECONDS_PER_DAY = 3_600.0, 86_400.0
_MINUTE_S, _HOUR_S, _DAY_S = 60.0, SECONDS_PER_HOUR, SECONDS_PER_DAY
_MINUS = "\N{MINUS SIGN}"
_LONGEST = 40


def money(usd: float | None, *, sign: bool = False) -> str:
    """``$18.40``, ``$1,234.50``, ``$0.0031``; with a sign ``+$18.40``."""
    if usd is None:
        return UNKNOWN
    return usd_words(usd, sign=sign)


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
    elif size < 2 * _MINUTE_S:
        text = f"{size:.0f} s"
    elif size < 2 * _HOUR_S:
        text = f"{size / _MINUTE_S:.0f} min"
    elif size < 2 * _DAY_S:
        text = f"{size / _HOUR_S:.1f} h"
    else:
        text = f"{size / _DAY_S:,.1f} days"
    return _signed(seconds, text, sign=sign)


def number(count: float | None, unit: str = "", *, sign: bool = False) -> str:
    """``1,234``, ``0.52``; with a unit ``1,234 records/s``."""
    if count is None:
        return UNKNOWN
    size = abs(count)
    text = f"{size:,.0f}" if size >= 100 or size == int(size) else f"{size:.3g}"
    return _signed(count, text, sign=sign) + (f" {unit}" if unit else "")


def shown(name: str) -> str:
    """A foreign name on one line: what cannot be seen is escaped, and what is very long is cut in the middle."""
    return shortened(name)


def short(name: str, longest: int = _LONGEST) -> str:
    """The same, cut in the middle where it is long: names often differ at their ends."""
    text = shown(name)
    if len(text) <= longest:
        return text
    head = (longest - 1) // 2
    return f"{text[:head]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - (longest - 1 - head) :]}"


def _signed(value: float, text: str, *, sign: bool) -> str:
    if value < 0:
        return _MINUS + text
    return "+" + text if sign and value > 0 else text


_WRITERS: Mapping[ValueUnit, Callable[[float, bool], str]] = {
    ValueUnit.TEXT: lambda value, sign: number(value, sign=sign),
    ValueUnit.COUNT: lambda value, sign: number(value, sign=sign),
    ValueUnit.BYTES: lambda value, sign: volume(value, sign=sign),
    ValueUnit.BYTES_PER_S: lambda value, sign: per_second(value, sign=sign),
    ValueUnit.USD: lambda value, sign: money(value, sign=sign),
    ValueUnit.USD_PER_DAY: lambda value, sign: money(value, sign=sign) + "/day",
    ValueUnit.SHARE: lambda value, sign: share(value, sign=sign),
    ValueUnit.SECONDS: lambda value, sign: duration(value, sign=sign),
    ValueUnit.RECORDS_PER_S: lambda value, sign: number(value, "records/s", sign=sign),
}


def written(head: ColumnHead, value: Cell) -> str:
    """Number, unit and sign; a foreign name in full, on one line."""
    if value is None:
        return UNKNOWN
    return shown(value) if isinstance(value, str) else _WRITERS[head.unit](value, head.sign)
