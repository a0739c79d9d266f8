"""Options that every command takes, and the settings that they lead to."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.output import OutputFormat, emit_json, remember, say
from agent.errors import BadInput, reason
from agent.load_settings import load_checked_settings
from agent.values import foreign_json
from config.plain_file import read_plain

if TYPE_CHECKING:
    from config.load import LoadedSettings

Config = Annotated[
    list[Path] | None,
    typer.Option("--config", "-c", metavar="FILE", help="YAML file with settings; repeatable, later files win."),
]
Properties = Annotated[
    list[Path] | None,
    typer.Option("--properties", metavar="FILE", help="Properties file of a Kafka client to import; repeatable."),
]
Assign = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set one setting; repeatable.")]
Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers", "-b", metavar="HOST:PORT,...", help="Brokers to connect to first, as in Kafka's tools."
    ),
]
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

SettingsOptions = tuple[list[Path] | None, list[Path] | None, list[str] | None, str | None]
"""What `settings` takes: files, imported properties, single settings, brokers."""


def settings(
    config: list[Path] | None,
    properties: list[Path] | None,
    assign: list[str] | None,
    bootstrap: str | None,
    flags: dict[str, object] | None = None,
    *,
    checked: bool = False,
) -> LoadedSettings:
    """The settings in force; what is worth saying about them goes to stderr. Raises ConfigError with every mistake.

    ``checked``: the command itself is the one that checks them.
    """
    remember(config or (), properties or (), assign or (), bootstrap)
    given = dict(flags or {})
    if bootstrap is not None:
        given["kafka.bootstrap.servers"] = bootstrap
    if checked:
        return load_checked_settings(config or (), properties or (), assign or (), given, say, todo=CORRECT)
    return load_checked_settings(config or (), properties or (), assign or (), given, say)


STANDARD = Path("-")
"""Standard input or output."""
_GZIP = b"\x1f\x8b"
_MOST_BYTES = 256 * 1024 * 1024
"""Also of what a gzip file unfolds to."""
_MOST_VALUES = 1 << 24


def read_json(path: Path) -> Any:
    """The JSON document in a file; one that ends in .gz is gzip'ed, any other may be, and ``-`` is standard input."""
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
    try:
        return foreign_json.read_json(data, most_bytes=_MOST_BYTES, most_values=_MOST_VALUES)
    except foreign_json.ForeignJsonError as error:
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
