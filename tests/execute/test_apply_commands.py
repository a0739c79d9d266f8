"""Commands of operators: what each of them does, and which are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from agent.cli.follow import state_of
from agent.documents.journal import history_rows
from agent.execute.commands.apply import apply_commands
from agent.execute.reassign.messages import CommandReceived, PlanAccepted, PlanCommand
from agent.journal import entries
from agent.journal.approvals import ApprovalState, approval_cleanup, approval_of, plan_hash, written
from agent.journal.commands import CommandVerb, ExecutionPause, pause_in, paused
from agent.journal.entries import JournalState, JournalWrite
from agent.journal.triggers import TriggerEffect, TriggerEntry, TriggerExpectation, intent
from agent.values.proposal import Proposal, ProposalKind
from agent.values.reassignment import PlanState
from tests.execute.commands import (
    EMPTY,
    LIMITS,
    MINUTE,
    MOVE,
    STANDING,
    TRIGGER,
    TWO,
    InboxEntry,
    ask,
    done,
    in_journal,
    plan,
)
from tests.journals import journal, keys
from tests.snapshots import NOW_MS

# --- approving --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [CommandVerb.APPROVE, CommandVerb.APPLY])
@pytest.mark.parametrize("proposal", STANDING)
def test_a_person_approves_the_very_plan_with_its_options(verb: CommandVerb, proposal: Proposal) -> None:
    wish = ask(verb, proposal, reason="quiet now", throttle_bytes_per_s=5_000_000, max_moves=3)
    result = apply_commands([wish], EMPTY, STANDING, LIMITS, NOW_MS)
    assert keys(result.writes) == [
        (f"approval/{proposal.id}", "approved"), ("command/c1", "done"), ("command-position", "offset"),
    ]  # fmt: skip
    assert (result.commands, result.look_now) == ((), True)
    given = approval_of(journal(*result.writes, at_ms=NOW_MS), proposal.id)
    assert given is not None
    assert (given.by, given.reason, given.throttle_bytes_per_s, given.max_moves) == (
        "ann@desk", "quiet now", 5_000_000, 3,
    )  # fmt: skip
    assert (given.plan_hash, given.expires_ms) == (plan_hash(proposal), NOW_MS + LIMITS.approve.valid_ms)
    limits = "at 5.0 MB/s per broker and 3 partitions at a time"
    assert done(result).sentence == f"approved by ann@desk {limits}; void if it has not begun within 60 min"


@pytest.mark.parametrize(
    ("wish", "view", "says"),
    [
        pytest.param(
            ask(CommandVerb.APPROVE, "p-gone", plan_hash="x"),
            EMPTY,
            "p-gone is not an open proposal of the leading agent",
            id="nothing stands",
        ),
        pytest.param(
            ask(CommandVerb.APPROVE, MOVE, plan_hash="0" * 32),
            EMPTY,
            "has changed since it was shown",
            id="another plan",
        ),
        pytest.param(
            ask(CommandVerb.APPROVE, MOVE, plan_hash=None), EMPTY, "has changed since it", id="no plan at all"
        ),
        pytest.param(
            ask(CommandVerb.APPROVE, MOVE, throttle_bytes_per_s=1),
            EMPTY,
            "is not between execute.throttle_floor",
            id="a rate that would never end",
        ),
        pytest.param(
            ask(CommandVerb.APPROVE, MOVE, max_moves=251),
            EMPTY,
            "more than execute.max_moves_per_cluster (250)",
            id="more moves than the cluster may have",
        ),
        pytest.param(ask(CommandVerb.CANCEL, "p-gone"), EMPTY, "no proposal p-gone is known", id="nothing to cancel"),
        pytest.param(
            ask(CommandVerb.CANCEL, MOVE),
            in_journal(plan(PlanState.DONE)),
            "is done",
            id="what is done is not cancelled",
        ),
        pytest.param(ask(CommandVerb.ROLLBACK, MOVE), EMPTY, "has not begun", id="nothing to roll back"),
        pytest.param(
            ask(CommandVerb.ROLLBACK, MOVE),
            in_journal(plan(PlanState.CANCELLED)),
            "none of its partitions has moved",
            id="what was cancelled is back already",
        ),
        pytest.param(
            ask(CommandVerb.PAUSE, MOVE), EMPTY, "has not begun, so there is nothing to pause", id="no such plan"
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason_and_changes_nothing(
    wish: InboxEntry, view: JournalState, says: str
) -> None:
    result = apply_commands([wish], view, STANDING, LIMITS, NOW_MS)
    answer = done(result, view)
    assert (answer.done, says in answer.sentence) == (False, True), answer
    assert keys(result.writes) == [("command/c1", "refused"), ("command-position", "offset")]
    assert (result.commands, result.look_now) == ((), False)


def test_advice_is_for_its_owner() -> None:
    advice = MOVE._replace(kind=ProposalKind.ADVISE)
    result = apply_commands([ask(CommandVerb.APPROVE, advice)], EMPTY, [advice], LIMITS, NOW_MS)
    assert "only the owner" in done(result).sentence


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"id": "c1"}, id="no verb"),
        pytest.param({"id": "c1", "verb": "EXPLODE", "who": "x", "at_ms": 1}, id="an unknown verb"),
        pytest.param({"id": "c1", "verb": "PAUSE", "who": 7, "at_ms": 1}, id="a person who is a number"),
        pytest.param({"id": "c1", "verb": "APPROVE", "who": "x", "at_ms": 1, "max_moves": 0}, id="no moves at all"),
        pytest.param({"id": "c1", "verb": "PAUSE", "who": "x", "at_ms": []}, id="a time that is a list"),
    ],
)
def test_what_is_no_command_is_answered_and_does_nothing(value: dict[str, Any]) -> None:
    wish = InboxEntry("c1", value, JournalWrite("command-position", "offset", {"next": 1}))
    result = apply_commands([wish], EMPTY, STANDING, LIMITS, NOW_MS)
    assert keys(result.writes) == [("command/c1", "refused"), ("command-position", "offset")]


def test_long_texts_are_cut() -> None:
    result = apply_commands([ask(CommandVerb.PAUSE, reason="x" * 10_000)], EMPTY, (), LIMITS, NOW_MS)
    pause = pause_in(journal(*result.writes, at_ms=NOW_MS))
    assert pause is not None
    assert len(pause.reason) == 500


@pytest.mark.parametrize("verb", list(CommandVerb))
def test_what_sets_something_going_is_not_obeyed_long_after_it_was_asked(verb: CommandVerb) -> None:
    approved = apply_commands([ask(CommandVerb.APPROVE, MOVE)], EMPTY, STANDING, LIMITS, NOW_MS)
    view = journal(*approved.writes, at_ms=NOW_MS)
    about = MOVE if verb not in (CommandVerb.PAUSE, CommandVerb.RESUME) else None
    old = ask(verb, about, id_="c2", at_ms=NOW_MS - LIMITS.approve.valid_ms - 1)
    result = apply_commands([old], view, STANDING, LIMITS, NOW_MS)
    assert done(result, view, "c2").done is (verb in (CommandVerb.PAUSE, CommandVerb.CANCEL, CommandVerb.RESUME))


# --- a second person --------------------------------------------------------------------------------------------


def test_a_second_person_must_be_another_one() -> None:
    first = apply_commands([ask(CommandVerb.APPROVE, MOVE)], EMPTY, STANDING, TWO, NOW_MS)
    view = journal(*first.writes, at_ms=NOW_MS)
    asked = approval_of(view, MOVE.id)
    assert asked is not None
    assert (asked.state, first.look_now) == (ApprovalState.REQUESTED, False)

    again = apply_commands([ask(CommandVerb.APPROVE, MOVE, id_="c2")], view, STANDING, TWO, NOW_MS)
    assert "was requested by ann@desk; another person must approve it" in done(again, view, "c2").sentence

    other = apply_commands([ask(CommandVerb.APPROVE, MOVE, who="bob@desk", id_="c3")], view, STANDING, TWO, NOW_MS)
    given = approval_of(journal(*other.writes, at_ms=NOW_MS, view=view), MOVE.id)
    assert given is not None
    assert (given.state, given.by, given.requested_by) == (ApprovalState.APPROVED, "bob@desk", "ann@desk")


def test_a_request_that_expired_or_was_for_another_plan_is_a_new_request() -> None:
    first = apply_commands([ask(CommandVerb.APPROVE, MOVE)], EMPTY, STANDING, TWO, NOW_MS)
    view = journal(*first.writes, at_ms=NOW_MS)
    late = NOW_MS + TWO.approve.valid_ms
    other = apply_commands([ask(CommandVerb.APPROVE, MOVE, who="bob@desk", id_="c3")], view, STANDING, TWO, late)
    given = approval_of(journal(*other.writes, at_ms=late, view=view), MOVE.id)
    assert given is not None
    assert (given.state, given.by) == (ApprovalState.REQUESTED, "bob@desk")


def test_a_trigger_needs_no_second_person() -> None:
    result = apply_commands([ask(CommandVerb.APPROVE, TRIGGER)], EMPTY, STANDING, TWO, NOW_MS)
    given = approval_of(journal(*result.writes, at_ms=NOW_MS), TRIGGER.id)
    assert given is not None
    assert given.state is ApprovalState.APPROVED


# --- cancelling, rolling back, pausing --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "state", "command"),
    [
        pytest.param(CommandVerb.CANCEL, PlanState.OPEN, PlanCommand.CANCEL, id="cancel what runs"),
        pytest.param(CommandVerb.CANCEL, PlanState.ELECTING, PlanCommand.CANCEL, id="cancel what elects"),
        pytest.param(CommandVerb.ROLLBACK, PlanState.OPEN, PlanCommand.ROLLBACK, id="roll back what runs"),
        pytest.param(CommandVerb.PAUSE, PlanState.OPEN, PlanCommand.PAUSE, id="pause one plan"),
        pytest.param(CommandVerb.RESUME, PlanState.OPEN, PlanCommand.RESUME, id="go on with one plan"),
    ],
)
def test_a_command_about_a_plan_goes_to_the_executor(verb: CommandVerb, state: PlanState, command: PlanCommand) -> None:
    result = apply_commands(
        [ask(verb, MOVE)], in_journal(plan(state, paused=command is PlanCommand.RESUME)), STANDING, LIMITS, NOW_MS
    )
    assert result.commands == (CommandReceived(command, MOVE.id, "ann@desk", "c1"),)
    assert done(result).done


def test_cancelling_what_was_not_begun_voids_its_approval() -> None:
    approved = apply_commands([ask(CommandVerb.APPROVE, MOVE)], EMPTY, STANDING, LIMITS, NOW_MS)
    view = journal(*approved.writes, at_ms=NOW_MS)
    result = apply_commands(
        [ask(CommandVerb.CANCEL, MOVE, id_="c2", reason="not today")], view, STANDING, LIMITS, NOW_MS
    )
    gone = approval_of(journal(*result.writes, at_ms=NOW_MS, view=view), MOVE.id)
    assert gone is not None
    assert (gone.state, gone.sentence) == (ApprovalState.VOID, "cancelled by ann@desk (not today)")
    followed = state_of(journal(*result.writes, at_ms=NOW_MS, view=view), MOVE.id)
    assert (followed.code, followed.sentence) == (1, "void: cancelled by ann@desk (not today)")
    assert result.commands == ()


def test_what_is_done_is_rolled_back_by_a_plan_of_its_own() -> None:
    view = in_journal(plan(PlanState.DONE))
    result = apply_commands([ask(CommandVerb.ROLLBACK, MOVE, reason="worse")], view, STANDING, LIMITS, NOW_MS)
    (command,) = result.commands
    assert isinstance(command, PlanAccepted)
    assert (command.plan.proposal_id, command.plan.approved_by) == (f"{MOVE.id}-back", "ann@desk")
    assert command.plan.reason == f"rollback of {MOVE.id} (worse)"
    assert [(target.before, target.after) for target in command.plan.targets] == [((1, 2), (1, 4))]


def test_acting_is_paused_and_goes_on() -> None:
    result = apply_commands([ask(CommandVerb.PAUSE, reason="sale")], EMPTY, (), LIMITS, NOW_MS)
    view = journal(*result.writes, at_ms=NOW_MS)
    assert pause_in(view) == ExecutionPause("ann@desk", "sale", NOW_MS)
    again = apply_commands([ask(CommandVerb.PAUSE, who="bob@desk", id_="c2")], view, (), LIMITS, NOW_MS)
    assert done(again, view, "c2").sentence == "acting was paused by ann@desk already (sale)"
    assert pause_in(journal(*again.writes, at_ms=NOW_MS, view=view)) == ExecutionPause("ann@desk", "sale", NOW_MS)
    on = apply_commands([ask(CommandVerb.RESUME, id_="c3")], view, (), LIMITS, NOW_MS + 5 * MINUTE)
    assert done(on, view, "c3")[:2] == (True, "acting continues; it was paused by ann@desk for 5 min")
    soon = apply_commands([ask(CommandVerb.RESUME, id_="c4")], view, (), LIMITS, NOW_MS + 7_000)
    assert done(soon, view, "c4").sentence == "acting continues; it was paused by ann@desk for 7 s"
    assert done(apply_commands([ask(CommandVerb.RESUME)], EMPTY, (), LIMITS, NOW_MS))[:2] == (
        True,
        "acting was not paused",
    )
    assert pause_in(journal(*on.writes, at_ms=NOW_MS, view=view)) is None
    assert on.look_now


# --- approvals that no longer hold ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("standing", "begun", "now_ms", "says"),
    [
        pytest.param(STANDING, False, NOW_MS + MINUTE, None, id="it holds"),
        pytest.param((), False, NOW_MS + MINUTE, "the approved plan is no longer proposed", id="nothing stands"),
        pytest.param(
            (MOVE._replace(snapshot_hash="changed"),), False, NOW_MS + MINUTE,
            "the plan is not the one that was approved", id="the world changed",
        ),
        pytest.param(
            STANDING,
            False,
            NOW_MS + 62 * MINUTE,
            "it expired 2 min ago, and the plan had not begun",
            id="it expired",
        ),
        pytest.param((), True, NOW_MS + 62 * MINUTE, None, id="what was begun goes on whatever is proposed"),
    ],
)  # fmt: skip
def test_an_approval_is_void_as_soon_as_its_plan_does_not_stand(
    standing: tuple[Proposal, ...], begun: bool, now_ms: int, says: str | None
) -> None:
    view = journal(
        *apply_commands([ask(CommandVerb.APPROVE, MOVE)], EMPTY, STANDING, LIMITS, NOW_MS).writes, at_ms=NOW_MS
    )
    ids = frozenset({MOVE.id}) if begun else frozenset[str]()
    writes = approval_cleanup(view, standing, ids, now_ms)
    assert [write.value and write.value["sentence"] for write in writes] == ([] if says is None else [says])
    after = journal(*writes, at_ms=now_ms, view=view)
    assert approval_cleanup(after, standing, ids, now_ms) == (), "told once"


def test_a_pause_survives_whatever_else_is_written() -> None:
    view = in_journal(paused(ExecutionPause("ann", "", 1)))
    result = apply_commands([ask(CommandVerb.APPROVE, MOVE)], view, STANDING, LIMITS, NOW_MS)
    assert pause_in(journal(*result.writes, at_ms=NOW_MS, view=view)) == ExecutionPause("ann", "", 1)


# --- what is no command, and faults -----------------------------------------------------------------------------


HOSTILE = [
    pytest.param({"at_ms": 10**400}, "at_ms", id="a time of 400 digits"),
    pytest.param({"at_ms": 2**62}, "at_ms", id="a time that has no date"),
    pytest.param({"at_ms": -(10**400)}, "at_ms", id="a time before all"),
    pytest.param({"at_ms": 1.5}, "int expected", id="a time with a fraction"),
    pytest.param({"max_moves": 10**400}, "64 bits", id="a number of moves of 400 digits"),
    pytest.param({"throttle_bytes_per_s": 2**63}, "64 bits", id="a throttle beyond 64 bits"),
    pytest.param({"attempt": 10**30}, "64 bits", id="an attempt beyond 64 bits"),
    pytest.param({"proposal_id": "p" * 60_000}, "500 characters", id="a proposal with a long name"),
    pytest.param({"plan_hash": "p" * 60_000}, "500 characters", id="a long digest"),
    pytest.param({"who": None}, "str expected", id="no name of a person"),
    pytest.param({"verb": "x" * 60_000}, "no operator command", id="a verb as long as the record"),
]


@pytest.mark.parametrize("verb", list(CommandVerb))
@pytest.mark.parametrize(("fields", "why"), HOSTILE)
def test_a_command_beyond_its_bounds_is_refused_and_the_next_one_is_obeyed(
    verb: CommandVerb, fields: Mapping[str, Any], why: str
) -> None:
    wish = ask(verb, MOVE)
    bad = wish._replace(value={**wish.value, **fields})
    result = apply_commands([bad, ask(CommandVerb.PAUSE, id_="c2")], EMPTY, STANDING, LIMITS, NOW_MS)
    assert not done(result).done
    assert why in done(result).sentence
    assert len(done(result).sentence) < 400
    assert done(result, name="c2").done


def test_a_fault_in_one_command_answers_it_and_the_next_one_is_obeyed() -> None:
    def broken(_proposal: Proposal, _view: JournalState) -> None:
        raise ZeroDivisionError("division by zero")

    asked = [ask(CommandVerb.APPROVE, MOVE), ask(CommandVerb.PAUSE, id_="c2")]
    result = apply_commands(asked, EMPTY, STANDING, LIMITS, NOW_MS, broken)
    assert not done(result).done
    assert "internal error of rackwise (ZeroDivisionError: division by zero)" in done(result).sentence
    assert done(result, name="c2").done


def test_a_command_that_no_journal_can_hold_is_refused_and_the_next_one_is_obeyed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entries, "MAX_VALUE_BYTES", 600)
    asked = [ask(CommandVerb.PAUSE, reason="x" * 500), ask(CommandVerb.PAUSE, id_="c2")]
    result = apply_commands(asked, EMPTY, STANDING, LIMITS, NOW_MS)
    assert "is too big" in done(result).sentence
    assert done(result, name="c2").done


@pytest.mark.parametrize("verb", [CommandVerb.CANCEL, CommandVerb.ROLLBACK, CommandVerb.PAUSE, CommandVerb.RESUME])
def test_a_proposal_that_is_not_known_is_told_from_one_that_has_not_begun(verb: CommandVerb) -> None:
    nothing = done(apply_commands([ask(verb, "p-000000000000")], EMPTY, STANDING, LIMITS, NOW_MS))
    assert nothing.sentence.startswith("no proposal p-000000000000 is known: it is not open")
    approved = journal(
        *apply_commands([ask(CommandVerb.APPROVE, MOVE)], EMPTY, STANDING, LIMITS, NOW_MS).writes, at_ms=NOW_MS
    )
    known = done(apply_commands([ask(verb, MOVE, id_="c2")], approved, (), LIMITS, NOW_MS), approved, "c2")
    assert (nothing.unknown, known.unknown) == (True, False)
    assert "is known" not in known.sentence
    assert ("has not begun" in known.sentence) is (verb is not CommandVerb.CANCEL)


def test_an_approval_whose_rebalance_was_triggered_is_used_and_not_void() -> None:
    view = journal(
        *apply_commands([ask(CommandVerb.APPROVE, MOVE)], EMPTY, STANDING, LIMITS, NOW_MS).writes, at_ms=NOW_MS
    )
    for effect, says in (
        (TriggerEffect.REBALANCING, "the rebalance"),
        (TriggerEffect.NOT_SENT, "the approved plan"),
    ):
        entry = TriggerEntry(
            group_id="g", proposal_id=MOVE.id, reason="WARMUP_PROMOTABLE", intended_ms=NOW_MS + 1_000, effect=effect,
            expected=TriggerExpectation(generation=None, readers=(), holds={}, moves=(), items=0),
        )  # fmt: skip
        after = journal(intent(entry), at_ms=NOW_MS, view=view)
        after = journal(*approval_cleanup(after, (), frozenset(), NOW_MS + 4_000), at_ms=NOW_MS, view=after)
        gone = approval_of(after, MOVE.id)
        assert gone is not None
        assert gone.sentence.startswith(says)
        assert gone.state is ApprovalState.VOID, "it lets no other rebalance begin"
        (told,) = [one for one in history_rows(after) if one["what"] == "approval"]
        assert told["state"] == ("used" if gone.used else "void")
        followed = state_of(after, MOVE.id)
        assert (followed.code is None) is gone.used, "who follows it waits for the judgement"


def test_an_approval_that_no_command_of_the_history_left_is_a_row_of_its_own() -> None:
    """Its sentence begins as that of an earlier one, which held for longer."""
    limits = replace(LIMITS, approve=replace(LIMITS.approve, valid_ms=150 * MINUTE))
    view = journal(
        *apply_commands([ask(CommandVerb.APPROVE, MOVE)], EMPTY, STANDING, limits, NOW_MS).writes, at_ms=NOW_MS
    )
    assert [row["what"] for row in history_rows(view)] == ["approve"]
    approval = approval_of(view, MOVE.id)
    assert approval is not None
    assert approval.sentence.endswith("within 2 h 30 min")
    later = approval._replace(at_ms=NOW_MS + 1, sentence=approval.sentence.removesuffix(" 30 min"))
    view = journal(written(later), at_ms=NOW_MS + 1, view=view)
    assert [row["what"] for row in history_rows(view)] == ["approve", "approval"]
