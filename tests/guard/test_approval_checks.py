"""Who approves: a person the exact plan, the default rule triggers, a rule what is within all its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.guard.judge import DEFAULT_RULE, guard
from agent.journal.approvals import (
    KEPT,
    KEPT_HIDDEN,
    KEPT_NOES,
    NO_COUNTS_MS,
    ApprovalState,
    ProposalApproval,
    approval_cleanup,
    approval_of,
    approvals,
    by_rule,
    plan_hash,
    replacing_approval,
    used,
    vetoed,
    written,
)
from agent.journal.entries import JournalState, JournalWrite
from agent.values.limits import ApprovalRule
from agent.values.memory import Memory
from agent.values.proposal import Allow, Hold, HoldReason, PredictedEffect, Proposal
from tests.guard.acting import EMPTY_JOURNAL, HOUR, MINUTE, SMALL, approval, held, judged, limits_of, only, promoted
from tests.guard.test_judge import shared, swapped
from tests.journals import journal
from tests.snapshots import NOW_MS, Builder


@pytest.mark.parametrize("built", [swapped(), promoted()])
def test_a_trigger_within_budget_is_approved_by_the_default_rule(built: Builder) -> None:
    answer = judged(built, EMPTY_JOURNAL)
    assert isinstance(answer, Allow), answer
    assert (answer.rule, answer.by) == (DEFAULT_RULE, f"rule {DEFAULT_RULE}")


def test_a_trigger_needs_a_person_where_the_default_rule_is_off() -> None:
    answer = held(swapped(), EMPTY_JOURNAL, approve__triggers=False)
    assert answer.reason is HoldReason.NEEDS_APPROVAL
    assert isinstance(judged(swapped(), journal(approval(swapped()), at_ms=NOW_MS), approve__triggers=False), Allow)


def test_a_reassignment_needs_a_person() -> None:
    answer = held(shared(), EMPTY_JOURNAL)
    assert answer.reason is HoldReason.NEEDS_APPROVAL
    assert answer.sentence == (
        f"held: it is not approved; approve it with: rackwise proposals approve {answer.proposal_id}"
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
            approval(shared(), plan_hash="0" * 32),
            "ann@desk approved another plan under this id, and that approval is void",
            id="another plan was approved",
        ),
        pytest.param(
            approval(shared(), age_ms=HOUR + 2 * MINUTE), "its approval by ann@desk expired 2 min ago",
            id="the approval expired",
        ),
        pytest.param(
            approval(shared(), state=ApprovalState.REQUESTED, by="bob@desk", age_ms=5 * MINUTE),
            "requested by bob@desk 5 min ago, a second person must approve it", id="a second person is awaited",
        ),
        pytest.param(
            approval(shared(), state=ApprovalState.VOID, sentence="cancelled by ann"),
            "its approval is void (cancelled by ann)", id="it was cancelled",
        ),
        pytest.param(
            approval(shared(), state=ApprovalState.VOID, sentence="the rebalance was triggered", used=True),
            "its approval is used (the rebalance was triggered)", id="it was used",
        ),
        pytest.param(
            written(by_rule(only(shared())[1], "gone", "1 move", now_ms=NOW_MS, valid_ms=HOUR)),
            "it is not approved", id="a rule approved it that is not set any more",
        ),
        pytest.param(
            JournalWrite(f"approval/{only(shared())[1].id}", "approved", {"nonsense": 1}), "it is not approved",
            id="what was written cannot be read",
        ),
    ],
)  # fmt: skip
def test_what_is_no_approval_of_this_plan_approves_nothing(given: JournalWrite, says: str) -> None:
    answer = held(shared(), journal(given, at_ms=NOW_MS))
    assert answer.reason is HoldReason.NEEDS_APPROVAL
    assert says in answer.sentence


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        pytest.param(SMALL, "1 of 1 move, 1.0 kB of 1.0 kB to copy", id="within bytes and moves"),
        pytest.param(replace(SMALL, keep_leaders=True), "no preferred leader changes", id="the leader stays"),
        pytest.param(ApprovalRule(name="small", topics=("t*",)), "topic/t matches", id="its topic is named"),
        pytest.param(
            ApprovalRule(name="small", reasons=frozenset({"mend-rack-spread"})), "the reason is mend-rack-spread",
            id="its reason is named",
        ),
    ],
)  # fmt: skip
def test_a_rule_approves_what_is_within_all_its_bounds_and_is_recorded_by_name(rule: ApprovalRule, why: str) -> None:
    answer = judged(shared(), EMPTY_JOURNAL, approve__rules=(rule,))
    assert isinstance(answer, Allow), answer
    assert answer.rule == "small"
    assert why in answer.reason


def vetoed_by(built: Builder, **changes: object) -> JournalState:
    """After `cancel` of what no person has approved."""
    _, proposal = only(built)
    no = vetoed(proposal, 1, who="ann@desk", now_ms=NOW_MS, why="cancelled by ann@desk (not today)")
    return journal(written(no._replace(**changes)), at_ms=NOW_MS)  # type: ignore[arg-type] # a table's row


@pytest.mark.parametrize("built", [shared(), swapped(), promoted()], ids=["a reassignment", "a trigger", "warm-ups"])
def test_a_persons_no_comes_before_every_rule(built: Builder) -> None:
    rules = (ApprovalRule(name="all"),)
    assert isinstance(judged(built, EMPTY_JOURNAL, approve__rules=rules), Allow)
    answer = held(built, vetoed_by(built), approve__rules=rules)
    assert answer.reason is HoldReason.NEEDS_APPROVAL
    assert answer.sentence == (
        "held: it was cancelled by ann@desk (not today), and no rule overrules that; "
        f"approve it with: rackwise proposals approve {answer.proposal_id}"
    )


def test_a_persons_no_is_to_that_very_plan_and_a_person_may_still_approve_it() -> None:
    rules = (ApprovalRule(name="all"),)
    assert isinstance(judged(shared(), vetoed_by(shared(), plan_hash="0" * 32), approve__rules=rules), Allow)
    yes = journal(approval(shared()), at_ms=NOW_MS, view=vetoed_by(shared()))
    answer = judged(shared(), yes, approve__rules=rules)
    assert isinstance(answer, Allow)
    assert answer.by == "ann@desk"


def agreed(built: Builder) -> ProposalApproval:
    """By a person, of the plan as it is proposed."""
    _, proposal = only(built)
    return ProposalApproval(proposal.id, plan_hash(proposal), ApprovalState.APPROVED, "ann@desk", NOW_MS, NOW_MS + HOUR)


@pytest.mark.parametrize("between", ["a rule's yes", "a person's yes", "a no", "many noes"])
def test_a_persons_no_outlasts_what_is_said_of_other_plans_under_the_same_id(between: str) -> None:
    """A plan may be proposed, then another one under its id, then the former one again."""
    _, proposal = only(shared())
    others = [agreed(shared())._replace(plan_hash=f"{number:032}") for number in range(KEPT_NOES + 5)]
    told = {
        "a rule's yes": [others[0]._replace(rule="all", by="rule all")],
        "a person's yes": others[:1],
        "a no": [others[0]._replace(state=ApprovalState.VOID, vetoed=True)],
        "many noes": [one._replace(state=ApprovalState.VOID, vetoed=True) for one in others[: KEPT_NOES - 1]],
    }[between]
    view = vetoed_by(shared())
    for one in told:
        view = journal(written(replacing_approval(approval_of(view, one.plan), one)), at_ms=NOW_MS, view=view)
    view = swept_of(view, [proposal])
    answer = held(shared(), view, approve__rules=(ApprovalRule(name="all"),))
    assert "no rule overrules that" in answer.sentence
    assert "a person cancelled this plan" in answer.sentence
    yes = replacing_approval(approval_of(view, proposal.id), agreed(shared()))
    assert yes.noes == tuple(one.plan_hash for one in told if one.vetoed), "a person's yes to it takes the no back"
    assert isinstance(judged(shared(), journal(written(yes), at_ms=NOW_MS, view=view)), Allow)


def test_the_noes_that_an_approval_goes_on_with_are_bounded() -> None:
    one = agreed(shared())._replace(state=ApprovalState.VOID, vetoed=True)
    for number in range(KEPT_NOES + 9):
        one = replacing_approval(one, one._replace(plan_hash=f"{number:032}"))
    assert len(one.noes) == KEPT_NOES
    assert one.noes[-1] == f"{KEPT_NOES + 7:032}", "the newest stay"


def test_a_persons_no_is_kept_as_long_as_the_plan_is_proposed() -> None:
    _, proposal = only(shared())
    old = [written(by_rule(proposal._replace(id=f"p-{n}"), "x", "y", now_ms=1, valid_ms=1)) for n in range(KEPT + 9)]
    view = journal(*old, at_ms=NOW_MS, view=vetoed_by(shared()))
    for _ in range(3):
        view = journal(*approval_cleanup(view, [proposal], frozenset(), NOW_MS), at_ms=NOW_MS, view=view)
    assert len(approvals(view)) == KEPT + 1
    assert isinstance(judged(shared(), view, approve__rules=(ApprovalRule(name="all"),)), Hold)


def swept_of(
    view: JournalState, standing: Sequence[Proposal], *, now_ms: int = NOW_MS, rests: bool = True
) -> JournalState:
    """After a planning that proposes these."""
    return journal(*approval_cleanup(view, standing, frozenset(), now_ms, lambda _: rests), at_ms=now_ms, view=view)


@pytest.mark.parametrize(
    ("days", "rests"),
    [
        pytest.param(0, True, id="a gap may hide it"),
        pytest.param(0, False, id="seen to be gone, and given today"),
        pytest.param(30, True, id="a gap may hide it, and it was given long ago"),
    ],
)
def test_a_persons_no_is_not_forgotten_for_what_others_used_up_when_one_planning_misses_its_plan(
    days: int, rests: bool
) -> None:
    _, proposal = only(shared())
    given = by_rule(proposal, DEFAULT_RULE, "", now_ms=NOW_MS, valid_ms=HOUR)
    others = [written(used(given._replace(proposal_id=f"p-{n}"), NOW_MS)) for n in range(KEPT + 50)]
    noes = [written(vetoed(proposal._replace(id=f"p-no-{n}"), 1, who="b", now_ms=NOW_MS, why="")) for n in range(KEPT)]
    view = journal(*others, *noes, at_ms=NOW_MS, view=vetoed_by(shared()))
    now_ms = NOW_MS + days * 24 * HOUR
    for standing in ([proposal], [], [proposal]):
        view = swept_of(view, standing, now_ms=now_ms, rests=rests)
    answer = judged(shared(), view, approve__rules=(ApprovalRule(name="all"),))
    assert isinstance(answer, Hold), answer.sentence
    assert "no rule overrules that" in answer.sentence
    assert sum(not one.vetoed for one in approvals(view)) == KEPT, "used ones are bounded apart from it"


@pytest.mark.parametrize(("rests", "stay"), [(True, KEPT_HIDDEN), (False, KEPT)])
def test_noes_to_what_is_proposed_no_more_are_bounded_after_a_day(rests: bool, stay: int) -> None:
    _, proposal = only(shared())
    noes = [vetoed(proposal._replace(id=f"p-{n}"), 1, who="b", now_ms=NOW_MS, why="") for n in range(KEPT_HIDDEN + 9)]
    view = journal(*map(written, noes), at_ms=NOW_MS)
    assert swept_of(view, (), now_ms=NOW_MS + NO_COUNTS_MS - 1, rests=rests) == view
    after = swept_of(view, [proposal._replace(id="p-0")], now_ms=NOW_MS + NO_COUNTS_MS, rests=rests)
    assert approvals(after) == (noes[0], *noes[-stay:]), "the latest, and what is proposed"


@pytest.mark.parametrize(
    ("rule", "predicted", "says"),
    [
        pytest.param(replace(SMALL, max_bytes=999), {}, "1.0 kB to copy, and at most 999 B is allowed",
            id="too many bytes"),
        pytest.param(
            SMALL, {"bytes_to_move": None}, "an unknown number of bytes to copy, and at most 1.0 kB is allowed",
            id="bytes are unknown",
        ),
        pytest.param(SMALL, {"moves": 2}, "2 moves, and at most 1 are allowed", id="too many moves"),
        pytest.param(replace(SMALL, kinds=frozenset({"leaders"})), {}, "its kinds do not include reassign",
            id="another kind"),
        pytest.param(replace(SMALL, topics=("x*",)), {}, "its patterns do not match topic/t", id="another topic"),
        pytest.param(replace(SMALL, groups=("t",)), {}, "its patterns do not match topic/t", id="a rule about groups"),
        pytest.param(
            replace(SMALL, reasons=frozenset({"leaders-even"})), {}, "its reasons do not include mend-rack-spread",
            id="another reason",
        ),
        pytest.param(
            replace(SMALL, min_gain_usd_per_day=1.0), {},
            "an unknown amount a day saved, and at least $1.00 is required", id="what it saves is unknown",
        ),
        pytest.param(
            replace(SMALL, min_gain_bytes_per_s=100.0),
            {"cross_rack_bytes_per_s_before": 90.0, "cross_rack_bytes_per_s_after": 0.0},
            "90 B/s saved, and at least 100 B/s is required", id="it saves too little",
        ),
    ],
)  # fmt: skip
def test_a_rule_approves_nothing_beyond_a_bound_and_the_bound_is_told(
    rule: ApprovalRule, predicted: dict[str, object], says: str
) -> None:
    snapshot, proposal = only(shared())
    changed = proposal._replace(predicted=replace(proposal.predicted, **predicted))  # type: ignore[arg-type]
    (answer,) = guard([changed], snapshot, Memory(), limits_of(approve__rules=(rule,)), EMPTY_JOURNAL)
    assert isinstance(answer, Hold)
    assert f"rule small: {says}" in answer.sentence


def test_a_change_of_leader_is_seen_by_a_rule_that_wants_them_kept() -> None:
    _, proposal = only(shared())
    row = proposal.after[0]
    turned = proposal._replace(after=(row._replace(value=(*row.value[1:], row.value[0])),))
    snapshot = shared().snapshot()
    rule = replace(SMALL, keep_leaders=True)
    fresh = turned._replace(snapshot_hash=proposal.snapshot_hash)
    (answer,) = guard([fresh], snapshot, Memory(), limits_of(approve__rules=(rule,)), EMPTY_JOURNAL)
    assert not isinstance(answer, Allow)


def test_a_rule_that_wants_leaders_kept_approves_a_trigger_which_changes_none() -> None:
    rule = ApprovalRule(name="kept", kinds=frozenset({"trigger"}), keep_leaders=True)
    answer = judged(swapped(), EMPTY_JOURNAL, approve__triggers=False, approve__rules=(rule,))
    assert isinstance(answer, Allow), answer
    assert answer.rule == "kept"


def test_the_hash_of_a_plan_is_that_of_what_is_done_and_not_of_its_size() -> None:
    _, proposal = only(shared())
    bigger = proposal._replace(
        moves=tuple(move._replace(bytes=7) for move in proposal.moves),
        predicted=PredictedEffect(moves=1, bytes_to_move=7),
        created_ms=1,
        expires_ms=2,
    )
    assert plan_hash(bigger) == plan_hash(proposal)
    row = proposal.after[0]
    for other in (
        proposal._replace(after=(row._replace(value=(*row.value, 9)),)),
        proposal._replace(before=()),
        proposal._replace(moves=()),
        proposal._replace(snapshot_hash="other"),
    ):
        assert plan_hash(other) != plan_hash(proposal)
