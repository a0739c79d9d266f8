"""``rackwise --agent URL COMMAND``: the tables of the agent's look, its errors in the command line's own form."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from agent.act.journal.file_journal import read_file
from agent.cli import agent_api
from agent.cli.session import _whole_looks
from agent.journal.entries import JournalState
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.web.app import WebServer
from tests.cli.conftest import Run
from tests.cli.documents import MOVE, a_cluster
from tests.cli.execute.file_agent import options
from tests.web.api.agents import cycle_of, view_of
from tests.web.api.servers import server_of
from tests.web.api.test_documents_agree import journal, of_the_look, recorded

__all__ = ["journal", "recorded"]
COMMANDS = (
    ("status",), ("racks",), ("groups",), ("groups", "app"), ("groups", "billing"), ("topics",), ("topics", "orders"),
    ("doctor",), ("explain", "topic/t"), ("explain", "group/billing"),
)  # fmt: skip
CLOSED = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("COLUMNS", "1000")
    for name in (agent_api.VARIABLE, agent_api.TOKEN_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    yield
    agent_api.taken_off([], {})


@pytest.fixture(scope="module")
def agent(recorded: Path, journal: Path) -> Iterator[WebServer]:
    """An agent whose last look is the recorded one."""
    look = _whole_looks(recorded)[-1]

    def read() -> JournalState:
        return read_file(journal).view

    with server_of(view_of(cycle_of(look.observation, look.memory, look.limits), journal=read)) as server:
        yield server


def comparable(text: str) -> str:
    """Without who measured, how long it took, and the agent's report of itself."""
    lines = [line for line in text.splitlines() if not re.match(r"\s*(agent|took|rates:)", line)]
    lines = [re.sub(r" --agent http://\S+| --replay \S+", "", line) for line in lines]
    return "\n".join(line.replace("a telemetry file holds no journal", "...") for line in lines)


@pytest.mark.parametrize("every", [(), ("--all",)], ids=["", "all"])
@pytest.mark.parametrize("typed", COMMANDS, ids=" ".join)
def test_the_tables_are_those_of_the_same_look(
    here: Run, agent: WebServer, recorded: Path, typed: tuple[str, ...], every: tuple[str, ...]
) -> None:
    of_file = here(*typed, "-o", "table", *every, "--replay", str(recorded))
    of_agent = here("--agent", f"http://{agent.address}", *typed, "-o", "table", *every)
    assert of_agent.exit_code == of_file.exit_code == 0, of_agent.stderr
    mode = "the journal is read in mode execute only, and the mode is propose"
    assert comparable(of_agent.stdout).replace(mode, "...") == comparable(of_file.stdout)


@pytest.mark.parametrize("typed", COMMANDS, ids=" ".join)
def test_the_documents_are_those_of_the_same_look(
    here: Run, agent: WebServer, recorded: Path, typed: tuple[str, ...]
) -> None:
    of_file = here(*typed, "-o", "json", "--replay", str(recorded))
    of_agent = here(f"--agent=http://{agent.address}/", *typed, "-o", "json")
    assert of_the_look(json.loads(of_agent.stdout)) == of_the_look(json.loads(of_file.stdout))


def test_the_journal_is_shown_as_it_is_read_by_itself(here: Run, agent: WebServer, journal: Path) -> None:
    named = ("--agent", f"http://{agent.address}")
    for form in ("table", "json", "csv"):
        of_file = here("proposals", "history", "-o", form, *options(journal))
        assert here(*named, "proposals", "history", "-o", form).stdout == of_file.stdout != ""
    shown = here(*named, "reassign", "status", "-o", "table").stdout
    assert MOVE.id in shown
    assert "t-1" in shown
    assert json.loads(here(*named, "reassign", "status", "-o", "json").stdout)["journal"] == "rackwise.journal"


def test_proposals_and_settings_are_those_of_the_agent(here: Run, agent: WebServer, recorded: Path) -> None:
    named = ("--agent", f"http://{agent.address}")
    planned = json.loads(here("plan", "-o", "json", "--replay", str(recorded)).stdout)
    listed = here(*named, "proposals", "-o", "json")
    assert [row["id"] for row in json.loads(listed.stdout) or planned] == [row["id"] for row in planned]
    settings = {row["setting"]: row["value"] for row in json.loads(here(*named, "config", "show", "-o", "json").stdout)}
    assert settings["kafka.bootstrap.servers"] == "127.0.0.1:1"


