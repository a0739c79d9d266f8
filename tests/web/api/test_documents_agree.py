"""What a command prints with ``-o json`` and what the API answers for the same look are the same document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from agent.act.journal.file_journal import read_file
from agent.cli.session import _whole_looks
from agent.errors import JournalUnavailable
from agent.journal.entries import JournalState
from agent.telemetry.events import to_lines
from agent.values.limits import Limits, PriceLimits
from agent.values.memory import Memory
from config.foreign_text import segment_of
from tests.cli.conftest import Run
from tests.cli.documents import MOVE, a_cluster, journal_of
from tests.cli.execute.file_agent import options
from tests.recorded_looks import observation_to_events
from tests.web.api.agents import cycle_of, view_of
from tests.web.api.servers import client_of

LIMITS = Limits(price=PriceLimits(usd_per_gb=0.02))
ROUTES: dict[tuple[str, ...], str] = {
    ("status",): "/cluster",
    ("racks",): "/racks",
    ("groups",): "/groups",
    ("groups", "app"): "/groups/app",
    ("groups", "billing"): "/groups/billing",
    ("topics",): "/topics",
    ("topics", "orders"): "/topics/orders",
    ("doctor",): "/doctor",
    ("plan",): "/proposals",
    ("explain", "topic/t"): "/explain?subject=topic/t",
    ("explain", "group/billing"): "/explain?subject=group/billing",
    ("explain", "broker/1"): "/explain?subject=broker/1",
    ("top",): "/money",
}
"""A command that reads one look, as it is typed, and the route that answers the same."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The telemetry file of one look."""
    path = tmp_path_factory.mktemp("look") / "telemetry.jsonl"
    events = observation_to_events(a_cluster().at(), Memory(), LIMITS, look="l-1")
    path.write_text("".join(f"{line}\n" for event in events for line in to_lines(event)))
    return path


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal with a plan, batches and throttles."""
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    journal_of(path)
    return path


@pytest.fixture(scope="module")
def api(recorded: Path, journal: Path) -> Iterator[httpx.Client]:
    """The API of an agent whose last look is the recorded one."""
    look = _whole_looks(recorded)[-1]

    def read() -> JournalState:
        return read_file(journal).view

    with client_of(view_of(cycle_of(look.observation, look.memory, look.limits), journal=read)) as client:
        yield client


def answered(api: httpx.Client, path: str) -> Any:
    """The document of a route, of a list all rows."""
    joined = "&" if "?" in path else "?"
    rows: list[Any] = []
    cursor = ""
    whole = api.get(f"/api/v1{path}")
    assert whole.status_code == 200, whole.text
    if "items" not in whole.json():
        return whole.json()
    while True:
        answer = api.get(f"/api/v1{path}{joined}limit=2{cursor}")
        assert answer.status_code == 200, answer.text
        document = answer.json()
        rows += document["items"]
        if document["next"] is None:
            assert len(rows) == document["total"]
            return rows
        cursor = f"&cursor={quote(document['next'])}"


def of_the_look(document: Any) -> Any:
    """The document without who measured, how long it took, and the agent's report of itself."""
    match document:
        case dict():
            if document.get("rule") == "journal":  # a file has no journal, and an agent reads its own in mode execute
                return {**document, "sentence": document["sentence"].partition(": ")[2]}
            rest = {name: value for name, value in document.items() if name not in {"took_ms", "agent"}}
            return {name: "..." if name == "rates" else of_the_look(value) for name, value in rest.items()}
        case list():
            return [of_the_look(one) for one in document]
    return document


@pytest.mark.parametrize(("typed", "path"), ROUTES.items(), ids=[" ".join(typed) for typed in ROUTES])
def test_a_command_and_its_route_give_the_same_document(
    here: Run, api: httpx.Client, recorded: Path, typed: tuple[str, ...], path: str
) -> None:
    form = "json" if typed != ("top",) else "jsonl"
    count = ("--count", "1") if typed == ("top",) else ()
    printed = here(*typed, "-o", form, "--replay", str(recorded), *count)
    assert printed.exit_code == 0, printed.stderr
    assert of_the_look(answered(api, path)) == of_the_look(json.loads(printed.stdout))


def test_every_group_is_compared_as_plan_compares_it(here: Run, api: httpx.Client, recorded: Path) -> None:
    printed = here("plan", "--groups", "-o", "json", "--replay", str(recorded))
    for row in json.loads(printed.stdout):
        assert answered(api, f"/groups/{segment_of(row['group'])}/comparison") == row


def test_the_tasks_of_a_group_are_those_of_its_document(api: httpx.Client) -> None:
    assert answered(api, "/groups/app/tasks") == answered(api, "/groups/app")["task_list"] != []


def test_the_journal_is_as_the_commands_show_it(here: Run, api: httpx.Client, journal: Path) -> None:
    printed = json.loads(here("proposals", "history", "-o", "json", *options(journal)).stdout)
    assert answered(api, "/journal/history") == printed != []
    about = [row for row in printed if row["about"] == MOVE.id]
    assert answered(api, f"/proposals/{MOVE.id}/history") == about != []


def test_a_plan_in_progress_is_shown_with_what_the_brokers_report(api: httpx.Client) -> None:
    status = answered(api, "/reassignments")
    assert [plan["plan"] for plan in status["plans"]] == [MOVE.id]
    assert [(move["partition"], move["ours"]) for move in status["reassignments"]] == [("t-1", True)]
    assert status["journal"] == "rackwise.journal"
    assert {row["key"] for row in status["throttles"]} == {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.replicas",
    }


def test_the_settings_are_those_of_config_show(here: Run, api: httpx.Client) -> None:
    printed = here("config", "show", "--origin", "-o", "json", "--set", "kafka.bootstrap.servers=127.0.0.1:1")
    assert answered(api, "/settings") == json.loads(printed.stdout)


def test_a_proposal_has_its_changes_its_verdict_and_its_rules(api: httpx.Client) -> None:
    for proposal in answered(api, "/proposals"):
        details = answered(api, f"/proposals/{proposal['id']}")
        assert details["proposal"] == proposal
        assert details["verdict"] in answered(api, "/verdicts")
        assert {rule["about"] for rule in details["rules"]} & {proposal["id"]}
        for change in details["changes"]:
            assert change["before"] != change["after"]
        assert len(details["plan_hash"]) >= 16


def test_the_look_says_what_is_true_of_all_documents(api: httpx.Client) -> None:
    look = answered(api, "/look")
    assert (look["cycle"], look["look"], look["priced"], look["partial"]) == (1, "look-1", True, False)
    assert look["journal"] == {"name": "rackwise.journal", "known": True, "why": None}
    assert look["price_sentence"].startswith("money: at $0.02")


def test_what_a_journal_that_cannot_be_read_says_is_unknown() -> None:
    def read() -> JournalState:
        raise JournalUnavailable("the journal cannot be read", why="no answer in 3000 ms")

    with client_of(view_of(cycle_of(a_cluster().at()), journal=read)) as client:
        for path in ("/journal/history", f"/proposals/{MOVE.id}/history"):
            answer = client.get(f"/api/v1{path}")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
            assert "no answer in 3000 ms" in answer.json()["detail"]
        status = answered(client, "/reassignments")
        assert (status["journal"], {move["ours"] for move in status["reassignments"]}) == ("not readable", {None})
        assert answered(client, "/look")["journal"]["known"] is False
        for proposal in answered(client, "/proposals"):
            assert answered(client, f"/proposals/{proposal['id']}")["history"] is None
