"""Catalogue of all settings, read off the models: name, default, sentence; and the nearest name of a wrong one.

A public name is a path of model names joined by dots. Names with a part that the user chooses (an application id, a
pair of racks, a Kafka client's setting) are listed with that part in angle brackets.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Any, NamedTuple

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from config.kafka_client import KafkaClientConfig
from config.kafka_keys import ALIASES, FOLDED, KEYS
from config.sentences import sentences
from config.setting_mistake import SettingMistake, nearest
from config.settings import Settings
from config.streams_names import RELEASED_NAMES

Path = tuple[str, ...]
"""Canonical steps into the settings document, such as ``("groups", "orders", "max.warmup.replicas")``."""

_NEAR_WORD = 0.8
"""A single word is near only where most of it is the same: short words are soon half alike."""
_CHOSEN = {
    "groups": "<application.id>",
    "between": "<from->to>",
    "changelogs": "<subtopology>",
    "properties": "<property>",
    "rules": "<rule>",
    "people": "<person>",
    "targets": "<target>",
    "allow": "<window>",
    "blackout": "<window>",
    "conf": "<spark.setting>",
}


class SettingEntry(NamedTuple):
    """One setting as it is documented."""

    name: str
    default: str
    sentence: str


@cache
def names() -> tuple[str, ...]:
    """The names of all settings in the order in which they are documented."""
    return (*(name for name, _, _ in _fields(Settings, "")), *(name for name, _ in _kafka_names()))


@cache
def catalogue() -> tuple[SettingEntry, ...]:
    """All settings in the order of their names."""
    entries = [
        SettingEntry(name, _default(model, field), sentence_of(model, field))
        for name, model, field in _fields(Settings, "")
    ]
    return (*entries, *(SettingEntry(name, "", sentence) for name, sentence in _kafka_names()))


def normalise(raw: Mapping[Any, Any]) -> tuple[dict[Path, Any], tuple[SettingMistake, ...]]:
    """Leaves of a document whose names may be nested, dotted or both, by canonical path.

    Beside them the mistake of every name that does not exist, with the nearest one.
    """
    found = list(_leaves(Settings, raw, ()))
    leaves = {path: value for path, value in found if not isinstance(value, SettingMistake)}
    return leaves, tuple(value for _, value in found if isinstance(value, SettingMistake))


def nested(leaves: Mapping[Path, Any]) -> dict[str, Any]:
    """The document that the leaves came from, as the models take it."""
    document: dict[str, Any] = {}
    for path, value in leaves.items():
        at = document
        for step in path[:-1]:
            at = at.setdefault(step, {})
        at[path[-1]] = value
    return document


def public(path: Path) -> str:
    """The dotted name of a path."""
    return ".".join(path)


def unknown(name: str) -> SettingMistake:
    """The mistake of a name that does not exist: what Kafka released instead, or the nearest name."""
    short = name.rpartition(".")[2]
    if released := _released(name):
        return SettingMistake(name, released)
    if name in KEYS or name in ALIASES or name in FOLDED:
        return SettingMistake(name, f"no such setting here; did you mean kafka.{name}?")
    near = nearest(name, names()) or _by_last_word(short)
    return SettingMistake(name, f"no such setting; did you mean {near}?" if near else "no such setting")


def _released(name: str) -> str | None:
    """What Kafka released instead of a name that ends as one in the text of a KIP does."""
    return next((released for old, released in RELEASED_NAMES.items() if f".{name}".endswith(f".{old}")), None)


def _by_last_word(word: str) -> str | None:
    """The name whose last step is near, for a step that was put into the wrong section."""
    lasts = {name.rpartition(".")[2]: name for name in reversed(names()) if "<" not in name}
    near = nearest(word, lasts, _NEAR_WORD)
    return lasts[near] if near else None


def _leaves(model: type[BaseModel], raw: Mapping[Any, Any], above: Path) -> Iterator[tuple[Path, Any]]:
    """Path and value; in place of the value its mistake, so that one mistake does not hide the next."""
    fields = by_name(model)
    for key, value in raw.items():
        name = str(key)
        if name in fields:
            yield from _field_leaves(fields[name], value, (*above, name))
            continue
        section, _, rest = _section_of(name, fields)
        if section is not None:
            yield from _field_leaves(fields[section], {rest: value}, (*above, section))
        elif isinstance(value, Mapping) and any(field.startswith(name + ".") for field in fields):
            yield from _leaves(model, {f"{name}.{inner}": below for inner, below in value.items()}, above)
        else:
            yield (*above, name), unknown(public((*above, name)))


def _field_leaves(field: FieldInfo, value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    section = section_model(field)
    if section is not None and (isinstance(value, Mapping) or value is None):
        yield from _leaves(section, value or {}, path)
    elif is_client(field) and (isinstance(value, Mapping) or value is None):
        yield from (((*path, ALIASES.get(name, name)), leaf) for name, leaf in _joined(value or {}, ""))
    elif (item := mapped_model(field)) is not None and (isinstance(value, Mapping) or value is None):
        yield from _item_leaves(item, value or {}, path)
    elif is_mapping(field) and isinstance(value, Mapping):
        _, kind = typing.get_args(field.annotation)
        yield from (_leaf(kind, (), (*path, name), leaf) for name, leaf in _joined(value, ""))
    elif is_mapping(field) and not is_client(field) and (pairs := _pairs(value)):
        yield from (((*path, name), leaf) for name, leaf in pairs.items())
    elif section is not None or is_mapping(field):
        yield path, _is_section(path)
    else:
        yield _leaf(field.annotation, field.metadata, path, value)


def _leaf(kind: Any, metadata: Iterable[object], path: Path, value: Any) -> tuple[Path, Any]:
    if isinstance(value, bool) and _is_number(kind, metadata):  # not by a validator: it hides bounds from the schema
        return path, SettingMistake(public(path), f"a number is expected, not {str(value).lower()}")
    return path, value


def _is_number(kind: Any, metadata: Iterable[object]) -> bool:
    """Whether pydantic alone reads it, which takes true for 1."""
    if typing.get_origin(kind) is typing.Annotated:
        inner, *more = typing.get_args(kind)
        return _is_number(inner, (*metadata, *more))
    if typing.get_origin(kind) in {typing.Union, UnionType}:
        return any(_is_number(one, ()) for one in typing.get_args(kind))
    return kind in {int, float} and not any(isinstance(one, BeforeValidator) for one in metadata)


def _item_leaves(item: type[BaseModel], value: Mapping[Any, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    """Entries of a map whose keys the user chose; a dotted key ends where a known setting begins."""
    for key, below in value.items():
        name = str(key)
        chosen, setting = _split_chosen(item, name)
        if setting:
            yield from _leaves(item, {setting: below}, (*path, chosen))
        elif isinstance(below, Mapping) or below is None:
            yield from _leaves(item, below or {}, (*path, name))
        else:
            yield (*path, name), _no_item(item, path, name)


def _is_section(path: Path) -> SettingMistake:
    return SettingMistake(public(path), "it is a section: write its settings below it")


def _no_item(item: type[BaseModel], path: Path, name: str) -> SettingMistake:
    """The mistake of a value where settings below a chosen name are expected."""
    chosen, _, rest = name.partition(".")
    if not rest and not _released(name):
        return _is_section((*path, name))
    near = nearest(rest, by_name(item)) if rest and not _released(name) else None
    if near is None:
        return unknown(public((*path, name)))
    return SettingMistake(public((*path, name)), f"no such setting; did you mean {public((*path, chosen, near))}?")


def _split_chosen(item: type[BaseModel], name: str) -> tuple[str, str]:
    """Where the chosen part of a dotted name ends; longest known setting wins, nothing known gives ("name", "")."""
    steps = name.split(".")
    fields = by_name(item)
    for cut in range(1, len(steps)):
        setting = ".".join(steps[cut:])
        if setting in fields or _section_of(setting, fields)[0] is not None:
            return ".".join(steps[:cut]), setting
    return name, ""


def _section_of(name: str, fields: Mapping[str, FieldInfo]) -> tuple[str | None, str, str]:
    """The section that begins a dotted name, and the rest of the name."""
    for section, field in fields.items():
        if name.startswith(section + ".") and (section_model(field) or is_mapping(field)):
            return section, ".", name[len(section) + 1 :]
    return None, "", name


def _pairs(value: Any) -> dict[str, str]:
    """A mapping as one text, ``key=value,key=value`` as KIP-36 writes it; empty where it is none."""
    parts = [part.partition("=") for part in value.split(",") if part.strip()] if isinstance(value, str) else []
    if not all(key.strip() and sign for key, sign, _ in parts):
        return {}
    return {key.strip(): text.strip() for key, _, text in parts}


def _joined(value: Mapping[Any, Any], above: str) -> Iterator[tuple[str, Any]]:
    """Leaves of a nested mapping of Kafka's dotted names."""
    for key, below in value.items():
        name = f"{above}.{key}" if above else str(key)
        if isinstance(below, Mapping):
            yield from _joined(below, name)
        else:
            yield name, below


