"""What people say to the agent that acts, over a real journal file and a real spool directory.

The agent is the real inbox, journal and `apply_commands`, in a thread; only the proposals topic is given, as it needs
brokers.
"""

from __future__ import annotations

import json
import re
import shlex
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType

import pytest

from agent.act.commands.inbox import SpoolInbox
from agent.act.journal.file_journal import FileJournal, read_file
from agent.act.lead.leadership_plan import LeadershipPlan
from agent.act.own_files import people
from agent.cli import ask, follow
from agent.cli.proposals import what_is_approved
from agent.cli.records import head_row, plan_rows, throttle_line, throttle_rows
from agent.cli.running_agents import as_of
from agent.errors import JournalUnavailable
from agent.execute.commands.apply import apply_commands
from agent.execute.commands.identity import OperatorKeys
from agent.journal import plan_entries
from agent.journal.approvals import approval_of, plan_hash, voided, written
from agent.journal.commands import pause_in
from agent.journal.leader import LeaderEntry
from agent.values.clock import system_clock
from agent.values.journal import JournalState
from agent.values.kafka import LEADER_RATE, LEADER_REPLICAS
from agent.values.limits import ApproveLimits, Limits
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
    ThrottleDebt,
)
from agent.values.throttles import ThrottleResource
from tests.builders import an_observation
from tests.cli.conftest import Run
from tests.command import Done
from tests.guard.test_judge import proposals_of, shared
from tests.snapshots import tp

NOW_MS = system_clock().wall_ms
(_MADE,) = proposals_of(shared().snapshot())
MOVE = _MADE._replace(created_ms=NOW_MS, expires_ms=NOW_MS + 3_600_000)
"""As it is published again and again while the agent proposes it."""
TARGETS = (
    ReassignmentTarget(tp("t-0"), "id", (1, 4), (1, 2), 1_000),
    ReassignmentTarget(tp("t-1"), "id", (2, 3), (3, 2), 1_000),
)
EMPTY_JOURNAL = "127.0.0.1:1"


class FileAgent:
    """An agent of a single host that only obeys."""

    def __init__(self, path: Path, limits: Limits, people: OperatorKeys = MappingProxyType({})) -> None:
        self.journal = FileJournal.open(path, LeaderEntry("rw-1", "here", 1, "cluster", 0))
        self._inbox = SpoolInbox(path.with_name(f"{path.name}.commands"))
        self._limits, self._people = limits, people
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            view = self.journal.view()
            now_ms = system_clock().wall_ms
            result = apply_commands(self._inbox.read(view), view, (MOVE,), self._limits, now_ms, people=self._people)
            if result.writes:
                self.journal.append(*result.writes)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self.journal.close()


