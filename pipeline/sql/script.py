"""The SQL script of a root: its gold tables by LOCATION, a view of each, and the views of `questions.sql`.

Views have ``hour`` as a timestamp beside epoch milliseconds and no reserved word as a name; every column has its
comment. A table that is not there yet is a view without rows, so that the script runs at any time. The questions are
SQL that Spark and Trino have in common; what comes before them is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from pyspark.sql import types as t

from pipeline.schemas.gold import DIMENSIONS, GOLD
from pipeline.schemas.table import TableSpec

TABLES = (*GOLD, *DIMENSIONS)
RENAMED = {
    "group": "group_id",
    "partition": "partition_id",
    "path": "traffic_path",
    "day": "utc_day",
    "local": "local_partitions",
    "total": "assigned_partitions",
    "unknown": "unknown_partitions",
    "before": "racks_before",
    "after": "racks_after",
    "trigger": "trigger_proposal",
    "rank": "rule_rank",
}
"""Columns of tables -> the names that views have for them."""
DialectName = Literal["spark", "trino"]
_HOUR_COMMENT = "Begin of the UTC hour, as a timestamp."
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")


class SqlDialect(NamedTuple):
    """How an engine spells what the two differ in."""

    quote: str
    hour: str
    """The timestamp of ``hour_ms``."""
    register: str
    """A table by its location."""
    backslash: str
    apostrophe: str
    """Of a literal."""
    types: Mapping[str, str] = MappingProxyType({})
    """Spark's names of types -> the engine's, where they differ."""
    comments: bool = True
    """Whether columns of views have comments."""


DIALECTS: dict[DialectName, SqlDialect] = {
    "spark": SqlDialect(
        quote="`",
        hour="timestamp_millis(hour_ms)",
        register="CREATE TABLE IF NOT EXISTS {table} USING delta LOCATION {location};",
        backslash="\\\\",
        apostrophe="\\'",
    ),
    "trino": SqlDialect(
        quote='"',
        hour="date_add('millisecond', hour_ms, TIMESTAMP '1970-01-01 00:00:00')",
        register="CALL system.register_table('{schema}', '{table}', {location});",
        backslash="\\",
        apostrophe="''",
        types=MappingProxyType({"string": "varchar", "array<string>": "array(varchar)"}),
        comments=False,
    ),
}


def script(locations: dict[str, str], schema: str, dialect: DialectName = "spark") -> str:
    """The whole script. ``locations`` are the folders of the tables that are there, by their names."""
    spelled = DIALECTS[dialect]
    parts = [
        f"CREATE SCHEMA IF NOT EXISTS {schema};",
        f"USE {schema};",
        *(_registered(table, locations[table.name], schema, spelled) for table in TABLES if table.name in locations),
        *(_view(table, spelled, there=table.name in locations) for table in TABLES),
        Path(__file__).with_name("questions.sql").read_text(encoding="utf-8"),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def is_schema_name(name: str) -> bool:
    """Whether it is a plain name of a schema, with or without a catalog."""
    return _NAME.fullmatch(name) is not None


def columns_of(table: TableSpec, dialect: SqlDialect = DIALECTS["spark"]) -> tuple[tuple[str, str, str], ...]:
    """Of the table's view: name, expression and comment."""
    found: list[tuple[str, str, str]] = []
    for field in table.schema:
        if field.name == "hour_ms":
            found.append(("hour", dialect.hour, _HOUR_COMMENT))
        found.append((RENAMED.get(field.name, field.name), _quoted(field.name, dialect), field.metadata["comment"]))
    return tuple(found)


def view_name(table: TableSpec) -> str:
    """``ledger`` of gold.ledger."""
    return table.name.partition(".")[2]


def _registered(table: TableSpec, location: str, schema: str, dialect: SqlDialect) -> str:
    literal = _literal(location, dialect)
    return dialect.register.format(schema=schema.rpartition(".")[2], table=_table_name(table), location=literal)


def _view(table: TableSpec, dialect: SqlDialect, *, there: bool) -> str:
    columns = columns_of(table, dialect)
    named = ",\n".join(f"  {name} COMMENT {_literal(comment, dialect)}" for name, _, comment in columns)
    values = ", ".join(f"{value} AS {name}" for name, value, _ in columns)
    source = _table_name(table) if there else f"(SELECT {', '.join(_nothing(table.schema, dialect))} WHERE false)"
    name = f"{view_name(table)} (\n{named}\n)" if dialect.comments else view_name(table)
    head = f"CREATE OR REPLACE VIEW {name} COMMENT {_literal(table.comment, dialect)} AS"
    return f"{head} SELECT {values} FROM {source};"  # noqa: S608 names are of the code, and literals are escaped


def _nothing(fields: Iterable[t.StructField], dialect: SqlDialect) -> Iterator[str]:
    for field in fields:
        kind = field.dataType.simpleString()
        yield f"CAST(NULL AS {dialect.types.get(kind, kind)}) AS {_quoted(field.name, dialect)}"


def _table_name(table: TableSpec) -> str:
    return table.name.replace(".", "_")


def _quoted(name: str, dialect: SqlDialect) -> str:
    return f"{dialect.quote}{name}{dialect.quote}"


def _literal(text: str, dialect: SqlDialect) -> str:
    escaped = text.replace("\\", dialect.backslash).replace("'", dialect.apostrophe)
    return f"'{escaped}'"
