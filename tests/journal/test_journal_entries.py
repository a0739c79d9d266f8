"""Entries of commands, leaders, plans and throttles: their kinds, their times, and what is said of a foreign one."""

from __future__ import annotations

import pytest

from agent.journal import plan_entries
from agent.journal.approvals import KEPT as KEPT_VOID
from agent.journal.approvals import ApprovalState, ProposalApproval, approval_cleanup, approval_of, written
from agent.journal.commands import (
    KEPT,
    KEPT_OF_PERSONS,
    CommandVerb,
    ExecutionPause,
    LeaderAnswer,
    OperatorCommand,
    answered,
    command_cleanup,
    command_from_json,
    command_to_json,
    history,
    pause_in,
    paused,
    resumed,
    signed_until,
)
from agent.journal.entries import Entry, JournalKey, JournalState, JournalTrust, key_bytes, key_of, rewritten
from agent.journal.record_trust import LATER_MS, codes_by_key, in_past
from agent.journal.targets import columns, targets_of
from agent.journal.triggers import TriggerEffect, TriggerEntry, TriggerExpectation, outcome
from agent.values.kafka import LEADER_RATE, LEADER_REPLICAS
from agent.values.reassignment import (
    Batch,
    BatchState,
    ClearedThrottle,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
    ThrottleDebt,
)
from agent.values.throttles import ThrottleResource
from agent.values.typed_json import MOST_INT, UnreadableError
from tests.journals import journal, keys
from tests.snapshots import NOW_MS, tp

BROKER, TOPIC = ThrottleResource(broker=1), ThrottleResource(topic="t")
CODE_OF_ENTRY = "e45c0394:60bbcff1624760859eecbf37a7ae03e75f31810de0bb31c9dc27adff56f1915e"
CODE_OF_DELETION = "e45c0394:6c4faa64313ac8a789b89453f2abeaf1f2d1fbe04b0c23379d2b79988ce80c62"
TARGET = ReassignmentTarget(tp("t-0"), "id", (1, 2), (3, 2), 1_000)


# --- commands


def test_an_answer_a_pause_and_its_end_have_their_kinds() -> None:
    command = OperatorCommand("c1", CommandVerb.PAUSE, "ann@desk", NOW_MS)
    done, refused = (answered(command, LeaderAnswer(said, "so", NOW_MS)) for said in (True, False))
    assert keys((done, refused)) == [("command/c1", "done"), ("command/c1", "refused")]
    begun, ended = paused(ExecutionPause("ann@desk", "an incident", 5)), resumed()
    assert keys((begun, ended)) == [("pause", "paused"), ("pause", "resumed")]
    assert pause_in(journal(begun, at_ms=7)) == ExecutionPause("ann@desk", "an incident", 5)
    assert pause_in(journal(begun, ended, at_ms=7)) is None


def test_a_pause_that_cannot_be_read_is_one() -> None:
    view = {"pause": Entry("pause", "paused", {"who": 3}, 7, 1, 1)}
    assert pause_in(view) == ExecutionPause("an unknown operator", "the pause in the journal is unreadable", 7)


def commands(count: int, **first: object) -> JournalState:
    """So many answered commands; the first ones are signed by a person where that is said."""
    rows = []
    for number in range(count):
        person = "ann" if number == 0 and first else None
        command = OperatorCommand(f"c{number:03}", CommandVerb.PAUSE, "ann", 50, person=person)
        answer = LeaderAnswer(True, "so", 100)
        rows.append(answered(command, answer._replace(**first) if number == 0 else answer))  # type: ignore[arg-type]
    return journal(*rows, at_ms=1)


def test_the_oldest_answers_are_deleted_beyond_those_that_stay() -> None:
    assert command_cleanup(commands(KEPT)) == ()
    gone = command_cleanup(commands(KEPT + 2))
    assert keys(gone) == [("command/c000", "deleted"), ("command/c001", "deleted")]
    assert [write.value for write in gone] == [None, None]
    assert keys(command_cleanup(commands(KEPT + 2), needed=frozenset({"c000"}))) == [("command/c001", "deleted")]


