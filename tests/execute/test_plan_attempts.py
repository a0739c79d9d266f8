"""Attempts at a proposal: their names, and that no attempt gets the answers, approvals or moves of another."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.documents.journal import proposal_of
from agent.execute.commands.apply import apply_commands, replay_undelivered
from agent.execute.commands.command_context import ExpectedVerdict
from agent.execute.reassign.messages import BatchPermission, CommandReceived, PlanAccepted, PlanCommand
from agent.journal import plan_entries
from agent.journal.approvals import ApprovalState, approval_cleanup, approval_of, next_attempt, plan_hash
from agent.journal.commands import CommandVerb, LeaderAnswer, OperatorCommand, answer_to, answered, history
from agent.journal.entries import JournalState, JournalWrite
from agent.values.proposal import PlanAttempt
from agent.values.reassignment import (
    PlanState,
    ReassignmentPlan,
    attempt,
    in_force,
    latest,
    moved_by,
    rollback_name,
    rolled_back_plan,
)
from tests.execute.commands import EMPTY, LIMITS, MINUTE, MOVE, STANDING, TARGET, ask, done, plan
from tests.execute.plan_attempts import (
    BACK,
    CANCELLED,
    CANCELLING,
    DONE,
    FAILED,
    FIRST,
    MOVED,
    OPEN,
    ROLLED,
    ROLLING,
    SECOND,
    VOID,
    A,
    C,
    G,
    P,
    R,
    after_command,
    journal_with_plan,
)
from tests.journals import journal
from tests.snapshots import NOW_MS, tp

# --- names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "of"),
    [("p-1", "p-1"), ("p-1.2", "p-1"), ("p-1-back", "p-1"), ("p-1-back.2", "p-1"), ("p-1.2-back.3", "p-1"), ("", "")],
)
def test_a_plan_is_of_the_proposal_that_it_carries_out_or_rolls_back(name: str, of: str) -> None:
    assert proposal_of(name) == of
    assert proposal_of(rollback_name(name)) == of


@given(st.from_regex(r"p-[0-9a-f]{12}", fullmatch=True), st.integers(1, 10**8))
def test_a_name_says_which_attempt_it_is(of: str, number: int) -> None:
    name = str(PlanAttempt(of, number))
    assert attempt(name) == PlanAttempt(of, number)
    assert attempt(str(PlanAttempt(rollback_name(name), number))) == PlanAttempt(rollback_name(name), number)
    assert rolled_back_plan(str(PlanAttempt(rollback_name(name), number))) == name
    assert rolled_back_plan(name) is None


@given(st.text(max_size=20))
def test_any_text_is_the_name_of_something(text: str) -> None:
    assert str(attempt(text)) == text


def test_the_newest_attempt_is_that_of_the_greatest_number_and_not_of_another_proposal() -> None:
    names = ["p-1", "p-1.2", "p-1.10", "p-10", "p-1-back", "p-1.2-back.3"]
    plans = [ReassignmentPlan(name, (), attempt=attempt(name).number) for name in names]
    assert [getattr(latest(plans, of), "proposal_id", None) for of in ("p-1", "p-10", "p-1-back", "p-2")] == [
        "p-1.10", "p-10", "p-1-back", None,
    ]  # fmt: skip
    back = latest(plans, "p-1.2-back")
    assert back is not None
    assert back.proposal_id == "p-1.2-back.3"


@pytest.mark.parametrize(
    ("states", "so"),
    [
        pytest.param([PlanState.DONE], True, id="done"),
        pytest.param([PlanState.FAILED], False, id="failed"),
        pytest.param([PlanState.DONE, PlanState.DONE], False, id="done, and taken back"),
        pytest.param([PlanState.DONE, PlanState.CANCELLED], True, id="done, and the way back was cancelled"),
        pytest.param([PlanState.DONE, PlanState.DONE, PlanState.DONE], True, id="the way back was taken back"),
    ],
)
def test_a_plan_is_in_force_until_it_is_taken_back(states: Sequence[PlanState], *, so: bool) -> None:
    plans = tuple(ReassignmentPlan("p-1" + "-back" * number, (), state) for number, state in enumerate(states))
    assert in_force(plans, plans[0]) is so


# --- every command in every state -------------------------------------------------------------------------------


def test_a_cancel_of_before_is_not_repeated_to_a_rollback_that_was_asked_for_after_it() -> None:
    """The new leader finds both answers; the plan knows which command it had."""
    view, _ = after_command(journal_with_plan(OPEN), C, "c1")
    view, _ = after_command(view, R, "c2")
    shows = journal(plan(ROLLING, heard="c2"), at_ms=NOW_MS, view=view)
    assert replay_undelivered(shows) == ()
    early = journal(plan(CANCELLING, heard="c1"), at_ms=NOW_MS, view=view)
    assert replay_undelivered(early) == (CommandReceived(PlanCommand.ROLLBACK, FIRST, "ann@desk", "c2"),)


def test_a_rollback_that_was_asked_for_again_and_came_too_late_is_a_plan_of_its_own() -> None:
    view, _ = after_command(journal(plan(CANCELLING, heard="c1"), MOVED, at_ms=NOW_MS - MINUTE), R, "c2")
    ended = journal(plan(CANCELLED, heard="c1"), at_ms=NOW_MS, view=view)
    (command,) = replay_undelivered(ended)
    assert isinstance(command, PlanAccepted)
    assert command.plan.proposal_id == BACK


@pytest.mark.parametrize(("verb", "command"), [(C, PlanCommand.CANCEL), (P, PlanCommand.PAUSE)])
def test_what_stops_an_ended_plan_that_is_taken_back_is_about_the_plan_that_does_it(
    verb: CommandVerb, command: PlanCommand
) -> None:
    view = journal(plan(DONE), plan(OPEN, proposal_id=BACK), at_ms=NOW_MS)
    result = apply_commands([ask(verb, MOVE)], view, STANDING, LIMITS, NOW_MS)
    assert result.commands == (CommandReceived(command, BACK, "ann@desk", "c1"),)
    assert done(result, view).plan == BACK


@pytest.mark.parametrize(("state", "verb"), [(OPEN, R), (DONE, R), (ROLLING, G)])
def test_an_answer_says_what_holds_the_batches_that_take_back(state: PlanState, verb: CommandVerb) -> None:
    view = journal(plan(state, paused=state is ROLLING), MOVED, at_ms=NOW_MS)
    held = apply_commands(
        [ask(verb, MOVE)], view, STANDING, LIMITS, NOW_MS,
        begins=lambda _plan, _view: BatchPermission(begin=False, sentence="blackout sale is on"),
    )  # fmt: skip
    assert done(held, view).sentence.endswith("; no new batch begins for now: blackout sale is on")


# --- another attempt --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [DONE, CANCELLED, FAILED, ROLLED])
def test_what_ended_is_approved_again_and_history_keeps_both(state: PlanState) -> None:
    first = after_command(EMPTY, CommandVerb.APPROVE)[0]
    ended = journal(plan(state), at_ms=NOW_MS, view=first)
    view, answer = after_command(ended, CommandVerb.APPROVE, "c1")
    assert (answer.done, answer.plan) == (True, SECOND)
    given = [approval_of(view, name) for name in (FIRST, SECOND)]
    assert [(one.attempt, one.state) for one in given if one is not None] == [
        (1, ApprovalState.APPROVED), (2, ApprovalState.APPROVED),
    ]  # fmt: skip
    assert [answer.plan for _, answer in history(view)] == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("attempt_", "so"),
    [
        pytest.param(2, True, id="the one that was shown"),
        pytest.param(1, False, id="the one before, which ended meanwhile"),
        pytest.param(3, False, id="one that does not come next"),
    ],
)
def test_an_approval_is_of_the_attempt_that_was_shown(attempt_: int, *, so: bool) -> None:
    view = journal_with_plan(CANCELLED)
    answer = done(apply_commands([ask(A, MOVE, attempt=attempt_)], view, STANDING, LIMITS, NOW_MS), view)
    assert answer.done is so
    if not so:
        assert answer.sentence == (
            f"attempt {attempt_} was approved, and the next one is attempt 2; attempt 1 cancelled"
        )


def test_an_approval_that_names_no_attempt_is_of_the_first_one() -> None:
    """A program that sends the same approval again starts nothing that a person has cancelled meanwhile."""
    first = done(apply_commands([ask(A, MOVE, attempt=None)], EMPTY, STANDING, LIMITS, NOW_MS))
    assert (first.done, first.plan) == (True, FIRST)
    view = journal_with_plan(CANCELLED)
    again = done(apply_commands([ask(A, MOVE, attempt=None)], view, STANDING, LIMITS, NOW_MS), view)
    assert again.sentence == ("the approval names no attempt, and the next one is attempt 2; attempt 1 cancelled")


def test_an_approval_of_what_ended_and_is_not_proposed_says_how_it_ended() -> None:
    view = journal_with_plan(DONE)
    answer = done(apply_commands([ask(A, MOVE)], view, (), LIMITS, NOW_MS), view)
    assert answer.sentence == f"{FIRST} is not proposed now; attempt 1 done"


def test_an_approval_that_no_agent_used_is_void_although_an_earlier_attempt_began() -> None:
    view, _ = after_command(journal_with_plan(ROLLED), CommandVerb.APPROVE, "c1")
    late = NOW_MS + LIMITS.approve.valid_ms
    (write,) = approval_cleanup(view, STANDING, frozenset({FIRST}), late)
    assert (write.key, write.kind) == (f"approval/{SECOND}", "void")


def test_words_about_an_ended_attempt_are_never_said_to_the_next() -> None:
    """The journal keeps answers for long, and says them again to each new leader until plans show them."""
    view, _ = after_command(journal_with_plan(OPEN), CommandVerb.CANCEL, "c1")
    view, _ = after_command(journal(plan(CANCELLED), at_ms=NOW_MS, view=view), CommandVerb.APPROVE, "c2")
    second = journal(plan(OPEN, proposal_id=SECOND), at_ms=NOW_MS, view=view)
    assert replay_undelivered(second) == ()
    view, answer = after_command(second, CommandVerb.PAUSE, "c3")
    assert (answer.plan, replay_undelivered(view)) == (
        SECOND,
        (CommandReceived(PlanCommand.PAUSE, SECOND, "ann@desk", "c3"),),
    )


@pytest.mark.parametrize("verb", [C, R, P])
def test_words_are_about_the_newest_attempt_unless_one_is_named(verb: CommandVerb) -> None:
    view = journal(plan(ROLLED), plan(OPEN, proposal_id=SECOND), at_ms=NOW_MS)
    for about in (FIRST, SECOND):
        (command,) = apply_commands(
            [ask(verb, MOVE if about == FIRST else about)], view, STANDING, LIMITS, NOW_MS
        ).commands
        assert isinstance(command, CommandReceived)
        assert command.proposal_id == SECOND


def test_an_older_attempt_is_not_taken_back_beneath_a_newer_one() -> None:
    view = journal(plan(DONE, proposal_id=SECOND), plan(DONE, proposal_id=f"{FIRST}.3"), at_ms=NOW_MS)
    _, answer = after_command(view, CommandVerb.ROLLBACK, "c1", SECOND)
    assert answer.sentence == f"{SECOND} is not the latest attempt: {FIRST}.3 is done"


def test_a_journal_from_before_there_were_attempts_reads_as_first_attempts() -> None:
    """Without `plan` in an answer and `attempt` in an approval, as version 1 wrote them."""
    old = OperatorCommand("c1", CommandVerb.CANCEL, "ann@desk", NOW_MS, FIRST)
    write = answered(old, LeaderAnswer(True, "done", NOW_MS))
    assert write.value is not None
    value = {name: dict(part) for name, part in write.value.items()}
    del value["answer"]["plan"], value["command"]["attempt"]
    view = journal(plan(OPEN), JournalWrite(write.key, write.kind, value), at_ms=NOW_MS)
    assert replay_undelivered(view) == (CommandReceived(PlanCommand.CANCEL, FIRST, "ann@desk", "c1"),)
    approved = after_command(EMPTY, CommandVerb.APPROVE)[0][f"approval/{FIRST}"]
    without = {name: part for name, part in approved.value.items() if name != "attempt"}
    given = approval_of(journal(JournalWrite(approved.key, approved.kind, without), at_ms=NOW_MS), FIRST)
    assert given is not None
    assert (given.attempt, given.plan) == (1, FIRST)


def test_a_name_is_not_used_again_although_the_journal_has_dropped_the_plan() -> None:
    view, _ = after_command(journal_with_plan(OPEN), CommandVerb.CANCEL, "c1")
    dropped = {key: entry for key, entry in view.items() if not key.startswith(("plan/", "batch/"))}
    assert next_attempt((), dropped, FIRST) == PlanAttempt(FIRST, 2)
    assert next_attempt((), after_command(EMPTY, CommandVerb.APPROVE)[0], FIRST) == PlanAttempt(FIRST, 1), (
        "an approval begins nothing"
    )


# --- taking back ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [CANCELLED, FAILED])
def test_what_has_moved_is_taken_back_although_the_journal_has_dropped_its_batches(state: PlanState) -> None:
    """It keeps the newest batches of ended plans, and a plan may have had more."""
    others = tuple(TARGET._replace(id=tp(f"t-{n}")) for n in range(1, 9))
    ended = ReassignmentPlan(FIRST, (TARGET, *others), state)
    view = journal(
        plan_entries.change_writes(ended._replace(moved=moved_by(ended, {tp("t-0"), tp("t-7")}))), at_ms=NOW_MS
    )
    (command,) = apply_commands([ask(R, MOVE)], view, STANDING, LIMITS, NOW_MS).commands
    assert isinstance(command, PlanAccepted)
    assert [str(target.id) for target in command.plan.targets] == ["t-0", "t-7"]


@pytest.mark.parametrize("moved", ["", "zz", "-1", "0x1", None])
def test_a_plan_that_does_not_say_what_has_moved_is_taken_back_by_its_batches(moved: str | None) -> None:
    view = journal(plan(FAILED, moved=moved), MOVED, at_ms=NOW_MS)
    (command,) = apply_commands([ask(R, MOVE)], view, STANDING, LIMITS, NOW_MS).commands
    assert isinstance(command, PlanAccepted)
    assert [target.id for target in command.plan.targets] == [TARGET.id]


@pytest.mark.parametrize("state", [CANCELLED, FAILED])
def test_what_has_moved_of_a_plan_that_did_not_end_well_is_taken_back(state: PlanState) -> None:
    other = TARGET._replace(id=tp("t-1"))
    view = journal(plan(state, targets=(TARGET, other)), MOVED, at_ms=NOW_MS)
    (command,) = apply_commands([ask(R, MOVE)], view, STANDING, LIMITS, NOW_MS).commands
    assert isinstance(command, PlanAccepted)
    assert [target.id for target in command.plan.targets] == [TARGET.id]


@pytest.mark.parametrize(
    ("back", "name", "says"),
    [
        pytest.param(OPEN, None, f"{BACK} is taking {FIRST} back already", id="it is under way"),
        pytest.param(DONE, None, f"{BACK} has taken {FIRST} back already", id="it is back"),
        pytest.param(CANCELLED, f"{BACK}.2", f"{FIRST} is done; {BACK}.2 moves 1 partition back", id="cancelled"),
        pytest.param(FAILED, f"{BACK}.2", f"{FIRST} is done; {BACK}.2 moves 1 partition back", id="it failed"),
    ],
)
def test_a_way_back_that_did_not_get_there_is_tried_again(back: PlanState, name: str | None, says: str) -> None:
    view = journal(plan(DONE), plan(back, proposal_id=BACK), at_ms=NOW_MS)
    result = apply_commands([ask(R, MOVE)], view, STANDING, LIMITS, NOW_MS)
    assert done(result, view).sentence == says
    assert [command.plan.proposal_id for command in result.commands if isinstance(command, PlanAccepted)] == (
        [name] if name else []
    )


def test_a_way_back_that_was_promised_is_accepted_after_a_crash_and_once() -> None:
    view = journal(plan(DONE), plan(CANCELLED, proposal_id=BACK), at_ms=NOW_MS)
    promised, _ = after_command(view, CommandVerb.ROLLBACK, "c1")
    (command,) = replay_undelivered(promised)
    assert isinstance(command, PlanAccepted)
    assert command.plan.proposal_id == f"{BACK}.2"
    begun = journal(plan_entries.change_writes(command.plan), at_ms=NOW_MS, view=promised)
    assert replay_undelivered(begun) == ()


# --- what the guard would say -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "so", "says"),
    [
        pytest.param(None, True, f"approved by ann@desk; {VOID}", id="nothing was looked at yet"),
        pytest.param(ExpectedVerdict(allowed=True, sentence=""), True, f"approved by ann@desk; {VOID}", id="it begins"),
        pytest.param(
            ExpectedVerdict(allowed=False, sentence="acting is paused"),
            True,
            f"approved by ann@desk; {VOID}; held for now: acting is paused",
            id="it is held for now",
        ),
        pytest.param(
            ExpectedVerdict(allowed=False, sentence="t is not to be acted upon", comes=False),
            False,
            f"an approval does not let {FIRST} begin: t is not to be acted upon",
            id="it never comes",
        ),
        pytest.param(
            ExpectedVerdict(
                allowed=False, sentence="outside of the windows", until_ms=NOW_MS + LIMITS.approve.valid_ms
            ),
            False,
            "an approval lasts 60 min, and until 2025-10-09 09:53Z: outside of the windows",
            id="it comes after the approval is void",
        ),
    ],
)
def test_the_answer_to_an_approval_is_made_from_what_the_agent_is_going_to_do(
    seen: ExpectedVerdict | None, *, so: bool, says: str
) -> None:
    asked: list[JournalState] = []

    def foresee(_: object, view: JournalState) -> ExpectedVerdict | None:
        asked.append(view)
        return seen

    result = apply_commands([ask(A, MOVE)], EMPTY, STANDING, LIMITS, NOW_MS, foresee)
    answer = answer_to(journal(*result.writes, at_ms=NOW_MS), "c1")
    assert answer is not None
    assert (answer.answer.done, answer.answer.sentence) == (so, says)
    given = approval_of(asked[0], FIRST)
    assert given is not None, "the guard is asked about a journal that has the approval"
    assert given.plan_hash == plan_hash(MOVE)
    assert (f"approval/{FIRST}" in {write.key for write in result.writes}) is so
