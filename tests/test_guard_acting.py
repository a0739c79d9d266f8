"""The guard in mode execute: what the journal, the settings, the schedule and people have to say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.execute.values import Batch, BatchState, Plan, PlanState, Target
from agent.guard import Allow, Hold, HoldReason, Verdict, explained, guard
from agent.guard.approving import DEFAULT_RULE
from agent.journal import moves, triggers
from agent.journal.approvals import Approval, ApprovalState, by_rule, plan_hash, voided, written
from agent.journal.commands import Pause, paused
from agent.journal.entry import View, Write
from agent.journal.leader import Leader, leader_write
from agent.journal.triggers import Effect, Expectation, Judgement, TriggerEntry, TriggerVerdict
from agent.limits import Limits, Mode
from agent.limits_execute import ApprovalRule, ExecuteLimits, Told, TriggerLimits
from agent.memory import Memory
from agent.model.snapshot import Snapshot
from agent.plan.explained import Answer
from agent.propose.proposal import Predicted, Proposal
from agent.windows import Window, Windows
from tests.journals import journal
from tests.plan.test_triggers import copy, warming
from tests.snapshots import NOW_MS, Builder, tp
from tests.test_guard import proposals_of, shared, swapped

MINUTE, HOUR = 60_000, 3_600_000
NOBODY: View = {}
PLAIN = TriggerLimits(transactional=Told.NO)
CALM = ExecuteLimits(trigger=PLAIN)


def limits_of(**changes: object) -> Limits:
    return Limits(mode=Mode.EXECUTE, execute=replace(CALM, **changes))  # type: ignore[arg-type] # a table's row


def only(built: Builder) -> tuple[Snapshot, Proposal]:
    snapshot = built.snapshot()
    (proposal,) = proposals_of(snapshot)
    return snapshot, proposal


def judged(built: Builder, view: View, **changes: object) -> Verdict:
    """The verdict on the one proposal of a world."""
    snapshot, proposal = only(built)
    (answer,) = guard([proposal], snapshot, Memory(), limits_of(**changes), view)
    return answer


def held(built: Builder, view: View, **changes: object) -> Hold:
    answer = judged(built, view, **changes)
    assert isinstance(answer, Hold), answer
    assert answer.sentence.startswith("held: ")
    return answer


def promoted() -> Builder:
    return warming(copy("p2", "0_1", caught_up=True), next_rebalance_ms=NOW_MS + 8 * MINUTE)


def approval(built: Builder, *, by: str = "ann@desk", age_ms: int = MINUTE, **changes: object) -> Write:
    _, proposal = only(built)
    given = Approval(
        proposal.id, plan_hash(proposal), ApprovalState.APPROVED, by, NOW_MS - age_ms, NOW_MS - age_ms + HOUR
    )
    return written(given._replace(**changes))  # type: ignore[arg-type] # a table's row


def triggered(
    name: str, at_ms: int, *, proposal: str = "", verdict: TriggerVerdict | None = None, **changes: object
) -> Write:
    """A trigger in the journal."""
    empty = Expectation(generation=None, readers=(), holds={}, moves=(), items=0)
    judgement = Judgement(verdict, at_ms, "seen") if verdict is not None else None
    entry = TriggerEntry(
        group_id=name,
        proposal_id=proposal or f"p-{at_ms}",
        reason="REBALANCE_IMPROVES",
        intended_ms=at_ms,
        expected=empty,
        effect=Effect.REBALANCING,
        acted_ms=at_ms,
        judgement=judgement,
    )
    return triggers.outcome(replace(entry, **changes))  # type: ignore[arg-type] # a table's row


def batch(number: int, *, state: BatchState = BatchState.CLOSED, size: int | None = 1_000) -> Write:
    target = Target(tp("t-0"), "id", (1, 4), (1, 2), size)
    return moves.write(Batch("p-other", number, (target,), state, sendings=1))


def plan_of(built: Builder, state: PlanState, **changes: object) -> Write:
    _, proposal = only(built)
    plan = Plan(proposal.id, (Target(tp("t-0"), "id", (1, 4), (1, 2)),), state, approved_by="ann@desk")
    return moves.write(plan._replace(**changes))  # type: ignore[arg-type] # a table's row


# --- who approves -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("built", [swapped(), promoted()])
def test_a_trigger_within_budget_is_approved_by_the_default_rule(built: Builder) -> None:
    answer = judged(built, NOBODY)
    assert isinstance(answer, Allow), answer
    assert (answer.rule, answer.by) == (DEFAULT_RULE, f"rule {DEFAULT_RULE}")


def test_a_trigger_needs_a_person_where_the_default_rule_is_off() -> None:
    answer = held(swapped(), NOBODY, approve_triggers=False)
    assert answer.reason is HoldReason.NEEDS_APPROVAL
    assert isinstance(judged(swapped(), journal(approval(swapped()), at_ms=NOW_MS), approve_triggers=False), Allow)


def test_a_reassignment_needs_a_person() -> None:
    answer = held(shared(), NOBODY)
    assert answer.reason is HoldReason.NEEDS_APPROVAL
    assert answer.sentence == (
        f"held: nobody has approved it; approve it with: rackwise proposals approve {answer.proposal_id}"
    )


def test_a_person_approves_the_exact_plan_and_says_how_fast() -> None:
    given = approval(shared(), reason="cheap now", throttle_bytes_per_s=5_000_000, max_moves=2)
    answer = judged(shared(), journal(given, at_ms=NOW_MS))
    assert isinstance(answer, Allow)
    assert (answer.by, answer.rule, answer.reason) == ("ann@desk", None, "cheap now")
    assert (answer.throttle_bytes_per_s, answer.max_moves) == (5_000_000, 2)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param(
            approval(shared(), plan_hash="0" * 32), "ann@desk approved another plan under this id, which is void",
            id="another plan was approved",
        ),
        pytest.param(
            approval(shared(), age_ms=HOUR + 2 * MINUTE), "its approval by ann@desk expired 2 min ago",
            id="the approval expired",
        ),
        pytest.param(
            approval(shared(), state=ApprovalState.REQUESTED, by="bob@desk", age_ms=5 * MINUTE),
            "bob@desk asked for it 5 min ago, and a second person has not", id="a second person is awaited",
        ),
        pytest.param(
            approval(shared(), state=ApprovalState.VOID, sentence="void: cancelled by ann"),
            "its approval is void (cancelled by ann)", id="it was cancelled",
        ),
        pytest.param(
            written(by_rule(only(shared())[1], "gone", "1 move", now_ms=NOW_MS, valid_ms=HOUR)),
            "nobody has approved it", id="a rule approved it that is not set any more",
        ),
        pytest.param(
            Write(f"approval/{only(shared())[1].id}", "approved", {"nonsense": 1}), "nobody has approved it",
            id="what was written cannot be read",
        ),
    ],
)  # fmt: skip
def test_what_is_no_approval_of_this_plan_approves_nothing(given: Write, says: str) -> None:
    answer = held(shared(), journal(given, at_ms=NOW_MS))
    assert answer.reason is HoldReason.NEEDS_APPROVAL
    assert says in answer.sentence


SMALL = ApprovalRule(name="small", max_bytes=1_000, max_moves=1)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        pytest.param(SMALL, "1 of 1 moves, 1,000 of 1,000 bytes", id="within bytes and moves"),
        pytest.param(replace(SMALL, keep_leaders=True), "no preferred leader changes", id="the leader stays"),
        pytest.param(ApprovalRule(name="small", topics=("t*",)), "topic/t matches", id="its topic is named"),
        pytest.param(
            ApprovalRule(name="small", reasons=frozenset({"mend-rack-spread"})), "the reason is mend-rack-spread",
            id="its reason is named",
        ),
    ],
)  # fmt: skip
def test_a_rule_approves_what_is_within_all_its_bounds_and_is_recorded_by_name(rule: ApprovalRule, why: str) -> None:
    answer = judged(shared(), NOBODY, approval_rules=(rule,))
    assert isinstance(answer, Allow), answer
    assert answer.rule == "small"
    assert why in answer.reason


@pytest.mark.parametrize(
    ("rule", "predicted", "says"),
    [
        pytest.param(replace(SMALL, max_bytes=999), {}, "1,000 bytes are not surely within 999", id="too many bytes"),
        pytest.param(
            SMALL, {"bytes_to_move": None}, "an unknown number of bytes are not surely within 1,000",
            id="bytes are unknown",
        ),
        pytest.param(SMALL, {"moves": 2}, "2 moves are more than 1", id="too many moves"),
        pytest.param(replace(SMALL, kinds=frozenset({"leaders"})), {}, "it is not about a reassign", id="another kind"),
        pytest.param(replace(SMALL, topics=("x*",)), {}, "it is not about topic/t", id="another topic"),
        pytest.param(replace(SMALL, groups=("t",)), {}, "it is not about topic/t", id="a rule about groups"),
        pytest.param(
            replace(SMALL, reasons=frozenset({"leaders-even"})), {}, "it is not about mend-rack-spread",
            id="another reason",
        ),
        pytest.param(
            replace(SMALL, min_gain_usd_per_day=1.0), {},
            "an unknown number of USD a day saved are not surely 1 or more", id="what it saves is unknown",
        ),
        pytest.param(
            replace(SMALL, min_gain_bytes_per_s=100.0),
            {"cross_rack_bytes_per_s_before": 90.0, "cross_rack_bytes_per_s_after": 0.0},
            "90.00 bytes/s saved are not surely 100 or more", id="it saves too little",
        ),
    ],
)  # fmt: skip
def test_a_rule_approves_nothing_beyond_a_bound_and_the_bound_is_told(
    rule: ApprovalRule, predicted: dict[str, object], says: str
) -> None:
    snapshot, proposal = only(shared())
    changed = replace(proposal, predicted=replace(proposal.predicted, **predicted))  # type: ignore[arg-type]
    (answer,) = guard([changed], snapshot, Memory(), limits_of(approval_rules=(rule,)), NOBODY)
    assert isinstance(answer, Hold)
    assert f"rule small: {says}" in answer.sentence


def test_a_change_of_leader_is_seen_by_a_rule_that_wants_them_kept() -> None:
    _, proposal = only(shared())
    row = proposal.after[0]
    turned = replace(proposal, after=(row._replace(value=(*row.value[1:], row.value[0])),))
    snapshot = shared().snapshot()
    rule = replace(SMALL, keep_leaders=True)
    fresh = replace(turned, snapshot_hash=proposal.snapshot_hash)
    (answer,) = guard([fresh], snapshot, Memory(), limits_of(approval_rules=(rule,)), NOBODY)
    assert not isinstance(answer, Allow)


def test_the_hash_of_a_plan_is_that_of_what_is_done_and_not_of_its_size() -> None:
    _, proposal = only(shared())
    bigger = replace(
        proposal,
        moves=tuple(move._replace(bytes=7) for move in proposal.moves),
        predicted=Predicted(moves=1, bytes_to_move=7),
        created_ms=1,
        expires_ms=2,
    )
    assert plan_hash(bigger) == plan_hash(proposal)
    row = proposal.after[0]
    for other in (
        replace(proposal, after=(row._replace(value=(*row.value, 9)),)),
        replace(proposal, before=()),
        replace(proposal, moves=()),
        replace(proposal, snapshot_hash="other"),
    ):
        assert plan_hash(other) != plan_hash(proposal)


# --- who leads, and what is paused ------------------------------------------------------------------------------

LEADER = Leader("rw-1", "host", 1, "cluster", 0)


def with_approval(built: Builder, *writes: Write) -> View:
    return journal(approval(built), *writes, at_ms=NOW_MS)


def test_without_a_journal_nothing_is_done() -> None:
    snapshot, proposal = only(swapped())
    (answer,) = guard([proposal], snapshot, Memory(), limits_of(), None)
    assert isinstance(answer, Hold)
    assert answer.reason is HoldReason.NOT_LEADING


def test_a_journal_that_cannot_be_read_holds_everything() -> None:
    view = with_approval(shared(), Write("plan/p-1", "open", {"from": "a newer release"}))
    answer = held(shared(), view)
    assert answer.reason is HoldReason.UNKNOWN
    assert "cannot be read from the journal" in answer.sentence


@pytest.mark.parametrize(
    ("view", "changes", "says"),
    [
        pytest.param(NOBODY, {"cluster_id": "other"}, "only other may be acted upon", id="not the one that is set"),
        pytest.param(
            journal(leader_write(LEADER._replace(cluster="other")), at_ms=NOW_MS), {},
            "the journal is that of other", id="not the one of the journal",
        ),
    ],
)  # fmt: skip
def test_another_cluster_is_never_touched(view: View, changes: dict[str, object], says: str) -> None:
    answer = held(swapped(), view, **changes)
    assert answer.reason is HoldReason.WRONG_CLUSTER
    assert says in answer.sentence


@pytest.mark.parametrize("built", [shared(), swapped(), promoted()])
def test_a_pause_holds_everything_and_says_who_and_why(built: Builder) -> None:
    view = with_approval(built, paused(Pause("ann@desk", "big sale", NOW_MS - 90 * MINUTE)))
    answer = held(built, view)
    assert answer.reason is HoldReason.PAUSED
    assert answer.sentence == "held: ann@desk paused acting 90 min ago (big sale); go on with: rackwise resume"


def test_a_pause_that_cannot_be_read_is_a_pause() -> None:
    assert held(swapped(), journal(Write("pause", "paused", {"x": 1}), at_ms=NOW_MS)).reason is HoldReason.PAUSED


@pytest.mark.parametrize(
    ("state", "says"),
    [
        pytest.param(PlanState.OPEN, "it is being carried out (open), approved by ann@desk", id="it runs"),
        pytest.param(PlanState.DONE, "it was begun before and is done", id="it is done"),
        pytest.param(PlanState.CANCELLED, "begun before and is cancelled: told so; the same", id="it was cancelled"),
    ],
)
def test_a_plan_begins_once(state: PlanState, says: str) -> None:
    sentence = "told so" if state is PlanState.CANCELLED else ""
    answer = held(shared(), with_approval(shared(), plan_of(shared(), state, sentence=sentence)))
    assert answer.reason is HoldReason.BEGUN
    assert says in answer.sentence


# --- settings and schedule --------------------------------------------------------------------------------------

ELSEWHEN = Window("never-now", "UTC", 0, 1)
"""NOW_MS is in the morning."""


@pytest.mark.parametrize(
    ("built", "changes", "reason", "says"),
    [
        pytest.param(
            shared(), {"exclude_topics": ("t*",)}, HoldReason.EXCLUDED, "(execute.exclude_topics)",
            id="an excluded topic",
        ),
        pytest.param(
            shared(), {"include_topics": ("x",)}, HoldReason.EXCLUDED, "none of the 1 patterns", id="no included topic"
        ),
        pytest.param(
            swapped(), {"exclude_groups": ("g",)}, HoldReason.EXCLUDED, "(execute.exclude_groups)",
            id="an excluded group",
        ),
        pytest.param(
            swapped(), {"include_groups": ("h",)}, HoldReason.EXCLUDED, "(execute.include_groups)",
            id="no included group",
        ),
        pytest.param(
            swapped(), {"windows": Windows(allow=(ELSEWHEN,))}, HoldReason.OUTSIDE_WINDOW,
            "outside of the windows that allow it (never-now), until", id="outside of the window",
        ),
        pytest.param(
            shared(), {"windows": Windows(blackout=(Window("dark", "UTC"),))}, HoldReason.OUTSIDE_WINDOW,
            "blackout dark is on, and opens not within 400 days", id="in a blackout",
        ),
        pytest.param(
            promoted(), {"probing": False}, HoldReason.GROUP_REFUSED, "switched off (probing.enabled)",
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
    windows = Windows(allow=(ELSEWHEN._replace(kinds=frozenset({"reassign"})),))
    assert isinstance(judged(swapped(), NOBODY, windows=windows), Allow)
    assert held(shared(), with_approval(shared()), windows=windows).until_ms is not None


# --- budgets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("built", "writes", "changes", "says", "until"),
    [
        pytest.param(
            swapped(), [triggered("h", NOW_MS - 50 * MINUTE)], {"trigger_budget_per_hour": 1},
            "1 of 1 triggers in the last hour", 10 * MINUTE, id="the hour's triggers are used up",
        ),
        pytest.param(
            swapped(), [triggered("h", NOW_MS - 23 * HOUR), triggered("i", NOW_MS - 2 * HOUR)],
            {"trigger_budget_per_day": 2}, "2 of 2 triggers in the last day", HOUR, id="the day's triggers are used up",
        ),
        pytest.param(
            swapped(), [triggered("g", NOW_MS - 40 * MINUTE, verdict=TriggerVerdict.AS_PREDICTED)],
            {"trigger_budget_per_group_per_hour": 1}, "1 of 1 triggers of group g in the last hour", 20 * MINUTE,
            id="the group's triggers are used up",
        ),
        pytest.param(
            shared(), [batch(1), batch(2)], {"batch_budget_per_hour": 2}, "2 of 2 batches in the last hour", HOUR,
            id="the hour's batches are used up",
        ),
        pytest.param(
            shared(), [batch(1, size=600)], {"move_budget_bytes_per_day": 600}, "600 of 600 bytes", None,
            id="the day's bytes are used up",
        ),
        pytest.param(
            shared(), [batch(1, size=None)], {"move_budget_bytes_per_day": 600}, "is not known", None,
            id="how many bytes were copied is unknown",
        ),
    ],
)  # fmt: skip
def test_a_budget_that_is_used_up_holds_and_says_until_when(
    built: Builder, writes: list[Write], changes: dict[str, object], says: str, until: int | None
) -> None:
    answer = held(built, with_approval(built, *writes), **changes)
    assert (answer.reason, says in answer.sentence) == (HoldReason.OVER_BUDGET, True), answer.sentence
    assert answer.until_ms == (None if until is None else NOW_MS + until)


@pytest.mark.parametrize(
    ("built", "writes", "changes"),
    [
        pytest.param(
            swapped(), [triggered("h", NOW_MS - 61 * MINUTE)], {"trigger_budget_per_hour": 1}, id="an hour has passed"
        ),
        pytest.param(
            swapped(), [triggered("h", NOW_MS - MINUTE, effect=Effect.NOT_SENT)], {"trigger_budget_per_hour": 1},
            id="nothing was asked then",
        ),
        pytest.param(
            promoted(), [triggered("g", NOW_MS - 20 * MINUTE, verdict=TriggerVerdict.AS_PREDICTED)],
            {"trigger_budget_per_group_per_hour": 1}, id="promotions have a budget of their own",
        ),
        pytest.param(
            shared(), [batch(1, state=BatchState.INTENT)], {"batch_budget_per_hour": 2}, id="one of two batches"
        ),
    ],
)  # fmt: skip
def test_a_budget_that_is_not_used_up_holds_nothing(
    built: Builder, writes: list[Write], changes: dict[str, object]
) -> None:
    assert isinstance(judged(built, with_approval(built, *writes), **changes), Allow)


def test_a_planning_allows_only_so_many_triggers() -> None:
    snapshot, proposal = only(swapped())
    again = [proposal, replace(proposal, id="p-second")]
    first, second = guard(again, snapshot, Memory(), limits_of(trigger_budget_per_cycle=1), NOBODY)
    assert isinstance(first, Allow)
    assert isinstance(second, Hold)
    assert second.sentence == "held: 1 triggers were allowed in this planning (trigger.budget_per_cycle)"


# --- worth ------------------------------------------------------------------------------------------------------


def worth(view: View = NOBODY, limits: Limits | None = None, **predicted: float | None) -> Verdict:
    snapshot, proposal = only(swapped())
    changed = replace(proposal, predicted=replace(proposal.predicted, **predicted))  # type: ignore[arg-type]
    (answer,) = guard([changed], snapshot, Memory(), limits or limits_of(), view)
    return answer


@pytest.mark.parametrize(
    ("predicted", "says"),
    [
        pytest.param(
            {"bytes_to_move": None}, "how many bytes it copies, or their price, is not known", id="bytes are unknown"
        ),
        pytest.param({"bytes_to_move": 10**9}, "what it saves a day is not known", id="what it saves is unknown"),
        pytest.param(
            {"bytes_to_move": 10**12, "usd_per_day_before": 1.0, "usd_per_day_after": 0.5},
            "costs up to 20.00 USD, saved at 0.50 USD a day: 40.0 days of 30", id="it pays too late",
        ),
        pytest.param(
            {"bytes_to_move": 10**9, "usd_per_day_before": 1.0, "usd_per_day_after": 1.0}, "it saves 0.00 USD a day",
            id="it never pays",
        ),
    ],
)  # fmt: skip
def test_what_would_not_pay_for_itself_is_held(predicted: dict[str, float | None], says: str) -> None:
    answer = worth(NOBODY, None, **predicted)
    assert isinstance(answer, Hold)
    assert (answer.reason, says in answer.sentence) == (HoldReason.NO_PAYBACK, True), answer.sentence


def test_what_pays_in_time_or_is_not_asked_to_is_allowed() -> None:
    assert isinstance(worth(bytes_to_move=10**11, usd_per_day_before=1.0, usd_per_day_after=0.5), Allow)
    assert isinstance(worth(bytes_to_move=None, limits=limits_of(payback_max_days=None)), Allow)
    assert isinstance(judged(shared(), with_approval(shared())), Allow), "a repair is not asked to pay"


def test_what_was_acted_upon_lately_must_gain_more() -> None:
    strict = replace(limits_of(), min_gain_partitions=2)
    assert isinstance(worth(limits=strict), Allow)
    lately = journal(triggered("g", NOW_MS - 2 * HOUR, verdict=TriggerVerdict.AS_PREDICTED), at_ms=NOW_MS)
    answer = worth(lately, limits=strict)
    assert isinstance(answer, Hold)
    assert answer.reason is HoldReason.TOO_LITTLE_GAIN
    assert answer.sentence == (
        "held: it brings 2 of 2 partitions home, at least 2.4 are asked for (20% more, as it was acted upon 2.0 h ago)"
    )
    long_ago = journal(triggered("g", NOW_MS - 25 * HOUR, verdict=TriggerVerdict.AS_PREDICTED), at_ms=NOW_MS)
    assert isinstance(worth(long_ago, limits=strict), Allow)


def test_least_bytes_that_cannot_be_told_are_not_reached() -> None:
    strict = replace(limits_of(), min_gain_bytes_per_s=10.0)
    answer = worth(limits=strict)
    assert isinstance(answer, Hold)
    assert answer.reason is HoldReason.TOO_LITTLE_GAIN
    enough = worth(limits=strict, cross_rack_bytes_per_s_before=20.0, cross_rack_bytes_per_s_after=5.0)
    assert isinstance(enough, Allow)


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        pytest.param(TriggerVerdict.NO_EFFECT, HoldReason.TRIED, id="it moved nothing"),
        pytest.param(TriggerVerdict.NO_REBALANCE, HoldReason.TRIED, id="no rebalance was seen"),
        pytest.param(TriggerVerdict.NOT_DONE, None, id="it was not done"),
    ],
)
def test_the_same_trigger_about_the_same_assignment_is_not_tried_again(
    verdict: TriggerVerdict, reason: HoldReason | None
) -> None:
    _, proposal = only(swapped())
    done = triggered(
        "g", NOW_MS - 2 * HOUR, proposal=proposal.id, verdict=verdict,
        effect=Effect.NOT_SENT if reason is None else Effect.REBALANCING,
    )  # fmt: skip
    answer = judged(swapped(), journal(done, at_ms=NOW_MS))
    assert (answer.reason if isinstance(answer, Hold) else None) is reason


def test_a_topic_whose_replicas_were_moved_cools_down() -> None:
    other = Plan("p-other", (Target(tp("t-1"), "id", (2, 3), (3, 2)),), PlanState.DONE)
    view = journal(moves.write(other), at_ms=NOW_MS - 4 * MINUTE, view=with_approval(shared()))
    answer = held(shared(), view)
    assert (answer.reason, answer.until_ms) == (HoldReason.COOLING_DOWN, NOW_MS + 6 * MINUTE)
    assert isinstance(judged(shared(), view, move_cooldown_ms=MINUTE), Allow)


def test_warm_ups_wait_where_their_application_is_about_to_ask_by_itself() -> None:
    soon = warming(copy("p2", "0_1", caught_up=True), next_rebalance_ms=NOW_MS + 9_000)
    answer = held(soon, NOBODY)
    assert answer.reason is HoldReason.PROBING
    assert isinstance(judged(promoted(), NOBODY), Allow)


# --- order and explanation --------------------------------------------------------------------------------------


def test_the_gravest_reason_is_the_answer() -> None:
    """Everything is wrong at once; reason after reason is taken away, and the next grave one shows."""
    wrong: dict[str, object] = {
        "cluster_id": "other",
        "exclude_topics": ("t",),
        "windows": Windows(allow=(ELSEWHEN,)),
        "batch_budget_per_hour": 1,
    }
    writes = [plan_of(shared(), PlanState.OPEN), paused(Pause("ann", "", NOW_MS)), batch(1)]
    heard: list[HoldReason] = []
    for less in (None, "cluster_id", 0, 0, "exclude_topics", "windows", "batch_budget_per_hour"):
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
    rows = explained(proposal, snapshot, Memory(), limits_of(approval_rules=(SMALL,)), NOBODY)
    said = {row.rule: (row.answer, row.sentence) for row in rows}
    assert said["paused"] == (Answer.YES, "acting is not paused")
    counted = "0 of 100 batches in the last hour (execute.batches_per_hour)"
    assert said["batches"] == (Answer.YES, f"{counted}; 0 of 200 batches in the last day (execute.batches_per_day)")
    assert said["approval"] == (Answer.YES, "allowed by rule small: 1 of 1 moves, 1,000 of 1,000 bytes")
    assert {row.about for row in rows} == {proposal.id}


@pytest.mark.parametrize(
    ("mode", "view", "last"),
    [
        pytest.param(Mode.PROPOSE, NOBODY, "mode", id="a dry run asks nobody"),
        pytest.param(Mode.EXECUTE, None, "leading", id="without a journal there is nothing to ask"),
        pytest.param(
            Mode.EXECUTE, journal(Write("batch/x/1", "sent", {}), at_ms=1), "leading", id="nor with one nobody can read"
        ),
    ],
)
def test_an_explanation_ends_where_nothing_more_can_be_asked(mode: Mode, view: View | None, last: str) -> None:
    snapshot, proposal = only(shared())
    rows = explained(proposal, snapshot, Memory(), replace(limits_of(), mode=mode), view)
    assert (rows[-1].rule, rows[-1].answer) == (last, Answer.WAIT)


def test_an_approval_that_was_voided_stays_void() -> None:
    _, proposal = only(shared())
    given = by_rule(proposal, "small", "1 move", now_ms=NOW_MS, valid_ms=HOUR)
    gone = voided(given, NOW_MS + 1, "it expired")
    assert (gone.state, gone.sentence) == (ApprovalState.VOID, "void: it expired")