def test_the_environment_names_an_agent_for_what_an_agent_answers(
    here: Run, agent: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(agent_api.VARIABLE, f"http://{agent.address}")
    assert json.loads(here("racks", "-o", "json").stdout)
    monkeypatch.setenv(agent_api.VARIABLE, CLOSED)
    assert here("racks").exit_code == 5
    assert here("config", "docs").exit_code == 0


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (("status",), "did not answer"),
        (("groups", "a/b"), "did not answer"),
        (("proposals", "history"), "did not answer"),
        (("config", "show"), "did not answer"),
    ],
)
def test_an_agent_that_does_not_answer_ends_with_5(here: Run, typed: tuple[str, ...], words: str) -> None:
    done = here("--agent", CLOSED, *typed)
    assert (done.exit_code, words in done.stderr, "leave --agent out" in done.stderr) == (5, True, True)


def test_an_agent_without_a_look_ends_with_5_and_says_so(here: Run) -> None:
    with server_of(view_of(None)) as server:
        done = here("--agent", f"http://{server.address}", "status")
    assert done.exit_code == 5
    assert "no look at the cluster has succeeded yet" in done.stderr


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (("groups", "bilings"), "Did you mean billing?"),
        (("topics", "nothing/there"), "List all topics: rackwise --agent http://"),
        (("explain", "group/nothing"), "group/nothing is unknown"),
    ],
)
def test_what_the_agent_does_not_know_is_a_mistake_of_the_person(
    here: Run, agent: WebServer, typed: tuple[str, ...], words: str
) -> None:
    done = here("--agent", f"http://{agent.address}", *typed)
    assert done.exit_code == 2
    assert words in done.stderr


@pytest.mark.parametrize(
    "typed",
    [("run",), ("assign",), ("pause",), ("proposals", "approve", "p-0123456789ab", "--yes"),
     ("reassign", "cancel", "p-0123456789ab", "--yes"), ("config", "check")],
    ids=" ".join,
)  # fmt: skip
def test_what_no_agent_answers_is_refused_before_anything_is_done(here: Run, typed: tuple[str, ...]) -> None:
    done = here("--agent", CLOSED, *typed)
    assert done.exit_code == 2
    assert "asks no agent" in done.stderr


def test_a_misspelt_command_gets_the_nearest_that_an_agent_answers(here: Run) -> None:
    done = here("--agent", CLOSED, "grouups", "-o", "json")
    assert done.exit_code == 2
    assert "Did you mean groups? An agent answers: " in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "named",
    [("--agent",), ("--agent", "kafka:9464"), ("--agent", "ftp://x"), ("--agent", "http://"), ("--agent", "http://h:x"),
     ("--agent", "http://u:p@h"), ("--agent", "http://h?q=1"), ("--agent-token-file", "/no/such", "--agent", CLOSED)],
    ids=" ".join,
)  # fmt: skip
def test_a_mistake_in_the_options_of_the_agent_ends_with_2(here: Run, named: tuple[str, ...]) -> None:
    done = here(*named, *(("status",) if len(named) > 1 else ()))
    assert done.exit_code == 2
    assert "u:p" not in done.stderr


def test_options_of_a_look_contradict_an_agent(here: Run, agent: WebServer, recorded: Path) -> None:
    named = ("--agent", f"http://{agent.address}")
    for given in (("--replay", str(recorded)), ("--for", "10s")):
        assert here(*named, "status", *given).exit_code == 2
    assert "are not read" in here(*named, "status", "-b", "127.0.0.1:1").stderr


class Recorder(BaseHTTPRequestHandler):
    """Answers with a redirect, and keeps what it was asked."""

    seen: list[tuple[str, str | None]]
    target = ""

    def do_GET(self) -> None:
        """Send the client elsewhere."""
        self.seen.append((self.path, self.headers.get("authorization")))
        self.send_response(302)
        self.send_header("location", self.target)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def redirecting() -> Iterator[tuple[str, type[Recorder]]]:
    class Handler(Recorder):
        """Of this test."""

        seen: list[tuple[str, str | None]] = []  # noqa: RUF012 its server makes a handler for each request

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Handler.target = f"http://127.0.0.1:{server.server_port}/stolen"
    yield f"http://127.0.0.1:{server.server_port}", Handler
    server.shutdown()
    server.server_close()
    thread.join(5)


