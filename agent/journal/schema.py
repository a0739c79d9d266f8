"""The JSON Schema of the journal's records, read off the type that its codec writes. Committed as journal.v1.json."""

from __future__ import annotations

from typing import Any

from agent.journal.codec import SCHEMA_ID, Record
from agent.journal.columns import Table
from agent.journal.targets import NOT_SAID, Split
from agent.telemetry.schema import schema_of
from agent.values.reassignment import Plan


def journal_schema() -> dict[str, Any]:
    """The schema of one record's value; the shape of what it says goes by its key and kind.

    The shapes of a plan are among the definitions: its header, and the columns that its partitions stand in.
    """
    definitions: dict[str, Any] = {}
    for kind in (Record, Plan, Split, Table):
        schema_of(kind, definitions)
    record, plan, split = definitions["Record"], definitions["Plan"], definitions["Split"]
    record["properties"]["value"] = {"type": "object"}
    said = {name: one for name, one in plan["properties"].items() if name not in NOT_SAID}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "rackwise journal entry",
        **record,
        "$defs": {
            "PlanHeader": {
                "description": "The value under plan/<plan>.",
                "type": "object",
                "properties": {**said, **split["properties"]},
                "required": [*(name for name in plan["required"] if name in said), *split["required"]],
            },
            "Targets": {**definitions["Table"], "description": "The value under targets/<plan>/<number>."},
        },
    }
