"""One row for each command of the application: what it is given, so that each kind of error can be tried on it.

The commands, and the parameters that name a file, are read from the application: one without its row fails a test.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import typer

from agent.cli.app import full_application

Command = tuple[str, ...]


class Row(NamedTuple):
    """How a command is tried."""

    given: tuple[str, ...] = ()
    """Arguments without which it does nothing."""
    asks: bool = False
    """Whether it asks the brokers that the settings name."""
    reads: Mapping[str, tuple[str, ...]] = {}
    """Parameter -> the arguments that have it read a file; ``FILE`` stands for the file."""
    writes: tuple[str, ...] = ()
    """Parameters that name what is written."""
    unknown: tuple[str, ...] = ()
    """Arguments that name what is not there, in a recorded look."""


SETTINGS = {"config": ("--config", "FILE"), "properties": ("--properties", "FILE")}
LOOK = {**SETTINGS, "replay": ("--replay", "FILE")}
YES = ("p-0123456789ab", "--yes")
MASTER = ("--master", "local[1]")

ROWS: Mapping[Command, Row] = {
    ("run",): Row(("--once",), asks=True, reads=SETTINGS),
    ("status",): Row(asks=True, reads=LOOK),
    ("racks",): Row(asks=True, reads=LOOK),
    ("groups",): Row(asks=True, reads=LOOK, unknown=("no-such-group",)),
    ("doctor",): Row(asks=True, reads=LOOK),
    ("topics",): Row(asks=True, reads=LOOK, unknown=("no-such-topic",)),
    ("top",): Row(("--count", "1"), asks=True, reads=LOOK),
    ("plan",): Row(
        asks=True,
        reads=LOOK,
        writes=("reassignment_json", "rollback_json"),
        unknown=("--add-partitions", "no-such-topic=3"),
    ),
    ("explain",): Row(("p-0123456789ab",), asks=True, reads=LOOK),
    ("proposals",): Row(asks=True, reads=SETTINGS),
    ("proposals", "list"): Row(asks=True, reads=SETTINGS),
    ("proposals", "approve"): Row(YES, asks=True, reads=SETTINGS),
    ("proposals", "apply"): Row(YES, asks=True, reads=SETTINGS),
    ("proposals", "cancel"): Row(YES, asks=True, reads=SETTINGS),
    ("proposals", "history"): Row(asks=True, reads=SETTINGS),
    ("reassign", "status"): Row(asks=True, reads=SETTINGS, writes=("reassignment_json", "rollback_json")),
    ("reassign", "verify"): Row(("p-0123456789ab",), asks=True, reads=SETTINGS),
    ("reassign", "cancel"): Row(YES, asks=True, reads=SETTINGS),
    ("reassign", "rollback"): Row(YES, asks=True, reads=SETTINGS),
    ("pause",): Row(asks=True, reads=SETTINGS),
    ("resume",): Row(asks=True, reads=SETTINGS),
    ("simulate",): Row(("--add-rack", "z=9"), asks=True, reads=LOOK, unknown=("--remove-member", "no-such-group=m-1")),
    ("optimize",): Row(reads={"problem": ("FILE",)}, writes=("output",)),
    ("assign",): Row(reads={"cases": ("FILE",)}, writes=("output",)),
    ("config", "check"): Row(reads=SETTINGS),
    ("config", "show"): Row(reads=SETTINGS),
    ("config", "schema"): Row(),
    ("notify", "test"): Row(reads=SETTINGS, unknown=("--target", "no-such-target")),
    ("token", "new"): Row(("ann",), reads=SETTINGS, writes=("file",)),
    ("token", "check"): Row(reads={**SETTINGS, "file": ("--file", "FILE")}),
    ("config", "docs"): Row(),
    ("config", "example"): Row(),
    ("plugin", "jar"): Row(writes=("output",)),
    ("cluster", "up"): Row(),
    ("cluster", "down"): Row(),
    ("cluster", "status"): Row(),
    ("cluster", "logs"): Row(unknown=("--name", "no-such-cluster")),
    ("cluster", "broker"): Row(unknown=("1", "stop", "--name", "no-such-cluster")),
    ("cluster", "tools"): Row(unknown=("--version", "no-such-version")),
    ("cluster", "fault"): Row(unknown=("delay", "--name", "no-such-cluster")),
    ("spark", "ingest"): Row(("--once", *MASTER), reads=SETTINGS),
    ("spark", "status"): Row(MASTER, reads={"config": SETTINGS["config"]}),
    ("spark", "refresh"): Row(MASTER, reads={"config": SETTINGS["config"]}),
    ("spark", "report"): Row(
        ("--out", "report", *MASTER),
        reads={"config": SETTINGS["config"], "bill": ("--bill", "FILE")},
        writes=("out",),
    ),
    ("spark", "sql"): Row(MASTER, reads={"config": SETTINGS["config"]}),
    ("spark", "backtest"): Row(
        MASTER,
        reads={"config": SETTINGS["config"], "described": ("--described", "FILE")},
        writes=("out",),
    ),
    ("spark", "fleet"): Row(MASTER, reads=SETTINGS),
    ("spark", "weights"): Row(MASTER, reads=SETTINGS),
    ("demo",): Row(writes=("report",)),
}


def commands() -> dict[Command, Callable[..., Any]]:
    """Every command of the application with the function behind it."""
    return dict(_commands(full_application(loaded=True), ()))


def files_of(command: Callable[..., Any]) -> set[str]:
    """The parameters of a command that name files."""
    hints = get_type_hints(command, include_extras=True)
    return {name for name in inspect.signature(command).parameters if _names_a_file(hints.get(name))}


def row_id(command: Command) -> str:
    return " ".join(command)


def _commands(part: typer.Typer, path: Command) -> Iterator[tuple[Command, Callable[..., Any]]]:
    for one in part.registered_commands:
        assert one.callback is not None
        yield (*path, one.name or one.callback.__name__.replace("_", "-")), one.callback
    for group in part.registered_groups:
        inner = group.typer_instance
        assert inner is not None
        name = group.name or inner.info.name
        assert isinstance(name, str)
        below = (*path, name)
        if inner.info.invoke_without_command is True:
            assert inner.registered_callback is not None
            assert inner.registered_callback.callback is not None
            yield below, inner.registered_callback.callback
        yield from _commands(inner, below)


def _names_a_file(hint: Any) -> bool:
    """A path, or a text that may be one by its metavar: a value such as ``./json`` is more than its path."""
    said = (getattr(one, "metavar", None) or "" for one in getattr(hint, "__metadata__", ()))
    return (
        hint is Path
        or any(re.fullmatch(r"(FILE|DIR)(\|FORMAT)?", words) for words in said)
        or any(map(_names_a_file, getattr(hint, "__args__", ())))
    )
