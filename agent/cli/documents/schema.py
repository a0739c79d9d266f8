"""JSON Schemas of the documents that commands print, read off their types. Write them anew: make schemas.

A field's sentence is the string in its ``Annotated``, or the docstring below it. Objects have no other fields than
those of their type: what is not in the schema is not printed.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
import types
import typing
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, get_args, get_origin

from typing_extensions import get_original_bases, is_typeddict

from agent.cli.documents.catalogue import DOCUMENTS, Document
from agent.propose.codec import ProposalDocument
from agent.values.proposal import SCHEMA_ID as PROPOSAL_ID

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_ELSEWHERE: dict[Any, str] = {ProposalDocument: PROPOSAL_ID}
"""Types that have a schema of their own, which is referred to."""


def schema_id(document: Document) -> str:
    """The name of a document's schema."""
    return f"urn:rackwise:command:{document.name}:v{document.version}"


def file_name(document: Document) -> str:
    """The file in docs/schemas that holds it."""
    return f"command-{document.name}.v{document.version}.json"


def document_schema(document: Document) -> dict[str, Any]:
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


def schema_text(document: Document) -> str:
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
        hints = typing.get_type_hints(kind, include_extras=True)
        below = dict(_docstrings(kind))
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


def _docstrings(kind: Any) -> Iterator[tuple[str, str]]:
    """Field -> the docstring below it, of the type and of what it derives from."""
    for base in get_original_bases(kind):
        if is_typeddict(base):
            yield from _docstrings(base)
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    for field, below in pairwise(definition.body if isinstance(definition, ast.ClassDef) else ()):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split())
