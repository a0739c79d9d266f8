"""``--agent URL`` of top, plan, simulate and reassign verify: the same as by the cluster; and lists of one look."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from agent.cli import agent_api, top
from agent.cli.session import ShownLook, _whole_looks
from agent.errors import JournalUnavailable, RackwiseError
from agent.journal.entries import JournalState
from agent.propose.codec import placements_json
from agent.values.cycle import Cycle
from agent.web import what_if_answers
from agent.web.app import ServerBounds, WebServer
from tests.cli.conftest import Run
from tests.cli.documents import MOVE, NEW_TOPIC, a_cluster
from tests.cli.execute.file_agent import TARGETS, options
from tests.snapshots import tp
from tests.web.api.agents import cycle_of, state_of, view_of
from tests.web.api.servers import server_of
from tests.web.api.test_agent_option import CLOSED, _plain, agent, comparable
from tests.web.api.test_documents_agree import journal, of_the_look, recorded

__all__ = ["_plain", "agent", "journal", "recorded"]
SIMULATIONS = (
    ("simulate", "--remove-rack", "b"),
    ("simulate", "--standbys", "app=1", "--remove-member", "billing=consumer-1", "--remove-member", "mailer=mail-1"),
    ("simulate", "--add-broker", "9=a", "--add-replica", "t-0=9", "--replication-factor", "orders=3"),
)
PLANS = (
    ("plan",), ("plan", "--groups"), ("plan", *NEW_TOPIC), ("plan", *NEW_TOPIC, "--placer", "kip-36", "--seed", "7"),
    ("plan", "--add-partitions", "orders=6"),
)  # fmt: skip


@pytest.mark.parametrize("form", ["json", "csv", "table"])
@pytest.mark.parametrize("typed", [*PLANS, *SIMULATIONS], ids=" ".join)
def test_the_answer_is_that_of_the_same_look(
    here: Run, agent: WebServer, recorded: Path, typed: tuple[str, ...], form: str
) -> None:
    of_file = here(*typed, "-o", form, "--all", "--replay", str(recorded))
    of_agent = here("--agent", f"http://{agent.address}", *typed, "-o", form, "--all")
    assert of_agent.exit_code == of_file.exit_code == 0, of_agent.stderr
    assert of_agent.stdout
    if form == "json":
        assert of_the_look(json.loads(of_agent.stdout)) == of_the_look(json.loads(of_file.stdout))
    else:
        assert comparable(of_agent.stdout) == comparable(of_file.stdout)
    notes = [line for line in of_file.stderr.splitlines() if not line.startswith("note: ")]
    assert comparable(of_agent.stderr) == comparable("\n".join(notes))


def test_files_of_moves_are_those_of_the_same_look(here: Run, agent: WebServer, recorded: Path, tmp_path: Path) -> None:
    def written(name: str, *typed: str) -> list[str]:
        files = [tmp_path / f"{name}-{side}.json" for side in ("to", "back")]
        done = here(*typed, "--reassignment-json", str(files[0]), "--rollback-json", str(files[1]), "-o", "json")
        assert done.exit_code in {0, 3}, done.stderr
        return [file.read_text() for file in files]

    of_file = written("file", "plan", "--replay", str(recorded), "--detailed-exitcode")
    of_agent = written("agent", "--agent", f"http://{agent.address}", "plan", "--detailed-exitcode")
    assert of_agent == of_file
    both = tmp_path / "new.json"
    for way in (("--replay", str(recorded)), ()):
        named = () if way else ("--agent", f"http://{agent.address}")
        assert here(*named, "plan", *NEW_TOPIC, *way, "--reassignment-json", str(both)).exit_code == 0
        of_file.append(both.read_text())
    assert of_file[-1] == of_file[-2] != ""


def test_plan_ends_with_3_where_the_agent_proposes_something(here: Run) -> None:
    cycle = cycle_of(a_cluster().at())
    with server_of(view_of(cycle)) as server:
        done = here("--agent", f"http://{server.address}", "plan", "--detailed-exitcode", "-o", "json")
    assert [row["id"] for row in json.loads(done.stdout)] == [one.id for one in cycle.proposals] != []
    assert done.exit_code == 3


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (("simulate",), "no change is named"),
        (("simulate", "--remove-rack", "nowhere"), "nowhere"),
        (("simulate", "--remove-broker", "77"), "77"),
        (("simulate", "--add-member", "="), "cannot be read"),
        (("simulate", *(word for at in range(21) for word in ("--add-broker", f"{100 + at}=a"))), "at most 20"),
        (("plan", "--keep-leaders"), "an agent plans by its own settings"),
        (("plan", "--add-partitions", "nothing=9"), "nothing"),
        (("plan", "--new-topic", "n", "--partitions", "3", "--replication-factor", "99"), "99"),
        (("plan", "--for", "10s"), "contradict each other"),
        (("top", "--replay", "x"), "contradict each other"),
        (("reassign", "verify", "p-nothing"), "The journal has no plan p-nothing"),
    ],
    ids=lambda of: " ".join(of[:3]) if isinstance(of, tuple) else None,
)  # fmt: skip
def test_a_mistake_ends_with_2_and_one_sentence(
    here: Run, agent: WebServer, typed: tuple[str, ...], words: str
) -> None:
    done = here("--agent", f"http://{agent.address}", *typed)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Internal error" not in done.stderr


@pytest.mark.parametrize("typed", [("top",), ("plan",), ("simulate",), ("reassign", "verify", MOVE.id)], ids=" ".join)
def test_an_agent_that_does_not_answer_or_has_no_look_ends_with_5(here: Run, typed: tuple[str, ...]) -> None:
    assert here("--agent", CLOSED, *typed).exit_code == 5
    with server_of(view_of(None)) as server:
        done = here("--agent", f"http://{server.address}", *typed)
    assert done.exit_code == 5
    assert "no look at the cluster has succeeded yet" in done.stderr


def test_a_simulation_that_takes_long_is_waited_for(
    here: Run, agent: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, begun = what_if_answers.answered, []

    def slowly(*of: object) -> what_if_answers.WhatIfAnswer:
        begun.append(of)
        threading.Event().wait(what_if_answers.WAITS_S + 1.5)
        return slow(*of)  # type: ignore[arg-type] # as it was asked

    monkeypatch.setattr(what_if_answers, "answered", slowly)
    done = here("--agent", f"http://{agent.address}", "simulate", "--remove-rack", "c", "-o", "json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["changes"] == ["no rack c"]
    assert len(begun) == 1


# --- reassign verify -----------------------------------------------------------------------------------------------


@pytest.fixture
def observed(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The brokers answer as in the recorded look."""
    observation = _whole_looks(recorded)[-1].observation
    monkeypatch.setattr("agent.observe.observe_cluster.observe", lambda *_: observation)


