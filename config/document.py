"""The settings as documents: the table of docs/operations.md and a JSON Schema for editors."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from config.catalogue import by_name, catalogue, mapped_model, section_model
from config.kafka_keys import ALIASES, FOLDED, KEYS
from config.settings import Settings
from config.sources import environment_name

BEGIN = "<!-- settings: written by `rackwise config docs` -->"
END = "<!-- end of settings -->"


def settings_table() -> str:
    """Markdown: every setting with its default, its environment variable and its sentence."""
    lines = ["| setting | default | environment | what it says |", "|---|---|---|---|"]
    for entry in catalogue():
        variable = "" if "<" in entry.name else f"`{environment_name(entry.name)}`"
        default = f"`{entry.default}`" if entry.default else ""
        sentence = entry.sentence.replace("``", "`").replace("|", "\\|")
        lines.append(f"| `{entry.name}` | {default} | {variable} | {sentence} |")
    return "\n".join(lines)


def with_settings_table(document: str) -> str:
    """The document with the table between its two marks replaced by the present one."""
    head, _, rest = document.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{settings_table()}\n{END}{tail}"


def settings_schema() -> dict[str, Any]:
    """JSON Schema of a YAML settings file, so that editors complete names and mark mistakes."""
    schema = Settings.model_json_schema(by_alias=True)
    for model in (Settings, *_models_below(Settings)):
        place = schema if model is Settings else schema["$defs"][model.__name__]
        _write_defaults(model, place["properties"])
    schema["patternProperties"] = {r"\.": {"description": "A dotted name, checked when the file is read."}}
    names = (*KEYS, *ALIASES, *FOLDED)
    schema["$defs"]["KafkaClientConfig"] = {
        "description": "The connection, in the names of a Kafka client's properties file.",
        "type": "object",
        "properties": {name: _kafka_name(name) for name in names},
        "additionalProperties": False,
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "rackwise settings", **schema}


def _models_below(model: type[BaseModel]) -> set[type[BaseModel]]:
    fields = by_name(model).values()
    below = {found for field in fields if (found := section_model(field) or mapped_model(field)) is not None}
    return below.union(*(_models_below(found) for found in below)) if below else below


def _write_defaults(model: type[BaseModel], properties: dict[str, Any]) -> None:
    """Defaults as a person would write them: ``10s``, not milliseconds."""
    written = model.model_construct().model_dump(mode="json", by_alias=True)
    for name, place in properties.items():
        if "default" in place:
            place["default"] = written[name]


def _kafka_name(name: str) -> dict[str, Any]:
    key = KEYS.get(ALIASES.get(name, name))
    if key is not None and key.choices:
        return {"enum": list(key.choices)}
    return {"type": ["string", "integer"]} if key is not None and key.kind == "number" else {"type": "string"}
