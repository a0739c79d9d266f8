"""JSON Schemas of the documents that commands print, read off their types. Write them anew: make schemas.

A field's sentence is the string in its ``Annotated``, or the docstring below it. Objects have no other fields than
those of their type: what is not in the schema is not printed.
"""

from __future__ import annotations

import inspect
import json
import types
import typing
from typing import Any, Literal, NamedTuple, TypedDict, get_args, get_origin

from typing_extensions import is_typeddict

from agent.documents import cluster, config, groups, plan, proposals, status
from agent.propose.codec import ProposalDocument
from agent.values import plan as plan_values
from agent.values.proposal import SCHEMA_ID as PROPOSAL_ID
from agent.web.api.application import field_docstrings


class BacktestScores(TypedDict):
    """Sums over the stretch of history."""

    looks: int
    groups: int
    """Groups of all looks: group snapshots."""
    seconds: float
    """Time that looks cover."""
    unseen_s: float
    """Time that no look covers."""
    read_partition_s: float
    """Partitions read across racks, times seconds."""
    unknown_partition_s: float
    """Partitions of which it is not known whether they are read across racks, times seconds."""
    read_bytes: float
    """Bytes read across racks, where rates are known."""
    read_usd: float
    dark_group_s: float
    """Groups whose bytes are not known in full, times seconds."""
    copied_bytes: float
    """Bytes copied by moves, within and across racks."""
    copied_usd: float
    replication_bytes: float
    """Bytes by which moves changed what followers fetch across racks."""
    replication_usd: float
    moves: int
    """Partitions, tasks and replicas that were moved."""
    placements: int
    """Reassignments and changes of preferred leaders."""
    triggers: int
    false_triggers: int
    """Triggers that brought nothing."""
    unjudged_triggers: int
    violation_minutes: float
    """Broken rules, times minutes."""
    balanced_s: list[float]
    """Seconds to balance of each group that came to be balanced."""
    unbalanced_s: list[float]
    """Seconds without balance of each group that did not come to be balanced."""


class BacktestRow(TypedDict):
    """One strategy, and what it would have come to."""

    rank: int
    strategy: str
    scores: BacktestScores
    usd_per_day: float | None
    """Reads, copies and changed replication; null where no byte is known, or none has a price."""
    saved_usd_per_day: float | None
    """Against what was recorded; null where that was not lived through, or bytes are not known."""
    crossing: float
    """Partitions read across racks at a time, on average."""
    balance_s: float | None
    """Median of the seconds to balance; null where no group needed any."""


class StreamRow(TypedDict):
    """A stream of ingest, as its checkpoint and its table have it. Times are epoch milliseconds."""

    stream: str
    state: Literal["between batches", "in a batch", "stalled", "not started"]
    topic: str | None
    """Null while it is not started."""
    cluster: str | None
    batch: int | None
    """The last batch that was written."""
    written_ms: int | None
    """When that batch was written."""
    records: int | None
    """Offsets that it covers."""
    newest_ms: int | None
    """When the newest record in the table was written to the topic; null while the table has none."""
    behind_s: float | None
    """How old that record is."""
    why: str
    """Why it is stalled, in a batch or not started; else empty."""


class CommandDocument(NamedTuple):
    """What one or several commands print in the forms json, jsonl and yaml."""

    name: str
    """Of its schema: docs/schemas/command-NAME.v1.json."""
    kind: Any
    """A TypedDict: the document, or one of its rows."""
    commands: tuple[str, ...]
    """As they are typed after ``rackwise``, with the option or the ARGUMENT that makes them print this."""
    about: str
    rows: bool = True
    """A list of rows, of which jsonl prints one a line; else one object."""
    version: int = 1
    """Fields may be added within a version."""


_ANSWERED = (
    "proposals approve", "proposals apply", "proposals cancel", "pause", "resume", "reassign cancel",
    "reassign rollback",
)  # fmt: skip

DOCUMENTS: tuple[CommandDocument, ...] = (
    CommandDocument(
        "status", status.StatusDocument, ("status",), "What is there, what crosses racks, all findings.", rows=False
    ),
    CommandDocument("racks", cluster.RackDocument, ("racks",), "Racks, one row each."),
    CommandDocument("groups", groups.GroupDocument, ("groups",), "Groups, costliest first."),
    CommandDocument(
        "group",
        groups.GroupDetailsDocument,
        ("groups GROUP",),
        "One group with its members, tasks and topics.",
        rows=False,
    ),
    CommandDocument("topics", groups.TopicDocument, ("topics",), "Topics, costliest first."),
    CommandDocument(
        "topic", groups.TopicDetailsDocument, ("topics TOPIC",), "One topic, its readers and partitions.", rows=False
    ),
    CommandDocument("top", groups.TopDocument, ("top",), "One look after the other, one line each.", rows=False),
    CommandDocument("doctor", cluster.CheckDocument, ("doctor",), "Checks, one row each."),
    CommandDocument("plan", ProposalDocument, ("plan", "proposals", "proposals list"), "Proposals, one row each."),
    CommandDocument("plan-groups", plan.PlanGroup, ("plan --groups",), "Groups: now, by their own assignors, at best."),
    CommandDocument(
        "plan-new-partitions",
        plan.NewPlacementRow,
        ("plan --new-topic", "plan --add-partitions"),
        "Two placements of new partitions: by Kafka's own placer, and the best one.",
    ),
    CommandDocument("explain", plan.ExplainedRow, ("explain",), "Rules with their answers, one row each."),
    CommandDocument(
        "proposals-history", proposals.HistoryRow, ("proposals history",), "The journal, the latest entry last."
    ),
    CommandDocument("answer", proposals.CommandAnswer, _ANSWERED, "The answer of the leading agent.", rows=False),
    CommandDocument(
        "reassign-status",
        proposals.ReassignStatus,
        ("reassign status",),
        "Plans, throttles, and the copies that brokers are making.",
        rows=False,
    ),
    CommandDocument(
        "reassign-verify", proposals.VerifyRow, ("reassign verify",), "Partitions of a plan, one row each."
    ),
    CommandDocument(
        "simulate",
        plan.SimulationDocument,
        ("simulate",),
        "Groups, findings, proposals and losses after the changes.",
        rows=False,
    ),
    CommandDocument(
        "assign", config.AssignDocument, ("assign",), "The output of Kafka's own classes for each case.", rows=False
    ),
    CommandDocument(
        "optimize", config.OptimizeDocument, ("optimize",), "The assignment of tasks that costs least.", rows=False
    ),
    CommandDocument("config-show", config.SettingRow, ("config show",), "Settings in force, one row each."),
    CommandDocument(
        "config-check", config.CheckedSettings, ("config check",), "That the settings can be used.", rows=False
    ),
    CommandDocument("notify-test", config.TargetRow, ("notify test",), "What each target answered, one row each."),
    CommandDocument("plugin-jar", config.PluginJar, ("plugin jar",), "The jar for brokers.", rows=False),
    CommandDocument("cluster", cluster.LocalCluster, ("cluster up", "cluster status"), "Clusters on this machine."),
    CommandDocument(
        "spark-backtest", BacktestRow, ("spark backtest",), "Strategies by how well they did, one row each."
    ),
    CommandDocument("spark-status", StreamRow, ("spark status",), "Streams of ingest, one row each."),
)