@pytest.mark.parametrize(
    ("first", "signed_until_ms", "writes"),
    [
        pytest.param({"signed_ms": 70}, 100, [], id="a person's, as long as a copy of it counts"),
        pytest.param(
            {"signed_ms": 70}, 101, [("command/c000", None), ("command-forgotten", {"until_ms": 70})],
            id="a person's, from before that",
        ),
        pytest.param(
            {"signed_ms": None}, 101, [("command/c000", None), ("command-forgotten", {"until_ms": 50})],
            id="a person's whose time is that of the command",
        ),
        pytest.param(
            {"signed_ms": 1}, 101, [("command/c000", None), ("command-forgotten", {"until_ms": 1})],
            id="a person's of the first millisecond",
        ),
        pytest.param({}, 101, [("command/c000", None)], id="a command without a proven person"),
    ],
)  # fmt: skip
def test_what_is_forgotten_of_a_person_is_remembered_by_its_time(
    first: dict[str, object], signed_until_ms: int, writes: list[tuple[str, object]]
) -> None:
    view = commands(KEPT + 1, **first)
    found = command_cleanup(view, signed_until_ms)
    assert [(write.key, write.value) for write in found] == writes
    after = journal(found, at_ms=1, view=view)
    assert signed_until(after) == (writes[1][1]["until_ms"] if len(writes) > 1 else 0)  # type: ignore[index]
    assert len(history(after)) == KEPT + (not writes)


def test_answers_to_proven_persons_are_bounded_in_number_too() -> None:
    """The newest stay; what is deleted of them is remembered by its time, so that no copy counts."""
    sent = [OperatorCommand(f"p{number:04}", CommandVerb.PAUSE, "ann", 50, person="ann") for number in range(1_300)]
    rows = [answered(one, LeaderAnswer(True, "so", 100, signed_ms=int(one.id[1:]))) for one in sent]
    view = journal(*rows, at_ms=1)
    found = command_cleanup(view, 100, needed=frozenset({"p0000"}))
    assert len(history(journal(found, at_ms=1, view=view))) == KEPT + KEPT_OF_PERSONS + 1
    assert keys(found)[0] == ("command/p0001", "deleted")
    assert signed_until(journal(found, at_ms=1, view=view)) == 99


def test_a_later_time_of_a_forgotten_command_is_not_replaced_by_an_earlier_one() -> None:
    view = {**commands(KEPT + 1, signed_ms=70), "command-forgotten": Entry("", "signed", {"until_ms": 70}, 1, 1, 1)}
    assert keys(command_cleanup(view, 101)) == [("command/c000", "deleted")]
    earlier = {**view, "command-forgotten": Entry("", "signed", {"until_ms": 69}, 1, 1, 1)}
    assert keys(command_cleanup(earlier, 101)) == [("command/c000", "deleted"), ("command-forgotten", "signed")]


@pytest.mark.parametrize(
    ("changes", "readable"),
    [
        pytest.param({}, True, id="as it was sent"),
        pytest.param({"id": "x" * 64}, True, id="an id of 64 letters"),
        pytest.param({"id": "x" * 65}, False, id="an id of 65 letters"),
        pytest.param({"id": ""}, False, id="no id"),
        pytest.param({"id": "ü"}, False, id="an id that is no ASCII"),
        pytest.param({"id": "a\n"}, False, id="an id with a line"),
        pytest.param({"proposal_id": "x" * 500, "plan_hash": "x" * 500}, True, id="names of 500 letters"),
        pytest.param({"proposal_id": "x" * 501}, False, id="a name of 501 letters"),
        pytest.param({"plan_hash": "x" * 501}, False, id="a hash of 501 letters"),
        pytest.param({"throttle_bytes_per_s": 1, "max_moves": 1, "attempt": 1}, True, id="numbers of one"),
        pytest.param({"throttle_bytes_per_s": 0}, False, id="no rate"),
        pytest.param({"max_moves": 0}, False, id="no move"),
        pytest.param({"attempt": 0}, False, id="no attempt"),
        pytest.param({"throttle_bytes_per_s": MOST_INT}, True, id="the greatest rate"),
        pytest.param({"throttle_bytes_per_s": MOST_INT + 1}, False, id="one more than it"),
    ],
)
def test_a_command_from_outside_is_read_within_its_bounds(changes: dict[str, object], readable: bool) -> None:
    sent = {**command_to_json(OperatorCommand("c1", CommandVerb.APPROVE, "ann@desk", NOW_MS, "p-1")), **changes}
    if readable:
        assert command_to_json(command_from_json(sent)) == sent
    else:
        with pytest.raises(UnreadableError, match="no command"):
            command_from_json(sent)


