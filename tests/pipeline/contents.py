"""Everything that stands in tables, so that it can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.schemas.bronze import JOURNAL, PROPOSALS, QUARANTINE, TELEMETRY
from pipeline.schemas.gold import GOLD
from pipeline.schemas.silver import SILVER
from pipeline.schemas.table import TableSpec
from pipeline.tables import TableStore

BRONZE = (TELEMETRY, PROPOSALS, JOURNAL, QUARANTINE)
EVERY = (*BRONZE, *SILVER, *GOLD)
Contents = Mapping[str, Counter[str]]
"""Table -> its rows, and how often each is there."""


def contents(tables: TableStore, which: Sequence[TableSpec] = EVERY, *, without: Sequence[str] = ()) -> Contents:
    """All rows of these tables, without some columns."""
    return {
        table.name: Counter(
            repr(rounded(row.asDict(recursive=True))) for row in tables.read(table).drop(*without).collect()
        )
        for table in which
    }


def rounded(value: Any) -> Any:
    """The same for sums of the same numbers in another order."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value