def test_the_token_goes_to_the_named_agent_alone_and_is_never_shown(
    here: Run, redirecting: tuple[str, type[Recorder]], tmp_path: Path
) -> None:
    url, handler = redirecting
    file = tmp_path / "token"
    file.write_text("canary-4711\n")
    done = here("--agent", url, "--agent-token-file", str(file), "status")
    assert handler.seen == [("/api/v1/cluster", "Bearer canary-4711")]
    assert done.exit_code == 1
    assert "canary" not in done.stdout + done.stderr


def test_a_proxy_of_the_environment_gets_no_token(
    here: Run, redirecting: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, handler = redirecting
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(agent_api.TOKEN_VARIABLE, "canary-4711")
    assert here("--agent", CLOSED, "status").exit_code == 5
    assert handler.seen == []


def test_a_token_of_the_environment_is_sent(
    here: Run, redirecting: tuple[str, type[Recorder]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, handler = redirecting
    monkeypatch.setenv(agent_api.TOKEN_VARIABLE, "from-the-environment")
    here("--agent", url, "status")
    assert handler.seen[0][1] == "Bearer from-the-environment"


@pytest.fixture
def answering() -> Iterator[tuple[str, list[str]]]:
    """A server that is no agent: it answers everything with the same JSON."""
    texts = ["{}"]

    class Handler(BaseHTTPRequestHandler):
        """Answers with the text that is set."""

        def do_GET(self) -> None:
            """Answer."""
            self.send_response(200)
            self.send_header("content-length", str(len(texts[0])))
            self.end_headers()
            self.wfile.write(texts[0].encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", texts
    server.shutdown()
    server.server_close()
    thread.join(5)


OTHER_JSON = (
    "{}", "[]", "null", '"x"', "5", "NaN", "[{}]", '{"cycle": 1}', '{"items": 3, "next": null, "total": 0}',
    '{"items": [null], "next": null, "total": 1}', '{"items": [], "next": "more", "total": 1}',
    '{"items": [{"id": "\\u001b[31mX"}], "next": null, "total": 1}', '{"\\u001b[31mX": 1}',
)  # fmt: skip


@pytest.mark.parametrize(
    "typed",
    [
        *COMMANDS,
        ("proposals",),
        ("proposals", "history"),
        ("reassign", "status"),
        ("config", "show"),
        ("top",),
        ("plan",),
        ("plan", "--groups"),
        ("plan", "--add-partitions", "t=9"),
        ("simulate", "--remove-rack", "b"),
        ("reassign", "verify", MOVE.id),
    ],
    ids=" ".join,
)
def test_json_of_something_else_than_an_agent_is_one_sentence(
    here: Run, answering: tuple[str, list[str]], typed: tuple[str, ...]
) -> None:
    """A wrong port, or an agent of another version: no fault of this command, and no traceback."""
    url, texts = answering
    for texts[0] in OTHER_JSON:
        done = here("--agent", url, *typed)
        shown_as_it_is = typed[-1] == "history" and '"items": [{' in texts[0]
        assert done.exit_code == (0 if shown_as_it_is else 1), (texts[0], done.stdout, done.stderr)
        assert shown_as_it_is or f"{url} " in done.stderr
        assert "Internal error" not in done.stderr
        assert "\x1b" not in done.stdout + done.stderr


def test_a_partial_look_of_the_agent_ends_with_5_and_names_what_is_missing(here: Run) -> None:
    cycle = cycle_of(a_cluster().at())
    gap = Gap.of_broker(ObservationPart.LOG_DIRS, GapCause.TIMED_OUT, 2, "no answer in 5000 ms")
    blind = replace(cycle, snapshot=replace(cycle.snapshot, gaps=(gap,)))
    with server_of(view_of(blind)) as server:
        done = here("--agent", f"http://{server.address}", "racks")
    assert done.exit_code == 5
    assert "not seen: log dirs of broker 2: no answer in time (no answer in 5000 ms)" in done.stderr
