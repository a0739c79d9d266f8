"""Raw values of a grid as people read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipeline.report import words
from pipeline.report.document import Cell, Head, Unit

_WRITERS: Mapping[Unit, Callable[[float, bool], str]] = {
    Unit.TEXT: lambda value, sign: words.number(value, sign=sign),
    Unit.COUNT: lambda value, sign: words.number(value, sign=sign),
    Unit.BYTES: lambda value, sign: words.volume(value, sign=sign),
    Unit.BYTES_PER_S: lambda value, sign: words.per_second(value, sign=sign),
    Unit.USD: lambda value, sign: words.money(value, sign=sign),
    Unit.USD_PER_DAY: lambda value, sign: words.money(value, sign=sign) + "/day",
    Unit.SHARE: lambda value, sign: words.share(value, sign=sign),
    Unit.SECONDS: lambda value, sign: words.duration(value, sign=sign),
    Unit.RECORDS_PER_S: lambda value, sign: words.number(value, "records/s", sign=sign),
}


def written(head: Head, value: Cell) -> str:
    """Number, unit and sign; a foreign name in full, on one line."""
    if value is None:
        return words.UNKNOWN
    return words.shown(value) if isinstance(value, str) else _WRITERS[head.unit](value, head.sign)
