"""The JSON Schema of the journal's records, read off the type that its codec writes. Committed as journal.v1.json."""

from __future__ import annotations

from typing import Any

from agent.journal.codec import SCHEMA_ID, Record
from agent.telemetry.schema import schema_of


def journal_schema() -> dict[str, Any]:
    """The schema of one record's value; the shape of what it says goes by its key and kind."""
    definitions: dict[str, Any] = {}
    schema_of(Record, definitions)
    record = definitions["Record"]
    record["properties"]["value"] = {"type": "object"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "rackwise journal entry",
        **record,
    }