NOT_YET: tuple[str, ...] = ()
"""Commands whose documents have no schema yet."""

SCHEMA_OF_SETTINGS = "config schema"
"""The one command that prints a JSON Schema."""


def command_name(typed: str) -> str:
    """The words of the command itself, as in ``proposals history``; without ``--options`` and ARGUMENTS."""
    return " ".join(word for word in typed.split() if not word.startswith("--") and not word.isupper())


_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_TYPES = {
    name: kind
    for module in (cluster, config, groups, plan, plan_values, proposals)
    for name, kind in vars(module).items()
    if is_typeddict(kind)
}
"""Types that a command imports for the type checker alone."""
_ELSEWHERE: dict[Any, str] = {ProposalDocument: PROPOSAL_ID}
"""Types that have a schema of their own, which is referred to."""


def schema_id(document: CommandDocument) -> str:
    """The name of a document's schema."""
    return f"urn:rackwise:command:{document.name}:v{document.version}"


def file_name(document: CommandDocument) -> str:
    """The file in docs/schemas that holds it."""
    return f"command-{document.name}.v{document.version}.json"


def document_schema(document: CommandDocument) -> dict[str, Any]:
    """The schema of what ``-o json`` prints: one object, or an array of rows (each of them a line of ``-o jsonl``)."""
    definitions: dict[str, Any] = {}
    body = _of(document.kind, definitions)
    if document.rows:
        body = {"type": "array", "items": body}
    else:
        body = definitions.pop(body["$ref"].rpartition("/")[2]) if body.get("$ref", "").startswith("#/") else body
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema_id(document),
        "title": f"rackwise {document.commands[0]}",
        "description": document.about,
        **{name: value for name, value in body.items() if name != "description"},
        **({"$defs": dict(sorted(definitions.items()))} if definitions else {}),
    }


def schema_text(document: CommandDocument) -> str:
    """The text of the committed file."""
    return json.dumps(document_schema(document), indent=2, ensure_ascii=False) + "\n"


def documents_table() -> str:
    """Markdown: every command that prints a document, and the schema of it."""
    lines = ["| command | schema | what it prints |", "|---|---|---|"]
    for document in DOCUMENTS:
        commands = ", ".join(f"`{command}`" for command in document.commands)
        lines.append(f"| {commands} | [{file_name(document)}](schemas/{file_name(document)}) | {document.about} |")
    return "\n".join(lines) + "\n"


def _of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind is Any:
        return {}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if kind in _ELSEWHERE:
        return {"$ref": _ELSEWHERE[kind]}
    if is_typeddict(kind):
        return _object(kind, definitions)
    return _generic(kind, get_origin(kind), get_args(kind), definitions)


def _generic(kind: Any, origin: Any, arguments: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in {typing.Union, types.UnionType}:
        return _union([_of(argument, definitions) for argument in arguments])
    if origin is list:
        return {"type": "array", "items": _of(arguments[0], definitions)}
    if origin is dict and arguments[0] is str:
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    if origin is typing.Annotated:
        about = " ".join(text for text in arguments[1:] if isinstance(text, str))
        return {**_of(arguments[0], definitions), **({"description": about} if about else {})}
    raise TypeError(f"{kind} has no JSON Schema here")


def _union(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """``{"type": ["integer", "null"]}`` where all are plain; else a choice."""
    if all(choice.keys() == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return {"anyOf": choices}


def _object(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}  # a type may refer to itself
        hints = typing.get_type_hints(kind, localns=_TYPES, include_extras=True)
        below = dict(field_docstrings(kind))
        properties: dict[str, Any] = {}
        for field, hint in hints.items():
            given = _of(_required(hint), definitions)
            properties[field] = {**given, **({"description": below[field]} if field in below else {})}
        definitions[name] = {
            "description": " ".join((inspect.getdoc(kind) or "").split()),
            "type": "object",
            "properties": properties,
            "required": [field for field in hints if field in kind.__required_keys__],
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{name}"}


def _required(hint: Any) -> Any:
    """The type within ``NotRequired[...]``."""
    return get_args(hint)[0] if get_origin(hint) in {typing.NotRequired, typing.Required} else hint
