"""Raw values of a grid as people read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipeline.report import words
from pipeline.report.document import Cell, ColumnHead, ValueUnit

_WRITERS: Mapping[ValueUnit, Callable[[float, bool], str]] = {
    ValueUnit.TEXT: lambda value, sign: words.number(value, sign=sign),
    ValueUnit.COUNT: lambda value, sign: words.number(value, sign=sign),
    ValueUnit.BYTES: lambda value, sign: words.volume(value, sign=sign),
    ValueUnit.BYTES_PER_S: lambda value, sign: words.per_second(value, sign=sign),
    ValueUnit.USD: lambda value, sign: words.money(value, sign=sign),
    ValueUnit.USD_PER_DAY: lambda value, sign: words.money(value, sign=sign) + "/day",
    ValueUnit.SHARE: lambda value, sign: words.share(value, sign=sign),
    ValueUnit.SECONDS: lambda value, sign: words.duration(value, sign=sign),
    ValueUnit.RECORDS_PER_S: lambda value, sign: words.number(value, "records/s", sign=sign),
}


def written(head: ColumnHead, value: Cell) -> str:
    """Number, unit and sign; a foreign name in full, on one line."""
    if value is None:
        return words.UNKNOWN
    return words.shown(value) if isinstance(value, str) else _WRITERS[head.unit](value, head.sign)
