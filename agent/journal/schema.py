"""JSON Schema of the journal's records, derived from the codec's types; committed as journal.v1.json."""

from __future__ import annotations

from typing import Any

from agent.journal.codec import SCHEMA_ID, JournalRecord, TargetColumns
from agent.journal.targets import NOT_SAID, TargetManifest
from agent.telemetry.schema import schema_of
from agent.values.reassignment import ReassignmentPlan


def journal_schema() -> dict[str, Any]:
    """The schema of one record's value; the shape of what it says goes by its key and kind.

    The shapes of a plan are among the definitions: its header, and the columns that its partitions stand in.
    """
    definitions: dict[str, Any] = {}
    for kind in (JournalRecord, ReassignmentPlan, TargetManifest, TargetColumns):
        schema_of(kind, definitions)
    record, plan, split = definitions["JournalRecord"], definitions["ReassignmentPlan"], definitions["TargetManifest"]
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
            "Targets": {**definitions["TargetColumns"], "description": "The value under targets/<plan>/<number>."},
        },
    }
