"""``reassign status`` with and without a journal: what the brokers report is shown, and what is unknown is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.act.journal.journal_topic import NoJournalError
from agent.act.lease import LeadershipPlan
from agent.cli import running_agents
from agent.cli.reassign import COPIES
from agent.cli.tables import copy_cells
from agent.daemon.limits_from_settings import to_leadership_plan
from agent.documents.proposals import CopyRow
from agent.errors import JournalUnavailable, RackwiseError
from agent.journal.entries import JournalState
from agent.values.kafka import LEADER_RATE
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ThrottleDebt,
)
from agent.values.throttles import ThrottleResource
from tests.builders import Answers, an_observation
from tests.cli.conftest import Run
from tests.cli.execute.file_agent import EMPTY_JOURNAL, MOVE, TARGETS, options, plan, write_journal
from tests.snapshots import tp


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def moving() -> Answers:
    world = an_observation(a=(1, 4), b=(2,), c=(3,)).topic("t", (2, 1, 4), (2, 3)).topic("u", (3, 1))
    return world.moving("t-0", (2, 1, 4), (2,), (4,)).moving("u-0", (3, 1), (), (1,))


def shown(monkeypatch: pytest.MonkeyPatch, world: Answers) -> None:
    monkeypatch.setattr("agent.observe.observe_cluster.observe", lambda *_: world.at())


KAFKA = ("--set", "observe.call_timeout=200ms", "--set", "observe.deadline=1s", "-b", EMPTY_JOURNAL)
NO_FILE = "no journal: There is no journal file "
NO_TOPIC = "no journal: There is no topic rackwise.journal; no agent in mode execute has run here"


@pytest.mark.parametrize("kind", ["file", "topic"])
def test_moves_of_other_tools_are_shown_where_no_agent_ever_ran(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    shown(monkeypatch, moving())
    if kind == "topic":
        refuse(monkeypatch, NoJournalError("There is no topic rackwise.journal"))
    arguments = options(path) if kind == "file" else KAFKA
    told = here("reassign", "status", "-o", "json", *arguments)
    assert told.exit_code == 0
    assert told.stderr.startswith(NO_FILE if kind == "file" else NO_TOPIC)
    assert [(row["partition"], row["adding"], row["removing"], row["by"]) for row in told.json["reassignments"]] == [
        ("t-0", [2], [4], "another tool"), ("u-0", [], [1], "another tool"),
    ]  # fmt: skip
    assert [(row["partition"], row["ours"]) for row in told.json["copies"]] == [("t-0", False)]
    assert (told.json["plans"], told.json["journal"]) == ([], "none")
    table = here("reassign", "status", "-o", "table", *arguments)
    assert "another tool" in table.stdout
    assert "journal" not in table.stderr
    words = " ".join((table.stdout + table.stderr).split())  # a long cell is folded
    assert words.count("no agent in mode execute has run here") == 1


def test_where_nothing_is_to_be_shown_there_is_no_blank_line(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shown(monkeypatch, an_observation(a=(1,), b=(2,)).topic("t", (1,)))
    refuse(monkeypatch, NoJournalError("There is no topic rackwise.journal"))
    monkeypatch.setenv("COLUMNS", "80")
    told = here("reassign", "status", "-o", "table", *KAFKA)
    assert told.exit_code == 0
    assert "" not in told.stdout.splitlines()
    assert max(map(len, (*told.stdout.splitlines(), *told.stderr.splitlines()))) <= 80


def refuse(monkeypatch: pytest.MonkeyPatch, error: RackwiseError) -> None:
    """The journal in Kafka that cannot be read, for that reason."""

    def refused(_plan: LeadershipPlan) -> JournalState:
        raise error

    monkeypatch.setattr(running_agents, "journal", refused)
    monkeypatch.setattr(
        running_agents, "plan_of", lambda loaded: to_leadership_plan(loaded.settings, loaded.settings.kafka, "ann@desk")
    )


def test_where_the_journal_cannot_be_read_nothing_is_said_to_be_another_tools(
    here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown(monkeypatch, moving())
    refuse(monkeypatch, JournalUnavailable("The journal could not be read", why="no answer in time"))
    told = here("reassign", "status", "-o", "json", *KAFKA)
    assert told.exit_code == 5
    assert (
        "it is unknown which reassignments are of rackwise: The journal could not be read: no answer in time"
        in told.stderr
    )
    assert [(row["by"], row["ours"]) for row in told.json["reassignments"]] == [(None, None)] * 2
    assert [row["ours"] for row in told.json["copies"]] == [None]


def test_a_plan_that_is_named_needs_the_journal(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shown(monkeypatch, moving())
    refuse(monkeypatch, NoJournalError("There is no topic rackwise.journal"))
    assert here("reassign", "status", MOVE.id, *KAFKA).exit_code == 2


def test_reassignments_that_were_not_reported_are_not_said_to_be_none(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = an_observation(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 4))
    world.gaps.append(Gap(ObservationPart.REASSIGNMENTS, GapCause.TIMED_OUT, "", "no answer"))
    shown(monkeypatch, world)
    write_journal(path, *plan(PlanState.DONE))
    told = here("reassign", "status", "-o", "table", *options(path))
    assert told.exit_code == 5
    assert "reassignments are unknown: the brokers did not report them" in told.stderr
    assert "not seen: reassignments" in told.stderr


def test_own_moves_name_their_plan_and_attempts_stand_side_by_side(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown(monkeypatch, moving())
    second = f"{MOVE.id}.2"
    rate = ThrottleDebt(ThrottleResource(broker=1), LEADER_RATE, 50_000_000, None, second, 1)
    write_journal(
        path,
        *plan(PlanState.ROLLED_BACK),
        ReassignmentPlan(second, TARGETS),
        Batch(second, 1, TARGETS, BatchState.ACKED),
        rate,
    )
    told = here("reassign", "status", MOVE.id, "-o", "json", *options(path))
    assert told.exit_code == 0
    assert [(row["plan"], row["attempt"], row["state"]) for row in told.json["plans"]] == [
        (MOVE.id, 1, "rolled back"), (second, 2, "open"),
    ]  # fmt: skip
    assert [(row["partition"], row["by"], row["ours"]) for row in told.json["reassignments"]] == [("t-0", second, True)]
    table = here("reassign", "status", "-o", "table", *options(path))
    assert "broker 1: leader.replication.throttled.rate 50.0 MB/s (rackwise)" in table.stdout
    assert tp("u-0") not in {target.id for target in TARGETS}


@pytest.mark.parametrize("what", [("status",), ("verify", MOVE.id)], ids=["status", "verify"])
def test_a_journal_with_a_record_that_is_no_throttle_is_not_shown_in_part(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch, what: tuple[str, ...]
) -> None:
    shown(monkeypatch, moving())
    write_journal(path, *plan(PlanState.OPEN), ThrottleDebt(ThrottleResource(topic=""), LEADER_RATE, 5, None, "p", 1))
    answer = here("reassign", *what, *options(path))
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "A record of the journal cannot be read" in answer.stderr
    assert "throttle/topic:/leader.replication.throttled.rate" in answer.stderr
    assert "Use the rackwise that wrote it, or a newer one" in answer.stderr


def test_a_copy_is_shown_with_its_units_and_whole_only_when_it_is() -> None:
    row: CopyRow = {
        "partition": "t-0", "to_broker": 2, "bytes": 2_999_000_000, "of_bytes": 3_000_000_000, "copied_share": 0.9997,
        "bytes_per_s": 50_000_000, "seconds_left": 12, "ours": True,
    }  # fmt: skip
    cells = copy_cells(row)
    assert [cells[name] for name in COPIES] == ["t-0", 2, "3.0 GB", "3.0 GB", "99 %", "50.0 MB/s", "12 s"]
    cells = copy_cells({**row, "seconds_left": 7_200, "bytes": None, "copied_share": None, "bytes_per_s": None})
    assert [cells[name] for name in COPIES[2:]] == [None, "3.0 GB", None, None, "2 h"]


@pytest.mark.parametrize("paused", [False, True])
def test_a_partition_that_its_plan_has_yet_to_move_waits(
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch, paused: bool
) -> None:
    opened, batch = plan(PlanState.OPEN)
    shown(monkeypatch, an_observation(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 2), (2, 3)))
    write_journal(path, opened._replace(paused=paused), batch)
    told = here("reassign", "verify", MOVE.id, "-o", "json", *options(path))
    assert told.exit_code == 1
    assert [(row["state"], row["sentence"]) for row in told.json] == [
        ("done", "moved as planned"),
        ("waiting", f"not begun: it has its replicas from before, and the plan is {'paused' if paused else 'open'}"),
    ]


@pytest.mark.parametrize(
    ("state", "ended", "now"),
    [
        pytest.param(PlanState.CANCELLED, False, (2, 3), id="the plan has ended"),
        pytest.param(PlanState.OPEN, True, (2, 3), id="its batch has ended"),
        pytest.param(PlanState.OPEN, False, (1, 3), id="replicas of another tool"),
    ],
)
def test_what_no_plan_is_going_to_move_does_not_wait(  # noqa: PLR0917 (fixtures, then the table's columns)
    here: Run, path: Path, monkeypatch: pytest.MonkeyPatch, state: PlanState, ended: bool, now: tuple[int, ...]
) -> None:
    found, batch = plan(state)
    failed = Batch(
        MOVE.id, 2, TARGETS[1:], BatchState.CLOSED, ends=(PartitionEnd(tp("t-1"), PartitionEndReason.REFUSED),)
    )
    shown(monkeypatch, an_observation(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 2), now))
    write_journal(path, found, batch, *((failed,) if ended else ()))
    told = here("reassign", "verify", MOVE.id, "-o", "json", *options(path))
    assert [row["state"] for row in told.json] == ["done", "other"]
