"""The whole answer to a command in every state of a plan: its sentence, its plan, and the command to the executor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.execute.commands.apply import apply_commands, replay_undelivered
from agent.execute.reassign.messages import CommandReceived, PlanAccepted, PlanCommand
from agent.journal import plan_entries
from agent.journal.commands import CommandVerb, LeaderAnswer, OperatorCommand, answered
from agent.journal.entries import JournalState
from agent.values.limits import ExecuteLimits
from agent.values.reassignment import Batch, BatchState, PartitionEnd, PartitionEndReason, PlanState
from config.value_kinds import parse_size
from tests.execute.commands import EMPTY, LIMITS, MINUTE, MOVE, STANDING, TARGET, ask, done, in_journal, plan
from tests.snapshots import NOW_MS, tp

CANCEL, ROLLBACK, PAUSE, RESUME, APPROVE = (
    CommandVerb.CANCEL,
    CommandVerb.ROLLBACK,
    CommandVerb.PAUSE,
    CommandVerb.RESUME,
    CommandVerb.APPROVE,
)
OPEN, ELECTING, CANCELLING, ROLLING_BACK = (
    PlanState.OPEN, PlanState.ELECTING, PlanState.CANCELLING, PlanState.ROLLING_BACK,
)  # fmt: skip
DONE, CANCELLED, ROLLED_BACK, FAILED = PlanState.DONE, PlanState.CANCELLED, PlanState.ROLLED_BACK, PlanState.FAILED
TAKEN_BACK = "P is rolling back: its moves, finished and in progress, are taken back"
STOPS = (
    "P is cancelling: its rollback stops, no new batch begins, and moves in progress are taken back; partitions that "
    "were moved back stay so"
)
HELD = "P: no new batch of it begins; moves in progress continue"
AGAIN = "attempt 2 approved by ann@desk; void if it has not begun within 60 min"


@pytest.mark.parametrize(
    ("verb", "state", "sentence", "about", "sent"),
    [
        (CANCEL, OPEN, "P is cancelling: no new batch begins, and moves in progress are taken back", "P",
         PlanCommand.CANCEL),
        (CANCEL, ELECTING, "P is cancelling: all its moves have ended, and no more leaders are elected", "P",
         PlanCommand.CANCEL),
        (CANCEL, CANCELLING, "P is cancelling already", "P", None),
        (CANCEL, ROLLING_BACK, STOPS, "P", PlanCommand.CANCEL),
        (CANCEL, DONE, "P is done, so there is nothing to cancel", None, None),
        (CANCEL, CANCELLED, "P is cancelled already", "P", None),
        (CANCEL, ROLLED_BACK, "P is rolled back, so there is nothing to cancel", None, None),
        (CANCEL, FAILED, "P has failed, so there is nothing to cancel", None, None),
        (ROLLBACK, OPEN, TAKEN_BACK, "P", PlanCommand.ROLLBACK),
        (ROLLBACK, ELECTING, TAKEN_BACK, "P", PlanCommand.ROLLBACK),
        (ROLLBACK, CANCELLING, TAKEN_BACK, "P", PlanCommand.ROLLBACK),
        (ROLLBACK, ROLLING_BACK, "P is rolling back already", "P", None),
        (ROLLBACK, CANCELLED, "P is cancelled and none of its partitions has moved: nothing to take back",
         None, None),
        (ROLLBACK, ROLLED_BACK, "P is rolled back already", "P", None),
        (ROLLBACK, FAILED, "P has failed and none of its partitions has moved: nothing to take back", None,
         None),
        (PAUSE, OPEN, HELD, "P", PlanCommand.PAUSE),
        (PAUSE, ROLLING_BACK, HELD, "P", PlanCommand.PAUSE),
        (PAUSE, CANCELLING, "P is cancelling, which is not paused", None, None),
        (PAUSE, DONE, "P is done, so there is nothing to pause", None, None),
        (PAUSE, FAILED, "P has failed, so there is nothing to pause", None, None),
        (RESUME, OPEN, "P is not paused", "P", None),
        (RESUME, CANCELLING, "P is cancelling, which is not paused", None, None),
        (RESUME, ROLLED_BACK, "P is rolled back, so there is nothing to resume", None, None),
        (APPROVE, OPEN, "P is in progress already, approved by ann@desk", "P", None),
        (APPROVE, CANCELLING, "P is cancelling; it can be approved again once that has ended", None, None),
        (APPROVE, ROLLING_BACK, "P is rolling back; it can be approved again once that has ended", None,
         None),
        (APPROVE, DONE, AGAIN, "P.2", None),
        (APPROVE, ROLLED_BACK, AGAIN, "P.2", None),
    ],
    ids=lambda value: getattr(value, "name", None),
)  # fmt: skip
def test_the_answer_names_the_plan_and_says_what_happens(
    verb: CommandVerb, state: PlanState, sentence: str, about: str | None, sent: PlanCommand | None
) -> None:
    view = in_journal(plan(state, moved="0"))
    shown = 2 if about == "P.2" else 1
    result = apply_commands([ask(verb, MOVE, attempt=shown)], view, STANDING, LIMITS, NOW_MS)
    answer = done(result, view)
    assert answer.sentence.replace(MOVE.id, "P") == sentence
    assert answer.done is (about is not None), "what is refused is about no plan"
    assert answer.plan == (None if about is None else about.replace("P", MOVE.id))
    assert result.commands == (() if sent is None else (CommandReceived(sent, MOVE.id, "ann@desk", "c1"),))


@pytest.mark.parametrize("state", [DONE, CANCELLED, FAILED])
def test_what_has_moved_is_taken_back_by_a_plan_that_lasts_as_long_as_an_approval(state: PlanState) -> None:
    view = in_journal(plan(state, moved="1"))
    result = apply_commands(
        [ask(ROLLBACK, MOVE, throttle_bytes_per_s=5_000_000, max_moves=2)], view, STANDING, LIMITS, NOW_MS
    )
    answer = done(result, view)
    verb = "has" if state is FAILED else "is"
    limits = "at 5.0 MB/s per broker and 2 partitions at a time"
    assert answer.sentence == f"{MOVE.id} {verb} {state.value}; {MOVE.id}-back moves 1 partition back {limits}"
    assert answer.plan == f"{MOVE.id}-back"
    (command,) = result.commands
    assert isinstance(command, PlanAccepted)
    assert command.plan.begin_by_ms == NOW_MS + LIMITS.approve.valid_ms
    assert (command.plan.throttle_bytes_per_s, command.plan.max_moves) == (5_000_000, 2)


def test_a_plan_of_before_that_does_not_say_what_it_moved_is_known_by_its_own_batches() -> None:
    """The batches of another plan say nothing of it."""
    second = TARGET._replace(id=tp("t-1"))
    failed = plan(FAILED, targets=(TARGET, second), moved=None)
    ended = tuple(PartitionEnd(target.id, PartitionEndReason.DONE) for target in (TARGET, second))
    own = Batch(
        MOVE.id,
        1,
        (TARGET, second),
        BatchState.CLOSED,
        ends=(ended[0], PartitionEnd(second.id, PartitionEndReason.BACK)),
    )
    other = Batch("p-other", 1, (TARGET, second), BatchState.CLOSED, ends=ended)
    result = apply_commands(
        [ask(ROLLBACK, MOVE)],
        in_journal(failed, plan_entries.change_writes(own), plan_entries.change_writes(other)),
        STANDING,
        LIMITS,
        NOW_MS,
    )
    (command,) = result.commands
    assert isinstance(command, PlanAccepted)
    assert [target.id for target in command.plan.targets] == [TARGET.id]
    without = apply_commands(
        [ask(ROLLBACK, MOVE)], in_journal(failed, plan_entries.change_writes(other)), STANDING, LIMITS, NOW_MS
    )
    assert without.commands == ()


def test_a_way_back_that_was_asked_for_twice_is_handed_over_once() -> None:
    asked = [
        answered(
            OperatorCommand(name, ROLLBACK, who, NOW_MS, MOVE.id), LeaderAnswer(True, "x", NOW_MS, f"{MOVE.id}-back")
        )
        for name, who in (("c1", "ann@desk"), ("c2", "bob@desk"))
    ]
    (command,) = replay_undelivered(in_journal(plan(DONE), *asked), 30 * MINUTE)
    assert isinstance(command, PlanAccepted)
    assert (command.plan.proposal_id, command.plan.approved_by) == (f"{MOVE.id}-back", "bob@desk")
    assert command.plan.begin_by_ms == NOW_MS + 30 * MINUTE


def test_what_nobody_approved_is_cancelled_against_rules_alone() -> None:
    result = apply_commands([ask(CANCEL, MOVE)], EMPTY, STANDING, LIMITS, NOW_MS)
    assert done(result).sentence == (
        f"{MOVE.id} is cancelled: no rule approves it; approve it with: rackwise proposals approve {MOVE.id}"
    )


@pytest.mark.parametrize(("state", "how"), [(OPEN, "is taking"), (DONE, "has taken")])
def test_a_plan_that_is_taken_back_already_is_answered_with_the_plan_that_does_it(state: PlanState, how: str) -> None:
    view = in_journal(plan(DONE), plan(state, proposal_id=f"{MOVE.id}-back"))
    answer = done(apply_commands([ask(ROLLBACK, MOVE)], view, STANDING, LIMITS, NOW_MS), view)
    assert answer.sentence == f"{MOVE.id}-back {how} {MOVE.id} back already"
    assert (answer.done, answer.plan) == (True, f"{MOVE.id}-back")


def test_limits_up_to_those_of_the_settings_are_taken() -> None:
    low, high = LIMITS.execute.throttle_floor, LIMITS.execute.throttle_ceiling
    for rate, most in ((low, LIMITS.execute.max_moves_per_cluster), (high, 1)):
        wish = ask(APPROVE, MOVE, throttle_bytes_per_s=rate, max_moves=most)
        assert done(apply_commands([wish], EMPTY, STANDING, LIMITS, NOW_MS)).done
    for changes in ({"throttle_bytes_per_s": low - 1}, {"throttle_bytes_per_s": high + 1}):
        assert not done(apply_commands([ask(APPROVE, MOVE, **changes)], EMPTY, STANDING, LIMITS, NOW_MS)).done


def test_a_refused_rate_has_units_and_both_settings_their_whole_names() -> None:
    answer = done(apply_commands([ask(APPROVE, MOVE, throttle_bytes_per_s=5)], EMPTY, STANDING, LIMITS, NOW_MS))
    assert answer.sentence.endswith(
        "a rate of 5 B/s is not between execute.throttle_floor (1.0 MB/s) and execute.throttle_ceiling (100 MB/s)"
    )


@pytest.mark.parametrize("state", [DONE, CANCELLED, FAILED])
def test_a_way_back_keeps_the_limits_of_the_plan_and_its_answer_names_them(state: PlanState) -> None:
    view = in_journal(plan(state, moved="1", throttle_bytes_per_s=1_000_000, max_moves=1))
    result = apply_commands([ask(ROLLBACK, MOVE)], view, STANDING, LIMITS, NOW_MS)
    (command,) = result.commands
    assert isinstance(command, PlanAccepted)
    assert (command.plan.throttle_bytes_per_s, command.plan.max_moves) == (1_000_000, 1)
    told = f"{MOVE.id}-back moves 1 partition back at 1.0 MB/s per broker and 1 partition at a time"
    assert done(result, view).sentence.endswith(told)
    assert (
        replay_undelivered(
            in_journal(plan(state, moved="1", throttle_bytes_per_s=1_000_000, max_moves=1), *result.writes),
            LIMITS.approve.valid_ms,
        )
        == result.commands
    )


def test_a_rollback_of_a_plan_in_progress_names_the_limits_that_it_keeps() -> None:
    view = in_journal(plan(OPEN, max_moves=1))
    answer = done(apply_commands([ask(ROLLBACK, MOVE)], view, STANDING, LIMITS, NOW_MS), view)
    assert answer.sentence.endswith("are taken back at 1 partition at a time")


@pytest.mark.parametrize(
    ("wish", "view", "todo"),
    [
        pytest.param(
            ask(APPROVE, MOVE, throttle_bytes_per_s=50_000), EMPTY,
            "Give --throttle 1MB/s or more, or lower execute.throttle_floor.", id="a rate below the floor",
        ),
        pytest.param(
            ask(APPROVE, MOVE, throttle_bytes_per_s=1 << 40), EMPTY,
            "Give --throttle 100MB/s or less, or raise execute.throttle_ceiling.", id="a rate above the ceiling",
        ),
        pytest.param(
            ask(APPROVE, MOVE, max_moves=251), EMPTY,
            "Give --max-moves 250 or fewer, or raise execute.max_moves_per_cluster.", id="more moves than the limit",
        ),
        pytest.param(
            ask(APPROVE, MOVE, plan_hash="0" * 32), EMPTY,
            f"See it as it is now: rackwise explain {MOVE.id}", id="another plan",
        ),
        pytest.param(
            ask(APPROVE, "p-gone", plan_hash="x"), EMPTY, "List the open proposals: rackwise proposals", id="not open"
        ),
        pytest.param(
            ask(APPROVE, MOVE, max_moves=7), in_journal(plan(OPEN)),
            f"Leave out --throttle and --max-moves, or cancel it first: rackwise reassign cancel {MOVE.id}",
            id="other limits while it is in progress",
        ),
        pytest.param(
            ask(CANCEL, MOVE), in_journal(plan(DONE)), f"Take it back: rackwise reassign rollback {MOVE.id}",
            id="a cancel of what is done",
        ),
    ],
)  # fmt: skip
def test_a_refusal_has_the_remedy_of_its_own_cause(wish: Any, view: JournalState, todo: str) -> None:
    answer = done(apply_commands([wish], view, STANDING, LIMITS, NOW_MS), view)
    assert (answer.done, answer.todo) == (False, todo)


def test_the_rate_of_a_remedy_is_the_bound_itself() -> None:
    limits = replace(LIMITS, execute=ExecuteLimits(throttle_floor=1_234_567))
    answer = done(apply_commands([ask(APPROVE, MOVE, throttle_bytes_per_s=5)], EMPTY, STANDING, limits, NOW_MS))
    assert answer.todo == "Give --throttle 1234567/s or more, or lower execute.throttle_floor."
    rate = parse_size(answer.todo.split()[2])
    assert done(apply_commands([ask(APPROVE, MOVE, throttle_bytes_per_s=rate)], EMPTY, STANDING, limits, NOW_MS)).done
