"""Before each batch it is asked again whether one may begin: mode, pause, time of day, budget."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.execute.messages import May
from agent.execute.values import Batch, BatchState, Plan, PlanState, Target
from agent.guard.before_batch import kind_of, may_begin
from agent.guard.ground import Records
from agent.journal import moves
from agent.journal.commands import Pause, paused
from agent.journal.entry import Write
from agent.limits import Limits, Mode
from agent.limits_execute import ExecuteLimits
from agent.windows import Window, Windows
from tests.journals import journal
from tests.snapshots import NOW_MS, tp

MOVING = moves.write(Plan("p-1", (Target(tp("t-0"), "id", (1, 2), (1, 3)),), order=1))
TURNING = moves.write(Plan("p-1", (Target(tp("t-0"), "id", (1, 2), (2, 1)),), order=1))
ENDED = moves.write(Plan("p-0", (Target(tp("t-0"), "id", (1, 2), (2, 1)),), PlanState.DONE, order=0))
BIG = Target(tp("t-0"), "id", (1, 2), (1, 3), 5_000)
NIGHT = Window("night", "UTC", 0, 1)
"""NOW_MS is in the morning."""


def asked(*writes: Write, mode: Mode = Mode.EXECUTE, **changes: object) -> May:
    limits = Limits(mode=mode, execute=replace(ExecuteLimits(), **changes))  # type: ignore[arg-type] # a table's row
    return may_begin(Records(journal(*writes, at_ms=NOW_MS)), limits, NOW_MS)


@pytest.mark.parametrize(
    ("writes", "changes", "says"),
    [
        pytest.param([MOVING], {"mode": Mode.PROPOSE}, "mode is propose, a dry run", id="a dry run"),
        pytest.param([Write("plan/x", "open", {})], {}, "cannot be read from the journal", id="an unreadable plan"),
        pytest.param(
            [MOVING, paused(Pause("ann@desk", "sale", 1))], {}, "ann@desk paused acting (sale)", id="acting is paused"
        ),
        pytest.param([MOVING], {"windows": Windows(allow=(NIGHT,))}, "outside the windows", id="the window closed"),
        pytest.param(
            [MOVING], {"windows": Windows(blackout=(Window("dark", "UTC"),))}, "blackout dark is on", id="a blackout"
        ),
        pytest.param(
            [MOVING, moves.write(Batch("p-1", 1, (), BatchState.SENT, sendings=1))], {"batch_budget_per_hour": 1},
            "1 of 1 batch in the last hour (execute.batches_per_hour)", id="the budget is used up",
        ),
    ],
)  # fmt: skip
def test_nothing_begins_where_it_must_not(writes: list[Write], changes: dict[str, object], says: str) -> None:
    may = asked(*writes, **changes)  # type: ignore[arg-type] # a table's row
    assert (may.begin, says in may.sentence) == (False, True), may


@pytest.mark.parametrize(
    ("writes", "changes"),
    [
        pytest.param([MOVING], {}, id="nothing stands against it"),
        pytest.param(
            [TURNING, ENDED], {"windows": Windows(allow=(NIGHT._replace(kinds=frozenset({"reassign"})),))},
            id="a window for data says nothing of a plan that moves none",
        ),
        pytest.param([], {"windows": Windows(allow=(NIGHT,))}, id="without a plan there is nothing to hold"),
    ],
)  # fmt: skip
def test_else_it_may(writes: list[Write], changes: dict[str, object]) -> None:
    assert asked(*writes, **changes).begin  # type: ignore[arg-type] # a table's row


def test_the_window_is_that_of_the_plan_whose_turn_it_is() -> None:
    later = moves.write(Plan("p-2", (Target(tp("t-1"), "id", (1, 2), (2, 1)),), order=2))
    windows = Windows(allow=(NIGHT._replace(kinds=frozenset({"leaders"})),))
    assert asked(MOVING, later, windows=windows).begin
    assert not asked(TURNING, later, windows=windows).begin


def test_a_plan_that_is_paused_lets_the_next_one_have_its_turn_and_its_window() -> None:
    paused_ = moves.write(Plan("p-1", (Target(tp("t-0"), "id", (1, 2), (2, 1)),), order=1, paused=True))
    moving = moves.write(Plan("p-2", (Target(tp("t-1"), "id", (1, 2), (1, 3)),), order=2))
    windows = Windows(allow=(NIGHT._replace(kinds=frozenset({"reassign"})),))
    assert not asked(paused_, moving, windows=windows).begin
    assert asked(paused_, windows=windows).begin


@pytest.mark.parametrize(
    ("batch", "begins"),
    [
        pytest.param(Batch("p-1", 1, (BIG,)), True, id="a batch that is about to be sent is not against itself"),
        pytest.param(Batch("p-1", 1, (BIG,), BatchState.CLOSED), True, id="one that was withdrawn has copied nothing"),
        pytest.param(Batch("p-1", 1, (BIG,), BatchState.CLOSED, sendings=1), False, id="one that was sent counts"),
    ],
)
def test_bytes_are_counted_once_they_were_asked_for(batch: Batch, begins: bool) -> None:
    assert asked(MOVING, moves.write(batch), move_budget_bytes_per_day=1_000).begin is begins


def test_requests_are_counted_once_they_were_sent() -> None:
    assert asked(MOVING, moves.write(Batch("p-1", 1, (BIG,), BatchState.CLOSED)), batch_budget_per_hour=1).begin


def test_a_plan_that_adds_no_replica_moves_no_data() -> None:
    turn, move = Target(tp("t-0"), "id", (1, 2), (2, 1)), Target(tp("t-1"), "id", (1, 2), (1, 3))
    assert kind_of(Plan("p", (turn,))) == "leaders"
    assert kind_of(Plan("p", (turn, move))) == "reassign"
