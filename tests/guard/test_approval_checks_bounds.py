"""What a rule approves, how long a person's approval counts, and what a gap may hide of what both rest on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.guard.judge import broken, kept, preconditions_hold
from agent.journal.approvals import ApprovalState
from agent.values.limits import ApprovalRule
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.proposal import Hold, PredictedEffect, Proposal
from tests.guard.acting import HOUR, MINUTE, approval, judged, only
from tests.guard.test_judge import shared, swapped
from tests.journals import journal
from tests.snapshots import NOW_MS, Builder, member

_, MOVE = only(shared())
_, TRIGGER = only(swapped())
NOTHING = replace(MOVE.predicted, bytes_to_move=None, usd_per_day_before=None, usd_per_day_after=None)


def predicted(proposal: Proposal = MOVE, **changes: object) -> Proposal:
    """The proposal with other figures."""
    return proposal._replace(predicted=replace(proposal.predicted, **changes))  # type: ignore[arg-type]


def saving(rate: float | None = None, dollars: float | None = None, **changes: object) -> Proposal:
    return predicted(
        cross_rack_bytes_per_s_before=rate, cross_rack_bytes_per_s_after=None if rate is None else 0.0,
        usd_per_day_before=dollars, usd_per_day_after=None if dollars is None else 0.0, **changes,
    )  # fmt: skip


NO_TOPIC, NO_GROUP = "its patterns do not match topic/t", "its patterns do not match group/g"


# --- rules


@pytest.mark.parametrize(
    ("bound", "proposal", "why", "told"),
    [
        pytest.param({"max_moves": 2}, predicted(moves=2), None, "2 of 2 moves", id="as many moves"),
        pytest.param(
            {"max_moves": 1}, predicted(moves=2), "2 moves, and at most 1 are allowed", "2 of 1 move", id="more moves"
        ),
        pytest.param(
            {"max_bytes": 1_000}, predicted(bytes_to_move=1_000), None, "1.0 kB of 1.0 kB to copy", id="as many bytes"
        ),
        pytest.param(
            {"max_bytes": 1_000}, predicted(bytes_to_move=1_001), "1,001 B to copy, and at most 1,000 B is allowed",
            "1,001 B of 1,000 B to copy", id="one more byte",
        ),
        pytest.param(
            {"max_bytes": 1_000}, predicted(bytes_to_move=None),
            "an unknown number of bytes to copy, and at most 1.0 kB is allowed",
            "an unknown number of bytes of 1.0 kB to copy", id="unknown bytes",
        ),
        pytest.param({"min_gain_usd_per_day": 2.0}, saving(dollars=2.0), None, "$2.00 a day saved", id="as much"),
        pytest.param(
            {"min_gain_usd_per_day": 2.0}, saving(dollars=1.5), "$1.50 a day saved, and at least $2.00 is required",
            "$1.50 a day saved", id="fewer dollars",
        ),
        pytest.param(
            {"min_gain_usd_per_day": 2.0}, saving(), "an unknown amount a day saved, and at least $2.00 is required",
            "an unknown amount a day saved", id="unknown dollars",
        ),
        pytest.param({"min_gain_bytes_per_s": 500}, saving(500.0), None, "500 B/s saved", id="as many bytes a second"),
        pytest.param(
            {"min_gain_bytes_per_s": 500}, saving(499.0), "499 B/s saved, and at least 500 B/s is required",
            "499 B/s saved", id="fewer bytes a second",
        ),
        pytest.param(
            {"min_gain_bytes_per_s": 500}, saving(),
            "an unknown number of bytes saved, and at least 500 B/s is required",
            "an unknown number of bytes saved", id="unknown bytes a second",
        ),
        pytest.param({"topics": ("t",)}, MOVE, None, "topic/t matches", id="its topic"),
        pytest.param({"topics": ("u",)}, MOVE, NO_TOPIC, "topic/t matches", id="another topic"),
        pytest.param({"groups": ("t",)}, MOVE, NO_TOPIC, "topic/t matches", id="groups alone"),
        pytest.param({"groups": ("g",)}, TRIGGER, None, "group/g matches", id="its group"),
        pytest.param({"topics": ("g",)}, TRIGGER, NO_GROUP, "group/g matches", id="topics alone"),
        pytest.param({"groups": ("g",), "topics": ("x",)}, TRIGGER, None, "group/g matches", id="both kinds"),
    ],
)  # fmt: skip
def test_a_rule_names_the_figure_that_it_kept_or_that_broke_it(
    bound: dict[str, object], proposal: Proposal, why: str | None, told: str
) -> None:
    rule = ApprovalRule(name="r", **{"kinds": (proposal.kind.value,), **bound})  # type: ignore[arg-type]
    assert broken(rule, proposal) == why
    assert kept(rule, proposal) == told


def test_a_rule_of_other_kinds_or_reasons_approves_nothing() -> None:
    kinds = broken(ApprovalRule(name="r", kinds=("trigger",)), MOVE)
    assert kinds == f"its kinds do not include {MOVE.kind.value}"
    own = MOVE.reason.name.lower().replace("_", "-")
    assert broken(ApprovalRule(name="r", kinds=(MOVE.kind.value,), reasons=("other",)), MOVE) == (
        f"its reasons do not include {own}"
    )
    rule = ApprovalRule(name="r", kinds=(MOVE.kind.value,), reasons=(own,))
    assert (broken(rule, MOVE), kept(rule, MOVE)) == (None, f"the reason is {own}")


@pytest.mark.parametrize(
    ("age_ms", "state", "sentence"),
    [
        pytest.param(HOUR - 1, ApprovalState.APPROVED, None, id="approved a little less than an hour ago"),
        pytest.param(
            HOUR, ApprovalState.APPROVED, "its approval by ann@desk expired 0 s ago", id="approved an hour ago"
        ),
        pytest.param(
            HOUR + MINUTE, ApprovalState.APPROVED, "its approval by ann@desk expired 60 s ago", id="before that"
        ),
        pytest.param(
            5 * MINUTE, ApprovalState.REQUESTED, "requested by ann@desk 5 min ago, a second person must approve it",
            id="requested",
        ),
    ],
)  # fmt: skip
def test_an_approval_counts_as_long_as_it_lasts(age_ms: int, state: ApprovalState, sentence: str | None) -> None:
    view = journal(approval(shared(), age_ms=age_ms, state=state), at_ms=NOW_MS - age_ms)
    answer = judged(shared(), view)
    assert isinstance(answer, Hold) is (sentence is not None)
    if sentence is not None:
        assert sentence in answer.sentence


# --- preconditions and gaps


CHANGED_TOPIC = shared().topic("t", (4, 1), (2, 3))
CHANGED_GROUP = swapped().group("g", member("m1", "a", "t-1"), member("m2", "b", "t-0"))


@pytest.mark.parametrize(
    ("proposal", "fresh", "subject", "holds"),
    [
        pytest.param(MOVE, CHANGED_TOPIC, None, False, id="a topic that is another now"),
        pytest.param(MOVE, CHANGED_TOPIC, "t", True, id="a gap of the topic itself"),
        pytest.param(MOVE, CHANGED_TOPIC, "u", False, id="a gap of another topic"),
        pytest.param(MOVE, CHANGED_TOPIC, "h", True, id="a gap of a group, of a move"),
        pytest.param(MOVE, CHANGED_TOPIC, "", True, id="a gap of everything"),
        pytest.param(MOVE, CHANGED_TOPIC, "broker 2", True, id="a gap of a broker"),
        pytest.param(TRIGGER, CHANGED_GROUP, None, False, id="a group that is another now"),
        pytest.param(TRIGGER, CHANGED_GROUP, "g", True, id="a gap of the group itself"),
        pytest.param(TRIGGER, CHANGED_GROUP, "h", False, id="a gap of another group"),
        pytest.param(TRIGGER, CHANGED_GROUP, "u", True, id="a gap of a topic, of a trigger"),
        pytest.param(TRIGGER, CHANGED_GROUP, "", True, id="a gap of everything, of a trigger"),
    ],
)
def test_a_gap_may_hide_a_precondition_unless_it_is_of_another_topic_or_group(
    proposal: Proposal, fresh: Builder, subject: str | None, holds: bool
) -> None:
    fresh.topic("u", (1, 2)).group("h", member("m9", "a", "u-0"))
    part = ObservationPart.GROUPS if subject in ("g", "h") else ObservationPart.TOPICS
    gaps = () if subject is None else (Gap(part, GapCause.TIMED_OUT, subject, "no answer"),)
    assert preconditions_hold(proposal, fresh.snapshot(gaps=gaps)) is holds


def test_an_effect_without_figures_saves_an_unknown_amount() -> None:
    assert isinstance(NOTHING, PredictedEffect)
    rule = ApprovalRule(name="r", kinds=(MOVE.kind.value,), min_gain_usd_per_day=0.0)
    assert broken(rule, MOVE._replace(predicted=NOTHING)) == (
        "an unknown amount a day saved, and at least $0.00 is required"
    )
