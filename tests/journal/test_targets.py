"""A plan is a header, which changes, and its partitions, which do not; each fits a record, whatever the plan is."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.execute.reassign.plan_step import record_batches
from agent.journal import targets
from agent.journal.entries import MAX_VALUE_BYTES, Entry, JournalState, applied, numbered
from agent.journal.plan_entries import (
    KEEP_TARGET_BYTES,
    batches,
    change_writes,
    changed,
    compaction_writes,
    open_records,
    plan_of,
    plans,
)
from agent.journal.targets import MOST_TARGETS, PART_BYTES
from agent.values.memo import IdentityMemo
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
    attempt,
    moved_by,
    moved_of,
)
from agent.values.typed_json import UnreadableError
from assignors.problem import TopicPartition

TEXT = st.text(max_size=8)
BROKERS = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4, unique=True).map(tuple)
NUMBER = st.just(0.0) | st.floats(1e-90, 1e18)
TARGETS = st.builds(
    ReassignmentTarget, st.builds(TopicPartition, TEXT, st.integers(0, 2**31 - 1)), TEXT, BROKERS, BROKERS,
    st.none() | st.integers(0, 2**63 - 1), st.none() | NUMBER, gain=NUMBER,
)  # fmt: skip
PLANS = st.builds(
    ReassignmentPlan,
    st.from_regex(r"p-[0-9a-f]{1,4}(\.[1-9])?(-back)?", fullmatch=True),
    st.lists(TARGETS, max_size=8).map(tuple),
    state=st.sampled_from(PlanState), paused=st.booleans(), elections=st.integers(0, 9), approved_by=TEXT, reason=TEXT,
    throttle_bytes_per_s=st.none() | st.integers(1, 2**40), max_moves=st.none() | st.integers(1, 9),
    order=st.integers(0, 2**50), sentence=TEXT, heard=TEXT, moved=st.none() | st.just("a1"),
    begin_by_ms=st.none() | st.integers(0, 2**50),
    racks=st.lists(st.tuples(st.integers(0, 9), TEXT), max_size=3).map(tuple), turned=st.integers(0, 9),
    dropped=st.just(0),
).map(lambda plan: plan._replace(attempt=attempt(plan.proposal_id).number))  # fmt: skip


def journal(*changes: Any, view: JournalState = {}) -> JournalState:  # noqa: B006 (never changed)
    """What the journal says after these changes, by the bytes that are written."""
    for seq, change in enumerate(changes, len(view)):
        lines = numbered(changed(view, [change]), at_ms=0, epoch=1, first_seq=seq * 1_000)
        view = applied(view, lines)
    return view


def many(count: int, *, name: int = 12, replicas: int = 3, topics: int = 1) -> tuple[ReassignmentTarget, ...]:
    """As many targets of as many topics with names of that length, all of them of other replicas."""
    return tuple(
        sorted(
            ReassignmentTarget(
                TopicPartition(f"{at % topics:0{name}d}", at // topics),
                "AAAAAAAAAAAAAAAAAAAAAA",
                tuple((at + one) % 99_999 + 1 for one in range(replicas)),
                tuple((at + one) % 99_999 + 1 for one in range(1, replicas + 1)),
                10**18 - at,
                1e9 / 3 + at,
                gain=1e9 / 7 + at,
            )
            for at in range(count)
        )
    )


@given(PLANS)
def test_any_plan_is_read_back_as_it_was_written(plan: ReassignmentPlan) -> None:
    assert plans(journal(plan)) == (plan,)
    assert plan_of(journal(plan), plan.proposal_id) == plan
    (fields,) = [set(change_writes(plan)[0].value or {})]
    assert set(ReassignmentPlan._fields) - {"targets", "dropped", "attempt"} <= fields, "a field is not written"


@given(PLANS, st.sampled_from(PlanState), TEXT)
def test_a_change_of_state_writes_the_header_alone(plan: ReassignmentPlan, state: PlanState, sentence: str) -> None:
    view = journal(plan)
    after = plan._replace(state=state, sentence=sentence)
    assert [line.key for line in changed(view, [after])] == [f"plan/{plan.proposal_id}"]
    assert plans(journal(after, view=view)) == (after,)


@pytest.mark.parametrize(
    "plan", [ReassignmentPlan("p-1", many(5_000, topics=2)), ReassignmentPlan("p-1", many(30, name=249, topics=30))]
)
def test_a_plan_of_more_than_one_part_is_read_back_and_each_part_fits(plan: ReassignmentPlan) -> None:
    lines = numbered(change_writes(plan), at_ms=0, epoch=2**53, first_seq=0)
    assert max(len(line.data or b"") for line in lines) < PART_BYTES + 1_000
    assert plans(journal(plan)) == (plan,)


def cut(view: JournalState, *keys: str) -> JournalState:
    return {key: entry for key, entry in view.items() if key not in keys}


def again(view: JournalState, key: str, as_key: str, **value: Any) -> JournalState:
    return {**view, as_key: view[key]._replace(key=as_key, value={**view[key].value, **value})}


def restated(**value: Any) -> JournalState:
    """A plan whose part was written like that from the first: digest and sizes agree."""
    view = again(SMALL, PARTS[0], PARTS[0], **value)
    text = json.dumps(view[PARTS[0]].value, separators=(",", ":"), sort_keys=True).encode()
    return again(view, "plan/p-1", "plan/p-1", digest=hashlib.sha256(text).hexdigest(), bytes=len(text))


BIG = journal(ReassignmentPlan("p-1", many(9_000)))
PARTS = sorted(key for key in BIG if key.startswith("targets/"))
SMALL = journal(ReassignmentPlan("p-1", many(2)))


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(cut(BIG, PARTS[0]), id="one is missing"),
        pytest.param(cut(BIG, *PARTS), id="all are missing, of a plan that has not ended"),
        pytest.param(
            cut(journal(ReassignmentPlan("p-1", many(9_000), PlanState.DONE)), PARTS[1]), id="one of an ended plan"
        ),
        pytest.param(again(BIG, PARTS[0], "targets/p-1/99"), id="there is one too many"),
        pytest.param(again(BIG, PARTS[0], "targets/p-1/01"), id="one is there twice"),
        pytest.param(again(BIG, PARTS[0], PARTS[1]), id="one is in the place of another"),
        pytest.param(again(SMALL, PARTS[0], PARTS[0], gain=[1.0, 2.0]), id="one was changed"),
        pytest.param(again(SMALL, PARTS[0], PARTS[0], topic=[0, 7]), id="a table lacks a row"),
        pytest.param(again(SMALL, PARTS[0], PARTS[0], topic=[0, -1]), id="a row from the end"),
        pytest.param(again(SMALL, PARTS[0], PARTS[0], partition=[0]), id="a column is short"),
        pytest.param(again(SMALL, PARTS[0], PARTS[0], before="x"), id="a column is text"),
        pytest.param(again(SMALL, PARTS[0], PARTS[0], bytes=[1, True]), id="a size is a truth"),
        pytest.param(again(SMALL, PARTS[0], PARTS[0], replicas=[[1], ["2"]]), id="a broker is text"),
        pytest.param(again(SMALL, PARTS[0], PARTS[0], topics=[["t"]]), id="a topic has no id"),
        pytest.param(restated(replicas=[[1, 2, 3], [2, 3, 4], []]), id="no replicas"),
        pytest.param(restated(replicas=[[1, 2, 3], [2, 3, 4], [2, 2]]), id="two replicas on one broker"),
        pytest.param(restated(replicas=[[1, 2, 3], [2, 3, 4], [-1]]), id="a broker below zero"),
        pytest.param(restated(replicas=[[1, 2, 3], [2, 3, 4], [2**31]]), id="a broker beyond 32 bits"),
        pytest.param(restated(partition=[0, -1]), id="a partition below zero"),
        pytest.param(restated(partition=[0, 10**18]), id="a partition beyond 32 bits"),
        pytest.param(again(SMALL, "plan/p-1", "plan/p-1", partitions=3), id="a header of other partitions"),
        pytest.param(again(SMALL, "plan/p-1", "plan/p-1", partitions=MOST_TARGETS + 1), id="too many partitions"),
        pytest.param(again(SMALL, "plan/p-1", "plan/p-1", parts=10**15), id="very many parts"),
        pytest.param(again(SMALL, "plan/p-1", "plan/p-1", parts=-1), id="fewer parts than none"),
        pytest.param(again(SMALL, "plan/p-1", "plan/p-1", digest=None), id="no digest"),
        pytest.param(again(SMALL, "plan/p-1", "plan/p-1", proposal_id="p-2"), id="another plan's header"),
        pytest.param(again(SMALL, "plan/p-1", "plan/p-2"), id="a header under another name"),
    ],
)
def test_a_plan_whose_parts_are_not_those_that_were_accepted_is_unreadable(view: JournalState) -> None:
    with pytest.raises(UnreadableError):
        open_records(view)
    with pytest.raises(UnreadableError):
        compaction_writes(view)


def test_a_part_that_is_written_otherwise_from_the_first_is_read() -> None:
    assert [target.gain for target in open_records(restated(gain=[1.5, 0])).plans[0].targets] == [1.5, 0.0]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | TEXT,
    lambda one: st.lists(one, max_size=3) | st.dictionaries(TEXT, one, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300)
@given(st.sampled_from(sorted(SMALL[PARTS[0]].value)), JSON)
def test_foreign_parts_raise_one_error_or_are_read(name: str, value: Any) -> None:
    view = again(SMALL, PARTS[0], PARTS[0], **{name: value})
    with suppress(UnreadableError):
        assert open_records(view).plans[0].targets == many(2)


def test_lists_that_few_bytes_share_very_often_are_refused() -> None:
    view = again(SMALL, PARTS[0], PARTS[0], replicas=[list(range(50_000))] * 2, **{
        name: [0] * 50_000 for name in ("topic", "partition", "before", "after", "bytes", "bytes_per_s", "gain")
    })  # fmt: skip
    with pytest.raises(UnreadableError, match="too many replicas"):
        open_records(view)


# --- what is kept ---------------------------------------------------------------------------------------------------


def test_partitions_of_ended_plans_are_kept_newest_first_and_then_only_their_headers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent.journal.plan_entries.KEEP_TARGET_BYTES", 2_500)
    old, new = (ReassignmentPlan(f"p-{n}", many(20), PlanState.DONE, order=n) for n in (1, 2))
    open_ = ReassignmentPlan("p-3", many(100), order=3)
    view = dict(journal(open_, old, new))
    for line in compaction_writes(view):
        assert line.value is None
        del view[line.key]
    assert plans(view) == (open_, old._replace(targets=(), dropped=20), new)
    assert plan_of(view, "p-1") == old._replace(targets=(), dropped=20)
    assert compaction_writes(view) == ()
    assert KEEP_TARGET_BYTES > 200_000 * 60, "some hundred thousand partitions"


def test_parts_without_a_plan_are_deleted() -> None:
    view = {**SMALL, "targets/p-9/1": SMALL[PARTS[0]]._replace(key="targets/p-9/1")}
    assert [(line.key, line.value) for line in compaction_writes(view)] == [("targets/p-9/1", None)]


def test_a_plan_that_goes_takes_its_partitions_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.journal.plan_entries.KEEP_PLANS", 1)
    view = journal(*(ReassignmentPlan(f"p-{n}", many(2), PlanState.DONE, order=n) for n in (1, 2)))
    assert {line.key for line in compaction_writes(view)} == {"plan/p-1", "targets/p-1/1"}


# --- the largest plan -----------------------------------------------------------------------------------------------


def test_which_partitions_moved_is_read_back_of_very_many() -> None:
    plan = ReassignmentPlan("p", many(70_001))
    moved = {target.id for at, target in enumerate(plan.targets) if at % 3}
    assert moved_of(plan._replace(moved=moved_by(plan, moved))) == moved
    assert moved_of(plan._replace(moved=moved_by(plan, ()))) == frozenset()


def test_every_state_of_the_worst_plan_fits_its_records() -> None:
    """Names of 249 characters, each of another topic, 15 replicas each of other brokers, all ends, long sentences."""
    targets = many(MOST_TARGETS, name=249, replicas=15, topics=MOST_TARGETS)
    long = "\u00fc" * 40_000
    worst = ReassignmentPlan(
        "p-0123456789ab.999-back", targets, approved_by=long, reason=long, sentence=long, heard="c" * 100,
        begin_by_ms=2**50, racks=tuple((at, f"rack-{at}") for at in range(2_000)), turned=10**6, order=2**50,
        throttle_bytes_per_s=2**50, max_moves=10**6,
    )  # fmt: skip
    lines = numbered(change_writes(worst), at_ms=2**47, epoch=2**53, first_seq=0)
    assert max(len(line.data or b"") for line in lines) < MAX_VALUE_BYTES
    view = applied({}, lines)
    all_moved = moved_by(worst, {one.id for one in targets})
    for state in PlanState:
        after = worst._replace(state=state, paused=True, elections=3, moved=all_moved)
        (line,) = numbered(changed(view, [after]), at_ms=2**47, epoch=2**53, first_seq=2**53)
        assert len(line.data or b"") < MAX_VALUE_BYTES
    assert plan_of(view, worst.proposal_id) == worst
    for number, run in enumerate(record_batches(targets[:2_000]), 1):
        ids = tuple(target.id for target in run)
        ends = tuple(PartitionEnd(id_, max(PartitionEndReason, key=lambda end: len(end.name))) for id_ in ids)
        batch = Batch(
            worst.proposal_id, number, tuple(run), BatchState.CLOSED, True, 2**50, True, 10**6, ids, ends, long
        )
        (line,) = numbered(change_writes(batch), at_ms=2**47, epoch=2**53, first_seq=2**53)
        assert len(line.data or b"") < MAX_VALUE_BYTES
    assert batches(journal(batch)) == (batch,)


def test_an_entry_of_the_layout_before_is_unreadable() -> None:
    value = {"proposal_id": "p-1", "targets": [{"id": {"topic": "t", "partition": 0}}]}
    entry = Entry("plan/p-1", "open", value, 0, 1, 1)
    with pytest.raises(UnreadableError, match="without partitions"):
        open_records({"plan/p-1": entry})


def test_plans_that_were_read_long_ago_are_not_kept_with_their_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent leads for months: 1,000 plans of 100,000 partitions would be 25 GB."""
    assert targets._PLANS._most <= targets._MOST_KEPT
    monkeypatch.setattr(targets, "_PLANS", kept := IdentityMemo[ReassignmentPlan](2_000))
    view = journal(ReassignmentPlan("p-1", many(200), PlanState.DONE))
    for at_ms in range(50):
        assert plans({key: entry._replace(at_ms=at_ms) for key, entry in view.items()})[0].partitions == 200
    assert 200 <= sum(len(plan.targets) for _, plan, _ in kept._found.values()) <= 2_000


def test_a_header_that_counts_other_bytes_than_its_parts_have_is_unreadable() -> None:
    """Bytes of plans that have not ended are what no further plan has room beside."""
    for told in (0, 10**18, -(10**18)):
        with pytest.raises(UnreadableError):
            open_records(again(SMALL, "plan/p-1", "plan/p-1", bytes=told))
