"""Files with keys: what is in them is never shown, and what is wrong with them is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.act.own_files import journal_keys, people, signer
from agent.errors import ConfigError
from agent.journal.entries import JournalKey

SECRET = "5e884898da28047151d0e56f8dc62927"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.key"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o600)
    return path


def test_the_first_line_is_the_key_in_force_and_former_ones_follow(file: Path) -> None:
    file.write_text(f"{SECRET}\n\n  {SECRET[::-1]}  \n{SECRET}\n")
    assert journal_keys(str(file)) == (JournalKey(SECRET.encode()), JournalKey(SECRET[::-1].encode()))
    assert journal_keys(None) == ()


def test_a_secret_that_is_mounted_by_a_link_is_read(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    assert journal_keys(str(tmp_path / "link")) == journal_keys(str(file))


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        pytest.param(b"", 0o600, "it is empty", id="empty"),
        pytest.param(b"short\n", 0o600, "line 1 has 5 characters, and a key has at least 16", id="short"),
        pytest.param(b"\xff" * 40, 0o600, "it is not ASCII text", id="binary"),
        pytest.param(SECRET.encode(), 0o644, "other users may read or write it: chmod 600", id="readable by all"),
        pytest.param(SECRET.encode(), 0o620, "other users may read or write it: chmod 600", id="writable by its group"),
        pytest.param("\n".join(f"{n}{SECRET}" for n in range(9)).encode(), 0o600, "has 9 keys", id="too many"),
    ],
)
def test_a_file_without_a_usable_key_is_refused_and_no_key_is_shown(
    file: Path, content: bytes, mode: int, why: str
) -> None:
    file.write_bytes(content)
    file.chmod(mode)
    with pytest.raises(ConfigError, match=why) as refused:
        journal_keys(str(file))
    assert SECRET not in str(refused.value)
    assert "openssl rand -hex 32" in refused.value.todo


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, why in (
        (tmp_path / "pipe", "not a regular file"),
        (tmp_path, "Is a directory"),
        (tmp_path / "x", "No such"),
    ):
        with pytest.raises(ConfigError, match=why):
            journal_keys(str(path))


def test_two_people_have_two_keys(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.key"
    other.write_text(SECRET[::-1])
    other.chmod(0o600)
    assert set(people({"ann": str(file), "bob": str(other)})) == {"ann", "bob"}
    other.write_text(SECRET)
    with pytest.raises(ConfigError, match="ann and bob have the same key"):
        people({"ann": str(file), "bob": str(other)})
    file.write_text(f"{SECRET}\n{SECRET[::-1]}\n")
    with pytest.raises(ConfigError, match="it has 2 lines, and one key is expected"):
        people({"ann": str(file)})


def test_who_signs_is_set_by_name_and_file(file: Path) -> None:
    found = signer("ann", str(file))
    assert found is not None
    assert (found.name, found.key.secret) == ("ann", SECRET.encode())
    assert SECRET not in repr(found)
    assert signer(None, None) is None
