"""The command line as one application; a command is imported when it is called, as is one of another package."""

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
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from agent.cli.options import EXAMPLES, SHORT, add_examples
from agent.cli.output import emit_line
from agent.errors import GaveUp, reason
from config.option_groups import expanded

# Commands that installed packages add to ``rackwise``: entry points of group ``rackwise.commands``.
#
# Each (as audit to acme.audit:app) names a `typer.Typer`: one with a single command becomes that command, any other a
# group of commands.
#
# A package is imported when its command is called, never for the help of others. Commands of the agent keep their
# names, and so do the entry points of rackwise's own wheel, which are those of the pipeline and of the test bed.
#
# ``entry_points.txt`` is read here, because importing `importlib.metadata` adds a quarter to the time of ``--help``.

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


COMMANDS: Mapping[str, str] = {
    "status": "agent.cli.status:status",
    "doctor": "agent.cli.doctor:doctor",
    "groups": "agent.cli.groups:groups",
    "topics": "agent.cli.topics:topics",
    "racks": "agent.cli.racks:racks",
    "top": "agent.cli.top:top",
    "plan": "agent.cli.plan:plan",
    "explain": "agent.cli.explain:explain",
    "simulate": "agent.cli.simulate:simulate",
    "run": "agent.cli.run:run",
    "config": "agent.cli.config:config_app",
    "token": "agent.cli.token:token_app",
    "notify": "agent.cli.notify:notify_app",
    "proposals": "agent.cli.proposals:proposals_app",
    "reassign": "agent.cli.reassign:reassign_app",
    "pause": "agent.cli.proposals:pause",
    "resume": "agent.cli.proposals:resume",
    "plugin": "agent.cli.plugin:plugin_app",
    "assign": "agent.cli.assign:assign",
    "optimize": "agent.cli.assign:optimize",
}
"""The agent's own commands: name -> ``module:attribute`` of its function or group; imported when it is called."""
ORDER = (
    "status", "doctor", "groups", "topics", "racks", "top", "plan", "explain", "simulate", "run", "config",
    "notify", "token", "proposals", "reassign", "pause", "resume", "plugin", "spark", "assign", "optimize", "demo",
    "cluster",
)  # fmt: skip
"""The commands as the help lists them: those of a new user first, those that act after them. Others come last."""
_COMPLETING = "_RACKWISE_COMPLETE"
"""The variable by which a shell asks for the words that complete a line."""


class _InOrder(TyperGroup):
    """Commands and groups of commands in one order; the library has all groups last."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names in the order of the help."""
        place = {name: number for number, name in enumerate(ORDER)}
        return sorted(super().list_commands(ctx), key=lambda name: (place.get(name, len(ORDER)), name))


app = typer.Typer(
    name="rackwise",
    cls=_InOrder,
    help="Keeps reads, replicas and tasks of Kafka in the right rack. Dry run by default: proposes, moves nothing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Exit codes: 0 done, 1 failure, 2 usage or settings, 3 changes proposed (plan --detailed-exitcode), "
    "4 guard refused, 5 cluster unreachable or answer partial, 6 another agent took over, 7 memory ceiling. "
    "Settings: rackwise config show --origin.",
)


def command_line(asked: str) -> typer.Typer:
    """The application; without all other commands where ``asked`` is one. Raises GaveUp where it cannot be loaded.

    Typer reads every parameter of every command that it is given, which takes longer than to observe a cluster.
    """
    alone = copy(app)
    alone.registered_commands, alone.registered_groups = [], []
    if asked in COMMANDS:
        _add_own(alone, asked)
        add_examples(alone, EXAMPLES, SHORT)
        return alone
    plugged = plugged_commands().get(asked)
    if plugged is None:
        return full_application(loaded=_COMPLETING in os.environ or asked == "--")
    add(alone, plugged, load(plugged))
    return alone


def full_application(*, loaded: bool) -> typer.Typer:
    """The application with the commands of installed packages: loaded, or as lines of the help."""
    everything = copy(app)
    everything.registered_commands, everything.registered_groups = [], []
    for name in COMMANDS:
        if loaded:
            _add_own(everything, name)
        else:
            everything.command(name)(lambda: None)
    add_examples(everything, EXAMPLES, SHORT)
    for name, plugged in plugged_commands().items():
        if name not in COMMANDS:
            add(everything, plugged, _loaded_or_line(plugged, loaded=loaded))
    return everything


def _loaded_or_line(plugged: PluggedCommand, *, loaded: bool) -> typer.Typer:
    line = typer.Typer()
    line.command()(lambda: None)
    with suppress(GaveUp):  # its package is broken, which the command itself reports when it is called
        line = load(plugged) if loaded else line
    return line


def _add_own(made: typer.Typer, name: str) -> None:
    module, _, attribute = COMMANDS[name].partition(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        made.add_typer(found, name=name)
    else:
        made.command()(expanded(found))


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        emit_line(f"rackwise {version('rackwise')}")
        raise typer.Exit


@app.callback()
def main(
    _version_asked: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    _agent: Annotated[  # taken off the arguments before they are read, as is the next
        str | None,
        typer.Option(
            "--agent", metavar="URL", help="Ask the API of this running agent, not the cluster; RACKWISE_AGENT."
        ),
    ] = None,
    _token_file: Annotated[
        str | None,
        typer.Option("--agent-token-file", metavar="FILE", help="File with its token, or RACKWISE_AGENT_TOKEN."),
    ] = None,
    _debug: Annotated[  # taken off the arguments before they are read, wherever it stands among them
        bool, typer.Option("--debug", help="Show the traceback of an error; RACKWISE_DEBUG=1 is the same.")
    ] = False,
) -> None:
    """Keeps Kafka's work in the right rack."""