def test_texts_of_a_command_are_cut() -> None:
    long = OperatorCommand("c1", CommandVerb.PAUSE, "w" * 501, NOW_MS, reason="r" * 501)
    command = command_from_json(command_to_json(long))
    assert (command.who, command.reason) == ("w" * 500, "r" * 500)


# --- times of the future


@pytest.mark.parametrize(
    ("at_ms", "expires_ms", "lasts_ms"),
    [
        pytest.param(NOW_MS + 2 * LATER_MS, NOW_MS + 3 * LATER_MS, LATER_MS, id="as long as it was given for"),
        pytest.param(NOW_MS + 2 * LATER_MS, NOW_MS + 2 * LATER_MS, 0, id="for no time"),
        pytest.param(NOW_MS + 2 * LATER_MS, NOW_MS + LATER_MS, 0, id="for less than that"),
        pytest.param(NOW_MS + 2 * LATER_MS, "soon", 0, id="until no time"),
    ],
)
def test_an_approval_of_the_future_counts_from_now_for_as_long_as_it_was_given(
    at_ms: int, expires_ms: object, lasts_ms: int
) -> None:
    view = {"approval/p": Entry("approval/p", "approved", {"at_ms": at_ms, "expires_ms": expires_ms}, NOW_MS, 1, 1)}
    assert in_past(view, NOW_MS)["approval/p"].value == {"at_ms": NOW_MS, "expires_ms": NOW_MS + lasts_ms}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("trigger/g/p", {"intended_ms": 1}, id="intended"),
        pytest.param("trigger/g/p", {"acted_ms": 1}, id="acted"),
        pytest.param("pause", {"since_ms": 1}, id="paused since"),
        pytest.param("learned/group/g", {"came_ms": 1}, id="came"),
        pytest.param("learned/group/g", {"went_ms": 1}, id="went"),
        pytest.param("learned/trigger-path/4", {"at_ms": 1}, id="learned"),
    ],
)
@pytest.mark.parametrize(
    ("ahead_ms", "later"), [pytest.param(LATER_MS, False, id="a minute"), pytest.param(LATER_MS + 1, True, id="more")]
)
def test_a_time_ahead_by_more_than_clocks_differ_counts_as_now(
    key: str, value: dict[str, int], ahead_ms: int, later: bool
) -> None:
    view = {key: Entry(key, "k", dict.fromkeys(value, NOW_MS + ahead_ms), NOW_MS, 1, 1)}
    after = in_past(view, NOW_MS)
    assert after[key].value == dict.fromkeys(value, NOW_MS if later else NOW_MS + ahead_ms)
    assert (after == view) is not later


# --- plans, batches, throttles


DEBT = ThrottleDebt(BROKER, LEADER_RATE, 10, None, "p", 1)


@pytest.mark.parametrize(
    ("key", "debt"),
    [
        pytest.param("throttle/broker:1/x", DEBT._replace(key="x"), id="another setting"),
        pytest.param(f"throttle/broker:2/{LEADER_RATE}", DEBT, id="another broker's key"),
    ],
)
def test_a_record_that_is_of_no_throttle_of_ours_is_not_read(key: str, debt: ThrottleDebt) -> None:
    (write,) = plan_entries.change_writes(debt)
    view = {key: Entry(key, "debt", write.value or {}, 1, 1, 1)}
    with pytest.raises(UnreadableError) as caught:
        plan_entries.throttle_debts(view)
    assert str(caught.value) == f"the record under {key!r} is not of a throttle of rackwise"


