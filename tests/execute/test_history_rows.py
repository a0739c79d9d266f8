"""The history of a proposal and of one plan, of what the journal has."""

from __future__ import annotations

from agent.documents.journal import history_of_plan, history_of_proposal, history_rows
from agent.journal.triggers import TriggerEntry, TriggerExpectation, intent
from agent.values.reassignment import PlanState
from tests.execute.commands import plan
from tests.journals import journal
from tests.snapshots import NOW_MS

PLANS = ("p-1", "p-1.2", "p-1-back", "p-1-back.2", "p-12", "p-2-back")
TRIGGER = TriggerEntry(
    group_id="a of group b", proposal_id="p-3", reason="WARMUP_PROMOTABLE", intended_ms=NOW_MS, effect=None,
    expected=TriggerExpectation(generation=None, readers=(), holds={}, moves=(), items=0),
)  # fmt: skip


def test_the_history_of_a_proposal_has_its_attempts_and_those_that_roll_them_back() -> None:
    view = journal(
        *(write for number, name in enumerate(PLANS) for write in plan(PlanState.DONE, proposal_id=name, order=number)),
        intent(TRIGGER),
        at_ms=NOW_MS,
    )
    assert [row["about"] for row in history_of_proposal(view, "p-1")] == ["p-1", "p-1.2", "p-1-back", "p-1-back.2"]
    assert [row["about"] for row in history_of_plan(view, "p-1-back")] == ["p-1-back"]
    assert [row["about"] for row in history_of_proposal(view, "p-3")] == ["p-3 of group a of group b"]
    assert len(history_rows(view)) == len(PLANS) + 1
