"""Options that commands share, the settings that they lead to, and files of JSON named on the command line."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from agent.cli.output import OutputFormat, emit_json, remember, say
from agent.errors import BadInput, reason
from agent.process import load_checked_settings
from config.option_groups import Assign, Bootstrap, Config, Properties
from config.option_groups import expanded as expanded  # noqa: PLC0414 for the commands
from config.plain_file import read_plain

if TYPE_CHECKING:
    from config.load import LoadedSettings

Replay = Annotated[
    Path | None,
    typer.Option("--replay", metavar="FILE", help="Use the last look of a telemetry file instead of a live cluster."),
]
All = Annotated[
    bool, typer.Option("--all", help="Show all rows; without it long tables are cut, with the number of rows left out.")
]
For = Annotated[
    str | None,
    typer.Option(
        "--for", metavar="DURATION", help="Look twice, this far apart (such as 10s), to measure bytes/s and $/day."
    ),
]
Output = Annotated[
    OutputFormat | None,
    typer.Option("--output", "-o", help="Output format; default: table on a terminal, JSON elsewhere."),
]


CORRECT = "Correct the settings named above."


class SettingsOptions(NamedTuple):
    """Options of every command that loads settings."""

    config: Config = None
    properties: Properties = None
    assign: Assign = None
    bootstrap: Bootstrap = None


class LookOptions(NamedTuple):
    """Options of every command that shows one look at a cluster, beside its `SettingsOptions`."""

    output: Output = None
    replay: Replay = None
    duration: For = None
    every: All = False


def settings(
    source: SettingsOptions, flags: Mapping[str, object] = MappingProxyType({}), *, checked: bool = False
) -> LoadedSettings:
    """The settings in force; what is worth reporting about them goes to stderr. Raises ConfigError with every mistake.

    ``flags``: settings of options of the command's own. ``checked``: the command itself is the one that checks them.
    """
    config, properties, assign = source.config or (), source.properties or (), source.assign or ()
    remember(config, properties, assign, source.bootstrap)
    given = dict(flags)
    if source.bootstrap is not None:
        given["kafka.bootstrap.servers"] = source.bootstrap
    if checked:
        return load_checked_settings(config, properties, assign, given, say, todo=CORRECT)
    return load_checked_settings(config, properties, assign, given, say)


STANDARD = Path("-")
"""Standard input or output."""
_GZIP = b"\x1f\x8b"
_MOST_BYTES = 256 * 1024 * 1024
"""Also of what a gzip file unfolds to."""
_MOST_VALUES = 1 << 24


def read_json(path: Path) -> Any:
    """The JSON document in a file, maybe gzip'ed; ``-`` is standard input. Raises BadInput where there is none."""
    try:
        data = sys.stdin.buffer.read(_MOST_BYTES + 1) if path == STANDARD else read_plain(path, _MOST_BYTES)
    except OSError as error:
        raise BadInput(f"{path} cannot be read", why=reason(error), todo="Name a file that can be read.") from error
    if path.suffix == ".gz" or data.startswith(_GZIP):
        try:
            with gzip.GzipFile(fileobj=BytesIO(data)) as file:
                data = file.read(_MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise BadInput(
                f"{path} is not a whole gzip file", why=reason(error), todo="Copy or write it again."
            ) from error
    from agent.values import typed_json  # the help of commands does without its imports

    try:
        return typed_json.read_json(data, most_bytes=_MOST_BYTES, most_values=_MOST_VALUES)
    except typed_json.ForeignJsonError as error:
        raise BadInput(
            f"{path} cannot be used", why=reason(error), todo="Name a file of JSON, with or without gzip."
        ) from error


def write_json(path: Path | None, document: Any) -> None:
    """Write a document as one line of JSON; without a path, or to ``-``, on standard output."""
    if path is None or path == STANDARD:
        emit_json(document)
        return
    write_text(path, json.dumps(document) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file anew. Raises ``BadInput`` where that cannot be."""
    try:
        path.write_text(text)
    except OSError as error:
        raise BadInput(f"{path} cannot be written", why=reason(error), todo="Name another file.") from error
