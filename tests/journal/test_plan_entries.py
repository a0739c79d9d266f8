"""What is read back of plans, batches and throttle debts is what was written, and the journal stays small."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.guard.guard_context import DAY_MS, HOUR_MS, GuardJournal, batches_left
from agent.journal.entries import Entry, JournalState, JournalWrite
from agent.journal.plan_entries import (
    KEEP_BATCHES,
    KEEP_NOES,
    KEEP_PLANS,
    batches,
    change_writes,
    changed,
    compaction_writes,
    known,
    open_records,
    plans,
    throttle_debts,
)
from agent.values.kafka import LEADER_RATE, LEADER_REPLICAS
from agent.values.limits import ExecuteLimits
from agent.values.proposal import CheckPassed, Hold
from agent.values.reassignment import (
    Batch,
    BatchState,
    ClearedThrottle,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentEntry,
    ReassignmentPlan,
    ReassignmentTarget,
    ThrottleDebt,
)
from agent.values.throttles import KEYS_OF, ThrottleResource
from agent.values.typed_json import UnreadableError
from assignors.problem import TopicPartition
from tests.journals import journal

BROKERS = st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True).map(tuple)
PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b-1", "c.d"]), st.integers(0, 3))
TARGETS = st.builds(
    ReassignmentTarget,
    PARTITIONS,
    st.text(max_size=3),
    BROKERS,
    BROKERS,
    st.none() | st.integers(0),
    st.none() | st.just(1.5),
    gain=st.sampled_from([0.0, 2.5]),  # never "not a number", which equals nothing
)
PLANS = st.builds(
    ReassignmentPlan,
    st.sampled_from(["p-1", "p-2"]),
    st.lists(TARGETS, max_size=3).map(tuple),
    order=st.integers(),
    dropped=st.just(0),
    attempt=st.just(1),
)
BATCHES = st.builds(
    Batch,
    st.sampled_from(["p-1", "p-2"]),
    st.integers(1, 12),
    st.lists(TARGETS, max_size=3).map(tuple),
    st.sampled_from(BatchState),
    cancelling=st.lists(PARTITIONS, max_size=3).map(tuple),
    ends=st.lists(st.builds(PartitionEnd, PARTITIONS, st.sampled_from(PartitionEndReason)), max_size=3).map(tuple),
)
RESOURCES = [ThrottleResource(broker=0), ThrottleResource(broker=2147483647), ThrottleResource(topic="a.b")]
BEFORE = st.none() | st.text(max_size=3)
RATES = st.integers(0, 2**63 - 1)
ENTRIES = st.lists(st.builds("{}:{}".format, st.integers(0), st.integers(0)), max_size=3).map(tuple)
DEBTS = st.builds(
    ThrottleDebt, st.sampled_from([one for one in RESOURCES if one.kind == "broker"]),
    st.sampled_from(KEYS_OF["broker"]), RATES, BEFORE, st.just("p-1"), st.just(1), st.none() | RATES,
) | st.builds(
    ThrottleDebt, st.sampled_from([one for one in RESOURCES if one.kind == "topic"]),
    st.sampled_from(KEYS_OF["topic"]), ENTRIES, BEFORE, st.just("p-1"), st.just(1), st.none(),
)  # fmt: skip


def lines(*changes: ReassignmentEntry) -> list[JournalWrite]:
    return [line for change in changes for line in change_writes(change)]


def told(*writes: JournalWrite, view: Mapping[str, Entry] = MappingProxyType({})) -> dict[str, Entry]:
    """The journal after these lines."""
    view = dict(view)
    for seq, line in enumerate(writes, len(view)):
        view.pop(line.key, None)
        if line.value is not None:
            view[line.key] = Entry(line.key, line.kind, json.loads(json.dumps(line.value)), 0, 1, seq)
    return view


@given(st.lists(PLANS | BATCHES | DEBTS, max_size=8))
def test_the_newest_of_each_key_is_read_back(changes):
    view: dict[str, Entry] = {}
    for change in changes:
        view = told(*changed(view, [change]), view=view)
    newest = {change_writes(change)[0].key: change for change in changes}
    assert set(plans(view)) == {change for change in newest.values() if isinstance(change, ReassignmentPlan)}
    assert set(batches(view)) == {change for change in newest.values() if isinstance(change, Batch)}
    assert set(throttle_debts(view)) == {change for change in newest.values() if isinstance(change, ThrottleDebt)}


def test_a_paid_debt_is_gone():
    debt = ThrottleDebt(ThrottleResource(broker=1), LEADER_RATE, 5, None, "p-1", 1)
    assert throttle_debts(told(*lines(debt, ClearedThrottle(debt.resource, debt.key)))) == ()


def test_open_plans_come_in_the_order_of_their_acceptance_with_their_batches_alone():
    open_late = ReassignmentPlan("p-3", (), order=3)
    open_early = ReassignmentPlan("p-2", (), order=2)
    ended = ReassignmentPlan("p-1", (), PlanState.DONE, order=1)
    mine, other = Batch("p-2", 1, ()), Batch("p-1", 1, ())
    records = open_records(told(*lines(open_late, ended, open_early, mine, other)))
    assert records.plans == (open_early, open_late)
    assert records.batches == (mine,)
    assert records.known == {"p-1", "p-2", "p-3"}


def test_plans_are_known_by_name_also_where_they_cannot_be_read():
    damaged = JournalWrite("plan/p-4", "open", {"order": "soon"})
    assert known(told(*lines(ReassignmentPlan("p-1", (), PlanState.DONE), Batch("p-2", 1, ())), damaged)) == {
        "p-1", "p-4",
    }  # fmt: skip


def test_ended_plans_and_their_batches_are_kept_up_to_a_number_and_open_ones_always():
    ended = [ReassignmentPlan(f"p-{n}", (), PlanState.DONE, order=n) for n in range(KEEP_PLANS + 5)]
    closed = [Batch(f"p-{n}", 1, ()) for n in range(KEEP_PLANS + 5)] + [Batch("p-204", 2, ())]
    unended = ReassignmentPlan("p-open", ())
    theirs = [Batch("p-open", n, ()) for n in range(1, 300)]
    view = told(*lines(*theirs, unended, *ended, *closed))
    for days, (key, entry) in enumerate(view.items()):
        view[key] = entry._replace(at_ms=days * DAY_MS)
    for line in compaction_writes(view):
        assert (line.kind, line.value) == ("deleted", None)
        del view[line.key]
    assert len(plans(view)) == KEEP_PLANS + 1
    assert batches(view, "p-open") == tuple(theirs)
    assert len(batches(view)) == len(theirs) + KEEP_BATCHES
    assert batches(view, "p-4") == ()
    assert compaction_writes(view) == ()


def test_what_was_moved_within_a_day_counts_against_its_budget_after_the_plan_has_ended():
    """A plan of 100,000 partitions has 2,000 batches."""
    target = ReassignmentTarget(TopicPartition("t", 0), "id", (1, 2), (3, 2), bytes=10)
    count = KEEP_BATCHES * 2
    sent = [Batch("p-1", n, (target,), BatchState.CLOSED, sendings=1) for n in range(count)]
    view = told(*lines(ReassignmentPlan("p-1", (target,), PlanState.DONE), *sent))
    now_ms = 2 * DAY_MS
    view = {key: entry._replace(at_ms=now_ms - 1_000) for key, entry in view.items()}
    view["batch/p-1/0"] = view["batch/p-1/0"]._replace(at_ms=now_ms - DAY_MS - 1_000)
    gone = {line.key for line in compaction_writes(view)}
    assert gone == {"batch/p-1/0"}
    view = {key: entry for key, entry in view.items() if key not in gone}
    limits = ExecuteLimits(batches_per_hour=10**6, batches_per_day=10**6, bytes_per_day=10 * (count - 1))
    held = batches_left("p-2", GuardJournal(view).batches, limits, now_ms)
    assert isinstance(held, Hold), "all that may be moved in a day was moved"


def tidied(view: JournalState) -> dict[str, Entry]:
    gone = {line.key for line in compaction_writes(view)}
    after = {key: entry for key, entry in view.items() if key not in gone}
    assert compaction_writes(after) == (), "once is enough"
    return after


def sent(name: str) -> list[JournalWrite]:
    """A plan that is done, and its one batch."""
    return lines(
        Batch(name, 1, (TARGET,), BatchState.CLOSED, sendings=1),
        ReassignmentPlan(name, (TARGET,), PlanState.DONE, moved="1"),
    )


TARGET = ReassignmentTarget(TopicPartition("t", 0), "id", (1, 2), (3, 2), bytes=10)
LAPSED = ReassignmentPlan("", (TARGET,), PlanState.CANCELLED, moved="0", sentence="its approval ended 0 min ago")
NOON = 1_760_000_000_000


def left_after(view: JournalState, now_ms: int, **limits: int) -> Hold | CheckPassed:
    """What the budgets say of one more batch."""
    return batches_left("p-next", GuardJournal(view).batches, replace(ExecuteLimits(), **limits), now_ms)


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([LAPSED._replace(proposal_id=f"p-{n}") for n in range(KEEP_PLANS, 1_000)], id="lapsed plans"),
        pytest.param(
            [
                change
                for n in range(KEEP_PLANS, 1_000)
                for change in (Batch(f"p-{n}", 1, (TARGET,), BatchState.CLOSED), LAPSED._replace(proposal_id=f"p-{n}"))
            ],
            id="plans whose batch was withdrawn",
        ),
    ],
)
def test_plans_that_moved_nothing_do_not_make_the_budget_of_the_day_forget_those_that_did(
    others: list[ReassignmentEntry],
):
    done = [line for n in range(KEEP_PLANS) for line in sent(f"p-{n}")]
    view = journal(*done, at_ms=NOON - 2 * HOUR_MS)
    view = tidied(journal(*lines(*others), at_ms=NOON - HOUR_MS, view=view))
    held = left_after(view, NOON, batches_per_day=KEEP_PLANS)
    assert isinstance(held, Hold), held.sentence
    assert held.sentence == "held: 200 of 200 batches in the last day (execute.batches_per_day)"
    assert isinstance(left_after(view, NOON, bytes_per_day=10 * KEEP_PLANS, batches_per_day=999), Hold)
    assert {plan.proposal_id for plan in plans(view)} >= {f"p-{n}" for n in range(KEEP_PLANS)}, "a name is not free"
    # A day later they count no more, and only a number of them stays.
    view = tidied(journal(*sent("p-last"), at_ms=NOON + DAY_MS, view=view, epoch=2))
    assert len(plans(view)) == KEEP_PLANS
    assert len(batches(view)) <= KEEP_BATCHES


def test_a_batch_of_a_clock_that_was_ahead_makes_no_other_one_old():
    view = journal(*sent("p-ahead"), at_ms=NOON + 10 * 365 * DAY_MS)
    for n in range(KEEP_PLANS + 50):
        view = journal(*sent(f"p-{n}"), at_ms=NOON - HOUR_MS + n, view=view)
    assert tidied(view) == view, "all but one were sent today"


def test_a_plan_that_a_person_ended_is_not_forgotten_for_plans_that_ended_by_themselves():
    """A plan of which nothing is known is a first attempt, which a rule may approve."""
    persons = [
        LAPSED._replace(proposal_id="p-cancelled", heard="c1", sentence="cancelled by ann@desk"),
        LAPSED._replace(proposal_id="p-rolled", state=PlanState.ROLLED_BACK, heard="c2"),
        LAPSED._replace(proposal_id="p-half", state=PlanState.FAILED, heard="c3"),
        ReassignmentPlan("p-done", (TARGET,), PlanState.DONE, moved="1"),
        ReassignmentPlan("p-done-back", (TARGET,), PlanState.DONE, moved="1", approved_by="ann@desk"),
    ]
    others = [LAPSED._replace(proposal_id=f"p-{n}") for n in range(KEEP_PLANS + 50)]
    view = tidied(journal(*lines(*persons), *lines(*others), at_ms=NOON))
    assert {plan.proposal_id for plan in plans(view)} >= {plan.proposal_id for plan in persons}
    assert len(plans(view)) == KEEP_PLANS + len(persons)
    assert [GuardJournal(view).next(f"p-{name}").number for name in ("cancelled", "rolled", "half", "done")] == [2] * 4


def test_plans_that_a_person_ended_are_kept_up_to_a_number():
    noes = [LAPSED._replace(proposal_id=f"p-{n}", heard=f"c{n}") for n in range(KEEP_NOES + 20)]
    view = tidied(journal(*lines(*noes), at_ms=NOON))
    assert [plan.proposal_id for plan in plans(view)] == [f"p-{n}" for n in range(20, KEEP_NOES + 20)]


def test_a_topic_cools_down_although_there_is_no_room_for_the_partitions_of_its_plan(monkeypatch: pytest.MonkeyPatch):
    view = journal(*sent("p-1"), at_ms=NOON - 60_000)
    other = TARGET._replace(id=TopicPartition("u", 0))
    view = journal(*lines(ReassignmentPlan("p-2", (other,) * 2, PlanState.DONE)), at_ms=NOON, view=view)
    assert GuardJournal(view).moved == {"t": NOON - 60_000, "u": NOON}
    monkeypatch.setattr("agent.journal.plan_entries.KEEP_TARGET_BYTES", 1)
    view = tidied(view)
    assert [plan.dropped for plan in plans(view)] == [1, 0]
    assert GuardJournal(view).moved == {"t": NOON - 60_000, "u": NOON}


def test_an_entry_that_cannot_be_read_is_an_error():
    view = told(JournalWrite("plan/p-1", "open", {"proposal_id": 5}))
    with pytest.raises(UnreadableError):
        open_records(view)


THROTTLE = ThrottleDebt(ThrottleResource(broker=1), LEADER_RATE, 5, None, "p-1", 1)
OF_TOPIC = THROTTLE._replace(resource=ThrottleResource(topic="t"), key=LEADER_REPLICAS, ours=("5",))


def written_debt(kind: str, name: str | int, key: str = LEADER_RATE) -> JournalWrite:
    """A throttle's line of the journal."""
    value = {
        "resource": {"broker": None, "topic": None, kind: name},
        "key": key,
        "ours": "5",
        "before": None,
        "proposal_id": "p-1",
        "number": 1,
        "formerly": None,
        "topic_id": None,
        "tries": 0,
    }
    return JournalWrite(f"throttle/{kind}:{name}/{key}", "debt", value)


