"""Commands that are given what is no file of their kind: one sentence with its name, at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def sparse(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(10_000_000_000)
    return path


KINDS = [
    pytest.param(pipe, "it is a named pipe, and a regular file is expected", id="a pipe"),
    pytest.param(folder, "it is a directory, and a regular file is expected", id="a directory"),
    pytest.param(lambda _path: Path("/dev/zero"), "it is a device, and a regular file is expected", id="a device"),
    pytest.param(sparse, "", id="a sparse file of 10 GB"),
]
COMMANDS = [
    pytest.param(("status", "--replay"), id="a look that is replayed"),
    pytest.param(("plan", "--replay"), id="a plan"),
    pytest.param(("assign",), id="cases"),
    pytest.param(("optimize",), id="a problem"),
    pytest.param(("config", "check", "--config"), id="settings"),
    pytest.param(("config", "check", "--properties"), id="properties"),
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("make", "why"), KINDS)
def test_what_is_no_file_is_named_in_one_sentence(
    command: tuple[str, ...], make: Callable[[Path], Path], why: str, tmp_path: Path, here: Run
) -> None:
    path = make(tmp_path / "x.json")
    done = here(*command, str(path))
    assert done.exit_code == 2, done
    assert done.stderr.startswith("rackwise: ")
    assert str(path) in done.stderr
    assert why in done.stderr
    assert len(done.stderr) < 600
