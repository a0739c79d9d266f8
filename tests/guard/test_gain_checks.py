"""Whether it is worth doing: pay-back, least gain, what was tried, moved or asked for lately."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.guard.judge import guard
from agent.journal import plan_entries
from agent.journal.entries import JournalState
from agent.journal.triggers import TriggerEffect, TriggerVerdict
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.proposal import Allow, Hold, HoldReason, Verdict
from agent.values.reassignment import PlanState, ReassignmentPlan, ReassignmentTarget
from tests.guard.acting import (
    EMPTY_JOURNAL,
    HOUR,
    MINUTE,
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
from tests.plan.test_triggers import copy, warming
from tests.snapshots import NOW_MS, tp


def worth(view: JournalState = EMPTY_JOURNAL, limits: Limits | None = None, **predicted: float | None) -> Verdict:
    snapshot, proposal = only(swapped())
    changed = proposal._replace(predicted=replace(proposal.predicted, **predicted))  # type: ignore[arg-type]
    (answer,) = guard([changed], snapshot, Memory(), limits or limits_of(), view)
    return answer


@pytest.mark.parametrize(
    ("predicted", "says"),
    [
        pytest.param(
            {"bytes_to_move": None}, "the number of bytes it copies, or their price, is unknown", id="bytes are unknown"
        ),
        pytest.param({"bytes_to_move": 10**9}, "its saving per day is unknown", id="what it saves is unknown"),
        pytest.param(
            {"bytes_to_move": 10**12, "usd_per_day_before": 1.0, "usd_per_day_after": 0.5},
            "costs up to $20.00 and saves $0.50 a day: paid back in 40 days, at most 30 days are allowed",
            id="it pays too late",
        ),
        pytest.param(
            {"bytes_to_move": 10**9, "usd_per_day_before": 1.0, "usd_per_day_after": 1.0}, "and it saves nothing",
            id="it never pays",
        ),
    ],
)  # fmt: skip
def test_what_would_not_pay_for_itself_is_held(predicted: dict[str, float | None], says: str) -> None:
    answer = worth(EMPTY_JOURNAL, None, **predicted)
    assert isinstance(answer, Hold)
    assert (answer.reason, says in answer.sentence) == (HoldReason.NO_PAYBACK, True), answer.sentence


def test_what_pays_in_time_or_is_not_asked_to_is_allowed() -> None:
    assert isinstance(worth(bytes_to_move=10**11, usd_per_day_before=1.0, usd_per_day_after=0.5), Allow)
    assert isinstance(worth(bytes_to_move=None, limits=limits_of(execute__payback_days=None)), Allow)
    assert isinstance(judged(shared(), with_approval(shared())), Allow), "a repair is not asked to pay"


def test_what_was_acted_upon_lately_must_gain_more() -> None:
    strict = limits_of(gain__min_partitions=2)
    assert isinstance(worth(limits=strict), Allow)
    lately = journal(triggered("g", NOW_MS - 2 * HOUR, verdict=TriggerVerdict.AS_PREDICTED), at_ms=NOW_MS)
    answer = worth(lately, limits=strict)
    assert isinstance(answer, Hold)
    assert answer.reason is HoldReason.TOO_LITTLE_GAIN
    assert answer.sentence == (
        "held: it makes 2 of 2 partitions local; the least gain is 2.4 "
        "(20 % more than set: its last change or trigger was 2 h ago)"
    )
    long_ago = journal(triggered("g", NOW_MS - 25 * HOUR, verdict=TriggerVerdict.AS_PREDICTED), at_ms=NOW_MS)
    assert isinstance(worth(long_ago, limits=strict), Allow)


def test_least_bytes_that_cannot_be_told_are_not_reached() -> None:
    strict = limits_of(gain__min_bytes_per_s=10.0)
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
        pytest.param(TriggerVerdict.NOT_DONE, None, id="no rebalance was requested"),
    ],
)
def test_the_same_trigger_about_the_same_assignment_is_not_tried_again(
    verdict: TriggerVerdict, reason: HoldReason | None
) -> None:
    _, proposal = only(swapped())
    done = triggered(
        "g", NOW_MS - 2 * HOUR, proposal=proposal.id, verdict=verdict,
        effect=TriggerEffect.NOT_SENT if reason is None else TriggerEffect.REBALANCING,
    )  # fmt: skip
    answer = judged(swapped(), journal(done, at_ms=NOW_MS))
    assert (answer.reason if isinstance(answer, Hold) else None) is reason


def test_a_topic_whose_replicas_were_moved_cools_down() -> None:
    other = ReassignmentPlan("p-other", (ReassignmentTarget(tp("t-1"), "id", (2, 3), (3, 2)),), PlanState.DONE)
    view = journal(plan_entries.change_writes(other), at_ms=NOW_MS - 4 * MINUTE, view=with_approval(shared()))
    answer = held(shared(), view)
    assert (answer.reason, answer.until_ms) == (HoldReason.COOLING_DOWN, NOW_MS + 6 * MINUTE)
    assert isinstance(judged(shared(), view, execute__cooldown_ms=MINUTE), Allow)


def test_warm_ups_wait_where_their_application_is_about_to_ask_by_itself() -> None:
    soon = warming(copy("p2", "0_1", caught_up=True), next_rebalance_ms=NOW_MS + 9_000)
    answer = held(soon, EMPTY_JOURNAL)
    assert answer.reason is HoldReason.PROBING
    assert isinstance(judged(promoted(), EMPTY_JOURNAL), Allow)
