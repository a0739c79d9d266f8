"""The command line as one application; each command imports what it needs when it runs."""

from __future__ import annotations

import os
from contextlib import suppress
from copy import copy
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo

from agent.cli import (
    acting,
    assigning,
    configuring,
    explaining,
    planning,
    reassigning,
    running,
    seeing,
    simulating,
    top,
)
from agent.cli.examples import EXAMPLES, SHORT, add_examples
from agent.cli.output import emit_line
from agent.cli.plugged_commands import add, load, plugged_commands
from agent.errors import GaveUp

ORDER = (
    "status", "doctor", "groups", "topics", "racks", "top", "plan", "explain", "simulate", "run", "config",
    "proposals", "reassign", "pause", "resume", "spark", "assign", "optimize", "demo", "cluster",
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
app.command()(running.run)
app.command()(seeing.status)
app.command()(seeing.racks)
app.command()(seeing.groups)
app.command()(seeing.topics)
app.command()(top.top)
app.command()(seeing.doctor)
app.command()(planning.plan)
app.command()(explaining.explain)
app.add_typer(acting.proposals_app, name="proposals")
app.add_typer(reassigning.reassign_app, name="reassign")
app.command()(acting.pause)
app.command()(acting.resume)
app.command()(simulating.simulate)
app.command()(assigning.optimize)
app.command()(assigning.assign)
app.add_typer(configuring.config_app, name="config")
add_examples(app, EXAMPLES, SHORT)


def command_line(asked: str) -> typer.Typer:
    """The application; without all other commands where ``asked`` is one. Raises GaveUp where it cannot be loaded.

    Typer looks into every parameter of every command that it is given, which takes longer than to look at a cluster.
    """
    alone = _copy()
    alone.registered_commands = [one for one in app.registered_commands if _name(one) == asked]
    alone.registered_groups = [one for one in app.registered_groups if one.name == asked]
    if alone.registered_commands or alone.registered_groups:
        return alone
    plugged = plugged_commands().get(asked)
    if plugged is None:
        return whole(loaded=_COMPLETING in os.environ)
    add(alone, plugged, load(plugged))
    return alone


def whole(*, loaded: bool) -> typer.Typer:
    """The application with the commands of installed packages: loaded, or as lines of the help."""
    everything = _copy()
    own = {*map(_name, app.registered_commands), *(one.name for one in app.registered_groups)}
    for name, plugged in plugged_commands().items():
        if name not in own:
            line = typer.Typer()
            line.command()(lambda: None)
            with suppress(GaveUp):  # its package is broken, which the command itself says when it is called
                line = load(plugged) if loaded else line
            add(everything, plugged, line)
    return everything


def _copy() -> typer.Typer:
    made = copy(app)
    made.registered_commands, made.registered_groups = [*app.registered_commands], [*app.registered_groups]
    return made


def _name(command: CommandInfo) -> str | None:
    return command.callback.__name__ if command.callback is not None else None


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
    _debug: Annotated[  # taken off the arguments before they are read, wherever it stands among them
        bool, typer.Option("--debug", help="Show the traceback of an error; RACKWISE_DEBUG=1 is the same.")
    ] = False,
) -> None:
    """Keeps Kafka's work in the right rack."""
