"""A command that a sentence names runs as it is printed: with the options of this run, and without its secrets."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from agent.cli import output
from agent.cli.output import OutputFormat, emit
from tests.builders import an_observation
from tests.cli.conftest import Record, Run


@pytest.fixture(autouse=True)
def _nothing_in_force() -> Iterator[None]:
    output.forget()
    yield
    output.forget()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("List all groups: rackwise groups --all", "List all groups: rackwise groups {} --all"),
        ("approve it with: rackwise proposals approve p-1", "approve it with: rackwise proposals approve {} p-1"),
        ("see rackwise status", "see rackwise status {}"),
        ("Clear it with `rackwise cluster down`.", "Clear it with `rackwise cluster down`."),
        ("rackwise run -b HOST:PORT", "rackwise run -b HOST:PORT"),
        ("the topic rackwise.proposals of rackwise", "the topic rackwise.proposals of rackwise"),
    ],
)
def test_a_command_gets_the_options_of_this_run(text: str, told: str) -> None:
    assert output.runnable(text) == text, "without options there is nothing to add"
    output.remember(
        (Path("my file.yaml"),),
        (Path("client.properties"),),
        ("mode=execute", "kafka.sasl.password=secret"),
        "a:9092,b:9092",
    )
    options = "-b a:9092,b:9092 -c 'my file.yaml' --properties client.properties --set mode=execute"
    assert output.runnable(text) == told.format(options)


def test_of_a_telemetry_file_only_commands_that_read_one_get_it() -> None:
    output.remember_replay(Path("t.jsonl"))
    assert output.runnable("rackwise groups --all") == "rackwise groups --replay t.jsonl --all"
    assert output.runnable("rackwise reassign status") == "rackwise reassign status"


def test_the_remedy_of_an_error_runs_as_it_is_printed(here: Run, record: Record) -> None:
    file = str(record(an_observation().topic("orders", (1, 2, 3))))
    failed = here("topics", "xyz", "--replay", file)
    remedy = failed.stderr.splitlines()[-1].partition("List all topics: ")[2]
    program, *arguments = shlex.split(remedy)
    assert program == "rackwise"
    assert here(*arguments).exit_code == 0
    assert here("config", "check", "--set", "mode=observe").exit_code == 0
    assert output.runnable("rackwise topics") == "rackwise topics --set mode=observe", (
        "one command's options end with it"
    )


def test_the_command_that_places_a_topic_names_the_cluster_and_is_one_line(here: Run, record: Record) -> None:
    file = str(record(an_observation(a=(1,), b=(2,), c=(3,)).topic("orders", (1, 2, 3))))
    asked = ("plan", "--replay", file, "--new-topic", "new", "--partitions", "200", "--replication-factor", "3")
    shown = here(*asked, "-o", "table").stdout
    commands = [line.partition("> ")[2] for line in shown.splitlines() if line.strip().startswith("> ")]
    assert commands == [row["command"] for row in here(*asked, "-o", "json").json]
    assert all(one.startswith("kafka-topics.sh --bootstrap-server kafka-1:9092 --create ") for one in commands)
    assert "least=" not in shown


def test_a_sentence_in_a_table_has_the_options_too_and_json_has_the_sentence_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    row = {"sentence": "held: it is not approved; approve it with: rackwise proposals approve p-1"}
    output.remember((), (), (), "a:1")
    assert "rackwise proposals approve -b a:1 p-1" in _emitted(row, OutputFormat.TABLE)
    assert "rackwise proposals approve p-1" in _emitted(row, OutputFormat.JSON)


def _emitted(row: dict[str, str], form: OutputFormat) -> str:
    with redirect_stdout(StringIO()) as out:
        emit([row], ("sentence",), form)
    return out.getvalue()
