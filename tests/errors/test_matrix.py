"""Each command x each kind of error that needs no broker: nothing listens, bad files, unknown names, missing tools.

The columns on brokers with TLS, passwords and rights are in `test_secured_matrix`, interrupts in `test_interrupts`.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any, NoReturn

import pytest

from agent.cli import session
from agent.telemetry.events import to_lines
from agent.values.limits import Limits
from agent.values.memory import Memory
from tests.builders import Answers
from tests.errors.command_rows import ROWS, Command, commands, files_of, row_id
from tests.errors.conftest import Run
from tests.errors.error_output import assert_clean, assert_one_error
from tests.recorded_looks import observation_to_events
from tests.wire.fake_broker import FakeBroker

ASKING = [command for command, row in ROWS.items() if row.asks]
READING = [(command, name) for command, row in ROWS.items() for name in row.reads]
KNOWING = [command for command, row in ROWS.items() if row.unknown]
IN_SPARK = [command for command in ROWS if command[0] == "spark"]
BINARY = bytes(range(256)) * 8


def binary(path: Path) -> Path:
    path.write_bytes(BINARY)
    return path


def broken_gzip(path: Path) -> Path:
    path = path.with_suffix(".gz")
    path.write_bytes(gzip.compress(BINARY)[:-20])
    return path


def directory(path: Path) -> Path:
    path.mkdir()
    return path


def missing(path: Path) -> Path:
    return path


def unreadable(_path: Path) -> Path:
    return Path("/proc/self/mem")  # may be opened, and fails when it is read, for root too


def of_another_shape(path: Path) -> Path:
    path.write_text('[{"colour": ["blue"]}, 7]\n')
    return path


def empty(path: Path) -> Path:
    path.write_text("")
    return path


BAD: tuple[Callable[[Path], Path], ...] = (
    binary, broken_gzip, directory, missing, unreadable, of_another_shape, empty
)  # fmt: skip
MAY_BE_EMPTY = {"config", "properties"}
PARTIAL = ("reassign", "status")
"""What brokers report is an answer also where the journal is not."""


def test_every_command_has_its_row_and_every_file_that_it_names_its_column() -> None:
    known = commands()
    assert set(known) == set(ROWS)
    for command, function in known.items():
        assert files_of(function) == {*ROWS[command].reads, *ROWS[command].writes}, command


@pytest.mark.parametrize("command", ASKING, ids=row_id)
def test_where_no_broker_listens_every_command_that_asks_ends_with_5(
    run: Run, command: Command, closed_port: str
) -> None:
    done = run(*command, *ROWS[command].given, "--bootstrap-servers", closed_port)
    assert_one_error(done, 5)
    assert closed_port in done.stderr
    assert "  do:  Check bootstrap.servers and that the brokers run." in done.stderr


@pytest.mark.parametrize("command", ASKING, ids=row_id)
def test_without_brokers_in_the_settings_every_command_that_asks_ends_with_2(run: Run, command: Command) -> None:
    assert_one_error(run(*command, *ROWS[command].given), 2)


@pytest.mark.parametrize(
    "command",
    [one for one in ASKING if one[0] in {"proposals", "pause", "reassign"} and one != PARTIAL],
    ids=row_id,
)
def test_brokers_that_hang_up_on_the_second_client_are_told_without_a_line_of_its_library(
    run: Run, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.daemon.start._READ_MS", 400)
    monkeypatch.setattr("agent.cli.running_agents.READ_MS", 400)
    with FakeBroker({}) as broker:
        done = run(*command, *ROWS[command].given, "--bootstrap-servers", f"127.0.0.1:{broker.port}")
    assert_one_error(done, 5)


def test_reassign_status_answers_without_a_journal_that_it_cannot_read_and_says_so(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.cli.running_agents.READ_MS", 400)
    with FakeBroker({}) as broker:
        done = run(*PARTIAL, "-o", "json", "--bootstrap-servers", f"127.0.0.1:{broker.port}")
    assert_clean(done)
    assert (done.exit_code, done.json["journal"], done.json["plans"]) == (5, "not readable", [])
    assert "the journal cannot be read, so it is unknown which reassignments are of rackwise" in done.stderr


@pytest.mark.parametrize("made", BAD, ids=lambda made: made.__name__)
@pytest.mark.parametrize("given", READING, ids=lambda one: f"{row_id(one[0])} {one[1]}")
def test_a_file_that_cannot_be_used_ends_a_command_with_2_and_none_of_its_bytes(
    run: Run, given: tuple[Command, str], made: Callable[[Path], Path], tmp_path: Path, closed_port: str
) -> None:
    command, name = given
    row = ROWS[command]
    path = made(tmp_path / "given")
    arguments = [str(path) if one == "FILE" else one for one in row.reads[name]]
    where = ("--bootstrap-servers", closed_port) if row.asks else ()
    if made is empty and name in MAY_BE_EMPTY:
        if row.asks:
            assert_one_error(run(*command, *row.given, *arguments, *where), 5)
        return
    done = run(*command, *row.given, *arguments, *where)
    assert_one_error(done, 2)
    assert str(path) in done.stderr


@pytest.mark.parametrize("made", [one for one in BAD if one is not missing], ids=lambda made: made.__name__)
def test_a_reassignment_file_that_cannot_be_used_is_no_plan(
    run: Run, made: Callable[[Path], Path], tmp_path: Path, closed_port: str
) -> None:
    path = made(tmp_path / "given.json")
    assert_one_error(run("reassign", "verify", str(path), "--bootstrap-servers", closed_port), 2)


@pytest.mark.parametrize("made", [binary, broken_gzip, missing, of_another_shape], ids=lambda made: made.__name__)
@pytest.mark.parametrize("command", [one for one in ASKING if one[0] in {"pause", "reassign"}], ids=row_id)
def test_a_file_that_is_no_journal_is_not_read_as_an_empty_one(
    run: Run, command: Command, made: Callable[[Path], Path], tmp_path: Path, closed_port: str
) -> None:
    journal = ("--set", "execute.journal=file", "--set", f"execute.journal_file={made(tmp_path / 'journal')}")
    done = run(*command, *ROWS[command].given, "-b", closed_port, *journal)
    if command == PARTIAL and made is missing:  # it shows what brokers report, and none answers here
        first, *others = done.stderr.splitlines()
        assert first.startswith("no journal: There is no journal file ")
        done = done._replace(stderr="\n".join(others))
        assert_one_error(done, 5)
        return
    assert_one_error(done, 2)


@pytest.mark.parametrize("command", [("optimize",), ("assign",)], ids=row_id)
@pytest.mark.parametrize("given", [BINARY, b"", b"{", b"[" * 100_000, b'{"racks": 7}'], ids=lambda one: repr(one[:8]))
def test_standard_input_that_is_no_problem_is_told(
    run: Run, command: Command, given: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "stdin").write_bytes(given)
    with (tmp_path / "stdin").open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert_one_error(run(*command, "-"), 2)


@pytest.mark.parametrize("command", KNOWING, ids=row_id)
def test_a_name_that_is_not_there_ends_a_command_with_2(run: Run, command: Command, look: Path) -> None:
    row = ROWS[command]
    replay = ("--replay", str(look)) if "replay" in row.reads else ()
    assert_one_error(run(*command, *row.unknown, *replay), 2)


@pytest.fixture
def look(tmp_path: Path) -> Path:
    """The telemetry file of one look at an empty cluster."""
    path = tmp_path / "look.jsonl"
    events = observation_to_events(Answers().at(), Memory(), Limits(), look="l-1")
    path.write_text("".join(f"{line}\n" for event in events for line in to_lines(event)))
    return path


class _Hidden(MetaPathFinder):
    """Spark is not installed."""

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> None:
        if name.partition(".")[0] == "pyspark":
            raise ModuleNotFoundError("No module named 'pyspark'", name=name)


@pytest.mark.parametrize("command", IN_SPARK, ids=row_id)
def test_without_the_extra_every_command_of_spark_says_what_to_install(
    run: Run, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [one for one in sys.modules if one.partition(".")[0] == "pyspark"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("sys.meta_path", [_Hidden(), *sys.meta_path])
    done = run(*command, *ROWS[command].given)
    assert_one_error(done, 2)
    assert "pip install 'rackwise[spark]'" in done.stderr


@pytest.mark.parametrize("command", [("cluster", "up"), ("demo",)], ids=row_id)
def test_without_java_and_maven_a_command_that_starts_brokers_says_what_to_install(
    run: Run, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run(*command)
    assert done.exit_code in {1, 2}
    last = [line for line in done.stderr.splitlines() if line.startswith("rackwise: ")]
    assert len(last) == 1
    assert "java" in done.stderr
    assert "apt install" in done.stderr


def test_without_java_spark_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    done = run("spark", "report", "--out", str(tmp_path / "report"))
    assert_one_error(done, 2)
    assert done.stderr.startswith("rackwise: Spark needs Java\n")


def test_a_port_that_is_taken_is_told(run: Run) -> None:
    with FakeBroker({}) as broker:
        taken = str(broker.port)
        done = run("run", "--bootstrap-servers", f"127.0.0.1:{taken}", "--set", f"http.port={taken}")
    assert_one_error(done, 2)
    assert f"cannot listen on 127.0.0.1:{taken}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence", "todo"),
    [
        (("statsu",), "No such command 'statsu'", "Did you mean 'status'? See: rackwise --help"),
        (("proposals", "aprove"), "No such command 'aprove'", "Did you mean 'approve'? See: rackwise proposals --help"),
        (("qwertz",), "No such command 'qwertz'", "See: rackwise --help"),
        (("status", "--42"), "No such option: --42", "See: rackwise status --help"),
        (("proposals", "approve"), "Missing argument 'PROPOSAL'", "See: rackwise proposals approve --help"),
        (
            ("cluster", "broker", "1"),
            "Missing argument 'action'. Choose from: stop, kill, freeze, thaw, start, restart",
            "See: rackwise cluster broker --help",
        ),
        (
            ("status", "-o", "xml"),
            "Invalid value for '--output' / '-o': 'xml' is not one of 'table', 'json', 'jsonl', 'yaml', 'csv'",
            "See: rackwise status --help",
        ),
    ],
    ids=" ".join,
)
def test_a_wrong_use_is_told_in_the_same_form_with_2(
    run: Run, arguments: tuple[str, ...], sentence: str, todo: str
) -> None:
    done = run(*arguments)
    assert_one_error(done, 2)
    assert done.stderr.splitlines() == [f"rackwise: {sentence}", f"  do:  {todo}"]


def test_rackwise_alone_gives_its_help(run: Run) -> None:
    done = run()
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Commands:" in done.stderr


def test_a_fault_of_its_own_is_one_sentence_and_its_traceback_is_for_those_who_ask(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> NoReturn:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(session, "look_or_replay", broken)
    done = run("status", "--bootstrap-servers", "127.0.0.1:9")
    assert_one_error(done, 1)
    assert done.stderr.splitlines() == [
        "rackwise: Internal error of rackwise",
        "  why: ZeroDivisionError: division by zero",
        "  do:  Run it again with --debug for the traceback, and report it.",
    ]
    asked = run("status", "--bootstrap-servers", "127.0.0.1:9", "--debug")
    assert asked.exit_code == 1
    assert "Traceback (most recent call last)" in asked.stderr
    assert asked.stderr.endswith(done.stderr)


@pytest.mark.parametrize("where", ["/proc/no-such/file", "/"], ids=["no such folder", "a directory"])
def test_a_file_that_cannot_be_written_is_told(run: Run, where: str, tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text('{"cases": []}')
    assert_one_error(run("assign", str(tmp_path / "cases.json"), "--output", where), 2)


def test_an_error_keeps_its_exit_code_with_its_traceback(run: Run, closed_port: str) -> None:
    done = run("--debug", "status", "--bootstrap-servers", closed_port)
    assert done.exit_code == 5
    assert "Traceback (most recent call last)" in done.stderr
    assert "\nrackwise: No broker answered\n" in done.stderr
