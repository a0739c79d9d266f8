"""What copying costs, what a change saves, and in what time the one pays for the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.guard.judge import explained, guard
from agent.journal import plan_entries
from agent.journal.entries import JournalState
from agent.values.limits import PriceLimits
from agent.values.memory import Memory
from agent.values.plan import RuleAnswer
from agent.values.proposal import Hold, HoldReason, Proposal, ProposalKind, ProposalReason, Verdict
from agent.values.reassignment import PlanState, ReassignmentPlan, ReassignmentTarget
from tests.guard.acting import EMPTY_JOURNAL, HOUR, limits_of, only
from tests.guard.test_judge import shared, swapped
from tests.journals import journal
from tests.snapshots import NOW_MS, tp

_, TRIGGER = only(swapped())


def predicted(proposal: Proposal, **changes: object) -> Proposal:
    """The proposal with other figures."""
    return proposal._replace(predicted=replace(proposal.predicted, **changes))  # type: ignore[arg-type]


def worth(proposal: Proposal, **limits: object) -> Verdict:
    (answer,) = guard([proposal], swapped().snapshot(), Memory(), limits_of(**limits), EMPTY_JOURNAL)
    return answer


PAYS = {"price": PriceLimits(usd_per_gb=0.02), "execute__payback_days": 30}


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        pytest.param(1.0, 1.25, "held: copying costs up to $0.02, and it costs $0.25 a day more", id="it costs more"),
        pytest.param(1.0, 1.0, "held: copying costs up to $0.02, and it saves nothing", id="it saves nothing"),
        pytest.param(
            0.001, 0.0, None, id="it pays in time",
        ),
        pytest.param(
            0.0005, 0.0, "held: copying costs up to $0.02 and saves $0.00050 a day: paid back in 40 days, at most "
            "30 days are allowed", id="it pays too late",
        ),
    ],
)  # fmt: skip
def test_what_does_not_pay_is_held_with_what_it_costs(before: float, after: float, sentence: str | None) -> None:
    answer = worth(predicted(TRIGGER, bytes_to_move=10**9, usd_per_day_before=before, usd_per_day_after=after), **PAYS)
    found = (answer.reason, answer.sentence) if isinstance(answer, Hold) else None
    assert found == (None if sentence is None else (HoldReason.NO_PAYBACK, sentence))


@pytest.mark.parametrize(
    ("least", "sentence"),
    [
        pytest.param(0.0, "no least gain is set", id="none"),
        pytest.param(0.5, "it saves 15 B/s; the least gain is 0 B/s", id="half a byte a second"),
        pytest.param(1.0, "it saves 15 B/s; the least gain is 1 B/s", id="a byte a second"),
        pytest.param(15.0, "it saves 15 B/s; the least gain is 15 B/s", id="as much as it saves"),
        pytest.param(16.0, "held: it saves 15 B/s; the least gain is 16 B/s", id="more than it saves"),
    ],
)
def test_the_least_gain_is_told_beside_what_a_change_of_leaders_saves(least: float, sentence: str) -> None:
    assert gain_told({}, gain__min_bytes_per_s=least) == sentence


@pytest.mark.parametrize(
    ("ago_ms", "sentence"),
    [
        pytest.param(
            2 * HOUR,
            "it saves 15 B/s; the least gain is 12 B/s (20 % more than set: its last change or trigger was 2 h ago)",
            id="two hours ago",
        ),
        pytest.param(
            24 * HOUR - 1,
            "it saves 15 B/s; the least gain is 12 B/s "
            "(20 % more than set: its last change or trigger was 23 h 59 min ago)",
            id="a little less than a day ago",
        ),
        pytest.param(24 * HOUR, "it saves 15 B/s; the least gain is 10 B/s", id="a day ago"),
    ],
)
def test_a_topic_that_was_moved_lately_must_gain_more(ago_ms: int, sentence: str) -> None:
    other = ReassignmentPlan("p-other", (ReassignmentTarget(tp("t-1"), "id", (2, 3), (3, 2)),), PlanState.DONE)
    view = journal(plan_entries.change_writes(other), at_ms=NOW_MS - ago_ms)
    assert gain_told(view, gain__min_bytes_per_s=10.0) == sentence


def gain_told(view: JournalState, **limits: object) -> str:
    """What is said of the gain of a change of leaders that saves 15 bytes per second."""
    snapshot, proposal = only(shared())
    leaders = predicted(
        proposal._replace(kind=ProposalKind.LEADERS, reason=ProposalReason.LEADERS_TO_READERS),
        cross_rack_bytes_per_s_before=20.0,
        cross_rack_bytes_per_s_after=5.0,
    )
    rows = {row.rule: row for row in explained(leaders, snapshot, Memory(), limits_of(**limits), view)}
    held = "" if rows["enough gain"].answer is RuleAnswer.YES else "held: "
    return f"{held}{rows['enough gain'].sentence}"
