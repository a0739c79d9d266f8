"""Each command takes effect once: what was answered is not obeyed again, and a crash in between loses nothing."""

from __future__ import annotations

import pytest

from agent.execute.commands.apply import CommandEffects, apply_commands, replay_undelivered
from agent.execute.reassign.messages import CommandReceived, PlanCommand
from agent.journal.approvals import ApprovalState, approval_of
from agent.journal.commands import (
    KEPT,
    CommandVerb,
    LeaderAnswer,
    OperatorCommand,
    answer_to,
    answered,
    history,
    pause_in,
)
from agent.values.reassignment import PlanState
from tests.execute.commands import EMPTY, LIMITS, MOVE, STANDING, ask, in_journal, plan
from tests.journals import journal
from tests.snapshots import NOW_MS


def test_a_command_that_was_answered_is_not_obeyed_again() -> None:
    first = apply_commands([ask(CommandVerb.PAUSE)], EMPTY, (), LIMITS, NOW_MS)
    view = journal(*first.writes, at_ms=NOW_MS)
    assert apply_commands([ask(CommandVerb.PAUSE)], view, (), LIMITS, NOW_MS) == CommandEffects()


def test_two_commands_of_one_id_are_one() -> None:
    result = apply_commands([ask(CommandVerb.PAUSE), ask(CommandVerb.RESUME)], EMPTY, (), LIMITS, NOW_MS)
    assert pause_in(journal(*result.writes, at_ms=NOW_MS)) is not None


def test_a_later_command_finds_what_an_earlier_one_changed() -> None:
    wishes = [
        ask(CommandVerb.APPROVE, MOVE, id_="c1"),
        ask(CommandVerb.CANCEL, MOVE, id_="c2"),
        ask(CommandVerb.CANCEL, MOVE, id_="c3"),
    ]
    result = apply_commands(wishes, EMPTY, STANDING, LIMITS, NOW_MS)
    view = journal(*result.writes, at_ms=NOW_MS)
    assert [answer.done for _, answer in history(view)] == [True, True, True]
    assert "is cancelled by ann@desk already" in history(view)[2].answer.sentence
    gone = approval_of(view, MOVE.id)
    assert gone is not None
    assert gone.state is ApprovalState.VOID


def test_only_the_latest_answers_are_kept() -> None:
    old = [
        answered(OperatorCommand(f"o{n:03d}", CommandVerb.PAUSE, "x", n), LeaderAnswer(True, "done", n))
        for n in range(KEPT)
    ]
    view = journal(*old, at_ms=1)
    result = apply_commands([ask(CommandVerb.PAUSE)], view, (), LIMITS, NOW_MS)
    after = journal(*result.writes, at_ms=NOW_MS, view=view)
    assert len(history(after)) == KEPT
    assert answer_to(after, "o000") is None
    assert answer_to(after, "c1") is not None


@pytest.mark.parametrize(
    ("verb", "state", "again"),
    [
        pytest.param(CommandVerb.CANCEL, PlanState.OPEN, True, id="cancelled, and it still runs"),
        pytest.param(CommandVerb.CANCEL, PlanState.CANCELLING, False, id="cancelled, and it shows"),
        pytest.param(CommandVerb.ROLLBACK, PlanState.OPEN, True, id="rolled back, and it still runs"),
        pytest.param(CommandVerb.ROLLBACK, PlanState.DONE, True, id="rolled back once done, and nothing was accepted"),
        pytest.param(CommandVerb.ROLLBACK, PlanState.ROLLED_BACK, False, id="rolled back, and it shows"),
        pytest.param(CommandVerb.PAUSE, PlanState.DONE, False, id="paused, and there is nothing left to pause"),
    ],
)
def test_a_crash_between_the_answer_and_the_mover_loses_no_word(
    verb: CommandVerb, state: PlanState, again: bool
) -> None:
    command = OperatorCommand("c1", verb, "ann@desk", NOW_MS, MOVE.id)
    view = in_journal(plan(state), answered(command, LeaderAnswer(True, "done", NOW_MS)))
    assert bool(replay_undelivered(view)) is again


@pytest.mark.parametrize(
    ("verbs", "shows_paused", "posted"),
    [
        pytest.param((CommandVerb.PAUSE,), False, PlanCommand.PAUSE, id="a pause that the plan does not show"),
        pytest.param((CommandVerb.PAUSE,), True, None, id="a pause that it shows"),
        pytest.param(
            (CommandVerb.PAUSE, CommandVerb.RESUME),
            True,
            PlanCommand.RESUME,
            id="resumed since, and it is still paused",
        ),
        pytest.param((CommandVerb.PAUSE, CommandVerb.RESUME), False, None, id="resumed since, and it goes on"),
        pytest.param((CommandVerb.RESUME, CommandVerb.PAUSE), False, PlanCommand.PAUSE, id="the last command counts"),
    ],
)
def test_a_pause_of_one_plan_is_not_lost_either(
    verbs: tuple[CommandVerb, ...], shows_paused: bool, posted: PlanCommand | None
) -> None:
    given = [
        answered(OperatorCommand(f"c{at}", verb, "ann", NOW_MS, MOVE.id), LeaderAnswer(True, "done", NOW_MS))
        for at, verb in enumerate(verbs)
    ]
    view = in_journal(plan(PlanState.OPEN, paused=shows_paused), *given)
    assert replay_undelivered(view) == (
        () if posted is None else (CommandReceived(posted, MOVE.id, "ann", f"c{len(verbs) - 1}"),)
    )


def test_a_way_back_that_was_accepted_is_not_accepted_again() -> None:
    command = OperatorCommand("c1", CommandVerb.ROLLBACK, "ann@desk", NOW_MS, MOVE.id)
    done_ = answered(command, LeaderAnswer(True, "done", NOW_MS))
    view = in_journal(plan(PlanState.DONE), done_, plan(PlanState.OPEN, proposal_id=f"{MOVE.id}-back"))
    assert replay_undelivered(view) == ()
