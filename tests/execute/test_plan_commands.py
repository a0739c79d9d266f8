"""Cancel, rollback, pause and resume: what a refusal advises, and whose limits a plan that takes back has."""

from __future__ import annotations

import pytest

from agent.execute.commands.command_context import CommandContext, CommandDecision
from agent.execute.commands.plan_commands import VERBS
from agent.execute.reassign.messages import PlanAccepted
from agent.journal import plan_entries
from agent.journal.approvals import ApprovalState, approval_of
from agent.journal.commands import CommandVerb, ExecutionPause, OperatorCommand, paused
from agent.journal.entries import JournalState
from agent.values.limits import Limits
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
    attempt,
    moved_by,
)
from tests.guard.acting import MINUTE, approval, only
from tests.guard.test_judge import shared
from tests.journals import journal
from tests.snapshots import NOW_MS, tp

_, MOVE = only(shared())
LIMITS = Limits()
ONE, TWO = (ReassignmentTarget(tp(name), "id", (1, 4), (1, 2), 1_000, gain=3.0) for name in ("t-0", "t-1"))
CANCEL, ROLLBACK, PAUSE, RESUME = CommandVerb.CANCEL, CommandVerb.ROLLBACK, CommandVerb.PAUSE, CommandVerb.RESUME


def plan(state: PlanState, name: str = MOVE.id, **changes: object) -> ReassignmentPlan:
    number = attempt(name).number
    made = ReassignmentPlan(name, (ONE, TWO), state, approved_by="bob@desk", order=7, attempt=number)
    return made._replace(**changes)  # type: ignore[arg-type] # a table's row


def decided(
    verb: CommandVerb,
    *plans: ReassignmentPlan,
    view: JournalState | None = None,
    name: str | None = MOVE.id,
    open_: bool = True,
    **changes: object,
) -> CommandDecision:
    command = OperatorCommand("c1", verb, "ann@desk", NOW_MS, name)
    standing = {MOVE.id: MOVE} if open_ else {}
    room = CommandContext(view or {}, standing, plans, LIMITS, NOW_MS, lambda _proposal, _view: None)
    return VERBS[verb](command._replace(**changes), room)  # type: ignore[arg-type] # a table's row


DONE, FAILED, CANCELLED = plan(PlanState.DONE), plan(PlanState.FAILED), plan(PlanState.CANCELLED)
BACK = f"{MOVE.id}-back"
TAKE_BACK = f"Take it back: rackwise reassign rollback {MOVE.id}"


@pytest.mark.parametrize(
    ("verb", "ended", "sentence", "todo"),
    [
        pytest.param(CANCEL, DONE, "is done, so there is nothing to cancel", TAKE_BACK, id="of one that is done"),
        pytest.param(CANCEL, FAILED, "has failed, so there is nothing to cancel", TAKE_BACK, id="of a failed one"),
        pytest.param(
            CANCEL,
            plan(PlanState.ROLLED_BACK),
            "is rolled back, so there is nothing to cancel",
            "",
            id="of one that is rolled back",
        ),
        pytest.param(PAUSE, DONE, "is done, so there is nothing to pause", "", id="pause of one that is done"),
        pytest.param(RESUME, FAILED, "has failed, so there is nothing to resume", "", id="resume of a failed one"),
        pytest.param(
            ROLLBACK,
            CANCELLED._replace(moved="0"),
            "is cancelled and none of its partitions has moved: nothing to take back",
            "",
            id="rollback where none has moved",
        ),
    ],
)
def test_a_refusal_says_what_can_be_done_instead(
    verb: CommandVerb, ended: ReassignmentPlan, sentence: str, todo: str
) -> None:
    answer = decided(verb, ended, open_=False)
    assert (answer.done, answer.sentence, answer.todo) == (False, f"{MOVE.id} {sentence}", todo)
    assert (answer.writes, answer.commands) == ((), ())


def test_an_attempt_that_is_not_the_latest_is_not_taken_back_and_the_latest_is_named() -> None:
    second = plan(PlanState.FAILED, f"{MOVE.id}.2")
    third = plan(PlanState.DONE, f"{MOVE.id}.3")
    answer = decided(ROLLBACK, DONE, second, third, name=f"{MOVE.id}.2")
    assert (answer.done, answer.commands) == (False, ())
    assert answer.sentence == f"{MOVE.id}.2 is not the latest attempt: {MOVE.id}.3 is done"
    assert answer.todo == f"Take the latest attempt back: rackwise reassign rollback {MOVE.id}.3"
    assert decided(ROLLBACK, DONE, second, third).plan == f"{MOVE.id}.3-back", "the proposal's name means the latest"