@cache
def by_name(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by public name: its own first, then those it shares with others."""
    own = inspect.get_annotations(model)
    fields = sorted(model.model_fields.items(), key=lambda item: item[0] not in own)
    return {field.alias or name: field for name, field in fields}


def sentence_of(model: type[BaseModel], name: str) -> str:
    """Help of the setting of that public name."""
    return sentences(model).get(name, "")


def section_model(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a field that is a section, else None."""
    kind: Any = field.annotation
    return kind if inspect.isclass(kind) and issubclass(kind, BaseModel) and not is_client(field) else None


def is_mapping(field: FieldInfo) -> bool:
    """Whether its keys are the user's."""
    return typing.get_origin(field.annotation) is dict or is_client(field)


def is_client(field: FieldInfo) -> bool:
    """Whether it holds a Kafka client's settings, in that client's names."""
    kind: Any = field.annotation
    return inspect.isclass(kind) and issubclass(kind, KafkaClientConfig)


def mapped_model(field: FieldInfo) -> type[BaseModel] | None:
    """The model of the values of a map whose keys are the user's, else None."""
    arguments = typing.get_args(field.annotation)
    if typing.get_origin(field.annotation) is not dict or not inspect.isclass(arguments[1]):
        return None
    return arguments[1] if issubclass(arguments[1], BaseModel) else None


def _fields(model: type[BaseModel], above: str) -> Iterator[tuple[str, type[BaseModel], str]]:
    """Public name from the top, model, and public name in it."""
    for name, field in by_name(model).items():
        path = f"{above}{name}"
        section, item = section_model(field), mapped_model(field)
        if section is not None:
            yield from _fields(section, f"{path}.")
        elif item is not None:
            yield from _fields(item, f"{path}.{_CHOSEN[name]}.")
        elif not is_client(field):
            yield (f"{path}.{_CHOSEN[name]}" if is_mapping(field) else path), model, name


def _kafka_names() -> Iterator[tuple[str, str]]:
    """Name and sentence."""
    for name, key in KEYS.items():
        extra = f" ({', '.join(key.choices)})" if key.choices else ""
        yield f"kafka.{name}", f"As in the properties of a Kafka client{extra}."
    for name in KEYS:
        yield f"execute.kafka.{name}", f"The executor's own, where it differs from kafka.{name}."


def _default(model: type[BaseModel], name: str) -> str:
    """The default as a person would write it."""
    value = model.model_construct().model_dump(mode="json", by_alias=True)[name]
    match value:
        case None | [] | {}:
            return "none" if value is None else ""
        case list():
            return ", ".join(value)
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)
