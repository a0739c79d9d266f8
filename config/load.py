"""Settings from all sources: flag > environment > config files > imported ``.properties`` > default.

Every value keeps its origin. All mistakes are reported together, each with its origin.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from config.catalogue import Path as SettingPath
from config.catalogue import by_name, nested, normalise, public
from config.kafka_client import KafkaClientConfig
from config.properties import resolve_references
from config.secrets import MASK, masked, secrets_in, shown, without_resolved, without_url_secrets
from config.setting_mistake import SettingMistake
from config.settings import Settings
from config.sources import (
    CONFIG_VARIABLE,
    DEFAULT,
    SettingOrigin,
    SettingsLayer,
    SettingValue,
    from_environment,
    from_flags,
    from_properties,
    from_yaml,
)
from config.streams_names import StreamsSettings

_MOST_CHARS = 500
"""Of a sentence: a value that is shown in it may be as long as the file."""


class SettingsRefusedError(ValueError):
    """The settings cannot be used; ``mistakes`` has one sentence each."""

    def __init__(self, mistakes: Sequence[SettingMistake]) -> None:
        super().__init__("; ".join(str(mistake) for mistake in mistakes))
        self.mistakes = tuple(mistakes)


class SettingsSource(NamedTuple):
    """A file, a variable or an option that settings were read from."""

    origin: SettingOrigin
    settings: int
    """How many settings it has; a stronger source may override them."""
    named_by: str = ""
    """The variable that names the file; empty where it was named on the command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """The settings in force, with their origins and notes."""

    settings: Settings
    origins: Mapping[str, SettingOrigin] = field(default_factory=dict)
    """Dotted name -> origin of every value that is not a default."""
    notes: tuple[str, ...] = ()
    sources: tuple[SettingsSource, ...] = ()
    """Every source that was read, the strongest first; defaults are none."""
    references: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Resolved value of a reference of the connection -> the reference as it was written."""

    def origin(self, name: str) -> SettingOrigin:
        """Where that setting was set."""
        return self.origins.get(name, DEFAULT)

    def secrets(self) -> tuple[str, ...]:
        """Secret values in clear text, for the log's redaction only."""
        settings = self.settings
        values = settings.model_dump(by_alias=True, exclude={"kafka": True, "execute": {"kafka"}})
        return (
            *settings.kafka.secrets(),
            *settings.execute.kafka.secrets(),
            *settings.rack_locator.secrets(),
            *(secret for name, value in values.items() for secret in secrets_in(name, value)),
            *secrets_in("kafka", settings.kafka.not_secret()),
            *secrets_in("kafka", settings.execute.kafka.not_secret()),
        )


