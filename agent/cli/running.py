"""``run`` and ``demo``: the agent as a process."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agent.cli import options


class ModeName(StrEnum):
    """The modes, named here so that showing the help loads no settings."""

    OBSERVE = "observe"
    PROPOSE = "propose"
    EXECUTE = "execute"


def run(
    config: options.Config = None,
    properties: options.Properties = None,
    assign: options.Assign = None,
    bootstrap: options.Bootstrap = None,
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
    raise typer.Exit(run_agent(options.settings(config, properties, assign, bootstrap, flags), once=once))


def demo(
    seconds: Annotated[
        int | None,
        typer.Option(
            "--seconds", metavar="N", help="Seconds to run, from the first cycle on; DEMO_SECONDS is the same."
        ),
    ] = None,
    version: Annotated[str | None, typer.Option("--kafka", metavar="VERSION", help="Version of Kafka to run.")] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Run the pipeline beside it; SPARK=1 is the same.")] = False,
    report: Annotated[
        Path,
        typer.Option("--report", metavar="FOLDER", help="With --spark: folder for the report that the demo ends with."),
    ] = Path("rackwise-report"),
) -> None:
    """Start a local three-rack cluster with real consumer groups, and the agent in dry run."""
    from agent.demo.show import show

    long = seconds or int(os.environ.get("DEMO_SECONDS", "180"))
    wanted = spark or os.environ.get("SPARK", "") not in {"", "0"}
    raise typer.Exit(show(seconds=long, version=version, report=report if wanted else None))
