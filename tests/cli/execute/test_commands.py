"""Commands to the agent that acts, over a real journal file and a real spool directory."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from agent.act.journal.file_journal import read_file
from agent.act.lease import LeadershipPlan
from agent.act.own_files import people
from agent.cli import running_agents
from agent.cli.proposals import what_is_approved
from agent.cli.running_agents import as_of
from agent.errors import JournalUnavailable
from agent.journal.approvals import approval_of, plan_hash
from agent.journal.commands import pause_in
from agent.journal.entries import JournalState
from agent.values.clock import system_clock
from agent.values.limits import ApproveLimits, Limits
from agent.values.reassignment import PlanState
from tests.builders import an_observation
from tests.cli.conftest import Run
from tests.cli.execute.file_agent import EMPTY_JOURNAL, MOVE, NOW_MS, Start, options, plan, write_journal
from tests.command import Done

# --- listing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [pytest.param((), id="alone"), pytest.param(("list",), id="by its verb")])
def test_proposals_are_listed_with_and_without_the_verb(here: Run, path: Path, verb: tuple[str, ...]) -> None:
    done = here("proposals", *verb, "-o", "json", "-b", EMPTY_JOURNAL)
    assert (done.exit_code, done.stderr) == (0, "")
    assert [row["id"] for row in done.json] == [MOVE.id]


OVER = MOVE._replace(id="p-0123456789ab", created_ms=NOW_MS - 8 * 86_400_000, expires_ms=NOW_MS - 7 * 86_400_000)


def test_a_proposal_that_was_not_published_again_in_time_is_not_listed_as_open(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.daemon.start.read_proposals", lambda _loaded, _tell: (OVER, MOVE))
    done = here("proposals", "-o", "json", "-b", EMPTY_JOURNAL)
    assert [row["id"] for row in done.json] == [MOVE.id]
    assert done.stderr == f"1 proposal left out, not published again in time: {OVER.id} expired 7 days ago\n"


def test_it_cannot_be_approved_either(here: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.daemon.start.read_proposals", lambda _loaded, _tell: (OVER, MOVE))
    done = here("proposals", "approve", OVER.id, "--yes", *options(path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{OVER.id} is not open any more\n  why: it expired 7 days ago, and no agent" in done.stderr
    begun = here("proposals", "approve", OVER.id[:-1], "--yes", *options(path))
    assert OVER.id not in begun.stderr, "it is not among the open ones"


def test_a_published_proposal_says_how_old_its_figures_are(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seven_min_ago = MOVE._replace(created_ms=system_clock().wall_ms - 7 * 60_000 - 5_000)
    monkeypatch.setattr("agent.daemon.start.read_proposals", lambda _loaded, _tell: (seven_min_ago,))
    shown = " ".join(here("proposals", "-o", "table", "-b", EMPTY_JOURNAL).stdout.split())
    assert "7 min ago" in shown
    assert "figures" in shown


@pytest.mark.parametrize(
    ("made_ms", "now_ms", "says"),
    [
        (33_243_000, 33_663_000, "figures of 09:14:03Z, 7 min ago"),
        (33_243_000, 33_243_000 + 86_400_000, "figures of 1970-01-01 09:14:03Z, 24 h ago"),
        (33_243_000, 33_242_000, "figures of 09:14:03Z, 0 s ago"),
    ],
)
def test_of_when_figures_are(made_ms: int, now_ms: int, says: str) -> None:
    assert as_of(made_ms, now_ms) == says


def test_options_before_a_verb_are_not_left_aside_silently(here: Run, path: Path) -> None:
    done = here("proposals", "-b", EMPTY_JOURNAL, "history")
    assert done.exit_code == 2
    assert "Options of history are given before history" in done.stderr


# --- explaining -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "rules", "last"),
    [
        pytest.param("propose", ["mode execute"], "mode is propose, a dry run", id="a dry run"),
        pytest.param(
            "execute",
            [
                "leading",
                "right cluster",
                "not in progress",
                "not paused",
                "not excluded",
                "window open",
                "cooldown of plans over",
                "batches of plans left",
                "approved",
            ],
            "attempt 2: it is not approved; approve it with: rackwise proposals approve",
            id="every check of mode execute, with its numbers",
        ),
    ],
)
def test_explain_shows_what_the_guard_says(  # noqa: PLR0917 (fixtures, then the table's columns)
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, rules: list[str], last: str
) -> None:
    write_journal(path, *plan(PlanState.DONE))
    answers = an_observation(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 4), (2, 3), min_insync_replicas="1")
    monkeypatch.setattr("agent.observe.observe_cluster.observe", lambda *_: answers.at())
    weightless = ("--set", "weights.enabled=false")
    done = here("explain", "topic/t", "--set", f"mode={mode}", "-o", "json", *weightless, *options(path))
    said = [row for row in done.json if row["rule"] in rules]
    assert [row["rule"] for row in said] == rules, done.json
    assert said[-1]["sentence"].startswith(last)


# --- asking -----------------------------------------------------------------------------------------------------


def test_a_person_approves_exactly_what_was_published(here: Run, path: Path, start: Start) -> None:
    agent = start()
    done = here(
        "proposals", "approve", MOVE.id, "--yes", "--reason", "quiet now", "--throttle", "5MB/s", "--max-moves", "2",
        "-o", "json", *options(path),
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert done.json["done"] is True
    assert done.json["sentence"].startswith(f"approved by {running_agents.who()} at 5.0 MB/s per broker")
    *what, figures = done.stderr.splitlines()
    assert tuple(what) == what_is_approved(MOVE)
    assert re.fullmatch(r"as published: 1\.0 kB to copy, \$/day unknown; figures of .*Z, .* ago", figures)
    given = approval_of(agent.journal.view(), MOVE.id)
    assert given is not None
    assert (given.plan_hash, given.by, given.reason) == (plan_hash(MOVE), running_agents.who(), "quiet now")
    assert (given.throttle_bytes_per_s, given.max_moves) == (5_000_000, 2)


def test_pause_and_resume_outlive_the_agent(here: Run, path: Path, start: Start) -> None:
    agent = start()
    done = here("pause", "--reason", "sale", "-o", "json", *options(path))
    assert (done.exit_code, done.json["sentence"]) == (
        0,
        "acting is paused (sale): nothing new begins, moves in progress and observing continue",
    )
    agent.close()
    assert pause_in(read_file(path).view) is not None
    again = start()
    assert here("resume", *options(path)).exit_code == 0
    assert pause_in(again.journal.view()) is None


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        pytest.param(("proposals", "approve", "p-nothing", "--yes"), 2, "no proposal p-nothing", id="no such one"),
        pytest.param(
            ("proposals", "approve", MOVE.id[:7], "--yes"), 2,
            f"Open proposals that begin with {MOVE.id[:7]}: {MOVE.id}.", id="the beginning of an id",
        ),
        pytest.param(
            ("proposals", "approve", MOVE.id), 2, "Confirmation is needed", id="no --yes, no terminal"
        ),
        pytest.param(
            ("proposals", "approve", MOVE.id, "--yes", "--throttle", "fast"), 2, "fast is not a rate", id="no rate"
        ),
        pytest.param(
            ("proposals", "approve", MOVE.id, "--yes", "--throttle", "1kB"), 4,
            "do:  Give --throttle 1MB/s or more, or lower execute.throttle_floor.",
            id="a rate that is refused",
        ),
        pytest.param(
            ("proposals", "cancel", "p-x", "--yes"), 2, "no proposal p-x is known", id="nothing to cancel"
        ),
        pytest.param(
            ("reassign", "rollback", MOVE.id, "--yes"), 4, "has not begun, so there is nothing", id="nothing to undo"
        ),
        pytest.param(("reassign", "status", "p-x"), 2, "The journal has no plan p-x", id="no such plan"),
        pytest.param(("reassign", "verify", "p-x"), 2, "The journal has no plan p-x", id="nothing to verify"),
        pytest.param(("pause", "p-x"), 2, "no proposal p-x is known", id="nothing to pause"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_in_a_sentence_with_its_exit_code(  # noqa: PLR0917 (fixtures, then the table's columns)
    here: Run, path: Path, start: Start, arguments: tuple[str, ...], code: int, says: str
) -> None:
    start()
    done = here(*arguments, *options(path))
    assert (done.exit_code, says in done.stderr) == (code, True), done.stderr
    assert done.stdout == ""


def test_a_second_person_is_one_with_another_key(
    here: Run, path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {name: path.with_name(f"{name}.key") for name in ("ann", "bob")}
    for name, file in files.items():
        file.write_text(f"the very own key of {name}\n")
        file.chmod(0o600)
    start(Limits(approve=ApproveLimits(second_person=True)), people({name: str(file) for name, file in files.items()}))

    def approve(name: str, *more: str) -> Done:
        who = ("--set", f"operator.name={name}", "--set", f"operator.key_file={files['ann' if more else name]}")
        return here("proposals", "approve", MOVE.id, "--yes", "-o", "json", *options(path), *who)

    assert "requested by ann; a second person has to approve it" in approve("ann").json["sentence"]
    monkeypatch.setattr(running_agents, "who", lambda: "bob@desk")
    again = approve("ann")
    assert (again.exit_code, "another person must approve it" in again.stderr) == (4, True), "by another name"
    assert approve("bob", "with the key of ann").exit_code == 4
    assert approve("bob").json["sentence"].startswith("approved by bob, requested by ann")


# --- no leader ---------------------------------------------------------------------------------------------------


def test_where_no_agent_ever_led_nothing_is_asked(here: Run, path: Path) -> None:
    path.write_text("")
    done = here("pause", *options(path))
    assert done.exit_code == 1
    assert done.stderr.startswith("rackwise: No agent leads, and none has led yet")
    assert not path.with_name("journal.commands").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("proposals", "approve", MOVE.id, "--yes"),
        ("proposals", "history"),
        ("pause",),
        ("reassign", "verify", MOVE.id),
    ],
)
def test_where_there_is_no_journal_an_agent_that_acts_is_missing_and_not_any_agent(
    here: Run, path: Path, arguments: tuple[str, ...]
) -> None:
    done = here(*arguments, *options(path))
    assert done.exit_code == 2
    assert "why: no agent in mode execute has run here; a dry run carries nothing out" in done.stderr
    assert re.search(r"do: +Start an agent that acts: rackwise run .*--mode execute; or check that ", done.stderr)
    assert "or check that execute.journal_file is that of the agents" in done.stderr


def test_an_id_that_is_unknown_is_no_matter_of_a_journal_that_does_not_exist(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = an_observation(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 4))
    monkeypatch.setattr("agent.observe.observe_cluster.observe", lambda *_: answers.at())
    done = here("explain", "p-0123456789ab", "--as-configured-here", "--set", "weights.enabled=false", *options(path))
    assert (done.exit_code, "p-0123456789ab is unknown" in done.stderr) == (2, True)
    assert "journal" not in done.stderr.partition("do:")[0]


def test_a_command_that_was_sent_is_said_to_wait_where_the_journal_cannot_be_read_afterwards(
    here: Run, path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    start().close()
    read, reads = running_agents.journal, []

    def once(plan: LeadershipPlan) -> JournalState:
        reads.append(plan)
        if len(reads) > 1:
            raise JournalUnavailable("The journal could not be read", why="no answer in time")
        return read(plan)

    monkeypatch.setattr(running_agents, "journal", once)
    done = here("pause", "--wait", "1", *options(path))
    assert done.exit_code == 1
    assert "No agent answered within 1 s" in done.stderr
    assert "the journal, where the answer is written, cannot be read: no answer in time" in done.stderr
    assert "the command was sent, and the leading agent may still carry it out" in done.stderr
    assert len(list(path.with_name("journal.commands").iterdir())) == 1


def test_where_nobody_answers_the_command_waits_and_says_so(here: Run, path: Path, start: Start) -> None:
    start().close()
    done = here("pause", "--wait", "1", *options(path))
    assert done.exit_code == 1
    assert "No agent answered within 1 s" in done.stderr
    assert "rw-1 on here, the last leading agent, did not answer" in done.stderr
    start()
    for _ in range(200):
        if pause_in(read_file(path).view) is not None:
            break
        threading.Event().wait(0.02)
    assert pause_in(read_file(path).view) is not None, "the next agent obeys it"
