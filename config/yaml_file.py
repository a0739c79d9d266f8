"""Reads a YAML settings file: small, without tricks, and never half-read.

Only plain data is loaded. A file over 1 MiB, more than a hundred aliases (a small file can unfold to gigabytes) and a
key that is written twice are refused with the line.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from config.mistake import SettingMistake

_MAX_BYTES = 1_048_576
_MAX_ALIASES = 100


class _Loader(yaml.SafeLoader):
    """SafeLoader that counts aliases and refuses a key that is written twice."""

    aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.aliases += self.check_event(yaml.AliasEvent)
        if self.aliases > _MAX_ALIASES:
            raise yaml.composer.ComposerError(None, None, f"more than {_MAX_ALIASES} aliases")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 the library's signature
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} is written twice", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep=deep)


def load_yaml(path: Path) -> dict[Any, Any]:
    """The settings of the file; an empty file has none. Raises SettingMistake with the file's name and the line."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise SettingMistake("", f"{path} cannot be read ({error.strerror})") from error
    if len(content) > _MAX_BYTES:
        raise SettingMistake("", f"{path} is larger than 1 MiB, so it is not a settings file")
    try:
        document = yaml.load(content, Loader=_Loader)  # noqa: S506 the loader is a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date that does not exist
        raise SettingMistake("", f"{path} is not readable YAML: {_problem(error)}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SettingMistake("", f"{path} holds no settings: write names and values, such as poll.interval: 10s")
    return document


def _problem(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, yaml.reader.ReaderError):  # its own sentence shows the bytes
        kind = "UTF-8 text" if error.encoding != "unicode" else "text that YAML allows"
        return f"it is not {kind} at byte {error.position}"
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"{problem} (line {mark.line + 1})" if mark is not None else problem
