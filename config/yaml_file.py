"""YAML settings files: plain data only, read as a whole or refused.

Limits: 1 MiB, a hundred aliases, 100,000 values with aliases unfolded; a key that is written twice is refused.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import chain
from pathlib import Path
from typing import Any, cast

import yaml

from config.plain_file import read_plain
from config.setting_mistake import UNREADABLE, SettingMistake

_MAX_BYTES = 1_048_576
_MAX_ALIASES = 100
_MAX_VALUES = 100_000
_MAX_DEPTH = 32
_MAX_DIGITS = 64
_MAX_PROBLEM = 200


_Parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Parser):  # type: ignore[misc, valid-type] # whichever is there
    """SafeLoader that refuses what aliases unfold without bounds, such numbers, and keys that come twice."""

    def get_single_node(self) -> yaml.Node | None:
        node: yaml.Node | None = super().get_single_node()
        if node is not None:
            _unfolded(node, {})
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 the library's signature
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} is written twice", key.start_mark)
            seen.add(str(key.value))
        found: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return found

    def number(self, node: yaml.ScalarNode) -> int | float:
        """A number that Kafka and Java have as well: 64 bits, no infinity."""
        whole = node.tag.endswith(":int")
        if len(node.value) <= _MAX_DIGITS:
            value: int | float = self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)
            if -(2**63) <= value < 2**63:  # which not-a-number never is
                return value
        raise yaml.constructor.ConstructorError(None, None, "a number of more than 64 bits", node.start_mark)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.number)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.number)


def _unfolded(node: yaml.Node, known: dict[yaml.Node, int | None]) -> int:
    """The number of its values, with those of its aliases. Raises ComposerError for too many."""
    size = known.get(node, 0)
    if size is None:
        raise yaml.composer.ComposerError(None, None, "an alias of what it is a part of", node.start_mark)
    if size:
        return size
    known[node] = None
    items = chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else node.value
    size = 1 + (0 if isinstance(node, yaml.ScalarNode) else sum(_unfolded(item, known) for item in items))
    if size > _MAX_VALUES:
        problem = f"aliases unfold it to more than {_MAX_VALUES:,} values"
        raise yaml.composer.ComposerError(None, None, problem, node.start_mark)
    known[node] = size
    return size


def load_yaml(path: Path) -> dict[Any, Any]:
    """The settings of the file; an empty file has none. Raises SettingMistake with the file's name and the line."""
    try:
        content = read_plain(path, _MAX_BYTES)
    except OSError as error:
        raise SettingMistake("", f"{path} cannot be read ({error.strerror})", UNREADABLE) from error
    try:
        document = yaml_value(content)
    except ValueError as error:
        raise SettingMistake(
            "", f"{path} is not readable YAML: {error}", "Write it as YAML: one name: value a line."
        ) from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SettingMistake("", f"{path} holds no settings: write names and values, such as poll.interval: 10s")
    return document


def yaml_value(content: str | bytes) -> Any:
    """The plain data of one YAML document. Raises ValueError with a sentence that names the line."""
    try:
        _check_events(content)
        return yaml.load(content, Loader=_Loader)  # noqa: S506 the loader is a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date that does not exist
        raise ValueError(_problem(error)) from error
    except (
        AttributeError,
        LookupError,
        TypeError,
        ArithmeticError,
    ) as error:  # the library's, for !!bool x and the like
        raise ValueError("a value is not what its tag says") from error


def _check_events(content: str | bytes) -> None:
    """Raises what the parser does, and ComposerError for too much of anything, before anything is built."""
    depth = aliases = 0
    for number, event in enumerate(yaml.parse(content, Loader=_Parser)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        for found, most, what in (
            (depth, _MAX_DEPTH, "levels: it is nested too deeply"),
            (aliases, _MAX_ALIASES, "aliases"),
            (number, _MAX_VALUES, "values"),
        ):
            if found > most:
                mark = cast("yaml.Mark", event.start_mark)
                raise yaml.composer.ComposerError(None, None, f"more than {most:,} {what}", mark)


def _problem(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, yaml.reader.ReaderError):  # its own sentence shows the bytes
        kind = "UTF-8 text" if error.encoding != "unicode" else "text that YAML allows"
        return f"it is not {kind} at byte {error.position}"
    mark = getattr(error, "problem_mark", None)
    problem = (getattr(error, "problem", None) or str(error).splitlines()[0])[:_MAX_PROBLEM]
    return f"{problem} (line {mark.line + 1})" if mark is not None else problem
