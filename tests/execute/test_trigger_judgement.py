"""What a trigger brought: compared with what was predicted, and closed in the end whatever happened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.execute.trigger_judgement import (
    JUDGE_WITHIN_MS,
    MOST_CHARACTERS,
    ORPHAN_MS,
    PATIENCE_MS,
    expected,
    judge,
    judge_one,
)
from agent.journal.entries import Entry, JournalState, JournalWrite, numbered
from agent.journal.triggers import (
    DAY_MS,
    KEPT,
    KEPT_TIMES,
    MOST_TIMES,
    ItemMove,
    TriggerEffect,
    TriggerEntry,
    TriggerJudgement,
    TriggerVerdict,
    acted_at,
    intent,
    judged,
    outcome,
    trigger_cleanup,
    triggers,
    with_earlier,
)
from agent.values.proposal import Proposal, ProposalMove, ProposalReason, ProposalRow
from tests.act.triggers import a_proposal
from tests.snapshots import NOW_MS, Builder, a_cluster, member, process, task

SECOND = 1_000
SWAP = a_proposal(
    "g",
    before=(ProposalRow("m1", ("t-0",)), ProposalRow("m2", ("t-1",))),
    after=(ProposalRow("m1", ("t-1",)), ProposalRow("m2", ("t-0",))),
)
PROMOTE = a_proposal(
    "g",
    reason=ProposalReason.WARMUP_PROMOTABLE,
    moves=(ProposalMove("task", "0_1", "p1", "p2", 0), ProposalMove("task", "0_1", "p1", "p3", 0)),
)
STAY = a_proposal("g")


def a_group(m1: str, m2: str, *, generation: int | None = 4, m3: str | None = None, **changes: object) -> Builder:
    members = [member("m1", "a", m1, generation=generation), member("m2", "b", m2, generation=generation)]
    if m3 is not None:
        members.append(member("m3", "c", m3, generation=None))
    return a_cluster().topic("t", (1,), (2,), (3,)).group("g", *members, **changes)  # type: ignore[arg-type]


def an_app(p1: str, p2: str, *, warm: str = "", generation: int = 4) -> Builder:
    members = tuple(member(f"{name}-m0", "a", None, (), generation=generation) for name in ("p1", "p2"))
    return a_cluster().topic("t", (1,), (2,)).streams(
        "g", process("p1", "a", p1), process("p2", "b", p2, standby=warm), members=members,
        topology=(task("0_0", "t-0"), task("0_1", "t-1")),
    )  # fmt: skip


BEFORE = a_group("t-0", "t-1 t-2")


def entry(
    proposal: Proposal, before: Builder, effect: TriggerEffect | None = TriggerEffect.REBALANCING
) -> TriggerEntry:
    made = expected(proposal, before.snapshot().groups["g"])
    acted_ms = NOW_MS if effect is not None else None
    return TriggerEntry(
        group_id="g", proposal_id=proposal.id, reason=proposal.reason.name, intended_ms=NOW_MS, expected=made,
        effect=effect, acted_ms=acted_ms, sentence="asked",
    )  # fmt: skip


def verdict(what: TriggerEntry, now: Builder, after_s: float = 10) -> TriggerJudgement | None:
    return judge_one(what, now.snapshot(taken_ms=NOW_MS + int(after_s * SECOND)))


@pytest.mark.parametrize(
    ("proposal", "before", "now", "found"),
    [
        pytest.param(
            STAY, BEFORE, a_group("t-0", "t-1 t-2", generation=5), (TriggerVerdict.AS_PREDICTED, 1, 0, ()),
            id="nothing was to move, and nothing moved",
        ),
        pytest.param(
            SWAP, a_group("t-0", "t-1"), a_group("t-1", "t-0", generation=6), (TriggerVerdict.AS_PREDICTED, 2, 2, ()),
            id="two partitions were to change hands, and did in two rounds",
        ),
        pytest.param(
            SWAP, a_group("t-0", "t-1"), a_group("t-0", "t-1", generation=5), (TriggerVerdict.NO_EFFECT, 1, 0, ()),
            id="two were to move, and none did",
        ),
        pytest.param(
            SWAP, BEFORE, a_group("t-1", "t-0 t-2", generation=6), (TriggerVerdict.AS_PREDICTED, 2, 2, ()),
            id="what was not to move stayed",
        ),
        pytest.param(
            SWAP, BEFORE, a_group("t-1 t-2", "t-0", generation=6), (TriggerVerdict.OTHERWISE, 2, 2, ("t-2",)),
            id="one more than predicted was revoked",
        ),
        pytest.param(
            SWAP, BEFORE, a_group("t-0 t-1", "t-2", generation=6), (TriggerVerdict.PARTLY, 2, 1, ()),
            id="one of two moved",
        ),
        pytest.param(
            STAY, BEFORE, a_group("t-0 t-1", "t-2", generation=6), (TriggerVerdict.OTHERWISE, 2, 0, ("t-1",)),
            id="nothing was to move, and one did",
        ),
        pytest.param(
            PROMOTE, an_app("0_0 0_1", ""), an_app("0_0", "0_1", generation=6), (TriggerVerdict.AS_PREDICTED, 2, 1, ()),
            id="a warm-up took over; of two that could, the first was meant",
        ),
        pytest.param(
            PROMOTE, an_app("0_0 0_1", ""), an_app("0_0 0_1", "", warm="0_1", generation=5),
            (TriggerVerdict.NO_EFFECT, 1, 0, ()), id="the warm-up is not caught up after all",
        ),
        pytest.param(
            STAY, a_group("t-0", "t-1", generation=None), a_group("t-0", "t-1", generation=None),
            (TriggerVerdict.AS_PREDICTED, None, 0, ()), id="members without generations are compared",
        ),
    ],
)  # fmt: skip
def test_what_came_is_compared_with_what_was_predicted(
    proposal: Proposal, before: Builder, now: Builder, found: tuple[TriggerVerdict, int | None, int, tuple[str, ...]]
) -> None:
    """``found``: verdict, rebalances, predicted moves that came, items that were revoked beyond them."""
    answer = verdict(entry(proposal, before), now)
    assert answer is not None
    assert (answer.verdict, answer.rebalances, answer.came, answer.beyond) == found
    assert answer.beyond_count == len(answer.beyond)
    assert (
        f"{answer.came} of {len(expected(proposal, before.snapshot().groups['g']).moves)} predicted" in answer.sentence
    )


@pytest.mark.parametrize(
    ("proposal", "before", "now", "sentence"),
    [
        pytest.param(
            STAY, BEFORE, a_group("t-0", "t-1 t-2", generation=5),
            "0 of 0 predicted moves happened; no other partition or task moved; 1 rebalance since the trigger",
            id="one rebalance",
        ),
        pytest.param(
            SWAP, BEFORE, a_group("t-1 t-2", "t-0", generation=6),
            "2 of 2 predicted moves happened; 1 other partition or task moved; 2 rebalances since the trigger",
            id="two rebalances",
        ),
        pytest.param(
            PROMOTE, an_app("0_0 0_1", ""), an_app("0_0 0_1", "", warm="0_1", generation=5),
            "0 of 1 predicted move happened, 1 warm up; no other partition or task moved; "
            "1 rebalance since the trigger",
            id="it warms up again",
        ),
        pytest.param(
            STAY, a_group("t-0", "t-1", generation=None), a_group("t-0", "t-1", generation=None),
            "0 of 0 predicted moves happened; no other partition or task moved; its members report no generation",
            id="no generation",
        ),
        pytest.param(
            STAY, a_group("t-0", "t-1"), a_group("t-0", "t-1", generation=None),
            "0 of 0 predicted moves happened; no other partition or task moved; its members report no generation",
            id="no generation any more",
        ),
        pytest.param(
            STAY, a_group("t-0", "t-1", generation=None), a_group("t-0", "t-1"),
            "0 of 0 predicted moves happened; no other partition or task moved; its members report no generation",
            id="no generation before",
        ),
    ],
)  # fmt: skip
def test_a_verdict_says_what_was_compared_and_after_how_many_rebalances(
    proposal: Proposal, before: Builder, now: Builder, sentence: str
) -> None:
    answer = verdict(entry(proposal, before), now)
    assert answer is not None
    assert answer.sentence == sentence


def test_no_new_generation_is_no_rebalance_and_not_an_unknown_number_of_them() -> None:
    assert verdict(entry(SWAP, BEFORE), BEFORE, PATIENCE_MS / SECOND - 1) is None
    answer = verdict(entry(SWAP, BEFORE), BEFORE, PATIENCE_MS / SECOND)
    assert answer is not None
    assert (answer.rebalances, answer.sentence) == (0, "no new generation was seen within 60 s")


def test_what_is_expected_says_what_the_proposal_was_for_and_what_moves_from_where() -> None:
    assert expected(SWAP, BEFORE.snapshot().groups["g"]).gain == SWAP.sentence
    promoted = expected(PROMOTE, an_app("0_0 0_1", "").snapshot().groups["g"])
    assert promoted.moves == (ItemMove("0_1", "p1", "p2"),)


def test_a_trigger_may_be_judged_in_the_millisecond_of_its_outcome_and_not_before_it() -> None:
    now = a_group("t-0", "t-1 t-2", generation=5)
    assert verdict(entry(STAY, BEFORE), now, 0) is not None
    assert verdict(entry(STAY, BEFORE), now, -1) is None


GONE = a_cluster()


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(a_group("t-0", "t-1 t-2"), id="no new generation yet"),
        pytest.param(a_group("", "t-1 t-2", generation=5), id="a partition has no owner between two rounds"),
        pytest.param(a_group("t-0", "t-1 t-2", generation=5, state="PreparingRebalance"), id="it rebalances again"),
        pytest.param(a_group("t-0", "t-1 t-2", generation=5, hidden=True), id="its members are hidden"),
        pytest.param(GONE, id="the group is not shown"),
    ],
)
def test_what_is_not_over_yet_is_not_judged(now: Builder) -> None:
    assert verdict(entry(SWAP, BEFORE), now) is None


@pytest.mark.parametrize(
    ("now", "after_s", "found", "says"),
    [
        pytest.param(BEFORE, PATIENCE_MS / SECOND, TriggerVerdict.NO_REBALANCE, "no new generation",
                     id="no new generation within a minute"),
        pytest.param(a_group("", "t-1 t-2", generation=5), JUDGE_WITHIN_MS / SECOND, TriggerVerdict.CANNOT_TELL,
                     "within 10 min", id="a partition stays without an owner"),
        pytest.param(GONE, JUDGE_WITHIN_MS / SECOND, TriggerVerdict.CANNOT_TELL, "within 10 min", id="gone for good"),
        pytest.param(a_group("t-0", "t-1", m3="t-2", generation=5), 10, TriggerVerdict.OVERTAKEN, "joined or left",
                     id="a member joined meanwhile"),
    ],
)  # fmt: skip
def test_every_trigger_is_closed_in_the_end(now: Builder, after_s: float, found: TriggerVerdict, says: str) -> None:
    answer = verdict(entry(SWAP, BEFORE), now, after_s)
    assert answer is not None
    assert answer.verdict is found
    assert says in answer.sentence


def test_an_intent_whose_writer_died_is_judged_by_what_is_seen() -> None:
    orphan = entry(STAY, BEFORE, None)
    now = a_group("t-0", "t-1 t-2", generation=5)
    assert verdict(orphan, now, ORPHAN_MS / SECOND - 1) is None
    answer = verdict(orphan, now, ORPHAN_MS / SECOND)
    assert answer is not None
    assert answer.verdict is TriggerVerdict.AS_PREDICTED
    assert "ended before it recorded" in answer.sentence


@pytest.mark.parametrize("effect", [TriggerEffect.NOTHING, TriggerEffect.REFUSED, TriggerEffect.NOT_SENT])
def test_what_was_not_done_is_closed_at_once(effect: TriggerEffect) -> None:
    answer = verdict(entry(STAY, BEFORE, effect), BEFORE)
    assert answer is not None
    assert (answer.verdict, answer.sentence) == (TriggerVerdict.NOT_DONE, "asked")


def test_a_group_with_too_many_partitions_is_judged_by_its_generation_alone() -> None:
    count = MOST_CHARACTERS // 40
    names = " ".join(f"{'t' * 40}-{number}" for number in range(count))
    large = entry(SWAP, a_group(names, ""))
    assert (large.expected.holds, large.expected.moves, large.expected.items) == ({}, (), count)
    answer = verdict(large, a_group(names, "", generation=5))
    assert answer is not None
    assert (answer.verdict, answer.rebalances) == (TriggerVerdict.CANNOT_TELL, 1)


@pytest.mark.parametrize("length", [1, 40, 200], ids=["short names", "usual names", "the longest names"])
def test_whatever_a_group_holds_its_entry_is_one_that_the_journal_takes(length: int) -> None:
    names = " ".join(f"{'t' * length}-{number}" for number in range(12_000))
    written = intent(entry(SWAP, a_group(names, "")))
    assert len(numbered((written,), at_ms=NOW_MS, epoch=1, first_seq=0)) == 1


# --- the journal ------------------------------------------------------------------------------------------------


def view_of(*writes: JournalWrite) -> JournalState:
    view = {}
    for at, write in enumerate(writes):
        if write.value is None:
            view.pop(write.key, None)
        else:
            view[write.key] = Entry(write.key, write.kind, write.value, NOW_MS, 1, at)
    return view


def test_an_entry_is_written_and_read_and_shrinks_once_it_is_judged() -> None:
    made = entry(SWAP, BEFORE)
    assert made.expected.moves == (ItemMove("t-0", "m1", "m2"), ItemMove("t-1", "m2", "m1"))
    assert triggers(view_of(intent(made))) == (made,)
    assert triggers(view_of(intent(made), outcome(made)), "g") == (made,)
    writes = judge(view_of(outcome(made)), a_group("t-1", "t-0 t-2", generation=6).snapshot(taken_ms=NOW_MS + 9_000))
    (closed,) = triggers(view_of(outcome(made), *writes))
    assert not closed.open
    assert (closed.expected.holds, closed.expected.moves, closed.expected.items) == ({}, (), 3)
    assert judge(view_of(*writes), BEFORE.snapshot()) == (), "it is judged once"


def test_a_proposal_that_is_acted_upon_again_keeps_its_earlier_times() -> None:
    first = entry(STAY, BEFORE)
    second = replace(with_earlier(first, view_of(outcome(first))), intended_ms=NOW_MS + SECOND)
    third = replace(with_earlier(first, view_of(outcome(second))), intended_ms=NOW_MS + 2 * SECOND, effect=None)
    assert acted_at(view_of(intent(third)), "g") == (NOW_MS, NOW_MS + SECOND, NOW_MS + 2 * SECOND)
    unsent = replace(third, effect=TriggerEffect.NOT_SENT)
    assert acted_at(view_of(outcome(unsent))) == (NOW_MS, NOW_MS + SECOND)


def test_names_with_slashes_are_told_apart() -> None:
    one, other = (replace(entry(STAY, BEFORE), group_id=name) for name in ("a", "a/b"))
    view = view_of(intent(one), intent(other))
    assert [found.group_id for found in triggers(view, "a")] == ["a"]
    assert [found.group_id for found in triggers(view, "a/b")] == ["a/b"]


def test_what_another_release_wrote_is_left_aside() -> None:
    write = intent(entry(STAY, BEFORE))
    assert triggers(view_of(write._replace(value={"group_id": 7}))) == ()


def test_the_oldest_judged_triggers_are_forgotten() -> None:
    done = TriggerJudgement(TriggerVerdict.AS_PREDICTED, NOW_MS, "as predicted", 1)
    made = [replace(entry(STAY, BEFORE), proposal_id=f"p-{at}", intended_ms=NOW_MS + at) for at in range(KEPT + 2)]
    view = view_of(*(judged(one, done) for one in made), intent(replace(made[0], proposal_id="open", intended_ms=0)))
    later_ms = made[-1].intended_ms + DAY_MS
    assert [write.key for write in trigger_cleanup(view, later_ms)] == ["trigger/g/p-0", "trigger/g/p-1"]
    assert all(write.value is None for write in trigger_cleanup(view, later_ms))


def test_no_trigger_that_the_budget_of_a_day_counts_is_forgotten() -> None:
    done = TriggerJudgement(TriggerVerdict.AS_PREDICTED, NOW_MS, "as predicted", 1)
    sent = [replace(entry(STAY, BEFORE), proposal_id=f"p-{at}", intended_ms=NOW_MS + at) for at in range(3)]
    sent[0] = replace(sent[0], earlier_ms=(NOW_MS,), effect=TriggerEffect.REFUSED)
    idle = [
        replace(entry(STAY, BEFORE), proposal_id=f"p-{at}", intended_ms=NOW_MS + at, effect=effect)
        for effect in (TriggerEffect.REFUSED, TriggerEffect.NOT_SENT)
        for at in range(3 if effect is TriggerEffect.REFUSED else KEPT, 2 * KEPT)
    ]
    view = view_of(*(judged(one, done) for one in (*sent, *idle)))
    after = {*view} - {write.key for write in trigger_cleanup(view, NOW_MS + DAY_MS - 1)}
    assert {f"trigger/g/p-{at}" for at in range(3)} <= after
    assert len(after) == KEPT + 3
    assert len({*view} - {write.key for write in trigger_cleanup(view, NOW_MS + 2 * DAY_MS)}) == KEPT


def asked_again(times: int, every_ms: int, effect: TriggerEffect = TriggerEffect.REBALANCING) -> JournalState:
    """The same proposal, acted upon so often."""
    view: JournalState = {}
    for number in range(times):
        one = replace(entry(STAY, BEFORE), intended_ms=NOW_MS + number * every_ms, effect=effect)
        view = view_of(outcome(with_earlier(one, view)))
    return view


def test_every_trigger_of_one_proposal_within_a_day_is_counted() -> None:
    """The largest budget of a day is 1,000 triggers."""
    minute_ms = 60 * SECOND
    assert len(acted_at(asked_again(700, minute_ms), "g")) == 700
    assert len(acted_at(asked_again(1_500, SECOND))) == MOST_TIMES + 1, "and no more than any budget allows"
    hourly = acted_at(asked_again(KEPT_TIMES * 2, 60 * minute_ms))
    assert len(hourly) == KEPT_TIMES + 1, "for what is older a number is enough"


def test_what_was_not_sent_counts_no_more_once_it_is_tried_again() -> None:
    for effect in (TriggerEffect.NOT_SENT, TriggerEffect.REFUSED):
        assert acted_at(asked_again(5, SECOND, effect)) == ()
