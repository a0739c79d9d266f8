"""What the journal tells of earlier triggers, whatever the wall clock does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.execute.probing_values import Anchors, PastTrigger, failures, past_triggers
from agent.journal.triggers import (
    TriggerEffect,
    TriggerEntry,
    TriggerExpectation,
    TriggerJudgement,
    TriggerVerdict,
    intent,
    judged,
    outcome,
)
from tests.act.triggers import MemoryJournal

AT_MS = 1_760_000_000_000
MONO_MS = 9_000_000
EXPECTED = TriggerExpectation(generation=3, readers=("p",), holds={}, moves=(), items=0)
ENTRY = TriggerEntry(
    group_id="app", proposal_id="p-1", reason="WARMUP_PROMOTABLE", intended_ms=AT_MS, expected=EXPECTED
)


def seen(
    journal: MemoryJournal, after_ms: int, anchors: Anchors | None = None, jump_ms: int = 0
) -> tuple[tuple[PastTrigger, ...], Anchors]:
    past, kept = past_triggers(
        journal.view(), anchors or {}, taken_ms=AT_MS + after_ms + jump_ms, monotonic_ms=MONO_MS + after_ms
    )
    return past.get("app", ()), kept


def journal_of(entry: TriggerEntry, judgement: TriggerJudgement | None = None) -> MemoryJournal:
    journal = MemoryJournal()
    journal.append(intent(entry))
    if entry.effect is not None:
        journal.append(outcome(entry))
    if judgement is not None:
        journal.append(judged(entry, judgement))
    return journal


@pytest.mark.parametrize(
    ("effect", "verdict", "came", "promoted"),
    [
        pytest.param(None, None, 0, [None], id="an intent alone: it may have been asked"),
        pytest.param(TriggerEffect.REBALANCING, None, 0, [None], id="asked, not judged"),
        pytest.param(TriggerEffect.REBALANCING, TriggerVerdict.AS_PREDICTED, 2, [True], id="as predicted"),
        pytest.param(TriggerEffect.REBALANCING, TriggerVerdict.PARTLY, 1, [True], id="in part"),
        pytest.param(TriggerEffect.REBALANCING, TriggerVerdict.NO_EFFECT, 0, [False], id="nothing moved"),
        pytest.param(TriggerEffect.REBALANCING, TriggerVerdict.OVERTAKEN, 0, [None], id="members came meanwhile"),
        pytest.param(TriggerEffect.UNKNOWN, TriggerVerdict.NO_REBALANCE, 0, [False], id="no rebalance was seen"),
        pytest.param(TriggerEffect.REFUSED, TriggerVerdict.NOT_DONE, 0, [], id="the coordinator refused"),
        pytest.param(TriggerEffect.NOT_SENT, TriggerVerdict.NOT_DONE, 0, [], id="nothing was asked"),
    ],
)
def test_what_a_trigger_brought(
    effect: TriggerEffect | None, verdict: TriggerVerdict | None, came: int, promoted: list[bool | None]
) -> None:
    judgement = None if verdict is None else TriggerJudgement(verdict, AT_MS + 9, "", came=came)
    past, _ = seen(journal_of(replace(ENTRY, effect=effect), judgement), 5_000)
    assert [one.promoted for one in past] == promoted
    assert [one.at_ms for one in past] == [MONO_MS] * len(promoted)


def test_what_was_asked_again_under_the_same_name_had_changed_nothing() -> None:
    past, _ = seen(journal_of(replace(ENTRY, earlier_ms=(AT_MS - 30_000,), effect=TriggerEffect.REBALANCING)), 5_000)
    assert past == (PastTrigger(MONO_MS - 30_000, False), PastTrigger(MONO_MS, None))


def test_triggers_for_racks_are_told_apart() -> None:
    past, _ = seen(journal_of(replace(ENTRY, reason="REBALANCE_IMPROVES")), 0)
    assert past == (PastTrigger(MONO_MS, None, probing=False),)


@pytest.mark.parametrize("jump_ms", [86_400_000, -86_400_000])
def test_a_jump_of_the_wall_clock_moves_no_trigger_that_was_seen_before(jump_ms: int) -> None:
    journal = journal_of(ENTRY)
    before, anchors = seen(journal, 1_000)
    after, kept = seen(journal, 2_000, anchors, jump_ms)
    assert before == after
    assert anchors == kept


def test_a_trigger_of_another_process_from_the_future_counts_as_one_of_now() -> None:
    past, _ = seen(journal_of(ENTRY), 0, jump_ms=-3_600_000)
    assert past == (PastTrigger(MONO_MS, None),)


@pytest.mark.parametrize(
    ("past", "count"),
    [
        pytest.param([PastTrigger(1_000, False), PastTrigger(2_000, False)], 2, id="two in vain"),
        pytest.param(
            [PastTrigger(1_000, False), PastTrigger(2_000, True), PastTrigger(3_000, False)],
            1,
            id="one in vain since a success",
        ),
        pytest.param(
            [PastTrigger(1_000, False), PastTrigger(2_000, False, probing=False)], 1, id="one for racks between"
        ),
        pytest.param([PastTrigger(1_000, False), PastTrigger(9_000, None)], 0, id="one that can still be judged"),
        pytest.param([PastTrigger(1_000, False), PastTrigger(5_000, None)], 2, id="one that was not judged in time"),
        pytest.param(
            [PastTrigger(3_000, False), PastTrigger(1_000, True), PastTrigger(2_000, False)], 2, id="in any order"
        ),
    ],
)
def test_triggers_in_vain_are_counted_back_from_the_last_one(past: list[PastTrigger], count: int) -> None:
    assert failures(past, 10_000, 5_000) == count
