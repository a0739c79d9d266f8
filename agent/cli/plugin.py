"""``plugin jar``: the jar of the plug-in for brokers, written into a directory, and the lines to set on brokers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.output import OutputFormat, chosen, emit_command, emit_one, emit_text
from agent.cli.plugin_jar import BROKER_LINES, packaged_jar, write_jar
from agent.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.documents.config import PluginJar

_FORMS = frozenset(form.value for form in OutputFormat)

plugin_app = typer.Typer(help="The plug-in for brokers: jar.", no_args_is_help=True)


@plugin_app.callback()
def _plugin() -> None:
    """The plug-in for brokers, which assigns KIP-848 groups by racks."""


@plugin_app.command()
def jar(
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR|FORMAT",
            help="Directory that gets the jar, which must be there; without one nothing is written. Or the format "
            "of the answer, as of other commands: table, json, jsonl, yaml, csv.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace another file of its name.")] = False,
) -> None:
    """Write the jar into a directory, with its SHA-256, and print the lines to set on brokers.

    Exit codes: 0 the directory has it, 1 this installation has no jar, 2 another file is there, or it cannot be
    written. No broker is asked.
    """
    directory, form = _meant(output or ())
    file = packaged_jar() if directory is None else write_jar(directory, force=force)
    document: PluginJar = {
        "path": str(file.path),
        "sha256": file.sha256,
        "bytes": file.size,
        "written": file.written,
        "broker_lines": list(BROKER_LINES),
    }
    if chosen(form) is OutputFormat.TABLE:
        _show(document, asked=directory is not None)
    else:
        emit_one(document, form, tuple(document))


def _show(document: PluginJar, *, asked: bool) -> None:
    state = "is written" if document["written"] else "has this jar already" if asked else "is the jar: -o DIR writes it"
    emit_text(f"{document['path']} {state}")
    emit_text(f"SHA-256 {document['sha256']}")
    emit_text("Once every broker has the jar, set on each, with a rolling restart:")
    for line in document["broker_lines"]:
        emit_command(line)


def _meant(given: Sequence[str]) -> tuple[Path | None, OutputFormat | None]:
    """The directory and the form among the values of ``-o``; ``./json`` is a directory.

    Raises BadInput where there are two of a kind, and for an empty one.
    """
    if "" in given:
        raise BadInput("-o is empty", todo="Name a directory, for example: -o .")
    forms = [OutputFormat(one) for one in given if one in _FORMS]
    directories = [Path(one) for one in given if one not in _FORMS]
    if len(forms) > 1 or len(directories) > 1:
        raise BadInput("-o takes one directory and one form", todo="Leave out the others.")
    return next(iter(directories), None), next(iter(forms), None)