@pytest.mark.parametrize(
    ("debt", "texts"),
    [
        pytest.param(THROTTLE, ("5", None), id="a rate"),
        pytest.param(THROTTLE._replace(ours=10, formerly=5), ("10", "5"), id="a rate after another"),
        pytest.param(OF_TOPIC._replace(ours=("0:1", "2:3")), ("0:1,2:3", None), id="entries"),
        pytest.param(OF_TOPIC._replace(ours=()), ("", None), id="no entry"),
    ],
)
def test_a_throttle_is_written_as_the_value_of_its_setting(debt: ThrottleDebt, texts: tuple[str, str | None]) -> None:
    (line,) = change_writes(debt)
    kind, name = ("broker", 1) if debt.resource.broker == 1 else ("topic", "t")
    expected = dict(written_debt(kind, name, debt.key).value or {}, ours=texts[0], formerly=texts[1])
    assert json.dumps(line.value) == json.dumps(expected)
    assert throttle_debts(told(line)) == (debt,)


@pytest.mark.parametrize("field", ["ours", "formerly"])
@pytest.mark.parametrize("text", ["9" * 5_000, str(2**63), "0:1", "-5", "05", "\u0665", ""])
def test_a_rate_that_is_no_number_is_unreadable(field: str, text: str) -> None:
    line = written_debt("broker", 1)
    view = told(line._replace(value={**(line.value or {}), field: text}))
    with pytest.raises(UnreadableError, match="has a rate that is not a number of bytes"):
        throttle_debts(view)


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(("broker", 1, "log.retention.ms"), id="a setting that is no throttle"),
        pytest.param(("topic", "t", "retention.ms"), id="of a topic"),
        pytest.param(("topic", "t", LEADER_RATE), id="a broker's throttle of a topic"),
        pytest.param(("broker", 1, LEADER_REPLICAS), id="a topic's throttle of a broker"),
        pytest.param(("broker", "", LEADER_RATE), id="the default of all brokers"),
        pytest.param(("broker", "1", LEADER_RATE), id="a broker by its number as text"),
        pytest.param(("broker", -1, LEADER_RATE), id="a negative number"),
        pytest.param(("broker", True, LEADER_RATE), id="no number"),
        pytest.param(("broker", 2**31, LEADER_RATE), id="a number that no broker has"),
        pytest.param(("broker", int("9" * 400), LEADER_RATE), id="a number of 400 digits"),
        pytest.param(("group", "g", LEADER_RATE), id="neither broker nor topic"),
    ],
)
def test_what_is_no_throttle_of_a_broker_or_topic_is_unreadable(foreign):
    """Read, it would be taken away as one of ours, or end every agent in turn."""
    with pytest.raises(UnreadableError):
        open_records(told(written_debt(*foreign)))


