"""The ledger as a FOCUS data set: ``focus.csv`` and ``focus.parquet`` in a folder, row by row, of any length."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from config.foreign_text import csv_text
from pipeline.errors import not_refreshed
from pipeline.jobs.owners import owners_in_force
from pipeline.output_files import written_whole
from pipeline.owner_rules import OwnerBook, OwnerRule
from pipeline.report.focus import COLUMNS, DECIMALS, TIMES, DailyTransfer, charges, transfers
from pipeline.report.period import ReportPeriod, within
from pipeline.schemas.gold import LEDGER
from pipeline.tables import TableStore

_AT_A_TIME = 10_000
_Charge = tuple[Any, ...]
_Write = Callable[[list[_Charge]], None]


class FocusExport(NamedTuple):
    """What was written."""

    files: tuple[Path, ...]
    charges: int
    unpriced: int
    """Days and pairs of racks of topics that have no price, and no charge."""


def write_focus(
    tables: TableStore, period: ReportPeriod, folder: Path, formats: tuple[str, ...], owners: tuple[OwnerRule, ...] = ()
) -> FocusExport:
    """Writes the charges of the period. Raises BadInput where there is no ledger or no place to write."""
    if not tables.exists(LEDGER):
        raise not_refreshed(tables.root, f"table {LEDGER.name}")
    book = OwnerBook(owners_in_force(tables, owners))
    rows = transfers(within(tables.read(LEDGER), period, "hour_ms"))
    writers_of = dict(_FORMS[name] for name in formats)
    is_priced = Counter[bool]()

    def counted_rows() -> Iterator[DailyTransfer]:
        for row in map(DailyTransfer._make, rows.toLocalIterator()):
            is_priced[row.usd is not None] += 1
            yield row

    with written_whole("the charges", folder, writers_of) as beside, ExitStack() as stack:
        writers = [stack.enter_context(writer(beside[file])) for file, writer in writers_of.items()]
        every = charges(counted_rows(), book)
        while some := list(islice(every, _AT_A_TIME)):
            for write in writers:
                write(some)
    return FocusExport(tuple(folder / file for file in writers_of), is_priced[True], is_priced[False])


@contextmanager
def _csv(file: Path) -> Iterator[_Write]:
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(COLUMNS)
        yield lambda rows: writer.writerows([_field(value) for value in row] for row in rows)


@contextmanager
def _parquet(file: Path) -> Iterator[_Write]:
    with file.open("wb") as out, parquet.ParquetWriter(out, _SCHEMA) as writer:

        def write(rows: list[_Charge]) -> None:
            columns = zip(*rows, strict=True)
            arrays = [pa.array(column, type=field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA))

        yield write


def _field(value: object) -> str:
    """Numbers in plain digits, times with their Z, and no text that is a formula."""
    match value:
        case None:
            return ""
        case Decimal():
            text = f"{value:f}"
            return text.rstrip("0").rstrip(".") if "." in text else text
        case datetime():
            return value.strftime("%Y-%m-%dT%H:%M:%SZ")
        case _:
            return csv_text(str(value))


def _type(name: str) -> pa.DataType:
    if name in DECIMALS:
        return pa.decimal128(38, 12)
    return pa.timestamp("ms", tz="UTC") if name in TIMES else pa.string()


_SCHEMA = pa.schema([pa.field(name, _type(name)) for name in COLUMNS])
_FORMS: Mapping[str, tuple[str, Callable[[Path], AbstractContextManager[_Write]]]] = {
    "focus": ("focus.csv", _csv),
    "focus-parquet": ("focus.parquet", _parquet),
}
"""Name of a form -> its file, and what writes it."""