def test_throttles_are_written_as_debts_until_they_are_paid() -> None:
    topic = ThrottleDebt(TOPIC, LEADER_REPLICAS, ("0:1",), None, "p", 1, topic_id="id")
    writes = [line for debt in (topic, DEBT) for line in plan_entries.change_writes(debt)]
    assert keys(writes) == [
        (f"throttle/topic:t/{LEADER_REPLICAS}", "debt"), (f"throttle/broker:1/{LEADER_RATE}", "debt"),
    ]  # fmt: skip
    assert plan_entries.throttle_debts(journal(*writes, at_ms=1)) == (DEBT, topic)
    (paid,) = plan_entries.change_writes(ClearedThrottle(BROKER, LEADER_RATE))
    assert (paid.key, paid.kind, paid.value) == (f"throttle/broker:1/{LEADER_RATE}", "paid", None)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"cancelling": (tp("t-0"),)}, id="cancelled moves"),
        pytest.param({"cancelling": (tp("u-9"),)}, id="a cancelled move that it does not name"),
        pytest.param({"ends": (PartitionEnd(tp("t-0"), PartitionEndReason.DONE),)}, id="ends"),
        pytest.param({"ends": (PartitionEnd(tp("u-9"), PartitionEndReason.GONE),)}, id="an end that it does not name"),
        pytest.param(
            {"repaced": True, "rate_bytes_per_s": 7, "sendings": 3, "sentence": "why", "back": True}, id="rest"
        ),
    ],
)
def test_a_batch_is_read_as_it_was_written_with_its_partitions_once(changes: dict[str, object]) -> None:
    batch = Batch("p", 1, (TARGET, TARGET._replace(id=tp("t-1"))), BatchState.SENT)._replace(**changes)  # type: ignore[arg-type]
    (write,) = plan_entries.change_writes(batch)
    assert (write.key, write.kind) == ("batch/p/1", "sent")
    assert plan_entries.batches(journal(write, at_ms=1)) == (batch,)
    assert str(write.value).count("'t'") == 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        pytest.param({"gain": []}, "they are of different lengths", id="a column that is shorter"),
        pytest.param({"topic": [1]}, "a row of a table is missing", id="a topic that is not there"),
        pytest.param({"before": [2]}, "a row of a table is missing", id="a list that is not there"),
        pytest.param({"after": [-1]}, "a row of a table is missing", id="a list below the first"),
        pytest.param({"partition": [-1]}, "a partition or broker has no such id", id="a partition below the first"),
        pytest.param({"partition": [2**31]}, "a partition or broker has no such id", id="a partition beyond the last"),
        pytest.param({"replicas": [[1, 2], [2**31]]}, "a partition or broker has no such id", id="a broker beyond"),
        pytest.param({"replicas": [[1, 2], []]}, "a partition has no replicas, or two on one broker", id="no replicas"),
        pytest.param({"replicas": [[1, 2], [3, 3]]}, "a partition has no replicas, or two on one broker", id="twice"),
        pytest.param({"topic": "t"}, "no target columns: a list expected, str found", id="no column"),
    ],
)
def test_columns_that_cannot_be_read_say_why(changes: dict[str, object], why: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        targets_of({**columns([TARGET]), **changes})
    assert str(caught.value) == f"no columns of partitions: {why}"


def test_the_greatest_ids_are_read() -> None:
    last = TARGET._replace(id=TARGET.id._replace(partition=2**31 - 1), after=(2**31 - 1, 2))
    assert targets_of(columns([last])) == (last,)


@pytest.mark.parametrize("key", ["plan/p-1", "ü", "\udcff", "learned/group/\ud800"])
def test_a_key_is_read_as_it_was_written_also_one_that_is_no_text(key: str) -> None:
    assert key_of(key_bytes(key)) == key


# --- approvals


@pytest.mark.parametrize(
    ("triggered_ms", "used"),
    [
        pytest.param(None, False, id="no trigger"),
        pytest.param(99, False, id="right before it was given"),
        pytest.param(100, True, id="as it was given"),
        pytest.param(199, True, id="right before it expired"),
        pytest.param(200, False, id="as it expired"),
    ],
)
@pytest.mark.parametrize("given_ms", [100, 0])
def test_an_approval_is_used_by_a_trigger_while_it_lasted(triggered_ms: int | None, used: bool, given_ms: int) -> None:
    """Also one of the first millisecond of 1970, where the trigger is that much earlier."""
    ahead = given_ms - 100
    given = ProposalApproval("p", "hash", ApprovalState.APPROVED, "ann", given_ms, given_ms + 100)
    expected = TriggerExpectation(generation=None, readers=(), holds={}, moves=(), items=0)
    triggered = [
        outcome(
            TriggerEntry(
                group_id="g", proposal_id="p", reason="R", intended_ms=triggered_ms + ahead, expected=expected,
                effect=TriggerEffect.REBALANCING,
            )
        )
    ] if triggered_ms is not None else []  # fmt: skip
    view = journal(written(given), *triggered, at_ms=1)
    (write,) = approval_cleanup(view, [], frozenset(), given_ms + 100)
    after = approval_of(journal(write, at_ms=1, view=view), "p")
    assert after is not None
    assert (after.state, after.used) == (ApprovalState.VOID, used)
    assert after.at_ms == ((triggered_ms or 0) + ahead if used else given_ms + 100)
    assert after.sentence == (
        "the rebalance that it approved was triggered" if used else "it expired 0 s ago, and the plan had not begun"
    )


# --- codes


def test_a_code_of_an_earlier_version_counts() -> None:
    """As they were written once; another text under the code would make every journal doubtful."""
    trust = JournalTrust((JournalKey(b"a key that is in force"),), "c-1")
    assert trust.signed(b"plan/p-1", (3, 4), b"{}") == CODE_OF_ENTRY
    assert trust.signed(b"plan/p-1", (3, 4), None) == CODE_OF_DELETION


@pytest.mark.parametrize(
    ("header", "codes"),
    [
        pytest.param("a:1 b:2", {"a": "1", "b": "2"}, id="two"),
        pytest.param("a b:2", {"b": "2"}, id="one without a colon"),
        pytest.param("a:ü b:2", {"b": "2"}, id="one that is no ASCII"),
        pytest.param("a: b:2:3", {"a": "", "b": "2:3"}, id="empty, and with more colons"),
        pytest.param("", {}, id="none"),
    ],
)
def test_codes_are_read_by_the_id_of_their_key(header: str, codes: dict[str, str]) -> None:
    assert codes_by_key(header) == codes


# --- what is deleted


def test_what_is_compacted_or_dropped_is_deleted_by_its_key() -> None:
    old = [ReassignmentPlan(f"p-{at}", (TARGET,), PlanState.DONE) for at in range(plan_entries.KEEP_PLANS + 1)]
    view = journal(*(plan_entries.change_writes(plan) for plan in old), at_ms=1)
    gone = plan_entries.compaction_writes(view)
    assert [(write.key.partition("/")[0], write.kind, write.value) for write in gone] == [
        ("plan", "deleted", None), ("targets", "deleted", None),
    ]  # fmt: skip
    assert {write.key.split("/")[1] for write in gone} == {"p-0"}
    void = [
        written(ProposalApproval(f"p-{at:04}", "hash", ApprovalState.VOID, "ann", 1, 1)) for at in range(KEPT_VOID + 1)
    ]
    writes = approval_cleanup(journal(*void, at_ms=1), [], frozenset(), NOW_MS)
    assert [(write.key, write.kind, write.value) for write in writes] == [("approval/p-0000", "deleted", None)]
    again = rewritten(journal(void[0], at_ms=7), ["b", "a", void[0].key], at_ms=9, epoch=3, first_seq=5)
    assert [(one.key, one.kind, one.at_ms, one.epoch, one.seq, data is None) for one, data in again] == [
        (void[0].key, "void", 7, 3, 5, False), ("a", "deleted", 9, 3, 6, True), ("b", "deleted", 9, 3, 7, True),
    ]  # fmt: skip
