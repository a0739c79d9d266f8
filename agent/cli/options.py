"""Options that every command takes, and the settings that they lead to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.output import Format, say
from agent.errors import ConfigError

if TYPE_CHECKING:
    from config.load import Loaded

Config = Annotated[
    list[Path] | None, typer.Option("--config", "-c", help="YAML file with settings; repeatable, later files win.")
]
Properties = Annotated[
    list[Path] | None, typer.Option("--properties", help="Properties file of a Kafka client to import; repeatable.")
]
Assign = Annotated[list[str] | None, typer.Option("--set", help="One setting as NAME=VALUE; repeatable.")]
Bootstrap = Annotated[
    str | None, typer.Option("--bootstrap-servers", "-b", help="Brokers to begin with, as host:port,host:port.")
]
Output = Annotated[
    Format | None,
    typer.Option("--output", "-o", help="Form of the answer; a table on a terminal, JSON elsewhere."),
]


def settings(
    config: list[Path] | None,
    properties: list[Path] | None,
    assign: list[str] | None,
    bootstrap: str | None,
    flags: dict[str, object] | None = None,
) -> Loaded:
    """The settings in force; what is worth saying about them goes to stderr. Raises ConfigError with every mistake."""
    # pydantic is the slowest import of the command line: only a command that needs settings pays for it.
    from config.load import SettingsRefusedError, load_settings

    given = dict(flags or {})
    if bootstrap is not None:
        given["kafka.bootstrap.servers"] = bootstrap
    try:
        loaded = load_settings(files=config or (), properties=properties or (), assignments=assign or (), flags=given)
    except SettingsRefusedError as error:
        mistakes = [str(mistake) for mistake in error.mistakes]
        what = mistakes[0] if len(mistakes) == 1 else f"{len(mistakes)} settings cannot be used"
        raise ConfigError(
            what,
            why="" if len(mistakes) == 1 else "; ".join(mistakes),
            todo="Correct it and check with: rackwise config check",
        ) from None
    for note in loaded.notes:
        say(f"note: {note}")
    return loaded
