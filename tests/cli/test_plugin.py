"""`rackwise plugin jar`: the jar of this installation in a directory, its figures, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest
import yaml

from agent.cli import plugin
from tests.cli.conftest import Run
from tests.cli.documents import validate
from tests.docs.document_schemas import DOCUMENTS
from tests.errors.error_output import assert_one_error
from tests.jvm.building import packaged_jar

LINE = "group.consumer.assignors=rackwise.assignor.RackwiseAssignor,uniform,range"


@pytest.fixture(scope="module")
def jar() -> Path:
    return packaged_jar()


def test_a_directory_gets_the_jar_for_every_user_and_the_answer_its_figures(
    here: Run, jar: Path, tmp_path: Path
) -> None:
    mask = os.umask(0o077)
    try:
        done = here("plugin", "jar", "-o", str(tmp_path), "-o", "json")
    finally:
        os.umask(mask)
    written = tmp_path / "rackwise-kafka.jar"
    assert done.exit_code == 0, done
    assert json.loads(done.stdout) == {
        "path": str(written),
        "sha256": hashlib.sha256(jar.read_bytes()).hexdigest(),
        "bytes": jar.stat().st_size,
        "written": True,
        "broker_lines": [LINE],
    }
    assert written.read_bytes() == jar.read_bytes()
    assert stat.S_IMODE(written.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [written]


def test_the_line_for_brokers_can_be_copied_and_the_same_jar_is_left_alone(
    here: Run, jar: Path, tmp_path: Path
) -> None:
    first = here("plugin", "jar", "-o", str(tmp_path), "-o", "table")
    written = tmp_path / "rackwise-kafka.jar"
    before = _state(written)
    again = here("plugin", "jar", "-o", "table", "-o", str(tmp_path))
    assert f"> {LINE}\n" in first.stdout
    assert hashlib.sha256(jar.read_bytes()).hexdigest() in first.stdout
    assert (again.exit_code, _state(written)) == (0, before)
    assert "is written" in " ".join(first.stdout.split())
    assert "has this jar already" in " ".join(again.stdout.split())


def _state(file: Path) -> tuple[int, int, int, int]:
    """All that a write would change; reading changes the time of access alone."""
    now = file.stat()
    return now.st_ino, now.st_mode, now.st_mtime_ns, now.st_ctime_ns


@pytest.mark.parametrize("form", ["json", "jsonl", "yaml"])
def test_what_it_prints_keeps_to_its_schema(here: Run, jar: Path, form: str) -> None:
    assert jar.is_file()
    done = here("plugin", "jar", "-o", form)
    assert done.exit_code == 0, done
    (document,) = (one for one in DOCUMENTS if "plugin jar" in one.commands)
    validate(document, yaml.safe_load(done.stdout) if form == "yaml" else json.loads(done.stdout), form)


def test_without_a_directory_it_says_where_the_jar_is_and_writes_nothing(
    here: Run, jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = here("plugin", "jar", "-o", "json")
    assert (done.json["path"], done.json["written"]) == (str(jar), False)
    assert list(tmp_path.iterdir()) == []


def test_another_file_is_replaced_with_force_alone(here: Run, jar: Path, tmp_path: Path) -> None:
    there = tmp_path / "rackwise-kafka.jar"
    there.write_bytes(b"an older jar")
    refused = here("plugin", "jar", "-o", str(tmp_path))
    assert_one_error(refused, 2)
    assert hashlib.sha256(b"an older jar").hexdigest() in refused.stderr
    assert "--force" in refused.stderr
    assert there.read_bytes() == b"an older jar"
    assert here("plugin", "jar", "-o", str(tmp_path), "--force").exit_code == 0
    assert there.read_bytes() == jar.read_bytes()


@pytest.mark.parametrize("kind", ["a directory", "a pipe", "a link to nothing"])
def test_what_is_no_file_is_never_replaced(here: Run, jar: Path, tmp_path: Path, kind: str) -> None:
    there = tmp_path / "rackwise-kafka.jar"
    match kind:
        case "a directory":
            there.mkdir()
        case "a pipe":
            os.mkfifo(there)
        case _:
            there.symlink_to(tmp_path / "nothing")
    assert_one_error(here("plugin", "jar", "-o", str(tmp_path), "--force"), 2)
    assert list(tmp_path.iterdir()) == [there]
    assert not there.is_file()


def test_a_directory_that_is_not_there_or_takes_no_file_is_named(here: Run, jar: Path, tmp_path: Path) -> None:
    for place in (tmp_path / "libs", jar, Path("/proc/self")):
        done = here("plugin", "jar", "-o", str(place))
        assert_one_error(done, 2)
        assert str(place) in done.stderr
    assert_one_error(here("plugin", "jar", "-o", str(tmp_path), "-o", "elsewhere"), 2)


@pytest.mark.parametrize("given", ["xml", "JSON", "yml", "./libs"])
def test_what_is_neither_a_directory_nor_a_format_is_answered_with_both(
    here: Run, jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """Who means another format than the five is not led to make a directory of its name."""
    monkeypatch.chdir(tmp_path)
    refused = here("plugin", "jar", "-o", given)
    assert_one_error(refused, 2)
    said = " ".join(refused.stderr.split())
    assert f"-o {Path(given)} is neither a directory nor an output format" in said
    assert "the formats are table, json, jsonl, yaml and csv" in said
    assert not [*tmp_path.iterdir()]


def test_an_empty_directory_is_refused_and_one_with_the_name_of_a_form_is_taken(
    here: Run, jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = here("plugin", "jar", "-o", "")
    assert_one_error(refused, 2)
    assert "-o is empty" in refused.stderr
    assert not [*tmp_path.iterdir()]
    (tmp_path / "json").mkdir()
    assert here("plugin", "jar", "-o", "./json", "-o", "json").json["path"] == f"json/{jar.name}"
    assert [one.name for one in (tmp_path / "json").iterdir()] == [jar.name]


def test_a_write_that_is_cut_off_leaves_what_was_there(
    here: Run, jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "rackwise-kafka.jar"
    there.write_bytes(b"an older jar")
    monkeypatch.setattr("os.fsync", lambda _file: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    done = here("plugin", "jar", "-o", str(tmp_path), "--force")
    assert_one_error(done, 2)
    assert "No space left on device" in done.stderr
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"an older jar"]


def test_an_installation_without_the_jar_says_in_one_sentence_what_to_do(
    here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "_PACKAGED", tmp_path / "none.jar")
    for given in ((), ("-o", str(tmp_path))):
        done = here("plugin", "jar", *given)
        assert_one_error(done, 1)
        assert "Run `make jar` in the clone" in done.stderr
    assert list(tmp_path.iterdir()) == []