@pytest.mark.parametrize("what", ["plan", "file"])
@pytest.mark.usefixtures("observed")
def test_replicas_are_compared_as_by_the_brokers(
    here: Run, agent: WebServer, journal: Path, tmp_path: Path, what: str
) -> None:
    file = tmp_path / "moves.json"
    wanted = {target.id: target.after for target in TARGETS} | {tp("orders-0"): (1, 2), tp("orders-9"): (1, 2)}
    file.write_text(placements_json(wanted))
    named = MOVE.id if what == "plan" else str(file)
    of_brokers = here("reassign", "verify", named, "-o", "json", *options(journal))
    of_agent = here("--agent", f"http://{agent.address}", "reassign", "verify", named, "-o", "json")
    assert json.loads(of_agent.stdout) == json.loads(of_brokers.stdout) != []
    assert of_agent.exit_code == of_brokers.exit_code == 1
    throttled = [[line for line in one.stderr.splitlines() if "throttled" in line] for one in (of_agent, of_brokers)]
    assert throttled[0] == throttled[1]
    assert bool(throttled[0]) == (what == "plan")


def test_a_file_whose_replicas_are_in_place_ends_with_0(here: Run, agent: WebServer, tmp_path: Path) -> None:
    file = tmp_path / "moves.json"
    file.write_text(placements_json({tp("orders-0"): (1, 2), tp("clicks-0"): (1, 2, 3)}))
    done = here("--agent", f"http://{agent.address}", "reassign", "verify", str(file), "-o", "json")
    assert [row["state"] for row in json.loads(done.stdout)] == ["done", "done"]
    assert done.exit_code == 0


def test_a_topic_that_the_agent_does_not_show_is_not_said_to_be_gone(
    here: Run, agent: WebServer, tmp_path: Path
) -> None:
    file = tmp_path / "moves.json"
    file.write_text(placements_json({tp("elsewhere-0"): (1, 2)}))
    done = here("--agent", f"http://{agent.address}", "reassign", "verify", str(file), "-o", "json")
    (row,) = json.loads(done.stdout)
    assert (row["state"], row["replicas"], done.exit_code) == ("unknown", None, 1)


def test_a_journal_that_the_agent_cannot_read_leaves_a_plan_unknown(here: Run) -> None:
    def read() -> JournalState:
        raise JournalUnavailable("the journal cannot be read", why="no answer in 3000 ms")

    with server_of(view_of(cycle_of(a_cluster().at()), journal=read)) as server:
        done = here("--agent", f"http://{server.address}", "reassign", "verify", MOVE.id)
    assert done.exit_code == 5
    assert "no answer in 3000 ms" in done.stderr


# --- top -----------------------------------------------------------------------------------------------------------


