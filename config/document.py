"""Documents of the settings, written from the models: table of docs/operations.md, example file, JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from config.catalogue import by_name, catalogue, is_client, mapped_model, section_model, sentence_of
from config.kafka_keys import ALIASES, FOLDED, KEYS
from config.settings import Settings
from config.sources import environment_name, whole_mapping

_EXAMPLE_HEAD = """\
# Settings of rackwise. Every setting is here with its default, commented out; a setting left out keeps its default.
# Check with: rackwise config check -c THIS_FILE. Values in force and their origin: rackwise config show --origin.
# Names may be nested or dotted (poll.interval: 10s). Durations and sizes carry their unit."""
_KAFKA_EXAMPLE = (
    "",
    "# The connection, in the names of a Kafka client's properties file; secrets through config providers.",
    "kafka:",
    "  bootstrap.servers: 127.0.0.1:9092",
    "  # security.protocol: SASL_SSL",
    "  # sasl.mechanism: SCRAM-SHA-512",
    "  # sasl.username: rackwise",
    "  # sasl.password: ${file:/etc/rackwise/kafka.secret}",
    "  # ssl.ca.location: /etc/rackwise/ca.pem",
)
_EXECUTOR_EXAMPLE = (
    "  kafka:",
    "    # sasl.username: rackwise-executor",
    "    # sasl.password: ${file:/etc/rackwise/executor.secret}",
)
_ITEM_EXAMPLES: dict[str, tuple[str, dict[str, str]]] = {
    "groups": ("orders-app", {}),
    "rules": ("small", {"max_bytes": "10GB"}),
    "targets": ("ops", {"url_file": "/etc/rackwise/notify/ops.url"}),
    "allow": ("nights", {"days": "mon-fri", "start": '"22:00"', "end": '"06:00"', "zone": "Europe/Berlin"}),
    "blackout": ("year-end", {"first": "2026-12-20", "last": "2027-01-05"}),
}
"""What the user names in a map, and values of it where the default alone would make no sense."""
_MAP_EXAMPLES = {
    "changelogs": '"0": [orders-app-store-changelog]',
    "between": '"a->b": 0.01',
    "people": "ann: /etc/rackwise/people/ann.key",
    "properties": "file.path: /etc/rackwise/racks.properties",
    "conf": "spark.driver.memory: 2g",
}


def settings_table() -> str:
    """Markdown: every setting with its default, its environment variable and its sentence."""
    lines = ["| setting | default | environment | meaning |", "|---|---|---|---|"]
    for entry in catalogue():
        settable = entry.name if "<" not in entry.name else whole_mapping(entry.name)
        variable = f"`{environment_name(settable)}`" if settable else ""
        default = f"`{entry.default}`" if entry.default else ""
        sentence = entry.sentence.replace("``", "`").replace("|", "\\|")
        lines.append(f"| `{entry.name}` | {default} | {variable} | {sentence} |")
    return "\n".join(lines)


def example_yaml() -> str:
    """A settings file with every setting, its sentence and its default, each commented out."""
    return "\n".join((_EXAMPLE_HEAD, *_example_lines(Settings, 0))) + "\n"


def settings_schema() -> dict[str, Any]:
    """JSON Schema of a YAML settings file, so that editors complete names and mark mistakes."""
    schema = Settings.model_json_schema(by_alias=True)
    for model in _models_below(Settings) | {Settings}:
        place = schema if model is Settings else schema["$defs"][model.__name__]
        _describe(model, place["properties"])
    schema["patternProperties"] = {r"\.": {"description": "A dotted name, checked when the file is loaded."}}
    names = (*KEYS, *ALIASES, *FOLDED)
    for client in ("KafkaClientConfig", "KafkaClientOverrides"):
        schema["$defs"][client] = {
            "description": "The connection, with the names of a Kafka client's properties file.",
            "type": "object",
            "properties": {name: _kafka_name(name) for name in names},
            "additionalProperties": False,
        }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "rackwise settings", **schema}


def _example_lines(model: type[BaseModel], depth: int, given: Mapping[str, str] | None = None) -> Iterator[str]:
    defaults = model.model_construct().model_dump(mode="json", by_alias=True)
    pad = "  " * depth
    for name, field in by_name(model).items():
        section, item = section_model(field), mapped_model(field)
        if is_client(field):
            yield from (
                _KAFKA_EXAMPLE if depth == 0 else (f"{pad}# {_plain(sentence_of(model, name))}", *_EXECUTOR_EXAMPLE)
            )
        elif section is not None:
            yield from (
                "",
                f"{pad}# {_plain(section.__doc__ or '')}",
                f"{pad}{name}:",
                *_example_lines(section, depth + 1),
            )
        elif item is not None:
            chosen, given_below = _ITEM_EXAMPLES[name]
            yield from ("", f"{pad}# {_plain(sentence_of(model, name))}", f"{pad}{name}:", f"{pad}  {chosen}:")
            yield from _example_lines(item, depth + 2, given_below)
        else:
            yield f"{pad}# {_plain(sentence_of(model, name))}"
            value = (given or {}).get(name) or _example_value(name, defaults[name])
            yield f"{pad}# {name}: {value}"


def _example_value(name: str, default: object) -> str:
    if isinstance(default, dict):
        return "{" + _MAP_EXAMPLES[name] + "}"
    return json.dumps(default) if default is None or isinstance(default, bool | list) else str(default)


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "").split())


def _models_below(model: type[BaseModel]) -> set[type[BaseModel]]:
    fields = by_name(model).values()
    below = {found for field in fields if (found := section_model(field) or mapped_model(field)) is not None}
    return below.union(*(_models_below(found) for found in below)) if below else below


def _describe(model: type[BaseModel], properties: dict[str, Any]) -> None:
    """Sentences, and defaults as a person would write them: ``10s``, not milliseconds."""
    written = model.model_construct().model_dump(mode="json", by_alias=True)
    for name, place in properties.items():
        if sentence := sentence_of(model, name):
            place["description"] = sentence
        if "default" in place:
            place["default"] = written[name]


def _kafka_name(name: str) -> dict[str, Any]:
    key = KEYS.get(ALIASES.get(name, name))
    if key is not None and key.choices:
        return {"enum": list(key.choices)}
    return {"type": ["string", "integer"]} if key is not None and key.kind == "number" else {"type": "string"}
