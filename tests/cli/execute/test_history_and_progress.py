"""What commands show of the journal: history, progress and end of plans, throttles, and what has been done already."""

from __future__ import annotations

import json
import shlex
import threading
from pathlib import Path

import pytest

from agent.act.journal.file_journal import read_file
from agent.cli import follow, running_agents
from agent.cli.tables import head_row, plan_cells, throttle_line
from agent.documents.journal import JournalRecords, ReportedMoves, plan_rows, reassign_status, throttle_rows
from agent.journal import plan_entries
from agent.journal.approvals import approval_of, plan_hash, voided, written
from agent.values.kafka import LEADER_RATE, LEADER_REPLICAS
from agent.values.reassignment import Batch, BatchState, PlanState, ThrottleDebt
from agent.values.throttles import ThrottleResource
from tests.cli.conftest import Run
from tests.cli.execute.file_agent import MOVE, TARGETS, Start, options, plan, write_journal


def test_history_tells_what_was_said_and_done(here: Run, path: Path, start: Start) -> None:
    agent = start()
    here("proposals", "approve", MOVE.id, "--yes", "--reason", "racks", *options(path))
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
    assert {row["who"] for row in rows} == {running_agents.who(), "ann@desk"}
    given = {row["what"]: (row["reason"], row["plan_hash"]) for row in rows}
    assert given["approve"] == ("racks", plan_hash(MOVE))
    assert given["pause"] == ("sale", None)
    table = here("proposals", "history", "-o", "csv", *options(path)).stdout
    assert plan_hash(MOVE) in table


@pytest.mark.parametrize(
    ("state", "sentence", "code", "told"),
    [
        pytest.param(PlanState.DONE, "", 0, "done: 1 of 2 partitions done, 0 moving", id="done"),
        pytest.param(PlanState.CANCELLED, "told so", 1, "1 of 2 partitions done, 0 moving; told so", id="cancelled"),
        pytest.param(PlanState.FAILED, "a broker is gone", 1, "; a broker is gone", id="failed"),
    ],
)
def test_apply_shows_how_it_ended(path: Path, state: PlanState, sentence: str, code: int, told: str) -> None:
    write_journal(path, *plan(state, sentence))
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
    write_journal(path, *plan(PlanState.OPEN))
    forth, back = tmp_path / "forth.json", tmp_path / "back.json"
    here("reassign", "status", MOVE.id, "--reassignment-json", str(forth), "--rollback-json", str(back), *options(path))
    assert json.loads(forth.read_text())["partitions"] == [
        {"topic": "t", "partition": 0, "replicas": [1, 2]},
        {"topic": "t", "partition": 1, "replicas": [3, 2]},
    ]
    assert [row["replicas"] for row in json.loads(back.read_text())["partitions"]] == [[1, 4], [2, 3]]


def test_rows_of_plans_and_throttles(path: Path) -> None:
    moving = Batch(MOVE.id, 2, TARGETS[1:], BatchState.ACKED, rate_bytes_per_s=7)
    rate = ThrottleDebt(ThrottleResource(broker=1), LEADER_RATE, 50_000_000, None, MOVE.id, 2)
    replicas = ThrottleDebt(ThrottleResource(topic="t"), LEADER_REPLICAS, ("0:1", "0:4"), None, MOVE.id, 2)
    write_journal(path, *plan(PlanState.OPEN), moving, rate, replicas)
    view = read_file(path).view
    (row,) = plan_rows(view)
    assert (row["state"], row["done"], row["moving"], row["rate_bytes_per_s"]) == ("open", 1, 1, 7)
    status = reassign_status(JournalRecords(view, "a journal"), ReportedMoves(0))
    assert status["leader"] is not None
    assert status["leader"]["confirmed_ms"] == view["leader"].at_ms
    known_at = head_row({**status, "leader": {**status["leader"], "confirmed_ms": 1_700_000_000_000}})
    assert known_at == {"leader": "rw-1 on here, confirmed 2023-11-14T22:13:20Z", "paused": None}
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
    write_journal(path, done._replace(**limits), batch)
    asked = here("reassign", "rollback", MOVE.id, *options(path))
    assert asked.stderr.splitlines()[0] == f"{MOVE.id}: 2 partitions, done; those that have moved {says}"
    assert "Confirmation is needed" in asked.stderr


def test_a_rollback_of_what_is_taken_back_already_says_so_first(here: Run, path: Path) -> None:
    done, batch = plan(PlanState.DONE)
    write_journal(path, done, batch, done._replace(proposal_id=f"{MOVE.id}-back"))
    asked = here("reassign", "rollback", MOVE.id, *options(path))
    taken = f"{MOVE.id}: 2 partitions, done; {MOVE.id}-back has taken {MOVE.id} back"
    assert asked.stderr.splitlines()[0] == taken
    (row, back) = plan_rows(read_file(path).view)
    assert (row["taken_back_by"], back["taken_back_by"]) == (f"{MOVE.id}-back", None)
    assert plan_cells(row)["state"] == f"done; rollback: {MOVE.id}-back"


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
    write_journal(path, *plan(state))
    asked = here("proposals", "approve", MOVE.id, *options(path))
    assert (
        "the planned replicas are in place by the journal, and the change above is not ahead" in asked.stderr
    ) is told
    assert "this is attempt 2" in asked.stderr
