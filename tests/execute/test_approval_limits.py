"""Limits that people give with their approvals: kept, in force, or refused; never dropped in silence."""

from __future__ import annotations

from typing import Any

import pytest

from agent.execute.commands.apply import apply_commands
from agent.journal.approvals import ApprovalState, ProposalApproval, approval_of
from agent.journal.commands import CommandVerb, LeaderAnswer
from agent.journal.entries import JournalState
from agent.values.limits import Limits
from agent.values.reassignment import PlanState
from tests.execute.commands import EMPTY, LIMITS, MOVE, STANDING, TWO, ask, done, in_journal, plan
from tests.journals import journal
from tests.snapshots import NOW_MS

MB = 1_000_000
SECOND = "a second person has to approve it"


def said(
    *wishes: tuple[str, dict[str, int]], limits: Limits
) -> tuple[JournalState, ProposalApproval, list[LeaderAnswer]]:
    """The journal, the approval and the answers after these people approved, one after the other."""
    view, answers = EMPTY, []
    for at, (who, options) in enumerate(wishes):
        result = apply_commands(
            [ask(CommandVerb.APPROVE, MOVE, who=who, id_=f"c{at}", **options)], view, STANDING, limits, NOW_MS + at
        )
        answers.append(done(result, view, f"c{at}"))
        view = journal(*result.writes, at_ms=NOW_MS + at, view=view)
    given = approval_of(view, MOVE.id)
    assert given is not None
    return view, given, answers


SLOW, FAST = {"throttle_bytes_per_s": 2 * MB}, {"throttle_bytes_per_s": 5 * MB}


@pytest.mark.parametrize(
    ("first", "second", "rate", "most"),
    [
        pytest.param({**SLOW, "max_moves": 3}, {}, 2 * MB, 3, id="those of the first"),
        pytest.param({}, {**SLOW, "max_moves": 3}, 2 * MB, 3, id="those of the second"),
        pytest.param({**SLOW, "max_moves": 9}, {**FAST, "max_moves": 3}, 2 * MB, 3, id="of two the lower"),
        pytest.param(FAST, {"max_moves": 3}, 5 * MB, 3, id="one each"),
    ],
)
def test_a_second_person_agrees_to_the_limits_of_the_first(
    first: dict[str, int], second: dict[str, int], rate: int, most: int
) -> None:
    _, given, answers = said(("ann@desk", first), ("bob@desk", second), limits=TWO)
    assert (given.state, given.by, given.requested_by) == (ApprovalState.APPROVED, "bob@desk", "ann@desk")
    assert (given.throttle_bytes_per_s, given.max_moves) == (rate, most)
    limits = f"at {rate / MB:.1f} MB/s per broker and {most} partitions at a time"
    assert answers[1].sentence == (
        f"approved by bob@desk, requested by ann@desk {limits}; void if it has not begun within 60 min"
    )


@pytest.mark.parametrize("options", [FAST, {"max_moves": 3}, {**FAST, "max_moves": 3}])
def test_approving_again_with_other_limits_is_another_approval(options: dict[str, int]) -> None:
    _, given, answers = said(("ann@desk", SLOW), ("bob@desk", options), limits=LIMITS)
    assert (given.by, given.at_ms) == ("bob@desk", NOW_MS + 1)
    assert given.throttle_bytes_per_s == options.get("throttle_bytes_per_s", 2 * MB)
    assert given.max_moves == options.get("max_moves")
    assert answers[1].sentence.startswith("approved by bob@desk at ")


@pytest.mark.parametrize("options", [{}, SLOW])
def test_approving_again_with_the_same_limits_changes_nothing_and_names_them(options: dict[str, int]) -> None:
    _, given, answers = said(("ann@desk", SLOW), ("bob@desk", options), limits=LIMITS)
    assert (given.by, answers[1].done) == ("ann@desk", True)
    assert answers[1].sentence == f"{MOVE.id} was approved by ann@desk already at 2.0 MB/s per broker"


def test_where_two_are_needed_other_limits_need_two_again() -> None:
    both = ("ann@desk", SLOW), ("bob@desk", dict[str, int]())
    _, given, answers = said(*both, ("ann@desk", FAST), limits=TWO)
    assert (given.state, given.by, given.throttle_bytes_per_s) == (ApprovalState.REQUESTED, "ann@desk", 5 * MB)
    assert SECOND in answers[2].sentence
    _, given, _ = said(*both, ("ann@desk", FAST), ("bob@desk", {}), limits=TWO)
    assert (given.state, given.throttle_bytes_per_s) == (ApprovalState.APPROVED, 5 * MB)


def test_who_asked_may_ask_for_other_limits_and_still_not_approve() -> None:
    _, given, answers = said(("ann@desk", SLOW), ("ann@desk", FAST), ("ann@desk", {}), limits=TWO)
    assert (given.state, given.throttle_bytes_per_s) == (ApprovalState.REQUESTED, 5 * MB)
    assert [answer.done for answer in answers] == [True, True, False]


@pytest.mark.parametrize(
    ("options", "has", "says"),
    [
        pytest.param(FAST, {}, "in progress with the limits of the settings", id="none were given"),
        pytest.param(FAST, SLOW, "in progress at 2.0 MB/s per broker", id="others were given"),
        pytest.param(FAST, FAST, None, id="the same were given"),
    ],
)
def test_the_limits_of_what_is_in_progress_are_not_said_to_change(
    options: dict[str, int], has: dict[str, Any], says: str | None
) -> None:
    view = in_journal(plan(PlanState.OPEN, **has))
    answer = done(apply_commands([ask(CommandVerb.APPROVE, MOVE, **options)], view, STANDING, LIMITS, NOW_MS), view)
    if says is None:
        assert answer.done
    else:
        assert answer.sentence == f"{MOVE.id} is {says}; that cannot be changed while it is in progress"
