"""Before each batch it is asked again whether one may begin: mode, pause, time of day, budget."""

from __future__ import annotations

import pytest

from agent.execute.reassign.messages import BatchPermission
from agent.guard.execute_checks import kind_of, may_begin, may_begin_plan
from agent.guard.guard_context import GuardJournal
from agent.journal import plan_entries
from agent.journal.commands import ExecutionPause, paused
from agent.journal.entries import JournalWrite
from agent.values.clock import TimeWindow, TimeWindowSet
from agent.values.limits import AgentMode, Limits
from agent.values.reassignment import Batch, BatchState, PlanState, ReassignmentPlan, ReassignmentTarget
from tests.journals import journal
from tests.limits import with_limits
from tests.snapshots import NOW_MS, tp

MOVING = plan_entries.change_writes(
    ReassignmentPlan("p-1", (ReassignmentTarget(tp("t-0"), "id", (1, 2), (1, 3)),), order=1)
)
TURNING = plan_entries.change_writes(
    ReassignmentPlan("p-1", (ReassignmentTarget(tp("t-0"), "id", (1, 2), (2, 1)),), order=1)
)
ENDED = plan_entries.change_writes(
    ReassignmentPlan("p-0", (ReassignmentTarget(tp("t-0"), "id", (1, 2), (2, 1)),), PlanState.DONE, order=0)
)
BIG = ReassignmentTarget(tp("t-0"), "id", (1, 2), (1, 3), 5_000)
NIGHT = TimeWindow("night", "UTC", 0, 1)
"""NOW_MS is in the morning."""


def asked(*writes: JournalWrite, mode: AgentMode = AgentMode.EXECUTE, **changes: object) -> BatchPermission:
    limits = with_limits(Limits(mode=mode), **changes)
    return may_begin(GuardJournal(journal(*writes, at_ms=NOW_MS)), limits, NOW_MS)


@pytest.mark.parametrize(
    ("writes", "changes", "says"),
    [
        pytest.param([MOVING], {"mode": AgentMode.PROPOSE}, "mode is propose, a dry run", id="a dry run"),
        pytest.param(
            [JournalWrite("plan/x", "open", {})], {}, "cannot be read from the journal", id="an unreadable plan"
        ),
        pytest.param(
            [MOVING, paused(ExecutionPause("ann@desk", "sale", 1))],
            {},
            "ann@desk paused acting (sale)",
            id="acting is paused",
        ),
        pytest.param(
            [MOVING], {"windows": TimeWindowSet(allow=(NIGHT,))}, "outside the windows", id="the window closed"
        ),
        pytest.param(
            [MOVING],
            {"windows": TimeWindowSet(blackout=(TimeWindow("dark", "UTC"),))},
            "blackout dark is on",
            id="a blackout",
        ),
        pytest.param(
            [MOVING, plan_entries.change_writes(Batch("p-1", 1, (), BatchState.CLOSED, sendings=1))],
            {"execute__batches_per_hour": 1},
            "1 of 1 batch in the last hour (execute.batches_per_hour)",
            id="the budget is used up",
        ),
    ],
)
def test_nothing_begins_where_it_must_not(writes: list[JournalWrite], changes: dict[str, object], says: str) -> None:
    may = asked(*writes, **changes)  # type: ignore[arg-type] # a table's row
    assert says in (may.of("p-1") or ""), may
    assert not (may.of("p-1") or "").startswith("held: ")


@pytest.mark.parametrize(
    ("writes", "changes"),
    [
        pytest.param([MOVING], {}, id="nothing stands against it"),
        pytest.param(
            [TURNING, ENDED], {"windows": TimeWindowSet(allow=(NIGHT._replace(kinds=frozenset({"reassign"})),))},
            id="a window for data says nothing of a plan that moves none",
        ),
        pytest.param([], {"windows": TimeWindowSet(allow=(NIGHT,))}, id="without a plan there is nothing to hold"),
    ],
)  # fmt: skip
def test_else_it_may(writes: list[JournalWrite], changes: dict[str, object]) -> None:
    assert asked(*writes, **changes).of("p-1") is None  # type: ignore[arg-type] # a table's row


def test_each_plan_has_the_window_of_its_kind() -> None:
    later = plan_entries.change_writes(
        ReassignmentPlan("p-2", (ReassignmentTarget(tp("t-1"), "id", (1, 2), (2, 1)),), order=2)
    )
    windows = TimeWindowSet(allow=(NIGHT._replace(kinds=frozenset({"leaders"})),))
    may = asked(MOVING, later, windows=windows)
    assert (may.of("p-1"), may.of("p-2") is None) == (None, False)
    assert may.held == (("p-2", "outside the windows that allow it (night), until 2025-10-10 00:00 UTC"),)


# --- what was accepted is judged again ----------------------------------------------------------------------------

RACKS = ((1, "a"), (2, "b"), (3, "c"))
NOW_RACKS = {1: "a", 2: "b", 3: "c"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param(
            {"execute__exclude_topics": ("t*",)}, "t is excluded (execute.exclude_topics)", id="its topic is excluded"
        ),
        pytest.param(
            {"execute__include_topics": ("u",)},
            "t matches no pattern of execute.include_topics",
            id="others are included",
        ),
        pytest.param({"execute__exclude_topics": ("u",), "execute__include_topics": ("t",)}, None, id="it is neither"),
    ],
)
def test_settings_that_changed_since_it_was_accepted_hold_its_batches(
    changes: dict[str, object], says: str | None
) -> None:
    assert asked(MOVING, **changes).of("p-1") == says


