"""Entries of triggers: their kinds, how long they stay, and which times a budget counts."""

from __future__ import annotations

import pytest

from agent.execute.trigger_judgement import group_view, transactional
from agent.journal.entries import JournalWrite
from agent.journal.triggers import (
    DAY_MS,
    KEPT,
    KEPT_TIMES,
    MOST_TIMES,
    LearnedGroup,
    TriggerEffect,
    TriggerEntry,
    TriggerExpectation,
    TriggerJudgement,
    TriggerPath,
    TriggerVerdict,
    acted_at,
    intent,
    judged,
    learned,
    learned_of,
    open_triggers,
    outcome,
    path_at,
    path_learned,
    trigger_cleanup,
    triggers,
    with_earlier,
)
from agent.values.snapshot import GroupKind, OtherGroup
from tests.journals import journal, keys

EXPECTED = TriggerExpectation(generation=4, readers=("m1",), holds={"m1": ("t-0",)}, moves=(), items=1)
JUDGEMENT = TriggerJudgement(TriggerVerdict.AS_PREDICTED, 5, "seen")
NOW_MS = 1_760_000_000_000


def entry(at_ms: int = NOW_MS, name: str = "p-1", group: str = "g", **changes: object) -> TriggerEntry:
    row: dict[str, object] = {"effect": TriggerEffect.REBALANCING, "expected": EXPECTED, **changes}
    return TriggerEntry(group_id=group, proposal_id=name, reason="R", intended_ms=at_ms, **row)  # type: ignore[arg-type]


def closed(at_ms: int, name: str, **changes: object) -> JournalWrite:
    return judged(entry(at_ms, name, **changes), JUDGEMENT)


def test_a_trigger_is_written_as_intent_outcome_and_judged_under_one_key() -> None:
    writes = intent(entry()), outcome(entry()), judged(entry(), JUDGEMENT)
    assert keys(writes) == [("trigger/g/p-1", "intent"), ("trigger/g/p-1", "outcome"), ("trigger/g/p-1", "judged")]
    assert keys((path_learned("4.0", TriggerPath.PHANTOM_JOIN, 7), learned(LearnedGroup(group_id="g")))) == [
        ("learned/trigger-path/4.0", "learned"), ("learned/group/g", "learned"),
    ]  # fmt: skip
    assert (
        path_at(journal(path_learned("4.0", TriggerPath.PHANTOM_JOIN, 7), at_ms=1), "4.0") is TriggerPath.PHANTOM_JOIN
    )
    assert path_at({}, "4.0") is None


def test_a_judged_trigger_keeps_its_verdict_and_forgets_what_it_was_compared_with() -> None:
    view = journal(judged(entry(), JUDGEMENT), at_ms=1)
    (found,) = triggers(view)
    assert found.judgement == JUDGEMENT
    assert (found.expected.holds, found.expected.moves, found.expected.readers) == ({}, (), ("m1",))
    assert (found.open, open_triggers(view)) == (False, ())
    assert open_triggers(journal(outcome(entry()), at_ms=1)) == (entry(),)


@pytest.mark.parametrize(
    ("age_ms", "kept"),
    [
        pytest.param(DAY_MS - 1, True, id="a little less than a day"),
        pytest.param(DAY_MS, False, id="a day"),
        pytest.param(DAY_MS + 1, False, id="more than a day"),
    ],
)
@pytest.mark.parametrize("earlier", [False, True])
def test_the_oldest_trigger_is_forgotten_once_no_budget_counts_it(age_ms: int, kept: bool, earlier: bool) -> None:
    """Its own time counts, and each earlier one of the same proposal."""
    times = {"earlier_ms": (NOW_MS - age_ms,)} if earlier else {}
    at_ms = NOW_MS - 3 * DAY_MS if earlier else NOW_MS - age_ms
    newer = tuple(closed(NOW_MS - 1, f"p-new-{number}") for number in range(KEPT))
    view = journal(closed(at_ms, "p-old", **times), newer, at_ms=1)
    forgotten = [] if kept else [("trigger/g/p-old", "forgotten")]
    assert keys(trigger_cleanup(view, NOW_MS)) == forgotten
    assert all(write.value is None for write in trigger_cleanup(view, NOW_MS))


