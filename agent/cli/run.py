"""``run``: the agent as a process, in mode observe, propose or execute."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from agent.cli import options


class ModeName(StrEnum):
    """The modes, named here so that showing the help loads no settings."""

    OBSERVE = "observe"
    PROPOSE = "propose"
    EXECUTE = "execute"


def run(
    source: options.SettingsOptions,
    mode: Annotated[
        ModeName | None,
        typer.Option("--mode", help="observe only reads; propose (default) is a dry run; execute also acts."),
    ] = None,
    dry_run: Annotated[bool | None, typer.Option("--dry-run", help="The same as --mode propose.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Run one cycle with planning, then exit.")] = False,
) -> None:
    """Run the agent: observe, propose and serve health and metrics until SIGTERM or Ctrl-C."""
    from agent.daemon.start import run_agent

    flags: dict[str, object] = {}
    if mode is not None:
        flags["mode"] = mode.value
    if dry_run:
        flags["dry_run"] = True
    raise typer.Exit(run_agent(options.settings(source, flags), once=once))