def load_settings(
    *,
    files: Iterable[Path] = (),
    properties: Iterable[Path] = (),
    assignments: Iterable[str] = (),
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> LoadedSettings:
    """The settings in force. A later file or assignment wins over an earlier one.

    ``files`` are the ``--config`` files; without any, those named by ``RACKWISE_CONFIG`` are read. Raises
    SettingsRefusedError with every mistake found.
    """
    environment = os.environ if environ is None else environ
    given, imported = list(files), list(properties)
    named = given or [Path(name) for name in environment.get(CONFIG_VARIABLE, "").split(os.pathsep) if name]
    layers = [
        *(from_properties(path, environment) for path in imported),
        *(from_yaml(path) for path in named),
        from_environment(environment),
        from_flags(flags or {}, assignments),
    ]
    mistakes = [mistake for layer in layers for mistake in layer.mistakes]
    merged = _merged(layers)
    references = {**_references(merged), **{text: ref for layer in layers for text, ref in layer.references.items()}}
    settings, found = _validated(merged)
    mistakes += found
    if mistakes or settings is None:
        secrets = {text for path, value in merged.items() for text in secrets_in(public(path), value.raw)}
        raise SettingsRefusedError([_without_secrets(mistake, references, secrets) for mistake in mistakes])
    return LoadedSettings(
        settings=settings,
        origins={public(path): value.origin for path, value in merged.items()},
        notes=(
            *(note for layer in layers for note in layer.notes),
            *settings.kafka.warnings(),
            *settings.rack_locator.notes(),
            *_exposed(merged),
        ),
        sources=_sources(layers, imported, named, CONFIG_VARIABLE if not given else ""),
        references=references,
    )


def effective(loaded: LoadedSettings) -> tuple[tuple[str, Any, SettingOrigin], ...]:
    """Every setting in force by name: value for a person's eyes (secrets are stars) and origin.

    A value of the connection that was given as a reference is shown as that reference.
    """
    document = loaded.settings.model_dump(mode="json", by_alias=True)
    document["kafka"] = _connection(loaded, loaded.settings.kafka)
    document["execute"]["kafka"] = _connection(loaded, loaded.settings.execute.kafka)
    rows: list[tuple[str, Any, SettingOrigin]] = []
    leaves, _ = normalise(document)
    for path, value in leaves.items():
        name = public(path)
        origin = loaded.origin(name)
        if path[0] != "groups" or origin is not DEFAULT:
            rows.append((name, value if "kafka" in path[:2] else shown(name, value), origin))
    return tuple(rows)


def _connection(loaded: LoadedSettings, client: KafkaClientConfig) -> dict[str, str]:
    return {name: loaded.references.get(value, masked(value)) for name, value in client.masked().items()}


def _references(merged: Mapping[SettingPath, SettingValue]) -> dict[str, str]:
    """Resolved values of the connection's references; one that cannot be resolved is reported elsewhere."""
    found: dict[str, str] = {}
    for path, value in merged.items():
        written = str(value.raw)
        if "${" not in written:
            continue
        with suppress(SettingMistake):
            for text in resolve_references({path[-1]: written}, os.environ).values():
                found[text.strip()] = written
    return found


def _without_secrets(mistake: SettingMistake, references: Mapping[str, str], secrets: Iterable[str]) -> SettingMistake:
    """The same mistake, with nothing quoted that may be secret."""
    sentence = without_resolved(mistake.sentence, references)
    for secret in sorted(secrets, key=len, reverse=True):
        sentence = sentence.replace(secret, MASK)
    return SettingMistake(mistake.key, without_url_secrets(sentence), mistake.todo)


def _merged(layers: Iterable[SettingsLayer]) -> dict[SettingPath, SettingValue]:
    merged: dict[SettingPath, SettingValue] = {}
    for layer in layers:
        merged |= layer.values
    return merged


def _sources(
    layers: Iterable[SettingsLayer], properties: Sequence[Path], files: Sequence[Path], named_by: str
) -> tuple[SettingsSource, ...]:
    """What was read, the strongest first: also a file that sets nothing."""
    counted = Counter(value.origin for layer in layers for value in layer.values.values())
    read = {SettingOrigin("properties", str(path)): "" for path in properties}
    read |= {SettingOrigin("file", str(path)): named_by for path in files}
    read |= {origin: "" for origin in counted if origin not in read}
    return tuple([SettingsSource(origin, counted[origin], read[origin]) for origin in reversed(read)])


def _validated(merged: Mapping[SettingPath, SettingValue]) -> tuple[Settings | None, list[SettingMistake]]:
    document = nested({path: value.raw for path, value in merged.items()})
    origins = {public(path): value.origin for path, value in merged.items()}
    try:
        settings = Settings(**document)
    except ValidationError as error:
        return None, _mistakes(error, origins)
    except UnicodeEncodeError:
        return None, [SettingMistake("", "a value holds half a surrogate pair, which is no text")]
    return settings, [
        _beyond(name, origins)
        for name, number in _numbers(settings.model_dump(by_alias=True))
        if not -(2**63) <= number < 2**63
    ]


def _numbers(value: object, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _numbers(item, name)
    elif isinstance(value, int | float):
        yield name, value


def _beyond(name: str, origins: Mapping[str, SettingOrigin]) -> SettingMistake:
    where = _where(name, origins)
    return SettingMistake(name, "the number is out of range; 64 bits are the most" + (f" ({where})" if where else ""))


def _mistakes(error: ValidationError, origins: Mapping[str, SettingOrigin]) -> list[SettingMistake]:
    """One sentence for each error, in the user's words and with where the value was set."""
    found: dict[str, SettingMistake] = {}
    for detail in error.errors(include_url=False):
        cause = detail.get("ctx", {}).get("error")
        name, sentence = _name_of(detail, cause, origins), _sentence(detail, cause)[:_MOST_CHARS]
        where = _where(name, origins)
        found.setdefault(name, SettingMistake(name, f"{sentence} ({where})" if where else sentence))
    return list(found.values())


def _name_of(detail: ErrorDetails, cause: object, origins: Mapping[str, SettingOrigin]) -> str:
    steps = [str(step) for step in detail["loc"] if not isinstance(step, int)]
    if isinstance(cause, SettingMistake):
        return ".".join(step for step in (*steps, cause.key) if step)
    # The library names branches of unions too; the longest run of steps that was set is the setting.
    cuts = [".".join(steps[:end]) for end in range(len(steps), 0, -1)]
    return next((name for name in cuts if name in origins), ".".join(steps))


def _sentence(detail: ErrorDetails, cause: object) -> str:
    """What is wrong, in the user's words; only the library's rarer errors keep its own."""
    if isinstance(cause, SettingMistake):
        return cause.sentence
    if isinstance(cause, ValueError):
        return str(cause)
    return _SENTENCES[detail["type"]](detail) if detail["type"] in _SENTENCES else detail["msg"]


def _not_offered(detail: ErrorDetails) -> str:
    offered = detail["ctx"]["expected"].replace("'", "")
    return f"{_quoted(detail['input'])} is not offered; use one of {offered}"


def _out_of_limits(detail: ErrorDetails) -> str:
    words = {"ge": "at least", "gt": "only more than", "le": "at most", "lt": "only less than"}
    limit = next(f"{word} {detail['ctx'][name]}" for name, word in words.items() if name in detail["ctx"])
    taker = "Kafka" if str(detail["loc"][-1]) in by_name(StreamsSettings) else "rackwise"
    return f"{_quoted(detail['input'])} is out of range; {taker} accepts {limit}"


def _expected(what: str) -> Callable[[ErrorDetails], str]:
    return lambda detail: f"{what} is expected, not {_quoted(detail['input'])}"


_SENTENCES: Mapping[str, Callable[[ErrorDetails], str]] = {
    "literal_error": _not_offered,
    "greater_than_equal": _out_of_limits,
    "less_than_equal": _out_of_limits,
    "greater_than": _out_of_limits,
    "less_than": _out_of_limits,
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), _expected("a whole number")),
    "int_parsing_size": _expected("a smaller number"),
    **dict.fromkeys(("float_parsing", "float_type"), _expected("a number")),
    **dict.fromkeys(("bool_parsing", "bool_type"), _expected("true or false")),
    **dict.fromkeys(("tuple_type", "list_type"), _expected("a list, or a text with commas,")),
    "string_type": _expected("a text"),
}


def _quoted(value: object) -> str:
    text = masked(str(value))
    return text if len(text) <= 40 else text[:40] + "…"


def _where(name: str, origins: Mapping[str, SettingOrigin]) -> str:
    """The origin of that value, or of the one value below it."""
    if name in origins:
        return str(origins[name])
    below = {str(origin) for other, origin in origins.items() if other.startswith(name + ".")}
    return below.pop() if len(below) == 1 else ""


def _exposed(merged: Mapping[SettingPath, SettingValue]) -> tuple[str, ...]:
    names = [
        public(path)
        for path, value in merged.items()
        if value.origin.kind == "flag"
        and (_is_secret_of_client(path) or next(secrets_in(public(path), value.raw), None) is not None)
        and "${" not in str(value.raw)
    ]
    if not names:
        return ()
    keys = ", ".join(names)
    return (f"{keys}: others on this machine can read the command line; use a file, ${{env:NAME}} or ${{file:PATH}}",)


def _is_secret_of_client(path: SettingPath) -> bool:
    return "kafka" in path[:2] and path[-1].endswith((".password", ".jaas.config", ".pem"))
