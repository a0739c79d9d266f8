"""What a trigger is compared with: up to so many letters of names, and how many rebalances came since."""

from __future__ import annotations

import pytest

from agent.execute.trigger_judgement import (
    JUDGE_WITHIN_MS,
    MOST_CHARACTERS,
    ORPHAN_MS,
    PATIENCE_MS,
    expected,
    judge_one,
)
from agent.execute.trigger_refusals import RefusalReason, refusal
from agent.journal.triggers import (
    LearnedGroup,
    TriggerEffect,
    TriggerEntry,
    TriggerExpectation,
    TriggerVerdict,
    learned,
)
from agent.values.limits import Limits, TriggerLimits, TriState
from agent.values.memory import Memory
from agent.values.proposal import ProposalMove, ProposalReason
from agent.values.snapshot import GroupKind, OtherGroup
from tests.act.triggers import a_proposal
from tests.journals import journal
from tests.snapshots import NOW_MS, Builder, a_cluster, member

SECOND = 1_000


def a_group(*held: str, generation: int | None = 6, **changes: object) -> Builder:
    """Members m1, m2, ... of a topic of three partitions."""
    rows = [member(f"m{at}", "a", one, generation=generation) for at, one in enumerate(held, 1)]
    return a_cluster().topic("t", (1,), (2,), (3,)).group("g", *rows, **changes)  # type: ignore[arg-type]


def promotion(item: int, source: int | None, target: int):
    """A task that changes its process, of names of so many letters."""
    move = ProposalMove("task", "i" * item, None if source is None else "s" * source, "t" * target, 0)
    return a_proposal("g", reason=ProposalReason.WARMUP_PROMOTABLE, moves=(move,))


HALF = MOST_CHARACTERS // 2


@pytest.mark.parametrize(
    ("lengths", "small"),
    [
        pytest.param((HALF, HALF - 1, 1), True, id="just as many"),
        pytest.param((HALF, HALF, 1), False, id="one more by its source"),
        pytest.param((HALF, HALF - 1, 2), False, id="one more by its target"),
        pytest.param((HALF + 1, HALF - 1, 1), False, id="one more by its item"),
        pytest.param((HALF, None, HALF), True, id="just as many without a source"),
        pytest.param((HALF, None, HALF + 1), False, id="one more without a source"),
    ],
)
def test_predicted_moves_are_kept_up_to_so_many_letters(lengths: tuple[int, int | None, int], small: bool) -> None:
    found = expected(promotion(*lengths), None)
    assert len(found.moves) == small
    assert (found.holds, found.readers, found.items, found.generation) == ({}, (), 0, None)


@pytest.mark.parametrize(
    ("more", "small"), [pytest.param(0, True, id="just as many"), pytest.param(1, False, id="one more")]
)
def test_held_items_are_kept_up_to_so_many_letters(more: int, small: bool) -> None:
    """A reader's name, and that of each item: "t-0" and "t-1"."""
    name = "r" * (MOST_CHARACTERS - 6 + more)
    group = a_cluster().topic("t", (1,), (2,)).group("g", member(name, "a", "t-0 t-1")).groups["g"]
    found = expected(a_proposal("g"), group)
    assert (bool(found.holds), found.items, found.readers) == (small, 2, (name,))


# --- the judgement


def entry(**changes: object) -> TriggerEntry:
    """A trigger after which generation 4 is to be left, of two members with a partition each."""
    holds = {"m1": ("t-0",), "m2": ("t-1",)}
    was = TriggerExpectation(generation=4, readers=("m1", "m2"), holds=holds, moves=(), items=2)
    row = {"expected": was, "effect": TriggerEffect.REBALANCING, "acted_ms": NOW_MS - 5 * SECOND, **changes}
    return TriggerEntry(
        group_id="g", proposal_id="p", reason="REBALANCE_IMPROVES", intended_ms=NOW_MS - 6 * SECOND, **row
    )  # type: ignore[arg-type] # a table's row


