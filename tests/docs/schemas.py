"""JSON Schemas of telemetry, journal, weights and proposals, derived from the types of their codecs.

Committed in docs/schemas; additive changes only within a version. Write them anew: python -m tests.docs.schemas
"""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from enum import Enum
from functools import reduce
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from agent.journal.entries import SCHEMA_ID as JOURNAL_ID
from agent.journal.entries import JournalRecord
from agent.journal.targets import NOT_SAID, TargetColumns, TargetManifest
from agent.propose.codec import ProposalDocument
from agent.telemetry import topic_records
from agent.telemetry.changes import SHAPES
from agent.telemetry.events import INPUT_SHAPES, VERSION, EventKind, FragmentData, LimitsData, TelemetryEvent
from agent.telemetry.looks import recorded_names
from agent.telemetry.topic_records import LIFE_SCHEMA
from agent.values.limits import Limits
from agent.values.proposal import SCHEMA_ID as PROPOSAL_ID
from agent.values.proposal import LifecycleStep
from agent.values.reassignment import ReassignmentPlan
from assignors.problem import TopicPartition

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA_ID = f"urn:rackwise:telemetry:v{VERSION}"
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_RUNS = {
    "description": "Partitions in runs of one topic, in order.",
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"topic": {"type": "string"}, "partitions": {"type": "array", "items": {"type": "integer"}}},
        "required": ["topic", "partitions"],
    },
}


