"""``plugin jar``: the jar of the plug-in for brokers, written into a directory, and the lines to set on brokers.

`make jar` builds the jar, and the wheel has it. Invariant: under its name a directory has a whole jar or none.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from agent.cli.output import OutputFormat, chosen, emit_command, emit_one, emit_text
from agent.errors import BadInput, GaveUp, reason
from agent.values.kafka import RANGE, UNIFORM
from agent.values.number_format import in_full

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.documents.config import PluginJar


NAME = "rackwise-kafka.jar"
ASSIGNORS = f"rackwise.assignor.RackwiseAssignor,{UNIFORM},{RANGE}"
"""The class is first, so that members which name no assignor get it; Kafka's own ones stay for those that name them."""
BROKER_LINES = (f"group.consumer.assignors={ASSIGNORS}",)
_PACKAGED = Path(__file__).with_name("jars") / NAME
_MODE = 0o644
"""The broker reads it as another user than the one who writes it."""


class PluginFile(NamedTuple):
    """A jar of the plug-in on this machine."""

    path: Path
    sha256: str
    """Hexadecimal digits."""
    size: int
    """Bytes."""
    written: bool = False
    """Whether it was written now."""


def packaged_jar() -> PluginFile:
    """The jar of this installation. Raises GaveUp where it was installed without one."""
    try:
        return _file(_PACKAGED)
    except OSError as error:
        raise GaveUp(
            "This installation of rackwise has no jar of the plug-in for brokers",
            why=f"{_PACKAGED}: {reason(error)}",
            todo="Run `make jar` in the clone and install rackwise again, or install the wheel of a release.",
        ) from error


def write_jar(directory: Path, *, force: bool = False) -> PluginFile:
    """Write it into a directory, whole or not at all; the same jar there is left alone.

    Raises GaveUp as `packaged_jar`, and BadInput where another file has its name (unless ``force``) or it cannot be
    written.
    """
    jar, path = packaged_jar(), directory / NAME
    if not os.path.isdir(directory):  # noqa: PTH112 False also for a name that no file can have
        raise BadInput(
            f"-o {directory} is neither a directory nor an output format",
            why=f"no directory has this name, and the formats are {in_full(OutputFormat)}",
            todo="Make the directory first, or name one of the formats.",
        )
    try:
        there = _there(path)
        if there is not None and there.sha256 == jar.sha256:
            return there
        if there is not None and not force:
            raise BadInput(
                f"{path} is another file than the jar of this rackwise",
                why=f"its SHA-256 is {there.sha256}, that of the jar {jar.sha256}",
                todo="Add --force to replace it.",
            )
        _put(path, jar.path.read_bytes())
    except OSError as error:
        raise BadInput(f"{path} cannot be written", why=reason(error), todo="Name another directory.") from error
    return jar._replace(path=path, written=True)


def _there(path: Path) -> PluginFile | None:
    """What has the name of the jar; None: nothing. Raises BadInput for what is no file."""
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        raise BadInput(f"{path} is not a file", todo="Remove it, or name another directory.")
    return _file(path)


def _file(path: Path) -> PluginFile:
    with path.open("rb") as opened:
        return PluginFile(path, hashlib.file_digest(opened, "sha256").hexdigest(), os.fstat(opened.fileno()).st_size)


def _put(path: Path, content: bytes) -> None:
    # Its name does not end with .jar, so that no broker loads it half-written.
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{NAME}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), _MODE)
            Path(file.name).replace(path)
        finally:
            Path(file.name).unlink(missing_ok=True)


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