@pytest.mark.parametrize(
    ("racks", "state", "says"),
    [
        pytest.param(NOW_RACKS, PlanState.OPEN, None, id="all are where they were"),
        pytest.param(
            {**NOW_RACKS, 3: "a"}, PlanState.OPEN,
            "broker 3 is in rack a, and was in rack c when the plan was accepted", id="one came back in another rack",
        ),
        pytest.param(
            {**NOW_RACKS, 3: None}, PlanState.OPEN,
            "broker 3 has an unknown rack, and was in rack c when the plan was accepted", id="one came back without",
        ),
        pytest.param({1: "a", 2: "b"}, PlanState.OPEN, None, id="one is down, which is seen elsewhere"),
        pytest.param(None, PlanState.OPEN, "the racks of its brokers are unknown until the first look", id="no look"),
        pytest.param({**NOW_RACKS, 3: "a"}, PlanState.ROLLING_BACK, None, id="what takes back rests on no rack"),
    ],
)  # fmt: skip
def test_a_broker_in_another_rack_holds_the_batches_of_plans_that_rest_on_it(
    racks: dict[int, str | None] | None, state: PlanState, says: str | None
) -> None:
    plan = ReassignmentPlan("p-1", (ReassignmentTarget(tp("t-0"), "id", (1, 2), (1, 3)),), state, order=1, racks=RACKS)
    limits = Limits(mode=AgentMode.EXECUTE)
    assert (
        may_begin(GuardJournal(journal(plan_entries.change_writes(plan), at_ms=NOW_MS)), limits, NOW_MS, racks).of(
            "p-1"
        )
        == says
    )
    assert may_begin_plan(plan, GuardJournal(journal(at_ms=NOW_MS)), limits, NOW_MS, racks).sentence == (says or "")


MINUTE = 60_000
SENT = plan_entries.change_writes(Batch("p-1", 1, (BIG,), BatchState.CLOSED, sendings=1))
WITHDRAWN = plan_entries.change_writes(Batch("p-1", 1, (BIG,), BatchState.CLOSED))
OVER = "its approval ended 3 min ago, and no batch of it was sent"


@pytest.mark.parametrize(
    ("begin_by_ms", "more", "says"),
    [
        pytest.param(NOW_MS + MINUTE, [], None, id="there is time"),
        pytest.param(None, [], None, id="from before it was written down"),
        pytest.param(NOW_MS - 3 * MINUTE, [], OVER, id="it is over"),
        pytest.param(NOW_MS - 3 * MINUTE, [WITHDRAWN], OVER, id="what was withdrawn was not sent"),
        pytest.param(NOW_MS - 3 * MINUTE, [SENT], None, id="what was sent goes on"),
        pytest.param(
            NOW_MS + 10 * 365 * 24 * 60 * MINUTE, [],
            "its approval is of the future by this agent's clock, and no batch of it was sent",
            id="a clock was wrong when it was approved",
        ),
    ],
)  # fmt: skip
def test_a_plan_of_which_no_batch_was_sent_lasts_as_long_as_its_approval(
    begin_by_ms: int | None, more: list[JournalWrite], says: str | None
) -> None:
    plan = ReassignmentPlan(
        "p-1", (ReassignmentTarget(tp("t-0"), "id", (1, 2), (1, 3)),), order=1, begin_by_ms=begin_by_ms
    )
    may = asked(plan_entries.change_writes(plan), *more)
    assert dict(may.lapsed).get("p-1") == says
    assert dict(asked(plan_entries.change_writes(plan), *more, mode=AgentMode.OBSERVE).lapsed).get("p-1") == says, (
        "whatever else holds"
    )


@pytest.mark.parametrize(
    ("batch", "begins"),
    [
        pytest.param(Batch("p-1", 1, (BIG,)), True, id="a batch that is about to be sent is not against itself"),
        pytest.param(Batch("p-1", 1, (BIG,), BatchState.CLOSED), True, id="one that was withdrawn has copied nothing"),
        pytest.param(Batch("p-1", 1, (BIG,), BatchState.CLOSED, sendings=1), False, id="one that was sent counts"),
    ],
)
def test_bytes_are_counted_once_they_were_asked_for(batch: Batch, begins: bool) -> None:
    assert asked(MOVING, plan_entries.change_writes(batch), execute__bytes_per_day=1_000).begin is begins


def test_requests_are_counted_once_they_were_sent() -> None:
    assert asked(
        MOVING, plan_entries.change_writes(Batch("p-1", 1, (BIG,), BatchState.CLOSED)), execute__batches_per_hour=1
    ).begin


@pytest.mark.parametrize("state", [BatchState.SENT, BatchState.ACKED])
def test_the_batch_that_is_asked_for_does_not_count_against_itself(state: BatchState) -> None:
    """It is written as sent right before its request, and asked for once more then: else the last one is never sent."""
    through = plan_entries.change_writes(Batch("p-1", 1, (), BatchState.CLOSED, sendings=1))
    last = plan_entries.change_writes(Batch("p-1", 2, (BIG,), state, sendings=1))
    assert asked(MOVING, through, last, execute__batches_per_hour=2, execute__bytes_per_day=5_000).begin
    assert not asked(MOVING, through, last, execute__batches_per_hour=1).begin


def test_a_plan_that_adds_no_replica_moves_no_data() -> None:
    turn, move = (
        ReassignmentTarget(tp("t-0"), "id", (1, 2), (2, 1)),
        ReassignmentTarget(tp("t-1"), "id", (1, 2), (1, 3)),
    )
    assert kind_of(ReassignmentPlan("p", (turn,))) == "leaders"
    assert kind_of(ReassignmentPlan("p", (turn, move))) == "reassign"