@pytest.mark.parametrize(
    ("own", "asked", "limits"),
    [
        pytest.param((None, None), (None, None), (None, None), id="those of the settings"),
        pytest.param((5_000_000, 3), (None, None), (5_000_000, 3), id="those of the plan"),
        pytest.param((5_000_000, 3), (2_000_000, 1), (2_000_000, 1), id="those of the command"),
        pytest.param((None, 3), (2_000_000, None), (2_000_000, 3), id="of each one"),
    ],
)
def test_what_takes_a_plan_back_keeps_its_limits_where_the_command_has_none(
    own: tuple[int | None, int | None], asked: tuple[int | None, int | None], limits: tuple[int | None, int | None]
) -> None:
    ended = DONE._replace(throttle_bytes_per_s=own[0], max_moves=own[1])
    answer = decided(ROLLBACK, ended, throttle_bytes_per_s=asked[0], max_moves=asked[1], reason="too slow")
    ((posted,), back) = answer.commands, BACK
    assert isinstance(posted, PlanAccepted)
    assert (posted.plan.throttle_bytes_per_s, posted.plan.max_moves) == limits
    assert (posted.plan.proposal_id, posted.plan.targets) == (back, (ONE.back(), TWO.back()))
    assert (posted.plan.approved_by, posted.plan.reason) == ("ann@desk", f"rollback of {MOVE.id} (too slow)")
    assert posted.plan.begin_by_ms == NOW_MS + LIMITS.approve.valid_ms
    assert (answer.done, answer.plan) == (True, back)


def closed(back: bool, *ends: PartitionEndReason) -> tuple[Batch, ...]:
    pairs = zip((ONE, TWO), ends, strict=True)
    rows = tuple(PartitionEnd(target.id, end) for target, end in pairs)
    return (Batch(MOVE.id, 2 if back else 1, (ONE, TWO), BatchState.CLOSED, back=back, ends=rows),)


D, B, C = PartitionEndReason.DONE, PartitionEndReason.BACK, PartitionEndReason.CHANGED


@pytest.mark.parametrize(
    ("moved", "batches", "left"),
    [
        pytest.param(moved_by(FAILED, {TWO.id}), closed(False, D, D), [TWO], id="by its own record"),
        pytest.param(None, closed(False, D, B), [ONE], id="by its batches"),
        pytest.param(None, closed(False, D, C), [ONE], id="not what another tool changed"),
        pytest.param(None, (*closed(False, D, D), *closed(True, B, D)), [ONE], id="not what is back already"),
        pytest.param("", closed(False, D, B), [ONE], id="by its batches where its record is empty"),
    ],
)
def test_of_a_plan_that_failed_what_has_moved_is_taken_back(
    moved: str | None, batches: tuple[Batch, ...], left: list[ReassignmentTarget]
) -> None:
    view = journal(*(plan_entries.change_writes(one) for one in batches), at_ms=NOW_MS)
    answer = decided(ROLLBACK, FAILED._replace(moved=moved), view=view)
    (posted,) = answer.commands
    assert isinstance(posted, PlanAccepted)
    assert list(posted.plan.targets) == [target.back() for target in left]
    assert answer.sentence == f"{MOVE.id} has failed; {BACK} moves 1 partition back"


@pytest.mark.parametrize(
    ("back", "sentence"),
    [
        pytest.param(PlanState.OPEN, f"{BACK} is taking {MOVE.id} back already", id="is being taken back"),
        pytest.param(PlanState.DONE, f"{BACK} has taken {MOVE.id} back already", id="was taken back"),
        pytest.param(PlanState.FAILED, f"{MOVE.id} is done; {BACK}.2 moves 2 partitions back", id="could not be"),
    ],
)
def test_a_plan_is_taken_back_once(back: PlanState, sentence: str) -> None:
    answer = decided(ROLLBACK, DONE, plan(back, BACK))
    assert (answer.done, answer.sentence) == (True, sentence)
    assert bool(answer.commands) is (back is PlanState.FAILED)
    assert answer.plan == (f"{BACK}.2" if back is PlanState.FAILED else BACK)


def test_a_person_who_cancels_what_is_approved_voids_it_and_no_rule_approves_it() -> None:
    view = journal(approval(shared(), by="bob@desk"), at_ms=NOW_MS)
    answer = decided(CANCEL, view=view, reason="not today")
    gone = approval_of(journal(*answer.writes, at_ms=NOW_MS, view=view), MOVE.id)
    assert gone is not None
    assert (gone.state, gone.vetoed, gone.sentence) == (
        ApprovalState.VOID, True, "cancelled by ann@desk (not today)",
    )  # fmt: skip
    assert (answer.done, answer.sentence) == (
        True, f"{MOVE.id} had not begun; its approval is void, and no rule approves it",
    )  # fmt: skip
    again = decided(CANCEL, view=journal(*answer.writes, at_ms=NOW_MS, view=view))
    assert (again.sentence, again.writes) == (f"{MOVE.id} is cancelled by ann@desk (not today) already", ())


def test_a_pause_of_everything_is_told_with_who_paused_and_why() -> None:
    view = journal(paused(ExecutionPause("bob@desk", "an incident", NOW_MS - 5 * MINUTE)), at_ms=NOW_MS)
    again = decided(PAUSE, view=view, name=None)
    assert (again.sentence, again.writes) == ("acting was paused by bob@desk already (an incident)", ())
    on = decided(RESUME, view=view, name=None)
    assert on.sentence == "acting continues; it was paused by bob@desk for 5 min"
    assert (on.done, on.look_now, [(one.key, one.kind, one.value) for one in on.writes]) == (
        True, True, [("pause", "resumed", None)],
    )  # fmt: skip
    idle = decided(RESUME, name=None)
    assert (idle.done, idle.sentence, idle.writes, idle.look_now) == (True, "acting was not paused", (), False)
