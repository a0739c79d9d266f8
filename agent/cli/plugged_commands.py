"""Commands that installed packages add to ``rackwise``: entry points of group ``rackwise.commands``.

Each names a `typer.Typer`: one with a single command becomes that command, any other a group of commands::

    [project.entry-points."rackwise.commands"]
    audit = "acme.audit:app"

A package is imported when its command is called, never for the help of others. Commands of the agent keep their names,
and so do the entry points of rackwise's own wheel, which are those of the pipeline and of the test bed.

``entry_points.txt`` is read here, because importing `importlib.metadata` adds a quarter to the time of ``--help``.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import copy
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import typer

from agent.cli.examples import EXAMPLES, SHORT, add_examples
from agent.errors import GaveUp, reason

GROUP = "rackwise.commands"
OWN_PACKAGE = "rackwise"
_ENTRY = re.compile(r"(\w[\w.-]*)\s*=\s*([^\s\[]+).*")


class PluggedCommand(NamedTuple):
    """A command of an installed package."""

    name: str
    value: str
    """Where it is, as ``module:attribute``."""
    packages: tuple[str, ...]
    """The packages that offer a command of this name: more than one, and none of them is loaded."""

    @property
    def short_help(self) -> str:
        """Its line in the list of commands."""
        if self.packages == (OWN_PACKAGE,):
            return SHORT.get(self.name, "")
        return f"A command of package {', '.join(self.packages)}."


def plugged_commands() -> Mapping[str, PluggedCommand]:
    """Each command that an installed package offers, by its name."""
    found: dict[str, PluggedCommand] = {}
    for package, file in _entry_point_files():
        for name, value in _entries(file):
            other = found.get(name)
            if other is None or package == OWN_PACKAGE:
                found[name] = PluggedCommand(name, value, (package,))
            elif other.packages != (OWN_PACKAGE,):
                found[name] = other._replace(packages=(*other.packages, package))
    return found


def load(command: PluggedCommand) -> typer.Typer:
    """The application behind a command. Raises GaveUp where it cannot be loaded, or several packages offer it."""
    if len(command.packages) > 1:
        raise GaveUp(
            f"{len(command.packages)} installed packages offer the command {command.name}",
            why=", ".join(command.packages),
            todo="Uninstall all but one of them.",
        )
    todo = f"Install {command.packages[0]} again, or uninstall it."
    module, _, attribute = command.value.partition(":")
    try:
        found: object = reduce(getattr, attribute.split("."), import_module(module))
    except (Exception, SystemExit) as error:
        why = f"{command.value} of package {command.packages[0]}: {type(error).__name__}: {reason(error)}"
        raise GaveUp(f"The command {command.name} cannot be loaded", why=why, todo=todo) from error
    if not isinstance(found, typer.Typer):
        why = f"{command.value} of package {command.packages[0]} is not a typer.Typer"
        raise GaveUp(f"The command {command.name} cannot be loaded", why=why, todo=todo)
    return found


def add(app: typer.Typer, command: PluggedCommand, plugged: typer.Typer) -> None:
    """Add it under its name: as a command if it has a single one, else as a group; typer runs it alike by itself."""
    single = len(plugged.registered_commands) == 1 and not plugged.registered_groups
    if single and not plugged.registered_callback and not plugged.info.callback:
        one = copy(plugged.registered_commands[0])
        one.name, one.short_help = command.name, command.short_help
        app.registered_commands.append(one)
    else:
        app.add_typer(plugged, name=command.name, short_help=command.short_help)
        if (command.name, command.packages) == ("spark", (OWN_PACKAGE,)):  # the pipeline may not import agent.cli
            add_examples(plugged, EXAMPLES, SHORT, "spark ")


def _entry_point_files() -> Iterator[tuple[str, Path]]:
    """The normalized name of each installed package with its file of entry points, which may be absent."""
    seen: set[str] = set()
    for place in sys.path:
        with suppress(OSError):
            for folder in sorted(os.listdir(place or ".")):  # noqa: PTH208 a Path for each file of the folder takes longer
                package = re.sub(r"[-_.]+", "-", folder.partition("-")[0]).lower()
                if folder.endswith(".dist-info") and package not in seen:
                    seen.add(package)
                    yield package, Path(place, folder, "entry_points.txt")


def _entries(file: Path) -> Iterator[tuple[str, str]]:
    """Name and value of each entry point of our group."""
    text = ""
    with suppress(OSError):
        text = file.read_text("utf-8", "replace")
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == GROUP and (entry := _ENTRY.fullmatch(line)):
            yield entry[1], entry[2]