class SteppingAgent:
    """An agent that has finished another look each time that a client has waited."""

    def __init__(self) -> None:
        self.cycle: Cycle = cycle_of(a_cluster().at(0))
        self.view = view_of(None, state=lambda: state_of(self.cycle))

    def step(self) -> None:
        number = self.cycle.number + 1
        self.cycle = cycle_of(a_cluster().at(10 * (number - 1)), number=number)


def test_top_shows_each_look_of_the_agent_once(here: Run, agent: WebServer, recorded: Path) -> None:
    of_file = here("top", "-o", "jsonl", "--replay", str(recorded))
    of_agent = here("--agent", f"http://{agent.address}", "top", "--count", "1", "-o", "jsonl")
    assert of_the_look(json.loads(of_agent.stdout)) == of_the_look(json.loads(of_file.stdout))
    assert of_agent.exit_code == 0


def test_top_goes_on_with_the_looks_of_the_agent_and_over_an_outage() -> None:
    stepping = SteppingAgent()
    waits = iter(range(100))
    with server_of(stepping.view) as server:

        def wait(_until: float) -> bool:
            if next(waits) == 3:
                stepping.step()
            return False

        agent_api.taken_off(["--agent", f"http://{server.address}", "top"], {})
        looks = top._of_an_agent(1_000, wait)
        first, second = next(looks), next(looks)
        assert isinstance(first, ShownLook)
        assert isinstance(second, ShownLook)
        assert second.document["taken_ms"] - first.document["taken_ms"] == 10_000
        assert next(waits) > 3, "the same look was not shown again"
    assert isinstance(next(looks), RackwiseError)
    looks.close()


# --- lists of one look ---------------------------------------------------------------------------------------------


@pytest.fixture
def paged() -> Iterator[Callable[[list[str]], tuple[str, list[int]]]]:
    """A server with a list of three pages, each of the cycle that comes next in the given ones; the last one stays."""
    servers: list[HTTPServer] = []

    def serve(cycles: list[str]) -> tuple[str, list[int]]:
        asked: list[int] = []

        class Pages(BaseHTTPRequestHandler):
            """Answers with a page."""

            def do_GET(self) -> None:
                """Answer."""
                page = int(parse_qs(urlsplit(self.path).query).get("cursor", ["0"])[0])
                asked.append(page)
                cycle = cycles.pop(0) if len(cycles) > 1 else cycles[0]
                row = {"setting": f"{page} of {cycle}", "value": 1, "origin": "default"}
                body = json.dumps({"items": [row], "total": 3, "next": None if page == 2 else str(page + 1)}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.send_header("rackwise-cycle", cycle)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = HTTPServer(("127.0.0.1", 0), Pages)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}", asked

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_pages_of_two_looks_are_not_put_together(
    here: Run, paged: Callable[[list[str]], tuple[str, list[int]]]
) -> None:
    url, asked = paged(["1", "1", "2", "2", "2", "2"])
    done = here("--agent", url, "config", "show", "-o", "json")
    assert [row["setting"] for row in json.loads(done.stdout)] == ["0 of 2", "1 of 2", "2 of 2"]
    assert asked == [0, 1, 2, 0, 1, 2]


def test_a_list_that_changes_twice_while_it_is_read_ends_with_5(
    here: Run, paged: Callable[[list[str]], tuple[str, list[int]]]
) -> None:
    url, asked = paged(["1", "2", "2", "3", "3"])
    done = here("--agent", url, "config", "show", "-o", "json")
    assert (done.exit_code, done.stdout, asked) == (5, "", [0, 1, 0, 1])
    assert "a new look came between the pages of a list, also when it was read again" in done.stderr


def test_documents_of_two_looks_are_not_put_together(here: Run) -> None:
    """An agent that has a new look at each request: a command says so, and shows no mixture."""
    first, numbers = cycle_of(a_cluster().at()), iter(range(1, 10_000))

    def state() -> object:
        number = next(numbers)
        cycle = replace(first, number=number, look=f"look-{number}", snapshot=replace(
            first.snapshot, taken_ms=first.snapshot.taken_ms + 3_600_000 * number
        ))  # fmt: skip
        return state_of(cycle)

    with server_of(view_of(first, state=state)) as server:  # type: ignore[arg-type] # a state all the same
        done = here("--agent", f"http://{server.address}", "racks", "-o", "json")
    assert (done.exit_code, done.stdout) == (5, "")
    assert "changed while it was read" in done.stderr


def test_requests_that_come_too_fast_are_sent_again_later(here: Run) -> None:
    bounds = ServerBounds(per_s=1.5, burst=1)
    with server_of(view_of(cycle_of(a_cluster().at())), bounds=bounds) as server:
        done = here("--agent", f"http://{server.address}", "racks", "-o", "json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)
