"""``rackwise token``: a token is shown once, its hash is kept, and the file is checked as the agent checks it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from agent.web.access.credentials import TokenDirectory
from tests.cli.conftest import Run


def test_a_token_is_printed_once_and_only_its_hash_is_kept(here: Run, tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    done = here("token", "new", "ann", "--role", "approve", "--expires", "90d", "--file", str(file))
    assert done.exit_code == 0, done.stderr
    (token,) = done.stdout.split()
    assert re.fullmatch(r"rackwise_[\w-]{43}", token)
    assert token not in file.read_text() + done.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    now_ms = time.time_ns() // 1_000_000
    found = TokenDirectory(file).entry_of(token, now_ms)
    assert found is not None
    assert (found.name, found.role) == ("ann", "approve")
    assert TokenDirectory(file).entry_of(token, now_ms + 91 * 86_400_000) is None


def test_without_a_file_the_line_for_it_is_shown(here: Run, tmp_path: Path) -> None:
    done = here("token", "new", "ann")
    assert done.exit_code == 0
    line = next(line.strip() for line in done.stderr.splitlines() if line.strip().startswith("- {"))
    file = tmp_path / "tokens.yaml"
    file.touch(0o600)
    file.write_text(line + "\n")
    found = TokenDirectory(file).entry_of(done.stdout.strip(), 0)
    assert found is not None
    assert found.role == "view", "the least, unless another is asked for"


def test_the_settings_name_the_file(here: Run, tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    named = ("--set", f"http.auth.tokens_file={file}")
    assert here("token", "new", "ann", *named).exit_code == 0
    assert here("token", "new", "bob", "--role", "operate", "--expires", "1d", *named).exit_code == 0
    done = here("token", "check", *named)
    assert done.exit_code == 0
    first, second = done.stdout.splitlines()
    assert first == "ann: view, does not expire"
    assert second.startswith("bob: operate, expires 2")
    assert "2 tokens" in done.stderr
    again = here("token", "new", "ann", "--role", "approve", *named)
    assert "other tokens of this name are in the file" in again.stderr
    assert "ann: view, does not expire" in again.stderr
    assert "bob" not in again.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("new", "a b"), "spaces"),
        (("new", "a\x1b"), "not visible"),
        (("new", "ann", "--role", "root"), "root"),
        (("new", "ann", "--expires", "soon"), "duration"),
        (("new", "ann", "--expires", "0s"), "not count"),
        (("check",), "http.auth.tokens_file"),
        (("check", "--file", "/nowhere/tokens.yaml"), "No such file"),
    ],
)
def test_what_cannot_be_used_ends_with_a_sentence(here: Run, arguments: tuple[str, ...], why: str) -> None:
    done = here("token", *arguments)
    assert done.exit_code == 2
    assert why in done.stderr
    assert done.stdout == ""


def test_a_file_that_others_may_read_is_not_added_to(here: Run, tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    file.write_text("[]")
    file.chmod(0o644)
    done = here("token", "new", "ann", "--file", str(file))
    assert (done.exit_code, done.stdout, file.read_text()) == (2, "", "[]")
    assert "chmod 600" in done.stderr
