"""The jar of the plug-in for brokers: where this installation has it, and how a directory gets it.

`make jar` builds it, and the wheel has it. Invariant: under its name a directory has a whole jar or none.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from agent.cli.output import OutputFormat
from agent.errors import BadInput, GaveUp, reason
from agent.values.number_format import in_full

NAME = "rackwise-kafka.jar"
ASSIGNORS = "rackwise.assignor.RackwiseAssignor,uniform,range"
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