Start = Callable[..., FileAgent]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the journal is; what stands in the proposals topic is one proposal."""
    monkeypatch.setattr("agent.daemon.start.read_proposals", lambda _loaded, _tell: (MOVE,))
    monkeypatch.setattr(ask, "POLL_S", 0.02)
    monkeypatch.setattr(follow, "POLL_S", 0.02)
    return tmp_path / "journal"


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    """Starts an agent, once at a time."""
    running: list[FileAgent] = []

    def begin(limits: Limits | None = None, people: OperatorKeys = MappingProxyType({})) -> FileAgent:
        running.append(FileAgent(path, limits or Limits(), people))
        return running[-1]

    yield begin
    for agent in running:
        agent.close()


def options(path: Path) -> tuple[str, ...]:
    return (
        "--set", "execute.journal=file", "--set", f"execute.journal_file={path}",
        "--set", "observe.call_timeout=200ms", "--set", "observe.deadline=1s", "-b", EMPTY_JOURNAL,
    )  # fmt: skip


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
        pytest.param("propose", ["mode"], "mode is propose, a dry run", id="a dry run"),
        pytest.param(
            "execute",
            ["leading", "cluster", "begun", "paused", "left out", "window", "cooled down", "batches", "approval"],
            "attempt 2: it is not approved; approve it with: rackwise proposals approve",
            id="every check of mode execute, with its numbers",
        ),
    ],
)
def test_explain_shows_what_the_guard_says(  # noqa: PLR0917 (fixtures, then the table's columns)
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, rules: list[str], last: str
) -> None:
    given(path, *plan(PlanState.DONE))
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
    assert done.json["sentence"].startswith(f"approved by {ask.who()} at 5.0 MB/s per broker")
    *what, figures = done.stderr.splitlines()
    assert tuple(what) == what_is_approved(MOVE)
    assert re.fullmatch(r"as published: 1\.0 kB to copy, \$/day unknown; figures of .*Z, .* ago", figures)
    given = approval_of(agent.journal.view(), MOVE.id)
    assert given is not None
    assert (given.plan_hash, given.by, given.reason) == (plan_hash(MOVE), ask.who(), "quiet now")
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
    monkeypatch.setattr(ask, "who", lambda: "bob@desk")
    again = approve("ann")
    assert (again.exit_code, "another person must approve it" in again.stderr) == (4, True), "by another name"
    assert approve("bob", "with the key of ann").exit_code == 4
    assert approve("bob").json["sentence"].startswith("approved by bob, requested by ann")


# --- nobody there -----------------------------------------------------------------------------------------------


def test_where_nobody_ever_led_nothing_is_asked(here: Run, path: Path) -> None:
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
    read, reads = ask.journal, []

    def once(plan: LeadershipPlan) -> JournalState:
        reads.append(plan)
        if len(reads) > 1:
            raise JournalUnavailable("The journal could not be read", why="no answer in time")
        return read(plan)

    monkeypatch.setattr(ask, "journal", once)
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


# --- what the journal tells -------------------------------------------------------------------------------------


def plan(state: PlanState, sentence: str = "") -> tuple[ReassignmentPlan, Batch]:
    ends = (PartitionEnd(tp("t-0"), PartitionEndReason.DONE),)
    batch = Batch(MOVE.id, 1, TARGETS[:1], BatchState.CLOSED, ends=ends)
    return ReassignmentPlan(MOVE.id, TARGETS, state, approved_by="ann@desk", sentence=sentence), batch


def given(path: Path, *changes: ReassignmentPlan | Batch | ThrottleDebt) -> None:
    journal = FileJournal.open(path, LeaderEntry("rw-1", "here", 1, "cluster", 0))
    journal.append(*(line for change in changes for line in plan_entries.change_writes(change)))
    journal.close()


def test_history_tells_what_was_said_and_done(here: Run, path: Path, start: Start) -> None:
    agent = start()
    here("proposals", "approve", MOVE.id, "--yes", *options(path))
    agent.journal.append(
        *(line for change in plan(PlanState.DONE, "all is there") for line in plan_entries.change_writes(change))
    )
    here("pause", "--reason", "sale", *options(path))
    rows = here("proposals", "history", "-o", "json", *options(path)).json
    assert {(row["what"], row["about"], row["state"]) for row in rows} == {
        ("approve", MOVE.id, "done"),
        ("plan", MOVE.id, "done"),
        ("pause", None, "done"),
    }
    assert {row["who"] for row in rows} == {ask.who(), "ann@desk"}


@pytest.mark.parametrize(
    ("state", "sentence", "code", "told"),
    [
        pytest.param(PlanState.DONE, "", 0, "done: 1 of 2 partitions done, 0 moving", id="done"),
        pytest.param(PlanState.CANCELLED, "told so", 1, "1 of 2 partitions done, 0 moving; told so", id="cancelled"),
        pytest.param(PlanState.FAILED, "a broker is gone", 1, "; a broker is gone", id="failed"),
    ],
)
def test_apply_shows_how_it_ended(path: Path, state: PlanState, sentence: str, code: int, told: str) -> None:
    given(path, *plan(state, sentence))
    found = follow.state_of(read_file(path).view, MOVE.id)
    assert (found.code, told in found.sentence) == (code, True), found


def test_apply_goes_on_until_the_plan_ends_and_leaves_with_its_exit_code(here: Run, path: Path, start: Start) -> None:
    agent = start()
    done = plan(PlanState.DONE)

    def carry_out() -> None:
        while approval_of(agent.journal.view(), MOVE.id) is None:
            threading.Event().wait(0.02)
        agent.journal.append(*plan_entries.change_writes(done[0]._replace(state=PlanState.OPEN)))
        threading.Event().wait(0.3)
        agent.journal.append(*(line for change in done for line in plan_entries.change_writes(change)))

    executor = threading.Thread(target=carry_out)
    executor.start()
    shown = here("proposals", "apply", MOVE.id, "--yes", *options(path))
    executor.join()
    assert shown.exit_code == 0, shown.stderr
    assert "done: 1 of 2 partitions done" in shown.stderr.splitlines()[-1]


def test_who_stops_looking_stops_nothing(here: Run, path: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = start()

    def interrupted(_seconds: float) -> None:
        if approval_of(agent.journal.view(), MOVE.id) is not None:
            raise KeyboardInterrupt
        threading.Event().wait(0.02)

    monkeypatch.setattr(follow, "_sleep", interrupted)
    done = here("proposals", "apply", MOVE.id, "--yes", *options(path))
    assert done.exit_code == 130
    *settings, _, servers = options(path)
    given = shlex.join(["-b", servers, *settings])
    assert done.stderr.splitlines()[-1] == (
        f"{MOVE.id} continues, only its progress is no longer shown; show it with: rackwise reassign status {given}; "
        f"cancel it with: rackwise proposals cancel {given} {MOVE.id}"
    )
    approved = approval_of(agent.journal.view(), MOVE.id)
    assert approved is not None
    assert approved.state.value == "approved"


def test_kafkas_own_file_of_a_plan(here: Run, path: Path, tmp_path: Path) -> None:
    given(path, *plan(PlanState.OPEN))
    forth, back = tmp_path / "forth.json", tmp_path / "back.json"
    here("reassign", "status", MOVE.id, "--reassignment-json", str(forth), "--rollback-json", str(back), *options(path))
    assert json.loads(forth.read_text())["partitions"] == [
        {"topic": "t", "partition": 0, "replicas": [1, 2]},
        {"topic": "t", "partition": 1, "replicas": [3, 2]},
    ]
    assert [row["replicas"] for row in json.loads(back.read_text())["partitions"]] == [[1, 4], [2, 3]]


def test_rows_of_plans_and_throttles(path: Path) -> None:
    moving = Batch(MOVE.id, 2, TARGETS[1:], BatchState.ACKED, rate_bytes_per_s=7)
    rate = ThrottleDebt(ThrottleResource("broker", "1"), LEADER_RATE, "50000000", None, MOVE.id, 2)
    replicas = ThrottleDebt(ThrottleResource("topic", "t"), LEADER_REPLICAS, "0:1,0:4", None, MOVE.id, 2)
    given(path, *plan(PlanState.OPEN), moving, rate, replicas)
    view = read_file(path).view
    (row,) = plan_rows(view)
    assert (row["state"], row["done"], row["moving"], row["rate_bytes_per_s"]) == ("open", 1, 1, 7)
    assert head_row(view) == {"leader": "rw-1 on here", "paused": None}
    assert throttle_rows(view) == [
        {
            "resource_kind": "broker", "resource": "1", "key": LEADER_RATE, "rate_bytes_per_s": 50_000_000,
            "replicas": None, "plan": MOVE.id,
        },
        {
            "resource_kind": "topic", "resource": "t", "key": LEADER_REPLICAS, "rate_bytes_per_s": None,
            "replicas": ["0:1", "0:4"], "plan": MOVE.id,
        },
    ]  # fmt: skip
    assert [throttle_line(row) for row in throttle_rows(view)] == [
        "broker 1: leader.replication.throttled.rate 50.0 MB/s (rackwise)",
        "topic t: leader.replication.throttled.replicas for 2 replicas (rackwise)",
    ]


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        pytest.param({"max_moves": 1, "throttle_bytes_per_s": 1_000_000},
                     "move back at 1.0 MB/s per broker and 1 partition at a time", id="its own"),
        pytest.param({}, "move back with the limits of the settings", id="none"),
    ],
)  # fmt: skip
def test_a_rollback_says_before_it_asks_how_many_partitions_move_back_at_a_time(
    here: Run, path: Path, limits: dict[str, int], says: str
) -> None:
    done, batch = plan(PlanState.DONE)
    given(path, done._replace(**limits), batch)
    asked = here("reassign", "rollback", MOVE.id, *options(path))
    assert asked.stderr.splitlines()[0] == f"{MOVE.id}: 2 partitions, done; those that have moved {says}"
    assert "Confirmation is needed" in asked.stderr


def test_history_has_an_approval_once_and_a_state_once(here: Run, path: Path, start: Start) -> None:
    agent = start()
    here("proposals", "apply", MOVE.id, "--yes", "--throttle", "1kB", *options(path))
    here("proposals", "approve", MOVE.id, "--yes", *options(path))
    rows = here("proposals", "history", "-o", "json", *options(path)).json
    assert [(row["what"], row["state"]) for row in rows] == [("apply", "refused"), ("approve", "done")]
    assert rows[0]["sentence"].startswith("a rate of 1.0 kB/s is not between")
    assert rows[1]["sentence"].startswith("approved by ")
    approval = approval_of(agent.journal.view(), MOVE.id)
    assert approval is not None
    agent.journal.append(written(voided(approval, approval.at_ms + 1, "it expired")))
    rows = here("proposals", "history", "-o", "json", *options(path)).json
    assert [(row["what"], row["state"]) for row in rows] == [
        ("apply", "refused"), ("approve", "done"), ("approval", "void"),
    ]  # fmt: skip
    assert rows[2]["sentence"] == "it expired"


@pytest.mark.parametrize(
    ("state", "later_ms", "told"),
    [
        pytest.param(PlanState.DONE, 0, True, id="done since"),
        pytest.param(PlanState.DONE, 1_000_000_000_000, False, id="proposed again after it was done"),
        pytest.param(PlanState.ROLLED_BACK, 0, False, id="rolled back"),
        pytest.param(PlanState.CANCELLED, 0, False, id="cancelled"),
    ],
)
def test_approving_what_is_done_already_says_that_its_replicas_are_in_place(  # noqa: PLR0917 (fixtures, then the table)
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch, state: PlanState, later_ms: int, told: bool
) -> None:
    again = MOVE._replace(created_ms=MOVE.created_ms + later_ms)
    monkeypatch.setattr("agent.daemon.start.read_proposals", lambda _loaded, _tell: (again,))
    given(path, *plan(state))
    asked = here("proposals", "approve", MOVE.id, *options(path))
    assert (
        "the planned replicas are in place by the journal, and the change above is not ahead" in asked.stderr
    ) is told
    assert "this is attempt 2" in asked.stderr
