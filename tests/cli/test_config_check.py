"""``config check`` asks every rack locator once: what it would answer, or the sentence why it does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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


def test_a_directory_takes_no_telemetry(tmp_path: Path) -> None:
    done = rackwise("config", "check", "--set", f"record.file={tmp_path}")
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        f"rackwise: {tmp_path}, which record.file names, cannot be written",
        "  why: it is a directory, and a regular file is expected",
        "  do:  Name a file of its own.",
    ]


def test_every_file_that_a_server_or_a_message_needs_is_read_and_every_mistake_told(tmp_path: Path) -> None:
    tokens, open_to_all = tmp_path / "tokens.yaml", tmp_path / "ops"
    tokens.write_text("- name: ann\n  role: king\n")
    tokens.chmod(0o600)
    open_to_all.write_text(f"json://u:{SECRET}@127.0.0.1\n")
    open_to_all.chmod(0o644)
    one = rackwise("config", "check", "--set", f"http.auth.tokens_file={tmp_path / 'none'}")
    assert one.exit_code == 2
    assert f"rackwise: http.auth.tokens_file: {tmp_path / 'none'} cannot be used" in one.stderr
    settings = {
        "http.auth.tokens_file": tokens,
        "notify.targets.ops.url_file": open_to_all,
        "notify.targets.team.url_file": open_to_all,
        "http.tls.cert_file": tmp_path / "cert.pem",
        "http.tls.key_file": tmp_path / "key.pem",
    }
    flags = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    all_of_them = rackwise("config", "check", *flags)
    assert all_of_them.exit_code == 2
    assert "rackwise: 4 settings cannot be used" in all_of_them.stderr
    for name in ("http.auth.tokens_file", "notify.targets.ops", "notify.targets.team", "http.tls.key_file"):
        assert name in all_of_them.stderr, name
    assert SECRET not in all_of_them.stdout + all_of_them.stderr


def test_every_source_is_named_with_its_precedence_and_the_brokers_with_their_origin(tmp_path: Path) -> None:
    first, second, imported = tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "client.properties"
    first.write_text("kafka:\n  bootstrap.servers: a:1\npoll.interval: 20s\n")
    second.write_text("kafka:\n  bootstrap.servers: b:1,c:1\n")
    imported.write_text("bootstrap.servers=d:1\n")
    environment = {"RACKWISE_CONFIG": f"{first}{os.pathsep}{second}", "RACKWISE_POLL_INTERVAL": "30s"}
    asked = ("config", "check", "--properties", str(imported), "--set", "mode=observe")
    done = rackwise(*asked, "-o", "json", **environment)
    assert done.exit_code == 0, done.stderr
    assert done.stderr.splitlines() == [
        "settings read, the strongest first (flag > environment > config file > properties file > default):",
        "  --set: 1 setting",
        "  environment variable RACKWISE_POLL_INTERVAL: 1 setting",
        f"  config file {second}: 1 setting, named by RACKWISE_CONFIG",
        f"  config file {first}: 2 settings, named by RACKWISE_CONFIG",
        f"  properties file {imported}: 1 setting",
        f"brokers: b:1,c:1 (file {second})",
        "the settings can be used: mode observe",
    ]
    assert done.json["bootstrap_servers"] == ["b:1", "c:1"]
    assert done.json["bootstrap_servers_from"] == f"file {second}"
    assert [(one["kind"], one["name"]) for one in done.json["sources"]] == [
        ("flag", "--set"),
        ("environment", "RACKWISE_POLL_INTERVAL"),
        ("file", str(second)),
        ("file", str(first)),
        ("properties", str(imported)),
    ]
    assert done.json["sources"][2]["named_by"] == "RACKWISE_CONFIG"


def test_a_named_file_leaves_the_variable_unread_and_no_source_is_said_to_be_none(tmp_path: Path) -> None:
    named = tmp_path / "a.yaml"
    named.write_text("")
    environment = {"RACKWISE_CONFIG": str(tmp_path / "other.yaml")}
    done = rackwise("config", "check", "-c", str(named), **environment)
    assert f"  config file {named}: 0 settings\n" in done.stderr
    assert "other.yaml" not in done.stderr
    assert "brokers: none are named (kafka.bootstrap.servers is not set)\n" in done.stderr
    bare = rackwise("config", "check")
    assert "settings read: no option, environment variable or file sets any; all have their defaults\n" in bare.stderr


@pytest.mark.parametrize(
    ("text", "todo"),
    [
        pytest.param(None, "Name a file that is there and that this user may read.", id="missing"),
        pytest.param("a: [1\nb: }\n", "Write it as YAML: one name: value a line.", id="not YAML"),
        pytest.param("poll.interval: nonsense\n", "Correct the settings named above.", id="a setting"),
    ],
)
def test_the_remedy_is_about_the_file_where_no_setting_is_named(tmp_path: Path, text: str | None, todo: str) -> None:
    file = tmp_path / "settings.yaml"
    if text is not None:
        file.write_text(text)
    done = rackwise("config", "check", "-c", str(file))
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == f"  do:  {todo}"
