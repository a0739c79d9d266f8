"""Sources of settings: flags, environment variables, YAML files, imported ``.properties`` files.

Each source becomes a layer: canonical path -> raw value and its origin. An unknown name is a mistake with the nearest
name; a known one without use is a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from config.catalogue import Path as SettingPath
from config.catalogue import by_name, names, normalise
from config.kafka_client import notes_on
from config.kafka_keys import ALIASES, FOLDED, IGNORED, KEYS
from config.properties import load_properties, resolve_references
from config.setting_mistake import SettingMistake, nearest
from config.streams_names import FOREIGN_NAMES, FOREIGN_PREFIXES, RELEASED_NAMES, StreamsSettings

PREFIX = "RACKWISE_"
CONFIG_VARIABLE = "RACKWISE_CONFIG"
_OTHER_VARIABLES = re.compile(r"RACKWISE_(CONFIG|AGENT|AGENT_TOKEN|CACHE|STATE|DEBUG|TEST_.*|DEMO_.*)")
_SERVICE_LINK = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)")
_SURELY_MISSPELT = 0.92
_LOCATOR = "rack.locator"
"""KIP-36's names are ours, and not a Kafka client's."""
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://")

COMMAND_LINE = "command line"
"""Where flags of their own are set."""

OriginKind = Literal["flag", "environment", "file", "properties", "default"]


class SettingOrigin(NamedTuple):
    """Where a value was set."""

    kind: OriginKind
    where: str
    """The flag, the variable or the file."""

    def __str__(self) -> str:
        if self.where == COMMAND_LINE:  # a flag by its nature
            return self.where
        return f"{self.kind} {self.where}" if self.where else self.kind


DEFAULT = SettingOrigin("default", "")


class SettingValue(NamedTuple):
    """A raw value with its origin."""

    raw: Any
    origin: SettingOrigin


class SettingsLayer(NamedTuple):
    """The settings of one source."""

    values: Mapping[SettingPath, SettingValue]
    notes: tuple[str, ...] = ()
    mistakes: tuple[SettingMistake, ...] = ()
    references: Mapping[str, str] = MappingProxyType({})
    """Resolved value of a reference -> the reference as it was written."""


def from_flags(flags: Mapping[str, object], assignments: Iterable[str]) -> SettingsLayer:
    """Flags of their own by dotted name (None: not given) and ``--set name=value``, which wins when both are given."""
    given = {name: value for name, value in flags.items() if value is not None}
    layers = [_layer(given, SettingOrigin("flag", COMMAND_LINE))]
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign or not name.strip():
            mistake = SettingMistake("--set", f"{_named(assignment)} is no name=value, such as poll.interval=10s")
            layers.append(SettingsLayer({}, (), (mistake,)))
        else:
            layers.append(_layer({name.strip(): value}, SettingOrigin("flag", "--set")))
    return _joined(layers)


def from_environment(environ: Mapping[str, str]) -> SettingsLayer:
    """``RACKWISE_`` and the name in capitals with underscores, such as ``RACKWISE_POLL_INTERVAL``.

    What Kubernetes sets for a service of that name is left alone; a variable that looks like a misspelt setting is a
    mistake, any other unknown one a note.
    """
    layers: list[SettingsLayer] = []
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        value = environ[variable]
        if _OTHER_VARIABLES.fullmatch(variable) or _SERVICE_LINK.fullmatch(variable) or _SERVICE_ADDRESS.match(value):
            continue
        name = environment_names().get(variable)
        if name is not None:
            layers.append(_layer({name: value}, SettingOrigin("environment", variable)))
        else:
            layers.append(_unknown_variable(variable))
    return _joined(layers)


def from_yaml(path: Path) -> SettingsLayer:
    """A settings file; names may be nested, dotted or both."""
    from config.yaml_file import load_yaml  # noqa: PLC0415 most commands have no such file, and YAML takes a while to load

    return _read(path, lambda: _layer(load_yaml(path), SettingOrigin("file", str(path))))


def from_properties(path: Path, environ: Mapping[str, str]) -> SettingsLayer:
    """An imported ``.properties`` file of a Kafka client or of a Streams application.

    A file with ``application.id`` sets the Streams names for that application, one without sets them for all.
    """
    return _read(path, lambda: _imported(load_properties(path), SettingOrigin("properties", str(path)), environ))


@cache
def environment_names() -> Mapping[str, str]:
    """Environment variable -> dotted name, for every setting that has no part of the user's choice in its name.

    A mapping is set as a whole, as ``key=value,key=value``.
    """
    settable = [name for name in names() if "<" not in name]
    settable += [whole for name in names() if (whole := whole_mapping(name)) is not None]
    settable += [f"{client}.{name}" for client in ("kafka", "execute.kafka") for name in (*ALIASES, *FOLDED)]
    return {environment_name(name): name for name in settable}


def whole_mapping(name: str) -> str | None:
    """The name of a mapping, out of the name of its entries; None where the user chooses another part, or none."""
    head, _, chosen = name.rpartition(".")
    return head if chosen.startswith("<") and "<" not in head else None


def environment_name(name: str) -> str:
    """The variable that sets a dotted name."""
    return PREFIX + re.sub(r"[.-]", "_", name).upper()


def _unknown_variable(variable: str) -> SettingsLayer:
    near = nearest(variable.lower(), [name.lower() for name in environment_names()])
    close = near is not None and SequenceMatcher(None, variable.lower(), near).ratio() > _SURELY_MISSPELT
    if near is not None and (close or variable.startswith(f"{PREFIX}KAFKA_")):
        return SettingsLayer({}, (), (SettingMistake(variable, f"no such setting; did you mean {near.upper()}?"),))
    return SettingsLayer({}, (f"the environment variable {variable} is not a setting and is ignored",))


def _imported(pairs: Mapping[str, str], origin: SettingOrigin, environ: Mapping[str, str]) -> SettingsLayer:
    streams_names = by_name(StreamsSettings)
    application = pairs.get("application.id", "").strip()
    values: dict[SettingPath, SettingValue] = {}
    mistakes: list[SettingMistake] = []
    foreign: list[str] = []
    references: dict[str, str] = {}
    for key, raw in pairs.items():
        if key in streams_names:
            text = resolve_references({key: raw}, environ)[key].strip()
            if "${" in raw:
                references[text] = raw
            values[("groups", application, key) if application else (key,)] = SettingValue(text, origin)
        elif key.startswith(f"{_LOCATOR}."):
            layer = _layer({key: raw}, origin)
            values |= layer.values
            mistakes += layer.mistakes
        elif key in RELEASED_NAMES:
            mistakes.append(SettingMistake(key, RELEASED_NAMES[key]))
        elif key in FOREIGN_NAMES or (key.startswith(FOREIGN_PREFIXES) and key not in KEYS):
            foreign.append(key)
        elif key != "application.id" and key not in IGNORED:
            values["kafka", ALIASES.get(key, key)] = SettingValue(raw, origin)
    notes = list(notes_on(pairs))
    if foreign:
        notes.append(f"ignored, as they are settings of the application itself: {', '.join(sorted(foreign))}")
    return SettingsLayer(values, tuple(f"{origin.where}: {note}" for note in notes), tuple(mistakes), references)


def _layer(document: Mapping[Any, Any], origin: SettingOrigin) -> SettingsLayer:
    """The settings of one document, and every mistake in its names."""
    leaves, found = normalise(document)
    mistakes = [SettingMistake(mistake.key, f"{mistake.sentence} ({origin})") for mistake in found]
    return SettingsLayer({path: SettingValue(raw, origin) for path, raw in leaves.items()}, (), tuple(mistakes))


def _read(path: Path, read: Callable[[], SettingsLayer]) -> SettingsLayer:
    try:
        return read()
    except SettingMistake as mistake:
        sentence = mistake.sentence if str(path) in mistake.sentence else f"{mistake.sentence} ({path})"
        return SettingsLayer({}, (), (SettingMistake(mistake.key, sentence, mistake.todo),))


def _joined(layers: Iterable[SettingsLayer]) -> SettingsLayer:
    values: dict[SettingPath, SettingValue] = {}
    notes: list[str] = []
    mistakes: list[SettingMistake] = []
    for layer in layers:
        values |= layer.values
        notes += layer.notes
        mistakes += layer.mistakes
    return SettingsLayer(values, tuple(notes), tuple(mistakes))


def _named(text: str) -> str:
    """An argument that is no assignment: quoted only where it is a setting's name, as it may be a misplaced secret."""
    return repr(text) if any(f"{name}.".startswith(f"{text}.") for name in names()) else "an argument"
