"""A command is sent only for what is, right before, as it was decided for; each line of it has its answer."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agent.act.reassign.carrying import carry_out
from agent.execute.reassign.messages import Act, Alter, Cancel, Configure, Elect, Kind, Move, Result, Run
from agent.values.kafka import FOLLOWER_RATE, LEADER_RATE, LEADER_REPLICAS
from agent.values.observation import RawReassignment
from agent.values.throttles import OpType, Resource, SeenThrottle, ThrottleChange
from agent.wire.change import DONE, Answered, Fate
from agent.wire.deadline import Deadline
from agent.wire.hand import WireHand
from assignors.problem import TopicPartition
from tests.act.stub_hand import StubHand, topic, unknown

T0 = TopicPartition("t", 0)
MOVE = Move(T0, "id", (1, 2), (3, 2))
OURS = RawReassignment(T0, (3, 2, 1), (3,), (1,))
THEIRS = RawReassignment(T0, (4, 2, 1), (4,), (1,))
CANCEL = Cancel((Run(T0, "id", (3, 2)),))
ONE = Resource("broker", "1")
AS_EXPECTED = {1: (topic("t", (1, 2)),)}


def carried(hand: StubHand, act: Act, *, within_ms: int = 1_000) -> tuple[Result, ...]:
    taken = cast("WireHand", cast("Any", hand))
    return carry_out(taken, act, begin_by=Deadline.after_ms(within_ms), timeout_ms=1_000)


def sent(hand: StubHand) -> list[Any]:
    return [call for call in hand.calls if call[0] in ("alter", "elect", "throttle")]


def test_a_move_whose_partition_is_as_expected_is_sent() -> None:
    hand = StubHand(AS_EXPECTED)
    assert carried(hand, Alter((MOVE,))) == (Result(T0, Kind.OK, ""),)
    assert sent(hand) == [("alter", {T0: (3, 2)})]


@pytest.mark.parametrize(
    ("now", "kind", "sentence"),
    [
        (topic("t", (2, 1)), Kind.RETRY, "t-0 has replicas 2,1, not 1,2 as when the move was decided"),
        (topic("t", (1, 3)), Kind.RETRY, "t-0 has replicas 1,3, not 1,2 as when the move was decided"),
        (topic("t", (1, 2), topic_id="new"), Kind.RETRY, "topic t was deleted and created again"),
        (unknown("t"), Kind.GONE, "topic t no longer exists"),
        (topic("t", (1, 2))._replace(error="TOPIC_AUTHORIZATION_FAILED"), Kind.RETRY, "topic t could not be seen"),
        (topic("t", (1, 2))._replace(partitions=()), Kind.RETRY, "t-0 could not be seen"),
    ],
    ids=["another order", "other replicas", "another topic", "no topic", "no right to see it", "no such partition"],
)
def test_a_move_whose_partition_is_another_is_not_sent(now: Any, kind: Kind, sentence: str) -> None:
    hand = StubHand({1: (now,)})
    (result,) = carried(hand, Alter((MOVE,)))
    assert (result.kind, sent(hand)) == (kind, [])
    assert sentence in result.sentence


@pytest.mark.parametrize(
    ("running", "now", "kind", "sentence"),
    [
        ((OURS,), topic("t", (3, 2, 1)), Kind.OK, ""),
        ((THEIRS,), topic("t", (4, 2, 1)), Kind.RETRY, "t-0 is being moved to 4,2, which is not a move of this plan"),
        ((), topic("t", (3, 2)), Kind.NOT_NEEDED, "t-0 is no longer being moved"),
        ((OURS,), topic("t", (3, 2, 1), topic_id="new"), Kind.RETRY, "topic t was deleted and created again"),
        ((), unknown("t"), Kind.GONE, "topic t no longer exists"),
    ],
    ids=["ours", "another tool's since the look", "ended since the look", "of another topic", "of no topic"],
)
def test_only_a_move_that_still_is_ours_is_cancelled(running: Any, now: Any, kind: Kind, sentence: str) -> None:
    hand = StubHand({1: (now,)}, moves=running)
    assert carried(hand, CANCEL) == (Result(T0, kind, sentence),)
    assert bool(sent(hand)) is (kind is Kind.OK)


def test_a_partition_that_another_tool_began_to_move_since_the_look_is_not_moved() -> None:
    hand = StubHand(AS_EXPECTED, moves=(THEIRS,))
    assert carried(hand, Alter((MOVE,))) == (Result(T0, Kind.RETRY, "t-0 is being moved to 4,2"),)
    assert sent(hand) == []


SET = ThrottleChange(ONE, LEADER_RATE, OpType.SET, "5", expected=(None, "5"), alone=True)
DELETE = ThrottleChange(ONE, LEADER_RATE, OpType.DELETE, expected=("5",))


@pytest.mark.parametrize(
    ("setting", "own_and_default", "sentence"),
    [
        (SET, (None, None), None),
        (SET, ("5", None), None),
        (SET, ("7", None), "is 7, which is not as when the change was decided"),
        (SET, (None, "9"), "is 9 by default, which rackwise did not set"),
        (DELETE, ("5", "9"), None),
        (DELETE, ("7", None), "is 7, which is not as when the change was decided"),
        (DELETE, (None, None), "is not set, which is not as when the change was decided"),
        (DELETE, None, "could not be read"),
    ],
    ids=[
        "a rate where none is", "a rate of ours again", "another tool's rate is not overwritten",
        "a default for all brokers is not overridden", "a rate of ours is deleted",
        "another tool's rate is not deleted", "what is deleted already", "what cannot be read",
    ],
)  # fmt: skip
def test_a_rate_is_changed_only_while_it_is_what_it_was_decided_for(
    setting: ThrottleChange, own_and_default: tuple[str | None, str | None] | None, sentence: str | None
) -> None:
    throttles = (SeenThrottle(ONE, LEADER_RATE, *own_and_default),) if own_and_default is not None else ()
    hand = StubHand(throttles=throttles, mute=frozenset() if throttles else frozenset({1}))
    (result,) = carried(hand, Configure((setting,)))
    assert bool(sent(hand)) is (sentence is None)
    assert (result.kind, sentence or "") == (Kind.OK if sentence is None else Kind.RETRY, sentence or "")
    assert (sentence or "") in result.sentence


@pytest.mark.parametrize(
    ("now", "kind"),
    [(topic("t", (1, 2)), Kind.OK), (topic("t", (1, 2), topic_id="new"), Kind.RETRY), (unknown("t"), Kind.RETRY)],
    ids=["the very topic", "another topic of that name", "no topic"],
)
def test_a_list_is_changed_only_of_the_very_topic(now: Any, kind: Kind) -> None:
    entry = ThrottleChange(Resource("topic", "t"), LEADER_REPLICAS, OpType.APPEND, "0:1", topic_id="id")
    hand = StubHand({1: (now,)})
    assert [row.kind for row in carried(hand, Configure((entry,)))] == [kind]
    assert bool(sent(hand)) is (kind is Kind.OK)


def test_a_resource_is_changed_whole_or_not_at_all_and_the_others_all_the_same() -> None:
    two = Resource("broker", "2")
    hand = StubHand(throttles=(SeenThrottle(ONE, LEADER_RATE, "7"),))
    settings = (SET, SET._replace(key=FOLLOWER_RATE), SET._replace(resource=two))
    assert [(row.subject, row.kind) for row in carried(hand, Configure(settings))] == [
        (ONE, Kind.RETRY), (two, Kind.OK),
    ]  # fmt: skip
    ((_, changes),) = sent(hand)
    assert [change.resource.name for change in changes] == ["2"]


def test_what_is_as_expected_is_sent_without_what_is_not() -> None:
    hand = StubHand({1: (topic("t", (1, 2)), topic("u", (2, 1)))})
    other = MOVE._replace(id=TopicPartition("u", 0))
    assert [row.kind for row in carried(hand, Alter((MOVE, other)))] == [Kind.OK, Kind.RETRY]
    assert sent(hand) == [("alter", {T0: (3, 2)})]


@pytest.mark.parametrize(
    ("told", "cancelling", "kind"),
    [
        (DONE, False, Kind.OK),
        (Answered(Fate.UNKNOWN), False, Kind.UNKNOWN),
        (Answered(Fate.NOT_SENT), False, Kind.RETRY),
        (Answered(Fate.REFUSED, "NO_REASSIGNMENT_IN_PROGRESS"), True, Kind.NOT_NEEDED),
        (Answered(Fate.REFUSED, "INVALID_REPLICATION_ASSIGNMENT"), True, Kind.UNCLEAN),
        (Answered(Fate.REFUSED, "INVALID_REPLICATION_ASSIGNMENT"), False, Kind.RETRY),
        (Answered(Fate.REFUSED, "INVALID_REPLICATION_FACTOR"), False, Kind.REFUSED),
        (Answered(Fate.REFUSED, "UNSUPPORTED"), False, Kind.REFUSED),
        (Answered(Fate.REFUSED, "NOT_ALLOWED"), False, Kind.RETRY),
        (Answered(Fate.REFUSED, "TOPIC_AUTHORIZATION_FAILED"), False, Kind.RETRY),
        (Answered(Fate.REFUSED, "UNKNOWN_TOPIC_OR_PARTITION"), False, Kind.GONE),
        (Answered(Fate.REFUSED, "CLUSTER_AUTHORIZATION_FAILED"), False, Kind.RETRY),
        (Answered(Fate.REFUSED, "THROTTLING_QUOTA_EXCEEDED"), False, Kind.RETRY),
    ],
)  # fmt: skip
def test_an_answer_of_the_wire_is_one_of_the_machine(told: Answered, cancelling: bool, kind: Kind) -> None:
    hand = StubHand(AS_EXPECTED, answer=told, moves=(OURS,) if cancelling else ())
    act = CANCEL if cancelling else Alter((MOVE,))
    assert [row.kind for row in carried(hand, act)] == [kind]


def test_what_was_not_sent_in_time_is_told_so() -> None:
    hand = StubHand(AS_EXPECTED, answer=Answered(Fate.NOT_SENT))
    assert [row.kind for row in carried(hand, CANCEL, within_ms=0)] == [Kind.NOT_SENT]
    assert [row.kind for row in carried(hand, Elect((T0,)), within_ms=0)] == [Kind.NOT_SENT]


def test_where_it_is_too_late_for_a_move_nobody_is_asked_for_its_partition_either() -> None:
    hand = StubHand(AS_EXPECTED)
    assert [row.kind for row in carried(hand, Alter((MOVE,)), within_ms=0)] == [Kind.NOT_SENT]
    assert hand.calls == []


def test_settings_are_answered_once_for_each_topic_or_broker() -> None:
    hand = StubHand()
    broker, moved = Resource("broker", "3"), Resource("topic", "t")
    settings = (
        ThrottleChange(broker, LEADER_RATE, OpType.SET, "1"),
        ThrottleChange(broker, FOLLOWER_RATE, OpType.DELETE),
        ThrottleChange(moved, LEADER_REPLICAS, OpType.APPEND, "0:1"),
    )
    assert carried(hand, Configure(settings)) == (Result(broker, Kind.OK, ""), Result(moved, Kind.OK, ""))
    ((_, changes),) = sent(hand)
    assert [(change.key, change.op.name, change.value) for change in changes] == [
        (LEADER_RATE, "SET", "1"),
        (FOLLOWER_RATE, "DELETE", None),
        (LEADER_REPLICAS, "APPEND", "0:1"),
    ]
