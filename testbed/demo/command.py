"""``rackwise demo``: its options; all else is loaded when it runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from agent.cli.options import add_examples

EXAMPLES = {"demo": ("rackwise demo --seconds 90", "rackwise demo --spark --report report", "rackwise demo --plugin")}

demo_app = typer.Typer(add_completion=False)


@demo_app.command()
def demo(
    seconds: Annotated[
        int,
        typer.Option(
            "--seconds",
            metavar="N",
            min=1,
            envvar="DEMO_SECONDS",
            show_envvar=False,
            help="Seconds to run, from the first cycle on; DEMO_SECONDS is the same.",
        ),
    ] = 180,
    version: Annotated[str | None, typer.Option("--kafka", metavar="VERSION", help="Version of Kafka to run.")] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Run the pipeline beside it; SPARK=1 is the same.")] = False,
    plugin: Annotated[
        bool,
        typer.Option(
            "--plugin", help="Brokers have the plug-in, and a group comes to use it; DEMO_PLUGIN=1 is the same."
        ),
    ] = False,
    report: Annotated[
        Path,
        typer.Option("--report", metavar="FOLDER", help="With --spark: folder for the report that the demo ends with."),
    ] = Path("rackwise-report"),
) -> None:
    """Start a local three-rack cluster with real consumer groups, and the agent in dry run."""
    from testbed.demo.run import run_demo

    wanted = spark or _is_set("SPARK")
    plugged = plugin or _is_set("DEMO_PLUGIN")
    raise typer.Exit(run_demo(seconds=seconds, version=version, report=report if wanted else None, plugin=plugged))


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "") not in {"", "0"}


add_examples(demo_app, EXAMPLES, {})
