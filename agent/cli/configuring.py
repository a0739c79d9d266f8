"""``config check|show|schema``: the settings in force, where each comes from, and what there is to set."""

from __future__ import annotations

import json

import typer

from agent.cli import options
from agent.cli.output import emit, emit_one, say

config_app = typer.Typer(help="Settings: check, show, schema.", no_args_is_help=True)


@config_app.command()
def check(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
) -> None:
    """Read all settings and say whether they can be used; exit code 2 when not. No broker is asked."""
    loaded = options.settings(config, properties, assign, bootstrap)
    say(f"the settings can be used: mode {loaded.settings.mode}")


@config_app.command()
def show(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
    output: options.Output = None,
    origin: bool = typer.Option(False, "--origin", help="Also tell where each value was set."),
) -> None:
    """Every setting in force; secrets are shown as stars."""
    from config.load import effective

    loaded = options.settings(config, properties, assign, bootstrap)
    rows = [{"setting": name, "value": value, "origin": str(where)} for name, value, where in effective(loaded)]
    columns = ("setting", "value", "origin") if origin else ("setting", "value")
    emit([{name: row[name] for name in columns} for row in rows], columns, output)


@config_app.command()
def schema(output: options.Output = None) -> None:
    """JSON Schema of the settings file, for editors."""
    from agent.cli.output import Format
    from config.document import settings_schema

    document = settings_schema()
    if output is Format.YAML:
        emit_one(document, output)
    else:
        print(json.dumps(document, indent=2))


@config_app.command()
def docs() -> None:
    """The table of all settings, as Markdown."""
    from config.document import settings_table

    print(settings_table())


@config_app.command()
def example() -> None:
    """A settings file with every setting, its sentence and its default."""
    from config.document import example_yaml

    print(example_yaml(), end="")