@pytest.mark.parametrize(("more", "gone"), [pytest.param(0, 0, id="as many"), pytest.param(2, 2, id="two more")])
def test_so_many_judged_triggers_stay_and_the_oldest_go(more: int, gone: int) -> None:
    old = tuple(closed(1_000 + number, f"p-{number:04}") for number in range(KEPT + more))
    open_ = outcome(entry(1, "p-open"))
    writes = trigger_cleanup(journal(open_, old, at_ms=1), NOW_MS)
    assert [write.key for write in writes] == [f"trigger/g/p-{number:04}" for number in range(gone)]


@pytest.mark.parametrize(
    ("effect", "times"),
    [
        pytest.param(None, [3, 7], id="its effect is not known yet"),
        pytest.param(TriggerEffect.REBALANCING, [3, 7], id="the group rebalanced"),
        pytest.param(TriggerEffect.NOTHING, [3, 7], id="the group stayed stable"),
        pytest.param(TriggerEffect.UNKNOWN, [3, 7], id="its effect is unknown"),
        pytest.param(TriggerEffect.REFUSED, [3], id="it was refused"),
        pytest.param(TriggerEffect.NOT_SENT, [3], id="it was not sent"),
    ],
)
def test_what_may_have_been_asked_counts_and_what_was_not_does_not(
    effect: TriggerEffect | None, times: list[int]
) -> None:
    view = journal(outcome(entry(7, effect=effect, earlier_ms=(3,))), at_ms=1)
    assert list(acted_at(view)) == times
    assert list(acted_at(view, "g")) == times
    assert acted_at(view, "h") == ()
    again = with_earlier(entry(9), view)
    assert (list(again.earlier_ms), list(again.times_ms)) == (times, [*times, 9])


def test_groups_whose_names_contain_a_slash_are_told_apart() -> None:
    view = journal(outcome(entry(2, "p-2", "g/h")), outcome(entry(1, "h/p-1", "g")), at_ms=1)
    assert [one.group_id for one in triggers(view)] == ["g", "g/h"]
    assert [one.group_id for one in triggers(view, "g")] == ["g"]
    assert [one.group_id for one in triggers(view, "g/h")] == ["g/h"]


@pytest.mark.parametrize(
    ("ages_ms", "kept"),
    [
        pytest.param([DAY_MS + 200 - at for at in range(KEPT_TIMES + 50)], KEPT_TIMES, id="many, and all but old"),
        pytest.param([DAY_MS - 1 - at for at in range(KEPT_TIMES + 50)], KEPT_TIMES + 50, id="many within a day"),
        pytest.param([DAY_MS - at for at in range(KEPT_TIMES + 50)], KEPT_TIMES + 49, id="one of them a day old"),
        pytest.param([9_000 - at for at in range(MOST_TIMES + 50)], MOST_TIMES, id="more than any budget"),
    ],
)
def test_earlier_times_stay_as_far_as_a_budget_counts_them(ages_ms: list[int], kept: int) -> None:
    *times, last = [NOW_MS - age_ms for age_ms in ages_ms]
    view = journal(outcome(entry(last, earlier_ms=tuple(times))), at_ms=1)
    earlier = with_earlier(entry(NOW_MS), view).earlier_ms
    assert earlier == tuple([*times, last][-kept:])


# --- what is learned


def test_how_transactions_of_a_group_were_seen_is_written_down() -> None:
    for known in (None, LearnedGroup(group_id="g", went_ms=7)):
        found = learned_of(journal(transactional(known, "g", "the transaction shop-1"), at_ms=1), "g")
        assert found is not None
        assert (found.group_id, found.transactional, found.transactional_how) == ("g", True, "the transaction shop-1")
        assert found.went_ms == (known and known.went_ms)


@pytest.mark.parametrize(("state", "shown"), [("Stable", "Stable"), ("", ""), (None, "")])
def test_a_group_that_is_only_listed_shows_its_state_and_nobody(state: str | None, shown: str) -> None:
    view = group_view(OtherGroup("g", GroupKind.OTHER, state, "connect", None))
    assert view is not None
    assert (view.group_id, view.kind, view.state, view.assignor) == ("g", GroupKind.OTHER, shown, None)
    assert not any((view.members, view.static, view.generations, view.versions, view.unreadable))
    assert view.generation is None
