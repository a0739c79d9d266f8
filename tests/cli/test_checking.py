"""``config check`` asks every rack locator once: what it would answer, or the sentence why it does not."""

from __future__ import annotations

from pathlib import Path

from tests.command import rackwise

SECRET = "canary-2b19"


def test_every_locator_that_answers_is_named_with_what_it_knows(tmp_path: Path) -> None:
    table, program = tmp_path / "racks.yaml", tmp_path / "racks"
    table.write_text("broker: {1: a, 2: b}\n")
    program.write_text("#!/bin/sh\necho host.10.0.0.1=a\n")
    program.chmod(0o755)
    done = rackwise(
        "config", "check",
        "--set", "rack.locator.class=wire,file,command",
        "--set", f"rack.locator.properties=file.path={table},command.argv={program}",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert done.stderr.splitlines()[-3:] == [
        "rack locator file knows 2 names",
        "rack locator command knows 1 name",
        "the settings can be used: mode propose",
    ]


def test_every_locator_that_fails_is_told_in_one_go(tmp_path: Path) -> None:
    program = tmp_path / "racks"
    program.write_text(f"#!/bin/sh\necho '{SECRET}'\necho '{SECRET}' >&2\nexit 3\n")
    program.chmod(0o755)
    done = rackwise(
        "config", "check",
        "--set", "rack.locator.class=file,command",
        "--set", f"rack.locator.properties=file.path={tmp_path / 'none'},command.argv={program}",
    )  # fmt: skip
    assert done.exit_code == 2
    missing = f"{tmp_path / 'none'} cannot be read (No such file or directory)"
    assert done.stderr.splitlines()[-3:] == [
        "rackwise: 2 rack locators cannot be used",
        f"  why: file: {missing}; command: it ended with exit code 3; run it by hand to see its output",
        "  do:  Correct rack.locator.properties, or what it names.",
    ]
    assert SECRET not in done.stdout + done.stderr
    assert "note: rack.locator.class leaves out wire" in done.stderr