@pytest.mark.parametrize(
    ("built", "verdict", "rebalances"),
    [
        pytest.param(a_group("t-0", "t-1"), TriggerVerdict.AS_PREDICTED, 2, id="as predicted"),
        pytest.param(a_group("t-0", "t-1", generation=5), TriggerVerdict.AS_PREDICTED, 1, id="one rebalance"),
        pytest.param(a_group("t-1", "t-0"), TriggerVerdict.OTHERWISE, 2, id="other moves"),
        pytest.param(a_group("t-0", "t-1", "t-2"), TriggerVerdict.OVERTAKEN, 2, id="a member joined"),
        pytest.param(a_group("t-0 t-1"), TriggerVerdict.OVERTAKEN, 2, id="a member left"),
        pytest.param(
            a_group("t-0", "t-1", "t-2", generation=None), TriggerVerdict.OVERTAKEN, None, id="no generation is known"
        ),
        pytest.param(a_group("t-0", "t-1", generation=None), TriggerVerdict.AS_PREDICTED, None, id="nor of the same"),
        pytest.param(a_group("t-0", ""), None, None, id="an item is still being handed over"),
        pytest.param(a_group("t-0", "t-1", generation=4), None, None, id="no new generation yet"),
        pytest.param(a_group("t-0", "t-1", state="PreparingRebalance"), None, None, id="it rebalances"),
        pytest.param(a_group("t-0", "t-1", hidden=True), None, None, id="it is hidden"),
    ],
)
def test_a_trigger_is_judged_with_the_rebalances_since(
    built: Builder, verdict: TriggerVerdict | None, rebalances: int | None
) -> None:
    found = judge_one(entry(), built.snapshot())
    assert (found and found.verdict, found and found.rebalances) == (verdict, rebalances)
    if found is not None:
        assert found.at_ms == NOW_MS


@pytest.mark.parametrize(
    ("changes", "built", "age_ms", "verdict"),
    [
        pytest.param({}, a_group("t-0", "t-1", generation=4), PATIENCE_MS - 1, None, id="still patient"),
        pytest.param(
            {}, a_group("t-0", "t-1", generation=4), PATIENCE_MS, TriggerVerdict.NO_REBALANCE, id="patience is over"
        ),
        pytest.param({}, a_group("t-0", ""), JUDGE_WITHIN_MS - 1, None, id="still time to judge"),
        pytest.param({}, a_group("t-0", ""), JUDGE_WITHIN_MS, TriggerVerdict.CANNOT_TELL, id="no more time to judge"),
        pytest.param({"effect": None}, a_group("t-0", "t-1"), ORPHAN_MS - 1, None, id="its sender may live"),
        pytest.param(
            {"effect": None}, a_group("t-0", "t-1"), ORPHAN_MS, TriggerVerdict.AS_PREDICTED, id="its sender died"
        ),
        pytest.param({}, a_group("t-0", "t-1"), -1, None, id="from the future"),
        pytest.param({}, a_group("t-0", "t-1"), 0, TriggerVerdict.AS_PREDICTED, id="at once"),
        pytest.param(
            {"effect": TriggerEffect.REFUSED}, a_group("t-0", "t-1"), -1, TriggerVerdict.NOT_DONE, id="it was refused"
        ),
    ],
)
def test_a_trigger_is_judged_in_its_time(
    changes: dict[str, object], built: Builder, age_ms: int, verdict: TriggerVerdict | None
) -> None:
    found = judge_one(entry(**{"acted_ms": NOW_MS - age_ms, **changes}), built.snapshot())
    assert (found and found.verdict) == verdict


def test_a_group_that_is_only_listed_by_now_is_not_judged() -> None:
    built = a_cluster()
    built.groups["g"] = OtherGroup("g", GroupKind.OTHER, "Stable", "connect", None)
    assert judge_one(entry(), built.snapshot()) is None
    assert judge_one(entry(), a_cluster().snapshot()) is None


# --- a restart before a trigger


@pytest.mark.parametrize(
    ("ago_ms", "told"),
    [
        pytest.param(0, "0 s", id="now"),
        pytest.param(250 * SECOND, "250 s", id="minutes ago"),
        pytest.param(3_599 * SECOND, "3599 s", id="almost the window ago"),
    ],
)
def test_how_long_ago_members_joined_is_told_in_seconds(ago_ms: int, told: str) -> None:
    limits = Limits(trigger=TriggerLimits(transactional=TriState.NO, rolling_window_ms=3_600 * SECOND))
    view = journal(learned(LearnedGroup(group_id="g", came_ms=NOW_MS - ago_ms)), at_ms=NOW_MS)
    found = refusal(a_proposal("g"), a_group("t-0", "t-1").snapshot(), Memory(), view, limits, moved={})
    assert found is not None
    assert (found.reason, found.until_ms) == (RefusalReason.ROLLING, NOW_MS - ago_ms + 3_600 * SECOND)
    assert found.sentence == f"members joined within the last {told}"
