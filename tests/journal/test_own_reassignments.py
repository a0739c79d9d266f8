"""What a cycle knows of our own moves: those in progress, and those that ended before the first look."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import pytest

from agent.journal.entries import Entry, JournalState
from agent.journal.plan_entries import (
    ANOTHER_TOOL,
    JournaledMemory,
    MoveOwner,
    change_writes,
    move_owners,
    remembered,
)
from agent.journal.triggers import TriggerEffect
from agent.values.memory import Memory
from agent.values.observation import RawReassignment
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
)
from assignors.problem import TopicPartition
from tests.guard.acting import triggered
from tests.journals import journal


def a_journal(*states: BatchState) -> JournalState:
    """Batches of one partition each, numbered from 1."""
    view = {}
    for number, state in enumerate(states, 1):
        target = ReassignmentTarget(TopicPartition("orders", number - 1), "id", (1, 2), (1, 3))
        (said,) = change_writes(Batch("p", number, (target,), state))
        view[said.key] = Entry(said.key, said.kind, said.value or {}, 0, 1, number)
    return view


def recalled(view: JournalState, closed: AbstractSet[tuple[str, int]] | None = None) -> JournaledMemory:
    return remembered(Memory(), view, known_closed=closed, taken_ms=1, monotonic_ms=1)


def own(view: JournalState, before: JournalState) -> list[int]:
    known = recalled(view, recalled(before).closed).memory.own_reassignments
    return sorted(one.partition for one in known)


@pytest.mark.parametrize(
    ("state", "is_own"),
    [(BatchState.INTENT, False), (BatchState.SENT, True), (BatchState.ACKED, True), (BatchState.CLOSED, False)],
)
def test_a_move_is_our_own_from_right_before_its_request_until_it_is_through(state: BatchState, is_own: bool) -> None:
    view = a_journal(state)
    assert own(view, view) == ([0] if is_own else [])


@pytest.mark.parametrize("before", [(), (BatchState.INTENT,), (BatchState.SENT,), (BatchState.ACKED,)])
def test_a_move_that_was_through_since_the_look_before_is_our_own_once_more(before: tuple[BatchState, ...]) -> None:
    then, now = a_journal(*before), a_journal(BatchState.CLOSED, BatchState.ACKED)
    assert own(now, then) == [0, 1]
    assert own(now, now) == [1]


def test_what_was_through_before_the_first_look_is_nobodys_move_any_more() -> None:
    known = recalled(a_journal(BatchState.CLOSED, BatchState.SENT))
    assert known.memory.own_reassignments == {TopicPartition("orders", 1)}
    assert known.closed == {("p", 1)}


def test_when_a_group_was_asked_is_remembered_on_the_monotonic_clock() -> None:
    asked, unsent = triggered("g", 8_000), triggered("h", 9_000, effect=TriggerEffect.NOT_SENT)
    ahead = triggered("i", 20_000)
    known = remembered(
        Memory(), journal(asked, unsent, ahead, at_ms=0), known_closed=None, taken_ms=10_000, monotonic_ms=500_000
    )
    assert known.memory.acts == {"group/g": 498_000, "group/i": 500_000}, "what is of the future counts as now"


def test_of_a_journal_that_cannot_be_read_nothing_is_known() -> None:
    view = {**a_journal(BatchState.ACKED), "batch/p/2": Entry("batch/p/2", "sent", {"v": "?"}, 0, 1, 2)}
    assert recalled(view).closed == frozenset()
    assert own(view, {}) == []


# --- whose a reported reassignment is, by a journal that may be newer or older than the look -----------------------

ASKED = RawReassignment(TopicPartition("orders", 0), (1, 2, 3), (3,), (2,))
"""To the replicas that the batches of `a_journal` ask for."""
TAKEN_MS = 1_000_000


def batch_at(at_ms: int, state: BatchState, *, ended: bool = False, sendings: int = 1) -> JournalState:
    target = ReassignmentTarget(ASKED.id, "id", (1, 2), (1, 3))
    ends = (PartitionEnd(ASKED.id, PartitionEndReason.DONE),) if ended else ()
    return journal(change_writes(Batch("p", 1, (target,), state, sendings=sendings, ends=ends)), at_ms=at_ms)


def plan_at(state: PlanState) -> JournalState:
    target = ReassignmentTarget(ASKED.id, "id", (1, 2), (1, 3))
    return journal(change_writes(ReassignmentPlan("p", (target,), state)), at_ms=TAKEN_MS)


OURS, MAYBE = MoveOwner("p"), MoveOwner(None, known=False)


@pytest.mark.parametrize(
    ("view", "owner"),
    [
        pytest.param(batch_at(0, BatchState.SENT), OURS, id="sent"),
        pytest.param(batch_at(0, BatchState.ACKED), OURS, id="in progress"),
        pytest.param(batch_at(TAKEN_MS, BatchState.ACKED, ended=True), OURS._replace(ended=True), id="ended in it"),
        pytest.param(
            batch_at(TAKEN_MS + 2_000, BatchState.CLOSED, ended=True), OURS._replace(ended=True), id="closed since"
        ),
        pytest.param(batch_at(TAKEN_MS - 2_000, BatchState.CLOSED, ended=True), MAYBE, id="clocks may differ"),
        pytest.param(batch_at(TAKEN_MS - 90_000, BatchState.CLOSED, ended=True), ANOTHER_TOOL, id="long ended"),
        pytest.param(batch_at(TAKEN_MS + 2_000, BatchState.CLOSED, sendings=0), ANOTHER_TOOL, id="never asked"),
        pytest.param(plan_at(PlanState.OPEN), MAYBE, id="of an open plan, and the journal has no batch yet"),
        pytest.param(plan_at(PlanState.DONE), ANOTHER_TOOL, id="of a plan that ended"),
        pytest.param({}, ANOTHER_TOOL, id="no plan"),
    ],
)
def test_a_move_that_a_plan_asked_for_is_ours_until_a_look_after_its_end(view: JournalState, owner: MoveOwner) -> None:
    assert move_owners(view, [ASKED], TAKEN_MS) == {ASKED.id: owner}


def test_a_move_to_other_replicas_than_a_plan_asked_for_is_another_tools() -> None:
    elsewhere = ASKED._replace(replicas=(1, 2, 4), adding=(4,))
    view = {**plan_at(PlanState.OPEN), **batch_at(TAKEN_MS, BatchState.ACKED)}
    assert move_owners(view, [elsewhere], TAKEN_MS) == {ASKED.id: ANOTHER_TOOL}
