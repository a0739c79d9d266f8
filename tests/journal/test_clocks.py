"""Times of the future in the journal: they count as now, once, and age from then on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.journal import plan_entries
from agent.journal.approvals import approval_of
from agent.journal.commands import ExecutionPause, pause_in, paused
from agent.journal.entries import Entry, JournalState, JournalWrite
from agent.journal.record_trust import LATER_MS, LeaderEntry, corrections, in_past, leader_write
from agent.journal.triggers import LearnedGroup, TriggerVerdict, acted_at, learned, learned_of, triggers
from agent.values.proposal import Allow, HoldReason
from agent.values.reassignment import BatchState, PlanState, ReassignmentPlan, ReassignmentTarget
from tests.guard.acting import HOUR, MINUTE, approval, batch, held, judged, plan_of, triggered, with_approval
from tests.guard.test_judge import shared
from tests.journals import journal
from tests.snapshots import NOW_MS, tp

YEARS = 10 * 365 * 24 * HOUR
FUTURE = NOW_MS + YEARS


def healed(view: JournalState, now_ms: int = NOW_MS) -> JournalState:
    """The journal once the corrections are written, at that time."""
    return journal(*corrections(view, now_ms), at_ms=now_ms, view=view, epoch=2)


def moved(at_ms: int) -> JournalState:
    """A plan of the same topic that ended then."""
    other = ReassignmentPlan("p-other", (ReassignmentTarget(tp("t-1"), "id", (2, 3), (3, 2)),), PlanState.DONE)
    return journal(plan_entries.change_writes(other), at_ms=at_ms, view=with_approval(shared()))


def test_a_cooldown_begun_by_a_clock_ten_years_ahead_is_one_cooldown_long() -> None:
    view = moved(FUTURE)
    answer = held(shared(), view)
    assert (answer.reason, answer.until_ms) == (HoldReason.COOLING_DOWN, NOW_MS + 10 * MINUTE)
    assert plan_entries.plans(healed(view)) == plan_entries.plans(view)
    assert healed(view)["plan/p-other"].at_ms == NOW_MS
    later = {**healed(view), "plan/p-other": healed(view)["plan/p-other"]._replace(at_ms=NOW_MS - 11 * MINUTE)}
    assert isinstance(judged(shared(), later), Allow), "what was written anew ages"


def test_an_approval_given_by_a_clock_ten_years_ahead_lasts_as_long_as_any_other() -> None:
    view = journal(approval(shared(), age_ms=-YEARS), at_ms=FUTURE)
    (name,) = (key.removeprefix("approval/") for key in view)
    given_ = approval_of(healed(view), name)
    assert given_ is not None
    assert (given_.at_ms, given_.expires_ms) == (NOW_MS, NOW_MS + HOUR)
    seen = approval_of(in_past(view, NOW_MS), name)
    assert seen == given_


def test_budgets_forget_batches_and_triggers_of_a_clock_that_was_ahead() -> None:
    view = journal(batch(1), triggered("g", FUTURE, earlier_ms=(FUTURE, NOW_MS - HOUR)), at_ms=FUTURE)
    after = healed(view)
    assert after["batch/p-other/1"].at_ms == NOW_MS
    assert acted_at(after) == (NOW_MS - HOUR, NOW_MS, NOW_MS)
    assert acted_at(in_past(view, NOW_MS)) == acted_at(after)


def test_a_trigger_judged_later_by_a_good_clock_is_corrected_too() -> None:
    entry = triggered("g", FUTURE, verdict=TriggerVerdict.AS_PREDICTED)
    view = journal(entry, at_ms=NOW_MS)
    (found,) = triggers(healed(view))
    assert found.judgement is not None
    assert (found.intended_ms, found.acted_ms, found.judgement.at_ms) == (NOW_MS, NOW_MS, NOW_MS)


def test_pauses_and_what_was_learned_are_corrected() -> None:
    group = LearnedGroup(group_id="g", came_ms=FUTURE, went_ms=NOW_MS - HOUR, slow_rebalances_ms=(90_000,))
    view = healed(journal(paused(ExecutionPause("ann", "", FUTURE)), learned(group), at_ms=FUTURE))
    pause = pause_in(view)
    assert pause is not None
    assert pause.since_ms == NOW_MS
    assert learned_of(view, "g") == replace(group, came_ms=NOW_MS)


@pytest.mark.parametrize("state", [state for state in PlanState if state not in (PlanState.DONE, PlanState.FAILED)])
def test_what_the_executor_may_still_write_is_left_to_it(state: PlanState) -> None:
    plan = plan_of(shared(), state)
    view = journal(plan, batch(1, state=BatchState.SENT), at_ms=FUTURE)
    rewritten = {write.key for write in corrections(view, NOW_MS)}
    ended = state in (PlanState.CANCELLED, PlanState.ROLLED_BACK)
    header, part = (line.key for line in plan)
    assert rewritten == ({header} if ended else set())
    counted = {key: entry.at_ms for key, entry in in_past(view, NOW_MS).items() if key != part}
    assert set(counted.values()) == {NOW_MS}, "and it counts as now meanwhile"


def test_corrections_are_in_the_order_of_the_journal_also_where_a_key_was_written_again() -> None:
    view = journal(approval(shared(), age_ms=-YEARS), paused(ExecutionPause("ann", "", FUTURE)), at_ms=FUTURE)
    first, last = view
    again = {**view, first: view[first]._replace(seq=9)}
    assert [write.key for write in corrections(again, NOW_MS)] == [last, first]
    later_epoch = {**again, last: view[last]._replace(epoch=2)}
    assert [write.key for write in corrections(later_epoch, NOW_MS)] == [first, last]


def test_a_journal_of_good_clocks_is_the_same_journal() -> None:
    view = moved(NOW_MS)
    assert in_past(view, NOW_MS) is view
    assert in_past(view, NOW_MS - LATER_MS) is view, "clocks of agents are never quite the same"
    assert corrections(view, NOW_MS) == ()


def test_other_entries_and_odd_values_are_left_as_they_are() -> None:
    leader = leader_write(LeaderEntry("rw-1", "host", 1, "c", FUTURE))
    odd = [JournalWrite("trigger/g/p", "intent", {"intended_ms": "soon", "earlier_ms": [None, "x"], "judgement": 7})]
    odd += [JournalWrite("approval/p", "approved", {"at_ms": True, "expires_ms": None})]
    view = journal(leader, *odd, at_ms=NOW_MS)
    assert in_past(view, NOW_MS) is view


ENTRIES = st.dictionaries(
    st.sampled_from(
        ["approval/p", "trigger/g/p", "pause", "plan/p", "batch/p/1", "learned/group/g", "leader", "command/c"]
    ),
    st.builds(
        lambda kind, value, at_ms: (kind, value, at_ms),
        st.sampled_from(["approved", "done", "closed", "open"]),
        st.dictionaries(
            st.sampled_from(["at_ms", "expires_ms", "intended_ms", "earlier_ms", "since_ms", "judgement", "text"]),
            st.integers(0, 2 * FUTURE)
            | st.lists(st.integers(0, 2 * FUTURE), max_size=3)
            | st.none()
            | st.text(max_size=3),
            max_size=5,
        ),
        st.integers(0, 2 * FUTURE),
    ),
)


@given(ENTRIES, st.integers(0, FUTURE))
def test_a_correction_is_made_once_and_changes_nothing_of_the_past(entries: dict[str, tuple], now_ms: int) -> None:
    view = {
        key: Entry(key, kind, value, at_ms, 1, seq) for seq, (key, (kind, value, at_ms)) in enumerate(entries.items())
    }
    assert in_past(in_past(view, now_ms), now_ms) == in_past(view, now_ms)
    assert corrections(healed(view, now_ms), now_ms) == ()
    for key, entry in in_past(view, now_ms).items():
        assert entry.at_ms <= max(now_ms, view[key].at_ms)
        if view[key].at_ms <= now_ms + LATER_MS:
            assert entry.at_ms in (view[key].at_ms, now_ms)
