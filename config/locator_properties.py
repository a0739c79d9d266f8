"""Properties of each kind of rack locator, checked one by one: the parts of ``rack.locator.properties``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema

from config.kafka_keys import CLIENT_ID
from config.networks import overlapping, parsed_network
from config.properties import resolve_references
from config.setting_mistake import SettingMistake, nearest
from config.value_kinds import parse_duration, parse_size

WIRE, FILE, COMMAND, REGEX, CIDR, ALIAS = BUILT_IN = ("wire", "file", "command", "regex", "cidr", "alias")
ENTRY_POINT = "entry point"
FORMS = ("properties", "yaml")
NAMES_MATCHED = ("group.instance.id", CLIENT_ID, "host")
Given = Mapping[str, str | tuple[str, ...]]
"""Properties of one locator, without its name."""

_DEFAULT_BYTES = 1_048_576
_MOST_BYTES = 16 * 1_048_576
_DEFAULT_MS = 3_000
_LEAST_MS = 100
_MOST_PROPERTY_CHARS = 16_384
_MAX_RACK_CHARS = 255
_KNOWN = {
    WIRE: (),
    FILE: ("path", "format", "max.bytes"),
    COMMAND: ("argv", "format", "timeout", "max.bytes"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatorSettings:
    """One locator with all that it needs; only the fields of its kind are filled in."""

    name: str
    kind: str
    path: str = ""
    argv: tuple[str, ...] = ()
    form: str = FORMS[0]
    timeout_ms: int = _DEFAULT_MS
    max_bytes: int = _DEFAULT_BYTES
    patterns: tuple[tuple[str, str, str], ...] = ()
    """(what is matched, pattern, rack)."""
    networks: tuple[tuple[str, str], ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What an entry point is given, references resolved."""

    @property
    def entry_point(self) -> str:
        """The name of the entry point: the locator's, without its label."""
        return self.name.partition(":")[0]


def locator_settings(name: str, given: Given) -> LocatorSettings:  # noqa: PLR0911 (one for each kind)
    """The locator of that name. Raises SettingMistake with the property's name."""
    kind = name.partition(":")[0]
    if kind in _KNOWN:
        _check_known(name, given, _KNOWN[kind])
    match kind:
        case "wire":
            return LocatorSettings(name=name, kind=WIRE)
        case "file":
            path = _text(name, "path", given)
            form = _form(name, given) or ("yaml" if path.endswith((".yaml", ".yml", ".json")) else FORMS[0])
            return LocatorSettings(name=name, kind=FILE, path=path, form=form, max_bytes=_max_bytes(name, given))
        case "command":
            return LocatorSettings(
                name=name,
                kind=COMMAND,
                argv=_argv(name, given),
                form=_form(name, given) or FORMS[0],
                timeout_ms=_timeout(name, given),
                max_bytes=_max_bytes(name, given),
            )
        case "regex":
            return LocatorSettings(name=name, kind=REGEX, patterns=_patterns(name, given))
        case "cidr":
            return LocatorSettings(name=name, kind=CIDR, networks=_networks(name, given))
        case "alias":
            return LocatorSettings(name=name, kind=ALIAS, aliases=_aliases(name, given))
        case _:
            return LocatorSettings(
                name=name,
                kind=ENTRY_POINT,
                timeout_ms=_timeout(name, given),
                max_bytes=_max_bytes(name, given),
                properties=_handed_on(name, given),
            )


