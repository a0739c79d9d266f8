"""The JSON Schema of the weights topic, read off the types that its codec writes. Committed as weights.v1.json."""

from __future__ import annotations

from typing import Any

from agent.telemetry.schema import schema_of
from agent.telemetry.weights import SCHEMA_ID, VERSION, GroupRecord, TopicRecord


def weights_schema() -> dict[str, Any]:
    """The schema of one record's value; a record without value deletes its key."""
    definitions: dict[str, Any] = {}
    choices = []
    for kind, shape in (("topic", TopicRecord), ("group", GroupRecord)):
        reference = schema_of(shape, definitions)
        properties = definitions[shape.__name__]["properties"]
        properties["v"] = {"const": VERSION}
        properties["kind"] = {"const": kind}
        choices.append(reference)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "rackwise weights",
        "description": "Record of the topic rackwise.weights; its key is cluster/topic/name or cluster/group/name.",
        "oneOf": choices,
        "$defs": dict(sorted(definitions.items())),
    }
