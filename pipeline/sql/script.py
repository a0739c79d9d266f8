"""The SQL script of a root: its gold tables by LOCATION, a view of each, and the views of `questions.sql`.

Views have ``hour`` as a timestamp beside epoch milliseconds and no reserved word as a name; every column has its
comment. A table that is not there yet is a view without rows, so that the script runs at any time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

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
_HOUR, _HOUR_COMMENT = "hour", "Begin of the UTC hour, as a timestamp."
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")


def script(locations: dict[str, str], schema: str) -> str:
    """The whole script. ``locations`` are the folders of the tables that are there, by their names."""
    parts = [
        f"CREATE SCHEMA IF NOT EXISTS {schema};",
        f"USE {schema};",
        *(_registered(table, locations[table.name]) for table in TABLES if table.name in locations),
        *(_view(table, there=table.name in locations) for table in TABLES),
        Path(__file__).with_name("questions.sql").read_text(encoding="utf-8"),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def statements(text: str) -> list[str]:
    """The statements of a script, without its comments: for what takes one at a time."""
    lines = (line for line in text.splitlines() if not line.startswith("--"))
    return [one.strip() for one in "\n".join(lines).split(";\n") if one.strip()]


def is_schema_name(name: str) -> bool:
    """Whether it is a plain name of a schema, with or without a catalog."""
    return _NAME.fullmatch(name) is not None


def columns_of(table: TableSpec) -> tuple[tuple[str, str, str], ...]:
    """Of the table's view: name, expression and comment."""
    found: list[tuple[str, str, str]] = []
    for field in table.schema:
        if field.name == "hour_ms":
            found.append((_HOUR, "timestamp_millis(hour_ms)", _HOUR_COMMENT))
        found.append((RENAMED.get(field.name, field.name), f"`{field.name}`", field.metadata["comment"]))
    return tuple(found)


def view_name(table: TableSpec) -> str:
    """``ledger`` of gold.ledger."""
    return table.name.partition(".")[2]


def _registered(table: TableSpec, location: str) -> str:
    return f"CREATE TABLE IF NOT EXISTS {_table_name(table)} USING delta LOCATION {_literal(location)};"


def _view(table: TableSpec, *, there: bool) -> str:
    columns = columns_of(table)
    named = ",\n".join(f"  {name} COMMENT {_literal(comment)}" for name, _, comment in columns)
    values = ", ".join(f"{value} AS {name}" for name, value, _ in columns)
    source = _table_name(table) if there else f"(SELECT {', '.join(_nothing(table.schema))} WHERE false)"
    head = f"CREATE OR REPLACE VIEW {view_name(table)} (\n{named}\n) COMMENT {_literal(table.comment)} AS"
    return f"{head} SELECT {values} FROM {source};"  # noqa: S608 names are of the code, and literals are escaped


def _nothing(fields: Iterable[t.StructField]) -> Iterable[str]:
    return (f"CAST(NULL AS {field.dataType.simpleString()}) AS `{field.name}`" for field in fields)


def _table_name(table: TableSpec) -> str:
    return table.name.replace(".", "_")


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
