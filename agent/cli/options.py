"""Options that every command takes, and the settings that they lead to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.hints import remember
from agent.cli.output import Format, say
from agent.load_settings import given_settings

if TYPE_CHECKING:
    from config.load import Loaded

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
    Format | None,
    typer.Option("--output", "-o", help="Output format; default: table on a terminal, JSON elsewhere."),
]


CORRECT = "Correct the settings named above."

Source = tuple[list[Path] | None, list[Path] | None, list[str] | None, str | None]
"""What `settings` takes: files, imported properties, single settings, brokers."""


def settings(
    config: list[Path] | None,
    properties: list[Path] | None,
    assign: list[str] | None,
    bootstrap: str | None,
    flags: dict[str, object] | None = None,
    *,
    checked: bool = False,
) -> Loaded:
    """The settings in force; what is worth saying about them goes to stderr. Raises ConfigError with every mistake.

    ``checked``: the command itself is the one that checks them.
    """
    remember(config or (), properties or (), assign or (), bootstrap)
    given = dict(flags or {})
    if bootstrap is not None:
        given["kafka.bootstrap.servers"] = bootstrap
    if checked:
        return given_settings(config or (), properties or (), assign or (), given, say, todo=CORRECT)
    return given_settings(config or (), properties or (), assign or (), given, say)
