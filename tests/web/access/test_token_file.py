"""The file of tokens: only hashes, only of its owner, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.errors import BadInput, ConfigError
from agent.web.access.credentials import TokenDirectory, append_entry, entries_in, new_token, read_entries
from agent.web.access.person import AccessRole, up_to

HASH = "0" * 32 + ":" + "1" * 64


def test_a_token_counts_with_its_name_and_role_until_it_expires(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    token, entry = new_token("ann", AccessRole.APPROVE, 1_900_000_000_000)
    append_entry(file, entry)
    directory = TokenDirectory(file)
    found = directory.entry_of(token, 1_800_000_000_000)
    assert found is not None
    assert found.person.name == "ann"
    assert found.person.roles == up_to(AccessRole.APPROVE)
    assert directory.entry_of(token, 1_900_000_000_000) is None
    assert directory.entry_of(token[:-1], 0) is directory.entry_of("", 0) is directory.entry_of("ß" * 50, 0) is None


def test_the_file_holds_no_token_and_is_its_owner_s_alone(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    old = os.umask(0)
    try:
        tokens = []
        for name in ("ann", "bob"):
            token, entry = new_token(name, AccessRole.VIEW, None)
            append_entry(file, entry)
            tokens.append(token)
    finally:
        os.umask(old)
    text = file.read_text()
    assert all(token not in text and token.removeprefix("rackwise_") not in text for token in tokens)
    assert (file.stat().st_mode & 0o777, len(read_entries(file))) == (0o600, 2)
    assert len(set(tokens)) == 2
    assert all(len(token) == len("rackwise_") + 43 for token in tokens)


def test_the_same_token_twice_has_two_hashes() -> None:
    assert len({new_token("ann", AccessRole.VIEW, None)[1].hashed for _ in range(10)}) == 10


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ann: x", "no list"),
        ("- ann", "entry 1"),
        (f'- {{name: ann, role: root, hash: "{HASH}"}}', "role of entry 1"),
        (f'- {{name: "a\\e[2J", role: view, hash: "{HASH}"}}', "name of entry 1"),
        (f'- {{name: "", role: view, hash: "{HASH}"}}', "name of entry 1"),
        ('- {name: ann, role: view, hash: "hunter2hunter2"}', "hash of entry 1"),
        (f'- {{name: ann, role: view, hash: "{HASH}", extra: 1}}', "entry 1"),
        (f'- {{name: ann, role: view, hash: "{HASH}", expires: soon}}', "expires of entry 1"),
        (f'- {{name: a, role: view, hash: "{HASH}"}}\n- {{name: b, role: view, hash: "{HASH}"}}', "same hash"),
        ("- [", "line"),
        ("- !!python/object/apply:os.system [id]", "tag"),
        ("\x00", "byte"),
    ],
)
def test_a_wrong_entry_refuses_the_whole_file_and_shows_no_hash(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "tokens.yaml"
    file.touch(0o600)
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_entries(file)
    assert why in error.value.why
    assert "hunter2" not in str(error.value)
    assert "111111" not in str(error.value)


@pytest.mark.parametrize("spoiled", ["mode", "pipe", "directory", "missing", "huge"])
def test_a_file_that_is_none_or_others_may_read_is_refused(tmp_path: Path, spoiled: str) -> None:
    file = tmp_path / "tokens.yaml"
    if spoiled == "pipe":
        os.mkfifo(file)
    elif spoiled == "directory":
        file.mkdir()
    elif spoiled != "missing":
        file.touch(0o640 if spoiled == "mode" else 0o600)
        file.write_bytes(b"#" * 2_000_000 if spoiled == "huge" else b"[]")
    file.chmod(0o604) if spoiled == "mode" else None
    with pytest.raises(ConfigError) as error:
        TokenDirectory(file)
    assert error.value.why
    assert "rackwise token new" in error.value.todo


def test_nothing_is_added_to_a_file_that_others_may_read(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    file.write_text("[]")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        append_entry(file, new_token("ann", AccessRole.VIEW, None)[1])
    assert file.read_text() == "[]"


@pytest.mark.parametrize(
    "name", ["", "a b", 'a"b', "a,b", "a{b", "a\\b", "a\nb", "a\x1b", "a\u202e", "x" * 129, "\uff41"]
)
def test_a_name_that_a_line_cannot_hold_gets_no_token(name: str) -> None:
    with pytest.raises(BadInput):
        new_token(name, AccessRole.VIEW, None)


@pytest.mark.parametrize("name", ["ann", "ann@example.org", "o'neill", "#ann", "-ann", "yes", "1", "änne", "<script>"])
def test_every_other_name_is_read_back_as_it_is(name: str) -> None:
    _, entry = new_token(name, AccessRole.OPERATE, 1_900_000_000_000)
    assert entries_in(entry.line().encode()) == (entry,)