def telemetry_schema() -> dict[str, Any]:
    """The schema of one event: the envelope, and by kind the shape of its data."""
    shapes = _shapes()
    definitions: dict[str, Any] = {}
    choices = [
        {
            "if": {"properties": {"kind": {"const": kind.value}}},
            "then": {"properties": {"data": schema_of(shape, definitions)}},
        }
        for kind, shape in shapes.items()
    ]
    definitions[LimitsData.__name__]["properties"]["limits"] = _limits(definitions)
    properties = {name: {"type": "string"} for name in ("subject", "cluster", "look")}
    properties |= {name: {"type": "integer"} for name in ("v", "n", "taken_ms")}
    base = {"base": {"type": "string"}, "base_taken_ms": {"type": "integer"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "rackwise telemetry event",
        "description": _first_line(TelemetryEvent),
        "type": "object",
        "properties": {
            "kind": {"enum": [kind.value for kind in shapes]},
            **properties,
            "data": {"type": "object"},
            **base,
        },
        "required": [name for name in TelemetryEvent._fields if name not in base],
        "dependentRequired": {"base": ["base_taken_ms"], "base_taken_ms": ["base"]},
        "allOf": choices,
        "$defs": dict(sorted(definitions.items())),
    }


def _limits(definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of all limits, under the names that they have in a record."""
    properties: dict[str, Any] = {}
    for name, path in recorded_names().items():
        *sections, last = name.split(".")
        section = properties
        for key in sections:
            section = section.setdefault(key, {"type": "object", "properties": {}})["properties"]
        hint = reduce(lambda kind, key: typing.get_type_hints(kind)[key], path, Limits)
        section[last] = schema_of(hint, definitions)
    return {"description": _first_line(Limits), "type": "object", "properties": properties}


def kinds_table() -> str:
    """Markdown: every kind of event, whether it rebuilds the look, and what its data tells."""
    lines = ["| kind | rebuilds the look | data |", "|---|---|---|"]
    for kind, shape in _shapes().items():
        rebuilds = "yes" if kind in INPUT_SHAPES or kind is EventKind.KEPT else ""
        lines.append(f"| `{kind.value}` | {rebuilds} | {_first_line(shape)} |")
    return "\n".join(lines) + "\n"


def life_schema() -> dict[str, Any]:
    """The schema of a step in the life of a proposal after its creation."""
    definitions: dict[str, Any] = {}
    schema_of(LifecycleStep, definitions)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": LIFE_SCHEMA}
    return {**head, "title": "A step in the life of a proposal", **definitions[LifecycleStep.__name__]}


def schema_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type's JSON; records become definitions that are referred to."""
    if kind in _PLAIN or kind is object:
        return {"type": _PLAIN[kind]} if kind in _PLAIN else {}
    if typing.get_origin(kind) is not None:
        return _generic(typing.get_origin(kind), typing.get_args(kind), definitions)
    if kind is bytes:
        return {"type": "string", "contentEncoding": "base64"}
    if kind is date:
        return {"type": "string", "format": "date"}
    if issubclass(kind, Enum):
        return {"enum": [member.name for member in kind]}
    return _reference(kind, definitions)


def _shapes() -> dict[EventKind, type]:
    return {**SHAPES, EventKind.FRAGMENT: FragmentData}


def _generic(origin: Any, arguments: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(argument, definitions) for argument in arguments]}
    if origin is tuple:
        return _tuple(arguments, definitions)
    if origin is frozenset:
        return {"type": "array", "items": schema_of(arguments[0], definitions), "uniqueItems": True}
    return _mapping(arguments[0], arguments[1], definitions)


def _tuple(arguments: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    if arguments == (TopicPartition, ...):
        return _RUNS
    if len(arguments) == 2 and arguments[1] is ...:
        return {"type": "array", "items": schema_of(arguments[0], definitions)}
    items = [schema_of(argument, definitions) for argument in arguments]
    return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}


def _mapping(key: Any, value: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    values = schema_of(value, definitions)
    if isinstance(key, type) and (key in (str, int) or issubclass(key, Enum)):
        return {"type": "object", "additionalProperties": values}
    pair = {"type": "array", "prefixItems": [schema_of(key, definitions), values], "minItems": 2, "maxItems": 2}
    return {"type": "array", "items": pair}


def _reference(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}  # a type may refer to itself
        hints = typing.get_type_hints(kind)
        required, names = _field_names(kind)
        definitions[kind.__name__] = {
            "description": _first_line(kind),
            "type": "object",
            "properties": {name: schema_of(hints[name], definitions) for name in names},
            "required": required,
        }
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _field_names(kind: type) -> tuple[list[str], list[str]]:
    """Names that every reader may count on (those without default), and all names."""
    if is_dataclass(kind):
        kept = [field for field in fields(kind) if field.init and field.compare]
        required = [f.name for f in kept if f.default is MISSING and f.default_factory is MISSING]
        return required, [field.name for field in kept]
    names: tuple[str, ...] = getattr(kind, "_fields", ())
    defaults: Mapping[str, Any] = getattr(kind, "_field_defaults", {})
    return [name for name in names if name not in defaults], list(names)


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def weights_schema() -> dict[str, Any]:
    """The schema of one record's value; a record without value deletes its key."""
    definitions: dict[str, Any] = {}
    choices = []
    for kind, shape in (("topic", topic_records.TopicRecord), ("group", topic_records.GroupRecord)):
        reference = schema_of(shape, definitions)
        properties = definitions[shape.__name__]["properties"]
        properties["v"] = {"const": topic_records.VERSION}
        properties["kind"] = {"const": kind}
        choices.append(reference)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": topic_records.WEIGHTS_SCHEMA_ID,
        "title": "rackwise weights",
        "description": "Record of the topic rackwise.weights; its key is cluster/topic/name or cluster/group/name.",
        "oneOf": choices,
        "$defs": dict(sorted(definitions.items())),
    }


def journal_schema() -> dict[str, Any]:
    """The schema of one record's value; the shape of what it says goes by its key and kind.

    The shapes of a plan are among the definitions: its header, and the columns that its partitions stand in.
    """
    definitions: dict[str, Any] = {}
    for kind in (JournalRecord, ReassignmentPlan, TargetManifest, TargetColumns):
        schema_of(kind, definitions)
    record, plan, split = definitions["JournalRecord"], definitions["ReassignmentPlan"], definitions["TargetManifest"]
    record["properties"]["value"] = {"type": "object"}
    plan_fields = {name: one for name, one in plan["properties"].items() if name not in NOT_SAID}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": JOURNAL_ID,
        "title": "rackwise journal entry",
        **record,
        "$defs": {
            "PlanHeader": {
                "description": "The value under plan/<plan>.",
                "type": "object",
                "properties": {**plan_fields, **split["properties"]},
                "required": [*(name for name in plan["required"] if name in plan_fields), *split["required"]],
            },
            "Targets": {**definitions["TargetColumns"], "description": "The value under targets/<plan>/<number>."},
        },
    }


def proposal_schema() -> dict[str, Any]:
    """The schema of a proposal's document."""
    schema = TypeAdapter(ProposalDocument).json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": PROPOSAL_ID, **schema}


def written() -> Mapping[str, dict[str, Any]]:
    """Each committed file of docs/schemas that describes a topic's records."""
    return {
        "telemetry.v1.json": telemetry_schema(),
        "proposal-life.v1.json": life_schema(),
        "proposal.v1.json": proposal_schema(),
        "journal.v1.json": journal_schema(),
        "weights.v1.json": weights_schema(),
    }


if __name__ == "__main__":
    for file, schema in written().items():
        (DOCS / "schemas" / file).write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n")
    page = DOCS / "telemetry.md"
    before, _, rest = page.read_text().partition("| kind | rebuilds the look |")
    after = rest[rest.index("\n\n") :]
    page.write_text(f"{before}{kinds_table().rstrip()}{after}")