@pytest.mark.parametrize(
    "resource", [{"broker": 1, "topic": "t"}, {"broker": 0, "topic": "t"}, {"broker": 1, "topic": ""}, {"broker": None},
                 {}, {"kind": "broker", "name": "1"}, [], "1", None],
)  # fmt: skip
def test_a_broker_or_topic_that_is_written_otherwise_is_unreadable(resource):
    line = written_debt("broker", 1)
    with pytest.raises(UnreadableError):
        open_records(told(line._replace(value={**line.value, "resource": resource})))
    with pytest.raises(UnreadableError):
        open_records(told(written_debt("topic", "")))


def test_a_debt_is_written_with_its_broker_or_topic_and_sorted_by_its_name():
    resources = [ThrottleResource(broker=10), ThrottleResource(broker=9), ThrottleResource(topic="1")]
    debts = [*(THROTTLE._replace(resource=one) for one in resources[:2]), OF_TOPIC._replace(resource=resources[2])]
    written = [written_debt(*row) for row in (("broker", 10), ("broker", 9), ("topic", "1", LEADER_REPLICAS))]
    assert [json.dumps(line) for line in lines(*debts)] == [json.dumps(line) for line in written]
    assert throttle_debts(told(*reversed(written))) == tuple(debts)


def test_a_record_under_the_key_of_another_is_unreadable():
    batch = Batch("p-1", 1, ())
    for change, key in ((THROTTLE, "throttle/broker:2/x"), (batch, "batch/p-1/2"), (batch, "batch/p-2/1")):
        (line,) = change_writes(change)
        with pytest.raises(UnreadableError):
            open_records(told(*change_writes(ReassignmentPlan("p-1", ())), line._replace(key=key)))
