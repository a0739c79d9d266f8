"""The tables of docs/tables.md, read off pipeline/schemas. Write them anew: python -m tests.docs.tables"""

from __future__ import annotations

from pyspark.sql import types as t

from pipeline.schemas.bronze import BRONZE
from pipeline.schemas.fleet import PLANS
from pipeline.schemas.gold import DIMENSIONS, GOLD
from pipeline.schemas.silver import SILVER
from pipeline.schemas.table import TableSpec
from tests.docs.flow import ROOT

TABLES = ROOT / "docs" / "tables.md"
BEGIN, END = "<!-- tables -->", "<!-- end of tables -->"
LAYERS = (
    (
        "Bronze",
        "Every record as it came, once. In a root of several clusters `cluster` is part of the key, where it is known.",
        BRONZE,
    ),
    ("Silver", "What each look showed, decoded and modelled by the agent's own stages.", SILVER),
    ("Gold", "Hours, histories and lessons, for people and for the agent.", (*GOLD, *DIMENSIONS)),
    ("Fleet", "What `rackwise spark fleet` planned.", (PLANS,)),
)


def tables() -> str:
    """A chapter per layer, a table per table."""
    lines: list[str] = []
    for title, sentence, layer in LAYERS:
        lines += ["", f"## {title}", "", sentence]
        for table in layer:
            lines += ["", f"### {table.name}", "", *described(table)]
    return "\n".join([*lines, ""])


def described(table: TableSpec) -> list[str]:
    """What it is, what makes a row unique, and its columns."""
    parts = (
        f" Partitioned by {', '.join(f'`{name}`' for name in table.partitioned_by)}." if table.partitioned_by else ""
    )
    key = ", ".join(f"`{name}`" for name in table.key)
    return [
        f"{table.comment} One row per {key}.{parts} Version {table.version}.",
        "",
        "| column | type | null | meaning |",
        "|---|---|---|---|",
        *(
            f"| `{field.name}` | {shown(field.dataType)} | {'may be' if field.nullable else 'never'} | "
            f"{field.metadata['comment'].replace('|', chr(92) + '|')} |"
            for field in table.schema
        ),
    ]


def shown(kind: t.DataType) -> str:
    """Spark's own word for a type."""
    return kind.simpleString()


def with_tables(document: str) -> str:
    """The document with the present tables between its marks."""
    head, _, rest = document.partition(BEGIN)
    return f"{head}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    TABLES.write_text(with_tables(TABLES.read_text()))
