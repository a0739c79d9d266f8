"""The guard in mode execute: who leads, what was begun, settings and schedule, budgets, and the order of reasons."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.guard.judge import explained, guard
from agent.journal.approvals import ApprovalState, by_rule, voided
from agent.journal.commands import ExecutionPause, paused
from agent.journal.entries import JournalState, JournalWrite
from agent.journal.record_trust import LeaderEntry, leader_write
from agent.journal.triggers import TriggerEffect, TriggerVerdict
from agent.values.clock import TimeWindow, TimeWindowSet
from agent.values.limits import AgentMode, TriggerLimits
from agent.values.memory import Memory
from agent.values.plan import RuleAnswer
from agent.values.proposal import Allow, Hold, HoldReason, PlanAttempt
from agent.values.reassignment import BatchState, PlanState
from tests.guard.acting import (
    ELSEWHEN,
    EMPTY_JOURNAL,
    HOUR,
    MINUTE,
    SMALL,
    approval,
    batch,
    held,
    judged,
    limits_of,
    only,
    plan_of,
    promoted,
    triggered,
    with_approval,
)
from tests.guard.test_judge import shared, swapped
from tests.journals import journal
from tests.snapshots import NOW_MS, Builder

# --- who leads, and what is paused ------------------------------------------------------------------------------

LEADER = LeaderEntry("rw-1", "host", 1, "cluster", 0)


def test_without_a_journal_nothing_is_done() -> None:
    snapshot, proposal = only(swapped())
    (answer,) = guard([proposal], snapshot, Memory(), limits_of(), None)
    assert isinstance(answer, Hold)
    assert answer.reason is HoldReason.NOT_LEADING


def test_a_journal_that_cannot_be_read_holds_everything() -> None:
    view = with_approval(shared(), JournalWrite("plan/p-1", "open", {"from": "a newer release"}))
    answer = held(shared(), view)
    assert answer.reason is HoldReason.UNKNOWN
    assert "cannot be read from the journal" in answer.sentence


@pytest.mark.parametrize(
    ("view", "changes", "says"),
    [
        pytest.param(
            EMPTY_JOURNAL, {"cluster__id": "other"}, "cluster.id allows changes of other only",
            id="not the one that is set",
        ),
        pytest.param(
            journal(leader_write(LEADER._replace(cluster="other")), at_ms=NOW_MS), {},
            "the journal is of cluster other", id="not the one of the journal",
        ),
    ],
)  # fmt: skip
def test_another_cluster_is_never_touched(view: JournalState, changes: dict[str, object], says: str) -> None:
    answer = held(swapped(), view, **changes)
    assert answer.reason is HoldReason.WRONG_CLUSTER
    assert says in answer.sentence


@pytest.mark.parametrize("built", [shared(), swapped(), promoted()])
def test_a_pause_holds_everything_and_says_who_and_why(built: Builder) -> None:
    view = with_approval(built, paused(ExecutionPause("ann@desk", "big sale", NOW_MS - 90 * MINUTE)))
    answer = held(built, view)
    assert answer.reason is HoldReason.PAUSED
    assert answer.sentence == "held: ann@desk paused acting 90 min ago (big sale); resume with: rackwise resume"


def test_a_pause_that_cannot_be_read_is_a_pause() -> None:
    assert held(swapped(), journal(JournalWrite("pause", "paused", {"x": 1}), at_ms=NOW_MS)).reason is HoldReason.PAUSED


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({}, "it is in progress (open), approved by ann@desk", id="it runs"),
        pytest.param({"paused": True}, "it is in progress (open, paused), approved by ann@desk", id="it is paused"),
        pytest.param({"approved_by": ""}, "approved by an unknown", id="an older journal does not tell by whom"),
    ],
)
def test_one_attempt_is_in_progress_at_a_time(changes: dict[str, object], says: str) -> None:
    answer = held(shared(), with_approval(shared(), plan_of(shared(), PlanState.OPEN, **changes)))
    assert answer.reason is HoldReason.BEGUN
    assert says in answer.sentence


ENDED = [PlanState.DONE, PlanState.CANCELLED, PlanState.ROLLED_BACK, PlanState.FAILED]
COOL = {"execute__cooldown_ms": 0}


@pytest.mark.parametrize("state", ENDED)
def test_the_approval_of_an_ended_attempt_is_good_for_no_other(state: PlanState) -> None:
    answer = held(shared(), with_approval(shared(), plan_of(shared(), state)), **COOL)
    assert answer.reason is HoldReason.NEEDS_APPROVAL
    assert answer.sentence.startswith("held: attempt 2: it is not approved; approve it with: ")


@pytest.mark.parametrize("state", ENDED)
def test_what_ended_begins_again_as_the_attempt_that_was_approved(state: PlanState) -> None:
    view = with_approval(shared(), plan_of(shared(), state), approval(shared(), attempt=2))
    answer = judged(shared(), view, **COOL)
    assert isinstance(answer, Allow), answer
    assert answer.attempt == PlanAttempt(answer.proposal_id, 2)
    assert isinstance(held(shared(), view, execute__cooldown_ms=MINUTE), Hold), "and the cooldown holds it as any other"


@pytest.mark.parametrize("state", ENDED)
def test_a_rule_repeats_nothing_that_ended(state: PlanState) -> None:
    view = journal(plan_of(shared(), state), at_ms=NOW_MS)
    assert isinstance(judged(shared(), EMPTY_JOURNAL, approve__rules=(SMALL,), **COOL), Allow)
    answer = held(shared(), view, approve__rules=(SMALL,), **COOL)
    assert answer.reason is HoldReason.NEEDS_APPROVAL
    assert "rules approve first attempts only" in answer.sentence


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        pytest.param({"execute__exclude_topics": ("t*",)}, False, id="left out by the settings"),
        pytest.param({"cluster__id": "other"}, False, id="another cluster"),
        pytest.param({"windows": TimeWindowSet(allow=(ELSEWHEN,))}, True, id="outside its window"),
        pytest.param({}, True, id="not approved yet"),
    ],
)
def test_an_explanation_says_wait_only_of_what_can_come(changes: dict[str, object], *, waits: bool) -> None:
    snapshot, proposal = only(shared())
    rows = explained(proposal, snapshot, Memory(), limits_of(**changes), EMPTY_JOURNAL)
    said = {row.answer for row in rows} - {RuleAnswer.YES}
    assert (RuleAnswer.NO in said) is not waits
    assert not any(row.sentence.startswith("held") for row in rows)


# --- settings and schedule --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("built", "changes", "reason", "says"),
    [
        pytest.param(
            shared(), {"execute__exclude_topics": ("t*",)}, HoldReason.EXCLUDED, "(execute.exclude_topics)",
            id="an excluded topic",
        ),
        pytest.param(
            shared(), {"execute__include_topics": ("x",)}, HoldReason.EXCLUDED, "matches no pattern of execute",
            id="no included topic",
        ),
        pytest.param(
            swapped(), {"execute__exclude_groups": ("g",)}, HoldReason.EXCLUDED, "(execute.exclude_groups)",
            id="an excluded group",
        ),
        pytest.param(
            swapped(), {"execute__include_groups": ("h",)}, HoldReason.EXCLUDED, "pattern of execute.include_groups",
            id="no included group",
        ),
        pytest.param(
            swapped(), {"windows": TimeWindowSet(allow=(ELSEWHEN,))}, HoldReason.OUTSIDE_WINDOW,
            "outside the windows that allow it (never-now), until", id="outside of the window",
        ),
        pytest.param(
            shared(), {"windows": TimeWindowSet(blackout=(TimeWindow("dark", "UTC"),))}, HoldReason.OUTSIDE_WINDOW,
            "blackout dark is on, and no opening within 400 days", id="in a blackout",
        ),
        pytest.param(
            promoted(), {"probing__enabled": False}, HoldReason.GROUP_REFUSED, "switched off (probing.enabled)",
            id="promotions are switched off",
        ),
        pytest.param(
            swapped(), {"trigger": TriggerLimits()}, HoldReason.GROUP_REFUSED, "counts as yes",
            id="a plain consumer whose transactions are unknown",
        ),
    ],
)  # fmt: skip
def test_settings_and_schedule_hold_what_was_approved(
    built: Builder, changes: dict[str, object], reason: HoldReason, says: str
) -> None:
    answer = held(built, with_approval(built), **changes)
    assert (answer.reason, says in answer.sentence) == (reason, True), answer.sentence


def test_a_window_of_other_kinds_does_not_hold() -> None:
    windows = TimeWindowSet(allow=(ELSEWHEN._replace(kinds=frozenset({"reassign"})),))
    assert isinstance(judged(swapped(), EMPTY_JOURNAL, windows=windows), Allow)
    assert held(shared(), with_approval(shared()), windows=windows).until_ms is not None


# --- budgets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("built", "writes", "changes", "says", "until"),
    [
        pytest.param(
            swapped(), [triggered("h", NOW_MS - 50 * MINUTE)], {"trigger__budget_per_hour": 1},
            "1 of 1 trigger in the last hour", 10 * MINUTE, id="the hour's triggers are used up",
        ),
        pytest.param(
            swapped(), [triggered("h", NOW_MS - 23 * HOUR), triggered("i", NOW_MS - 2 * HOUR)],
            {"trigger__budget_per_day": 2}, "2 of 2 triggers in the last day", HOUR,
            id="the day's triggers are used up",
        ),
        pytest.param(
            swapped(), [triggered("g", NOW_MS - 40 * MINUTE, verdict=TriggerVerdict.AS_PREDICTED)],
            {"trigger__budget_per_group_per_hour": 1}, "1 of 1 trigger of group g in the last hour", 20 * MINUTE,
            id="the group's triggers are used up",
        ),
        pytest.param(
            shared(), [batch(1), batch(2)], {"execute__batches_per_hour": 2}, "2 of 2 batches in the last hour", HOUR,
            id="the hour's batches are used up",
        ),
        pytest.param(
            shared(), [batch(1, size=600)], {"execute__bytes_per_day": 600}, "600 B of 600 B copied", None,
            id="the day's bytes are used up",
        ),
        pytest.param(
            shared(), [batch(1, size=None)], {"execute__bytes_per_day": 600}, "is unknown", None,
            id="how many bytes were copied is unknown",
        ),
    ],
)  # fmt: skip
def test_a_budget_that_is_used_up_holds_and_says_until_when(
    built: Builder, writes: list[JournalWrite], changes: dict[str, object], says: str, until: int | None
) -> None:
    answer = held(built, with_approval(built, *writes), **changes)
    assert (answer.reason, says in answer.sentence) == (HoldReason.OVER_BUDGET, True), answer.sentence
    assert answer.until_ms == (None if until is None else NOW_MS + until)


@pytest.mark.parametrize(
    ("built", "writes", "changes"),
    [
        pytest.param(
            swapped(), [triggered("h", NOW_MS - 61 * MINUTE)], {"trigger__budget_per_hour": 1}, id="an hour has passed"
        ),
        pytest.param(
            swapped(),
            [triggered("h", NOW_MS - MINUTE, effect=TriggerEffect.NOT_SENT)],
            {"trigger__budget_per_hour": 1},
            id="no request was sent then",
        ),
        pytest.param(
            promoted(),
            [triggered("g", NOW_MS - 20 * MINUTE, verdict=TriggerVerdict.AS_PREDICTED)],
            {"trigger__budget_per_group_per_hour": 1},
            id="promotions have a budget of their own",
        ),
        pytest.param(
            shared(), [batch(1, state=BatchState.INTENT)], {"execute__batches_per_hour": 2}, id="one of two batches"
        ),
    ],
)
def test_a_budget_that_is_not_used_up_holds_nothing(
    built: Builder, writes: list[JournalWrite], changes: dict[str, object]
) -> None:
    assert isinstance(judged(built, with_approval(built, *writes), **changes), Allow)


def test_a_planning_allows_only_so_many_triggers() -> None:
    snapshot, proposal = only(swapped())
    again = [proposal, proposal._replace(id="p-second")]
    first, second = guard(again, snapshot, Memory(), limits_of(trigger__budget_per_cycle=1), EMPTY_JOURNAL)
    assert isinstance(first, Allow)
    assert isinstance(second, Hold)
    assert second.sentence == "held: allowed in this cycle: 1 trigger (trigger.budget_per_cycle)"


@pytest.mark.parametrize(
    ("span", "at_ms", "until_ms"),
    [
        pytest.param("hour", NOW_MS - 40 * MINUTE, NOW_MS + 20 * MINUTE, id="hour"),
        pytest.param("day", NOW_MS - 20 * HOUR, NOW_MS + 4 * HOUR, id="day"),
    ],
)
@pytest.mark.parametrize("budget", [2, 3])
def test_triggers_of_one_round_count_against_the_budgets_of_hour_and_day(
    span: str, at_ms: int, until_ms: int, budget: int
) -> None:
    snapshot, proposal = only(swapped())
    same = [proposal._replace(id=f"p-{number}") for number in range(4)]
    limits = limits_of(
        trigger__budget_per_cycle=4, trigger__budget_per_group_per_hour=9, **{f"trigger__budget_per_{span}": budget}
    )
    verdicts = guard(same, snapshot, Memory(), limits, journal(triggered("h", at_ms), at_ms=NOW_MS))
    allowed = budget - 1  # one of the budget was used before this round
    assert [isinstance(one, Allow) for one in verdicts] == [number < allowed for number in range(4)]
    for one in verdicts[allowed:]:
        assert isinstance(one, Hold)
        says = f"held: {budget} of {budget} triggers in the last {span} (trigger.budget_per_{span})"
        assert (one.reason, one.sentence, one.until_ms) == (HoldReason.OVER_BUDGET, says, until_ms)


@pytest.mark.parametrize("span", ["hour", "day"])
def test_what_a_planning_allowed_already_counts_against_the_budgets_of_hour_and_day(span: str) -> None:
    snapshot, proposal = only(swapped())
    three = [proposal, proposal._replace(id="p-second"), proposal._replace(id="p-third")]
    limits = limits_of(**{"trigger__budget_per_cycle": 9, f"trigger__budget_per_{span}": 2})
    view = journal(triggered("h", NOW_MS - 50 * MINUTE), at_ms=NOW_MS)
    first, *others = guard(three, snapshot, Memory(), limits, view)
    assert isinstance(first, Allow)
    for other in others:
        assert isinstance(other, Hold)
        assert other.sentence == f"held: 2 of 2 triggers in the last {span} (trigger.budget_per_{span})"


# --- order and explanation --------------------------------------------------------------------------------------


def test_the_gravest_reason_is_the_answer() -> None:
    """Everything is wrong at once; reason after reason is taken away, and the next grave one shows."""
    wrong: dict[str, object] = {
        "cluster__id": "other",
        "execute__exclude_topics": ("t",),
        "windows": TimeWindowSet(allow=(ELSEWHEN,)),
        "execute__batches_per_hour": 1,
    }
    writes = [plan_of(shared(), PlanState.OPEN), paused(ExecutionPause("ann", "", NOW_MS)), batch(1)]
    heard: list[HoldReason] = []
    for less in (None, "cluster__id", 0, 0, "execute__exclude_topics", "windows", "execute__batches_per_hour"):
        if isinstance(less, str):
            del wrong[less]
        elif less is not None:
            del writes[less]
        heard.append(held(shared(), journal(*writes, at_ms=NOW_MS), **wrong).reason)
    assert heard == [
        HoldReason.WRONG_CLUSTER,
        HoldReason.BEGUN,
        HoldReason.PAUSED,
        HoldReason.EXCLUDED,
        HoldReason.OUTSIDE_WINDOW,
        HoldReason.OVER_BUDGET,
        HoldReason.NEEDS_APPROVAL,
    ]


def test_an_explanation_has_the_numbers_of_every_check() -> None:
    snapshot, proposal = only(shared())
    rows = explained(proposal, snapshot, Memory(), limits_of(approve__rules=(SMALL,)), EMPTY_JOURNAL)
    said = {row.rule: (row.answer, row.sentence) for row in rows}
    assert said["not paused"] == (RuleAnswer.YES, "acting is not paused")
    counted = "0 of 100 batches in the last hour (execute.batches_per_hour)"
    assert said["batches of plans left"] == (
        RuleAnswer.YES,
        f"{counted}; 0 of 200 batches in the last day (execute.batches_per_day)",
    )
    assert said["approved"] == (RuleAnswer.YES, "allowed by rule small: 1 of 1 move, 1.0 kB of 1.0 kB to copy")
    assert {row.about for row in rows} == {proposal.id}


@pytest.mark.parametrize(
    ("mode", "view", "last"),
    [
        pytest.param(AgentMode.PROPOSE, EMPTY_JOURNAL, ("approved", RuleAnswer.WAIT), id="a dry run shows every check"),
        pytest.param(
            AgentMode.EXECUTE, None, ("leading", RuleAnswer.WAIT), id="without a journal there is nothing to ask"
        ),
        pytest.param(
            AgentMode.EXECUTE,
            journal(JournalWrite("batch/x/1", "sent", {}), at_ms=1),
            ("leading", RuleAnswer.NO),
            id="nor with one that cannot be read",
        ),
    ],
)
def test_an_explanation_ends_where_nothing_more_can_be_asked(
    mode: AgentMode, view: JournalState | None, last: tuple[str, RuleAnswer]
) -> None:
    snapshot, proposal = only(shared())
    rows = explained(proposal, snapshot, Memory(), replace(limits_of(), mode=mode), view)
    assert (rows[-1].rule, rows[-1].answer) == last
    assert [row.answer for row in rows if row.rule == "mode execute"] == (
        [] if mode is AgentMode.EXECUTE else [RuleAnswer.NO]
    )


def test_an_approval_that_was_voided_stays_void() -> None:
    _, proposal = only(shared())
    given = by_rule(proposal, "small", "1 move", now_ms=NOW_MS, valid_ms=HOUR)
    gone = voided(given, NOW_MS + 1, "it expired")
    assert (gone.state, gone.sentence) == (ApprovalState.VOID, "it expired")
