"""Budgets to the millisecond: what counts within an hour and a day, and when there is room again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.guard.guard_context import DAY_MS, HOUR_MS, DatedBatch, GuardJournal, batches_left
from agent.guard.judge import explained
from agent.journal import plan_entries
from agent.journal.triggers import TriggerEffect, TriggerVerdict
from agent.values.limits import ExecuteLimits
from agent.values.memory import Memory
from agent.values.proposal import CheckPassed, Hold, HoldReason
from agent.values.reassignment import Batch, BatchState, PlanState, ReassignmentPlan, ReassignmentTarget
from tests.guard.acting import MINUTE, judged, limits_of, only, promoted, triggered
from tests.guard.test_judge import swapped
from tests.journals import journal
from tests.snapshots import NOW_MS, tp

TARGET = ReassignmentTarget(tp("t-0"), "id", (1, 4), (1, 2), 1_000)
LIMITS = ExecuteLimits(batches_per_hour=2, batches_per_day=4, bytes_per_day=None)


def sent(*ages_ms: int, sendings: int = 1, target: ReassignmentTarget = TARGET) -> list[DatedBatch]:
    """Batches that were last written so long ago."""
    return [
        DatedBatch(Batch("p", at, (target,), BatchState.CLOSED, sendings=sendings), NOW_MS - age_ms)
        for at, age_ms in enumerate(ages_ms)
    ]


@pytest.mark.parametrize(
    ("ages_ms", "sentence", "until_ms"),
    [
        pytest.param((), None, None, id="none"),
        pytest.param((5,), None, None, id="one of two"),
        pytest.param((9 * MINUTE, 5 * MINUTE), "2 of 2 batches in the last hour", 51 * MINUTE, id="two of two"),
        pytest.param((5 * MINUTE, 9 * MINUTE), "2 of 2 batches in the last hour", 51 * MINUTE, id="in any order"),
        pytest.param((HOUR_MS - 1, 5), "2 of 2 batches in the last hour", 1, id="one just within the hour"),
        pytest.param((HOUR_MS, 5), None, None, id="one an hour ago"),
        pytest.param((30 * MINUTE, 9, 5), "3 of 2 batches in the last hour", HOUR_MS - 9, id="one too many"),
        pytest.param(
            (DAY_MS - 7, *[2 * HOUR_MS] * 3), "4 of 4 batches in the last day", 7, id="one just within the day"
        ),
        pytest.param((DAY_MS, *[2 * HOUR_MS] * 3), None, None, id="one a day ago"),
    ],
)
def test_batches_have_a_budget_of_an_hour_and_of_a_day(
    ages_ms: tuple[int, ...], sentence: str | None, until_ms: int | None
) -> None:
    answer = batches_left("p", sent(*ages_ms), LIMITS, NOW_MS)
    assert isinstance(answer, CheckPassed) is (sentence is None)
    if isinstance(answer, Hold):
        assert answer.reason is HoldReason.OVER_BUDGET
        assert answer.sentence.startswith(f"held: {sentence}")
        assert until_ms is not None
        assert answer.until_ms == NOW_MS + until_ms


def test_a_batch_that_was_never_sent_counts_for_nothing() -> None:
    answer = batches_left("p", sent(1, 2, 3, sendings=0), LIMITS, NOW_MS)
    assert isinstance(answer, CheckPassed)
    assert answer.sentence == (
        "0 of 2 batches in the last hour (execute.batches_per_hour); "
        "0 of 4 batches in the last day (execute.batches_per_day)"
    )


@pytest.mark.parametrize(
    ("batches", "sentence", "held"),
    [
        pytest.param(sent(5), "1.0 kB of 1.5 kB copied in the last day", False, id="fewer"),
        pytest.param([*sent(5), *sent(DAY_MS - 1)], "2.0 kB of 1.5 kB copied in the last day", True, id="more"),
        pytest.param([*sent(5), *sent(DAY_MS)], "1.0 kB of 1.5 kB copied in the last day", False, id="a day ago"),
        pytest.param(
            sent(5, target=TARGET._replace(bytes=1_500)), "1.5 kB of 1.5 kB copied in the last day", True, id="as many"
        ),
        pytest.param(
            sent(5, target=TARGET._replace(after=(3, 2))), "2.0 kB of 1.5 kB copied in the last day", True, id="twice"
        ),
        pytest.param(
            sent(5, target=TARGET._replace(bytes=None)), "the number of bytes copied in the last day is unknown", True,
            id="unknown",
        ),
        pytest.param(
            sent(5, target=TARGET._replace(bytes=None, after=(4, 1))), "0 B of 1.5 kB copied in the last day", False,
            id="another order alone",
        ),
        pytest.param(
            [*sent(5), *sent(DAY_MS, target=TARGET._replace(bytes=None))], "1.0 kB of 1.5 kB copied in the last day",
            False, id="unknown a day ago",
        ),
    ],
)  # fmt: skip
def test_copied_bytes_have_a_budget_of_a_day(batches: list[DatedBatch], sentence: str, held: bool) -> None:
    answer = batches_left("p", batches, replace(LIMITS, batches_per_hour=9, bytes_per_day=1_500), NOW_MS)
    assert isinstance(answer, Hold) is held
    assert f"{sentence} (execute.bytes_per_day)" in answer.sentence


@pytest.mark.parametrize(
    ("ages_ms", "limits", "sentence", "until_ms"),
    [
        pytest.param((2 * HOUR_MS,), {"trigger__budget_per_hour": 1}, None, None, id="two hours ago"),
        pytest.param(
            (MINUTE,), {"trigger__budget_per_hour": 1},
            "held: 1 of 1 trigger in the last hour (trigger.budget_per_hour)", 59 * MINUTE, id="within an hour",
        ),
        pytest.param(
            (2 * HOUR_MS,), {"trigger__budget_per_day": 1},
            "held: 1 of 1 trigger in the last day (trigger.budget_per_day)", 22 * HOUR_MS, id="within a day",
        ),
        pytest.param((DAY_MS,), {"trigger__budget_per_day": 1}, None, None, id="a day ago"),
    ],
)  # fmt: skip
def test_triggers_have_a_budget_of_an_hour_and_of_a_day(
    ages_ms: tuple[int, ...], limits: dict[str, object], sentence: str | None, until_ms: int | None
) -> None:
    """Of all groups together."""
    writes = [triggered("other", NOW_MS - age_ms, verdict=TriggerVerdict.AS_PREDICTED) for age_ms in ages_ms]
    answer = judged(swapped(), journal(*writes, at_ms=NOW_MS), **limits)
    assert (answer.sentence if isinstance(answer, Hold) else None) == sentence
    if until_ms is not None and isinstance(answer, Hold):
        assert answer.until_ms == NOW_MS + until_ms


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        pytest.param("REBALANCE_IMPROVES", {"trigger": 1, "probing": 0}, id="for a better assignment"),
        pytest.param("WARMUP_PROMOTABLE", {"trigger": 0, "probing": 1}, id="for a warm-up"),
    ],
)
def test_triggers_of_a_group_count_by_their_reason(reason: str, told: dict[str, int]) -> None:
    for built, section in ((swapped(), "trigger"), (promoted(), "probing")):
        snapshot, proposal = only(built)
        name = proposal.subject.name
        rows = [
            triggered(name, NOW_MS - age_ms, reason=reason, effect=effect, verdict=TriggerVerdict.AS_PREDICTED)
            for age_ms, effect in (
                (HOUR_MS - 1, TriggerEffect.REBALANCING), (HOUR_MS, TriggerEffect.REBALANCING),
                (MINUTE, TriggerEffect.NOT_SENT),
            )
        ]  # fmt: skip
        lines = explained(proposal, snapshot, Memory(), limits_of(), journal(*rows, at_ms=NOW_MS))
        sentence = next(row.sentence for row in lines if row.rule == "triggers of group left")
        assert sentence.removeprefix("held: ").startswith(f"{told[section]} of ")
        assert f"of group {name} in the last hour ({section}.budget_per_group_per_hour)" in sentence


def test_the_last_plan_that_moved_a_topic_is_the_newest_also_one_whose_partitions_are_dropped() -> None:
    def plan(name: str, topic: str, state: PlanState = PlanState.DONE) -> ReassignmentPlan:
        return ReassignmentPlan(name, (TARGET._replace(id=tp(topic)),), state)

    view = journal(plan_entries.change_writes(plan("p-1", "t-0")), at_ms=5)
    view = journal(plan_entries.change_writes(plan("p-2", "t-1")), at_ms=7, view=view)
    view = journal(plan_entries.change_writes(plan("p-3", "u-0")), at_ms=6, view=view)
    view = journal(plan_entries.change_writes(plan("p-4", "v-0", PlanState.OPEN)), at_ms=9, view=view)
    header, _ = plan_entries.change_writes(plan("p-5", "w-0"))
    of_dropped = plan_entries.change_writes(Batch("p-5", 1, (TARGET._replace(id=tp("w-0")),), BatchState.CLOSED))
    view = journal(header, of_dropped, at_ms=8, view=view)
    assert GuardJournal(view).moved == {"t": 7, "u": 6, "w": 8}
