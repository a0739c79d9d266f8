"""Owners as a table: the rules of the file, written where they changed, and read where no file is named."""

from __future__ import annotations

from pipeline.local_relation import local_relation
from pipeline.owner_rules import OwnerRule, whole_name
from pipeline.schemas.gold import OWNERS
from pipeline.tables import TableStore

_Row = tuple[int, str, str, str, str, str | None]


def write_owners(tables: TableStore, rules: tuple[OwnerRule, ...]) -> bool:
    """The rules in place of those of the table; False where they are the same. Without a rule nothing changes."""
    rows = [
        (rank, one.kind, one.pattern, whole_name(one.pattern), one.team, one.cost_centre)
        for rank, one in enumerate(rules, 1)
    ]
    if not rules or rows == _rows(tables):
        return False
    tables.replace_where(OWNERS, local_relation(tables.spark, rows, OWNERS.schema))
    return True


def owners_in_force(tables: TableStore, rules: tuple[OwnerRule, ...]) -> tuple[OwnerRule, ...]:
    """These rules; without any, those of the table."""
    return rules or tuple(OwnerRule(kind, pattern, team, centre) for _, kind, pattern, _, team, centre in _rows(tables))


def _rows(tables: TableStore) -> list[_Row]:
    if not tables.exists(OWNERS):
        return []
    rows = tables.read(OWNERS).select(*OWNERS.schema.names).orderBy("rank").collect()
    return [(row.rank, row.kind, row.pattern, row.matches, row.team, row.cost_centre) for row in rows]
