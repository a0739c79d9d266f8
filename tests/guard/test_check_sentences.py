"""What each check of the guard says of a proposal: its numbers, and what an answer to an approval is made of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.guard.judge import explained, foreseen, guard, recheck
from agent.journal import plan_entries
from agent.journal.approvals import by_rule
from agent.journal.entries import JournalState
from agent.journal.triggers import TriggerVerdict
from agent.values.clock import TimeWindow, TimeWindowSet
from agent.values.limits import ApprovalRule, Limits
from agent.values.memory import Memory
from agent.values.plan import RuleAnswer
from agent.values.proposal import Allow, Hold, HoldReason, Refuse, RefuseReason
from agent.values.reassignment import PlanState, ReassignmentPlan, ReassignmentTarget
from tests.guard.acting import (
    ELSEWHEN,
    EMPTY_JOURNAL,
    HOUR,
    MINUTE,
    batch,
    held,
    judged,
    limits_of,
    only,
    promoted,
    triggered,
    with_approval,
)
from tests.guard.test_judge import shared, swapped
from tests.journals import journal
from tests.snapshots import NOW_MS, Builder, tp

ALLOWED = {
    "leading": "this agent leads",
    "right cluster": "this is cluster test-cluster",
    "not paused": "acting is not paused",
    "window open": "allowed at this time (windows set: 0 allow, 0 black out)",
}
BY_DEFAULT = (
    "allowed by rule triggers-within-budget: triggers within budget need no approval by a person (approve.triggers)"
)
OF_TRIGGERS = {
    **ALLOWED,
    "group may be triggered": "no known reason forbids a trigger of group g",
    "not excluded": "g is not excluded (patterns: 0 include, 0 exclude)",
    "triggers left": "0 of 100 triggers in the last hour; 0 of 500 triggers in the last day",
    "approved": BY_DEFAULT,
}
LATELY = journal(
    triggered("g", NOW_MS - 2 * HOUR, proposal=only(swapped())[1].id, verdict=TriggerVerdict.NO_EFFECT), at_ms=NOW_MS
)


def said(
    built: Builder, view: JournalState = EMPTY_JOURNAL, limits: Limits | None = None, **predicted: float
) -> dict[str, tuple[RuleAnswer, str]]:
    """Check -> what it answers of the one proposal of a world."""
    snapshot, proposal = only(built)
    changed = proposal._replace(predicted=replace(proposal.predicted, **predicted))  # type: ignore[arg-type]
    rows = explained(changed, snapshot, Memory(), limits or limits_of(), view)
    assert {row.about for row in rows} == {proposal.id}
    return {row.rule: (row.answer, row.sentence) for row in rows}


def test_every_check_of_a_rebalance_has_its_numbers() -> None:
    assert said(swapped()) == {
        check: (RuleAnswer.YES, sentence)
        for check, sentence in {
            **OF_TRIGGERS,
            "not tried": "the same trigger was not sent within 24 h",
            "enough gain": "it makes 2 of 2 partitions local; the least gain is 1.0",
            "pays back": "it copies nothing, so there is nothing to pay back",
            "triggers of group left": "0 of 6 triggers of group g in the last hour (trigger.budget_per_group_per_hour)",
        }.items()
    }


def test_every_check_of_a_promotion_has_its_numbers() -> None:
    assert said(promoted()) == {
        check: (RuleAnswer.YES, sentence)
        for check, sentence in {
            **OF_TRIGGERS,
            "worth a rebalance": "its warm-ups are worth a rebalance now",
            "triggers of group left": "0 of 60 triggers of group g in the last hour "
            "(probing.budget_per_group_per_hour)",
        }.items()
    }


def test_every_check_of_a_reassignment_has_its_numbers() -> None:
    assert said(shared(), with_approval(shared())) == {
        check: (RuleAnswer.YES, sentence)
        for check, sentence in {
            **ALLOWED,
            "not in progress": "no attempt has begun",
            "not excluded": "t is not excluded (patterns: 0 include, 0 exclude)",
            "fits one plan": "1 partition of at most 100,000 in one plan",
            "cooldown of plans over": "the journal has no ended plan of topic t",
            "batches of plans left": "0 of 100 batches in the last hour (execute.batches_per_hour); "
            "0 of 200 batches in the last day (execute.batches_per_day)",
            "approved": "allowed: approved by ann@desk",
        }.items()
    }


@pytest.mark.parametrize(
    ("view", "limits", "predicted", "check", "answer", "sentence"),
    [
        pytest.param(
            EMPTY_JOURNAL, limits_of(gain__min_bytes_per_s=10.0),
            {"cross_rack_bytes_per_s_before": 20.0, "cross_rack_bytes_per_s_after": 5.0}, "enough gain", RuleAnswer.YES,
            "it makes 2 of 2 partitions local; the least gain is 1.0; it saves 15 B/s; the least gain is 10 "
            "B/s", id="enough bytes",
        ),
        pytest.param(
            EMPTY_JOURNAL, limits_of(gain__min_bytes_per_s=16.0),
            {"cross_rack_bytes_per_s_before": 20.0, "cross_rack_bytes_per_s_after": 5.0}, "enough gain", RuleAnswer.NO,
            "it saves 15 B/s; the least gain is 16 B/s", id="too few bytes",
        ),
        pytest.param(
            EMPTY_JOURNAL, limits_of(gain__min_bytes_per_s=10.0), {}, "enough gain", RuleAnswer.NO,
            "the traffic across racks that it saves is unknown; the least gain is 10 B/s", id="unknown bytes",
        ),
        pytest.param(
            EMPTY_JOURNAL, None,
            {"bytes_to_move": 10**11, "usd_per_day_before": 1.0, "usd_per_day_after": 0.5}, "pays back", RuleAnswer.YES,
            "copying costs up to $2.00 and saves $0.50 a day: paid back in 4 days, at most 30 days are "
            "allowed", id="it pays",
        ),
        pytest.param(
            EMPTY_JOURNAL, None, {"bytes_to_move": 10**9}, "pays back", RuleAnswer.NO,
            "its saving per day is unknown, so its pay-back time is unknown (execute.payback_days)",
            id="an unknown saving",
        ),
        pytest.param(
            LATELY, None, {}, "not tried", RuleAnswer.WAIT, "the same trigger was sent 2 h ago: nothing moved (seen)",
            id="tried lately",
        ),
    ],
)  # fmt: skip
def test_what_it_is_worth_is_said_in_numbers(  # noqa: PLR0917 (a table)
    view: JournalState,
    limits: Limits | None,
    predicted: dict[str, float],
    check: str,
    answer: RuleAnswer,
    sentence: str,
) -> None:
    assert said(swapped(), view, limits, **predicted)[check] == (answer, sentence)


@pytest.mark.parametrize(
    ("ago_min", "answer", "sentence"),
    [
        (4, RuleAnswer.WAIT, "the last plan of topic t ended 4 min ago, and the cooldown is 10 min"),
        (10, RuleAnswer.YES, "the last plan of topic t ended 10 min ago"),
    ],
)
def test_a_topic_cools_down_for_its_time(ago_min: int, answer: RuleAnswer, sentence: str) -> None:
    other = ReassignmentPlan("p-other", (ReassignmentTarget(tp("t-1"), "id", (2, 3), (3, 2)),), PlanState.DONE)
    view = journal(plan_entries.change_writes(other), at_ms=NOW_MS - ago_min * MINUTE, view=with_approval(shared()))
    assert said(shared(), view)["cooldown of plans over"] == (answer, sentence)


def test_a_trigger_that_was_not_done_hides_no_earlier_one_that_was() -> None:
    """The newest of the same proposal was not sent; the one before was, and moved nothing."""
    _, proposal = only(swapped())
    view = journal(
        triggered("g", NOW_MS - 3 * HOUR, proposal=proposal.id, verdict=TriggerVerdict.NO_EFFECT),
        triggered("g", NOW_MS - 2 * HOUR, verdict=TriggerVerdict.NOT_DONE),
        at_ms=NOW_MS,
    )
    answer = held(swapped(), view)
    assert (answer.reason, answer.until_ms) == (HoldReason.TRIED, NOW_MS + 21 * HOUR)


def test_partitions_without_bytes_take_nothing_of_the_days_budget() -> None:
    view = with_approval(shared(), batch(1, size=0))
    batches = said(shared(), view, limits_of(execute__bytes_per_day=1))["batches of plans left"]
    assert batches[0] is RuleAnswer.YES
    assert batches[1].endswith("; 0 B of 1 B copied in the last day (execute.bytes_per_day)")


@pytest.mark.parametrize(
    ("windows", "passes"),
    [
        pytest.param(TimeWindowSet(allow=(ELSEWHEN,)), True, id="a window that opens again"),
        pytest.param(TimeWindowSet(blackout=(TimeWindow("dark", "UTC"),)), False, id="a blackout without an end"),
    ],
)
def test_a_time_that_never_comes_is_not_waited_for(windows: TimeWindowSet, *, passes: bool) -> None:
    answer = held(shared(), with_approval(shared()), windows=windows)
    assert (answer.reason, answer.passes) == (HoldReason.OUTSIDE_WINDOW, passes)


def test_what_was_allowed_lasts_as_long_as_its_approval() -> None:
    answer = judged(shared(), with_approval(shared()))
    assert isinstance(answer, Allow)
    assert answer.until_ms == NOW_MS + 59 * MINUTE


def test_an_approval_that_a_rule_gave_is_only_a_record() -> None:
    """The rule is not set any more, so nothing approves it."""
    _, proposal = only(shared())
    given = by_rule(proposal, "gone", "1 move", now_ms=NOW_MS, valid_ms=HOUR)
    assert (given.rule, given.by, given.reason) == ("gone", "rule gone", "1 move")
    assert (given.at_ms, given.expires_ms) == (NOW_MS, NOW_MS + HOUR)
    assert given.sentence == "approved by rule gone: 1 move"


def test_right_before_it_is_done_the_time_of_day_counts_and_not_that_of_the_look() -> None:
    """The snapshot was taken in the morning; by now the blackout has begun."""
    snapshot, proposal = only(swapped())
    limits = limits_of(windows=TimeWindowSet(allow=(TimeWindow("morning", "UTC", 0, 12 * 60),)))
    assert isinstance(recheck(proposal, snapshot, limits, EMPTY_JOURNAL, NOW_MS), Allow)
    (verdict,) = guard([proposal], snapshot, Memory(), limits, EMPTY_JOURNAL)
    assert isinstance(verdict, Allow)
    (late,) = guard([proposal], snapshot, Memory(), limits, EMPTY_JOURNAL, NOW_MS + 12 * HOUR)
    for answer in (late, recheck(proposal, snapshot, limits, EMPTY_JOURNAL, NOW_MS + 12 * HOUR)):
        assert isinstance(answer, Hold)
        assert answer.reason is HoldReason.OUTSIDE_WINDOW


def test_an_approval_is_answered_by_what_the_guard_would_say() -> None:
    allowed = foreseen(Allow("p", "allowed: approved by ann", by="ann", rule=None))
    assert (allowed.allowed, allowed.sentence, allowed.comes) == (True, "", True)
    waits = foreseen(Hold("p", HoldReason.PAUSED, "ann paused acting", 7))
    assert (waits.allowed, waits.sentence, waits.comes, waits.until_ms) == (False, "ann paused acting", True, 7)
    for lasting in (
        Hold("p", HoldReason.EXCLUDED, "t is excluded"),
        Hold("p", HoldReason.UNKNOWN, "t is excluded", lasting=True),
    ):
        never = foreseen(lasting)
        assert (never.allowed, never.sentence, never.comes) == (False, "t is excluded", False)
    refused = foreseen(Refuse("p", RefuseReason.EXPIRED, "it expired 5 s ago"))
    assert (refused.allowed, refused.sentence, refused.comes) == (False, "it expired 5 s ago", False)


def test_only_the_groups_own_triggers_count_against_its_budget_and_its_margin() -> None:
    """Another group was triggered in the very same millisecond, and a third one later."""
    same = NOW_MS - 20 * MINUTE
    view = journal(triggered("g", same, verdict=TriggerVerdict.AS_PREDICTED), triggered("h", same), at_ms=NOW_MS)
    rows = said(swapped(), view)
    assert rows["triggers of group left"][1].startswith("1 of 6 triggers of group g ")
    assert rows["triggers left"][1].startswith("2 of 100 triggers ")
    others = said(swapped(), journal(triggered("h", same), at_ms=NOW_MS))
    assert others["enough gain"][1] == "it makes 2 of 2 partitions local; the least gain is 1.0"


@pytest.mark.parametrize(
    ("rule", "allows"),
    [
        pytest.param(ApprovalRule(name="r", groups=("g*",)), True, id="its groups match"),
        pytest.param(ApprovalRule(name="r", groups=("h",)), False, id="its groups do not match"),
        pytest.param(ApprovalRule(name="r", topics=("*",)), False, id="it is for topics only"),
        pytest.param(ApprovalRule(name="r", groups=("g",), topics=("t",)), True, id="it is for both"),
    ],
)
def test_a_rule_for_groups_approves_their_triggers(rule: ApprovalRule, *, allows: bool) -> None:
    answer = judged(swapped(), EMPTY_JOURNAL, approve__triggers=False, approve__rules=(rule,))
    assert isinstance(answer, Allow) is allows
