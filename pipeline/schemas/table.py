"""Definition of a table: name, version, columns with their comments, and the key of a row."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql import types as t

STRING, LONG, INT, DOUBLE, BOOLEAN, BINARY, TIMESTAMP = (
    t.StringType(),
    t.LongType(),
    t.IntegerType(),
    t.DoubleType(),
    t.BooleanType(),
    t.BinaryType(),
    t.TimestampType(),
)
STRINGS, INTS, LONGS = t.ArrayType(STRING), t.ArrayType(INT), t.ArrayType(LONG)


class TableSpec(NamedTuple):
    """One table. ``version`` grows when a reader of the older one could go wrong; new columns do not change it."""

    name: str
    """``layer.name``; also its folder below the root."""
    comment: str
    schema: t.StructType
    key: tuple[str, ...]
    """Columns that tell a row from every other row."""
    partitioned_by: tuple[str, ...] = ()
    """From the widest; on Parquet the first of them alone."""
    version: int = 1


def column(name: str, kind: t.DataType, comment: str, *, required: bool = False) -> t.StructField:
    """A column; one that is not required is null where something is unknown."""
    return t.StructField(name, kind, nullable=not required, metadata={"comment": comment})


def columns(*fields: t.StructField) -> t.StructType:
    """The columns in their order."""
    return t.StructType(list(fields))


def day_of(epoch_ms: int) -> str:
    """The UTC day of a time; the first day of the epoch for one that no calendar has."""
    try:
        return f"{datetime.fromtimestamp(epoch_ms / 1000, UTC):%Y-%m-%d}"
    except (ValueError, OverflowError, OSError):
        return "1970-01-01"


def begin_of(day: str) -> int:
    """The begin of a UTC day yyyy-mm-dd, epoch milliseconds. Raises ValueError for what is no day."""
    return round(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1_000)