def _check_known(name: str, given: Iterable[str], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            near = nearest(key, known)
            hint = f"; did you mean {name}.{near}?" if near else f"; {name} has {', '.join(known) or 'none'}"
            raise SettingMistake(f"properties.{name}.{key}", f"no such property{hint}")


def _text(name: str, key: str, given: Given) -> str:
    value = given.get(key, "")
    if not isinstance(value, str) or not value.strip():
        raise SettingMistake(f"properties.{name}.{key}", f"{name} needs it, as one text")
    return value.strip()


def _argv(name: str, given: Given) -> tuple[str, ...]:
    value = given.get("argv", ())
    try:
        argv = tuple(shlex.split(value)) if isinstance(value, str) else value
    except ValueError as error:
        raise SettingMistake(f"properties.{name}.argv", f"it cannot be split into arguments ({error})") from None
    if not argv or not argv[0]:
        sentence = f"{name} needs it: the program and its arguments, such as [/usr/local/bin/racks, --all]"
        raise SettingMistake(f"properties.{name}.argv", sentence)
    return argv


def _form(name: str, given: Given) -> str | None:
    value = given.get("format")
    if value is not None and value not in FORMS:
        raise SettingMistake(f"properties.{name}.format", f"{value} is not offered; use one of {' or '.join(FORMS)}")
    return str(value) if value is not None else None


def _timeout(name: str, given: Given) -> int:
    key = f"properties.{name}.timeout"
    try:
        millis = parse_duration(given.get("timeout", f"{_DEFAULT_MS}ms"))
    except ValueError as error:
        raise SettingMistake(key, str(error)) from None
    if millis < _LEAST_MS:
        raise SettingMistake(key, f"it must be at least {_LEAST_MS}ms")
    return millis


def _max_bytes(name: str, given: Given) -> int:
    key = f"properties.{name}.max.bytes"
    try:
        size = parse_size(given.get("max.bytes", _DEFAULT_BYTES))
    except ValueError as error:
        raise SettingMistake(key, str(error)) from None
    if not 1 <= size <= _MOST_BYTES:
        raise SettingMistake(key, "it must be at least 1 and at most 16MiB")
    return size


def _patterns(name: str, given: Given) -> tuple[tuple[str, str, str], ...]:
    patterns: list[tuple[str, str, str]] = []
    for key, rack in given.items():
        of = next((of for of in NAMES_MATCHED if key.startswith(f"{of}.")), None)
        if of is None:
            offered = " or ".join(f"{name}.{of}.PATTERN" for of in NAMES_MATCHED)
            raise SettingMistake(f"properties.{name}.{key}", f"no such property; write {offered}")
        patterns.append((of, key[len(of) + 1 :], _rack(name, key, rack)))
        try:
            SchemaValidator(core_schema.str_schema(pattern=patterns[-1][1], regex_engine="rust-regex"))
        except SchemaError as error:
            why = str(error).splitlines()[-1].strip().removeprefix("error: ")
            raise SettingMistake(f"properties.{name}.{key}", f"it is not a valid pattern: {why}") from None
    return _some(name, patterns, "a pattern", f"{CLIENT_ID}.PATTERN")


def _networks(name: str, given: Given) -> tuple[tuple[str, str], ...]:
    networks: dict[str, str] = {}
    for key, rack in given.items():
        try:
            network = parsed_network(key)
        except ValueError as error:
            raise SettingMistake(f"properties.{name}.{key}", str(error)) from None
        if networks.setdefault(network, _rack(name, key, rack)) != rack:
            raise SettingMistake(f"properties.{name}.{key}", f"it is also in rack {networks[network]}")
    if found := overlapping(networks):
        inner, outer = found
        sentence = f"it is in rack {networks[inner]}, and {outer}, which contains it, in rack {networks[outer]}"
        raise SettingMistake(f"properties.{name}.{inner}", f"{sentence}; an address can be in one rack only")
    return _some(name, list(networks.items()), "a network", "NETWORK")


def _aliases(name: str, given: Given) -> tuple[tuple[str, str], ...]:
    aliases = {key: _rack(name, key, rack) for key, rack in given.items()}
    for other, meant in aliases.items():
        if meant == other:
            raise SettingMistake(f"properties.{name}.{other}", "it is an alias of itself; leave it out")
        if meant in aliases:
            sentence = (
                f"it is an alias of {meant}, which is itself an alias of {aliases[meant]}; use {aliases[meant]} in both"
            )
            raise SettingMistake(f"properties.{name}.{other}", sentence)
    return _some(name, list(aliases.items()), "an alias of a rack", "OTHER-NAME")


def _rack(name: str, key: str, value: str | tuple[str, ...]) -> str:
    if not isinstance(value, str) or not value or len(value) > _MAX_RACK_CHARS or not value.isprintable():
        sentence = f"a rack is expected: one text of 1 to {_MAX_RACK_CHARS} printable characters"
        raise SettingMistake(f"properties.{name}.{key}", sentence)
    return value


def _some(name: str, found: list[Any], what: str, shape: str) -> tuple[Any, ...]:
    if not found:
        raise SettingMistake(f"properties.{name}", f"{name} needs at least {what}, written as {name}.{shape}: RACK")
    return tuple(found)


def _handed_on(name: str, given: Given) -> dict[str, str]:
    own = {key: value for key, value in given.items() if key not in ("timeout", "max.bytes")}
    texts = {key: value if isinstance(value, str) else ",".join(value) for key, value in own.items()}
    try:
        resolved = resolve_references(texts, os.environ)
    except SettingMistake as mistake:
        raise SettingMistake(f"properties.{name}.{mistake.key}", mistake.sentence) from None
    if sum(len(key) + len(value) for key, value in resolved.items()) > _MOST_PROPERTY_CHARS:
        raise SettingMistake(f"properties.{name}", f"its properties hold more than {_MOST_PROPERTY_CHARS} characters")
    return resolved
